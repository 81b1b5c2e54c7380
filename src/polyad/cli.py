"""The command line: each command a few lines over :class:`polyad.engine.Engine`.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 fine; 1 something could not be done though the
command was right (a document failed, the language model gave no answer); 2 usage, configuration or a damaged store;
130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from polyad import __version__, sample
from polyad import cli_json as shapes
from polyad import cli_output as output
from polyad.adapters.openai import OpenAILanguageModel
from polyad.cli_settings import FILE_NAME, Configuration, load, require_one_of
from polyad.engine import METHODS, RETRIEVERS, Engine
from polyad.errors import ConfigurationError, NotFoundError, PolyadError, StoreError
from polyad.evaluation import datasets, experiment, training

_USAGE_ERRORS = (ConfigurationError, NotFoundError, StoreError)
_INTERRUPTED, _PIPE_CLOSED = 130, 141  # what a shell reports for a program ended by SIGINT, by SIGPIPE
_KEPT = {
    "index": "the documents indexed so far are kept; the same command goes on from there",
    "remove": "either all of the documents were removed or none",
    **dict.fromkeys(("eval", "demo"), "the documents indexed so far are kept if you gave --store"),
}

_EPILOG = f"""Settings come from flags, else from the environment (POLYAD_STORE, POLYAD_MODEL, OPENAI_BASE_URL, ...),
else from {FILE_NAME} in the working directory.
Exit codes: 0 fine, 1 something failed (a document, the language model), 2 usage or configuration."""


class _Commands(TyperGroup):
    """Turns what stops a command into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows here, not at the interpreter's end
        except PolyadError as error:
            output.warn("error", str(error))
            raise typer.Exit(2 if isinstance(error, _USAGE_ERRORS) else 1) from error
        except KeyboardInterrupt as error:
            output.warn("interrupted", _KEPT.get(ctx.invoked_subcommand, "nothing was changed"))
            raise typer.Exit(_INTERRUPTED) from error
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: not an error
            raise typer.Exit(_PIPE_CLOSED) from error
        return result


app = typer.Typer(
    name="polyad",
    cls=_Commands,
    help="Find and cite the evidence for a question in your documents, by walking a hypergraph of what they say.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Store = Annotated[str | None, typer.Option("--store", metavar="DIR", help="Directory of the index. [POLYAD_STORE]")]
Embedder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Embedding model; an index keeps the one it was built with. [POLYAD_EMBEDDER]"),
]
Mentions = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How names are found: rules, gliner, llm or given:FILE. [POLYAD_MENTIONS]"),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Language model at the endpoint of OPENAI_BASE_URL. [POLYAD_MODEL]"),
]
Method = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"How facts are formed: {', '.join(METHODS)}. [POLYAD_METHOD]")
]
Retriever = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(RETRIEVERS)}. [POLYAD_RETRIEVER]")
]
Depth = Annotated[int | None, typer.Option("-k", metavar="N", help="Passages to find; 5 by default. [POLYAD_K]")]
Explain = Annotated[bool, typer.Option("--explain", help="Also say why each passage was found, and by what path.")]
Rewrite = Annotated[
    bool | None,
    typer.Option("--rewrite/--no-rewrite", help="Let `default` also embed rewritten questions; slower. [off]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Draw no progress bar.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        output.say(f"polyad {__version__}")
        raise typer.Exit


@app.callback()
def _polyad(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of ``polyad`` itself; the help text of the group is the app's."""


@app.command()
def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders.")],
    store: Store = None,
    method: Method = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add documents to an index.

    The index is made when there is none. Reads .txt .md .html .pdf .docx .csv and .jsonl. A document that was indexed
    before is replaced if it changed and left alone if not, so running the same command again is cheap. One that
    cannot be read is reported and the rest goes on; the exit code is then 1.

    Example: polyad index handbook/ trials.pdf --store kb
    """
    settings = _settings(store=store, method=method, embedder=embedder, mentions=mentions, model=model)
    if missing := [str(path) for path in paths if not path.exists()]:  # before an index is made for nothing
        raise ConfigurationError(f"there is no {missing[0]!r}; expected the path of a file or a folder")
    with _engine(settings, create=True) as engine, output.progress_bar(quiet or json) as progress:
        report = engine.index(paths, method=settings.command.method, progress=progress)
    output.warn_of_failures(report)
    if json:
        output.say_json(shapes.index_json(report))
    else:
        output.show_index_report(report)
    if report.failures:
        raise typer.Exit(1)


@app.command()
def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    store: Store = None,
    retriever: Retriever = None,
    k: Depth = None,
    explain: Explain = False,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the evidence for a question.

    Prints the passages that hold it, best first. Needs no language model.

    Example: polyad search "Who funded the trial?" --store kb --explain
    """
    settings = _settings(
        store=store, retriever=retriever, k=k, rewrite=rewrite, embedder=embedder, mentions=mentions, model=model
    )
    command = settings.command
    with _engine(settings) as engine, output.progress_bar(quiet or json) as progress:
        progress(0, None, "questions answered, loading")
        evidence = engine.search(question, command.k, retriever=command.retriever)
    if json:
        output.say_json(shapes.evidence_json(evidence, explain))
    else:
        output.show_evidence(evidence, explain)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    store: Store = None,
    retriever: Retriever = None,
    k: Depth = None,
    explain: Explain = False,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    json: Json = False,
) -> None:
    """Answer a question, with citations.

    The answer is made from the evidence that `polyad search` finds, each claim with its source. It is written by a
    language model behind any OpenAI-compatible endpoint: name the model with --model and the endpoint with
    OPENAI_BASE_URL. Without a model the evidence is printed instead.

    Example: OPENAI_BASE_URL=http://localhost:11434/v1 polyad ask "Who funded the trial?" --store kb --model qwen3
    """
    settings = _settings(
        store=store, retriever=retriever, k=k, rewrite=rewrite, embedder=embedder, mentions=mentions, model=model
    )
    command = settings.command
    streams = settings.language_model is not None and not json and sys.stdout.isatty()
    with _engine(settings) as engine:
        try:
            show = output.say_piece if streams else None
            answer = engine.ask(question, command.k, retriever=command.retriever, on_text=show)
        finally:
            if streams:
                output.say()
    if json:
        output.say_json(shapes.answer_json(answer, explain))
    else:
        output.show_answer(answer, explain, streams)


@app.command()
def remove(
    document_ids: Annotated[list[str], typer.Argument(metavar="DOCUMENT_ID", help="As `search` shows them.")],
    store: Store = None,
    json: Json = False,
) -> None:
    """Remove documents from an index.

    Everything that came from them goes too. If one of them is unknown, none is removed.

    Example: polyad remove handbook/old.md --store kb
    """
    with _engine(_settings(store=store), bare=True) as engine:
        engine.remove(document_ids)
        left = engine.statistics().documents
    if json:
        output.say_json({"removed": document_ids, "documents": left})
    else:
        output.say(f"{len(document_ids)} removed, {left:,} documents left")


@app.command()
def stats(store: Store = None, json: Json = False) -> None:
    """Print the sizes of an index.

    Also what was spent on language models for it, and what it was built with. Density is hyperedges per entity; mean
    arity is how many entities a hyperedge joins.

    Example: polyad stats --store kb
    """
    with _engine(_settings(store=store), bare=True) as engine:
        shape = shapes.statistics_json(engine.statistics())
    if json:
        output.say_json(shape)
    else:
        output.show_fields(shape)


@app.command()
def show(
    kind: Annotated[shapes.Kind, typer.Argument(help="What kind of thing.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="As `search --json` prints them; for an entity, its name.")],
    store: Store = None,
    json: Json = False,
) -> None:
    """Print one thing of an index, whole.

    That is a document, a passage, an entity or a hyperedge.

    Example: polyad show entity "Ada Lovelace" --store kb
    """
    with _engine(_settings(store=store), bare=True) as engine:
        shape = shapes.look_up(engine, kind, id)
    if json:
        output.say_json(shape)
    else:
        output.show_fields(shape)


@app.command("eval")
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="BEIR_DIR", help="Holds corpus.jsonl, queries.jsonl, qrels/.")],
    retriever: Annotated[
        str, typer.Option(metavar="A,B,...", help=f"Some of {', '.join(RETRIEVERS)}.")
    ] = "standard,default",
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the index here for the next run.")] = None,
    k: Depth = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions.")] = None,
    method: Method = None,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure retrievers on a benchmark.

    Indexes its corpus and asks its questions. Recall is the share of the gold passages among the first k, all recall
    the share of questions with all of them there, MRR the mean of 1 / rank of the first. Times are per question, one
    at a time.

    Example: polyad eval musique/ --retriever bm25,standard,default --limit 200 --store musique-kb
    """
    names = list(dict.fromkeys(name.strip() for name in retriever.split(",")))
    for name in names:
        require_one_of("retriever", name, RETRIEVERS)
    settings = _settings(
        store=store, k=k, method=method, rewrite=rewrite, embedder=embedder, mentions=mentions, model=model
    )
    dataset, depth = datasets.load(folder, limit), settings.command.k
    with (
        _directory(store) as directory,
        _engine(settings, create=True, directory=directory) as engine,
        output.progress_bar(quiet or json) as progress,
    ):
        report = engine.index([dataset.corpus], method=settings.command.method, progress=progress)
        statistics = engine.statistics()
        sizes, documents = shapes.eval_index_json(report, statistics), statistics.documents
        results = [
            experiment.run(
                name, _search_with(engine, name), dataset.queries, depth, progress, lambda: engine.llm_tokens
            )
            for name in names
        ]
    output.warn_of_failures(report)
    others = documents - report.counts.added - report.counts.updated - report.counts.unchanged
    if others > 0:
        output.warn("warning", f"the index also holds {others:,} other documents, which were searched too")
    if json:
        output.say_json(shapes.eval_json(dataset, depth, sizes, results))
    else:
        output.show_eval(dataset, depth, sizes, results)
    if report.failures:
        raise typer.Exit(1)


@app.command()
def train(
    scorer: Annotated[str, typer.Argument(metavar="SCORER", help="What to train: default.")],
    folders: Annotated[list[Path], typer.Argument(metavar="BEIR_DIR...", help="Benchmarks to train on.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the weights and the report go.")] = Path(),
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the indexes here for the next run.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N questions of each.")] = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a retriever on questions whose evidence is known.

    Writes weights.tsv (and weights_rewriting.tsv, for --rewrite), a picture of what each signal contributes, and a
    report of the recall on each benchmark: by weights trained on the others, and by the weights written. Use them
    with `weights = "weights.tsv"` in the section [default] of polyad.toml.

    Example: polyad train default 2wiki/ hotpotqa/ musique/ --to weights/
    """
    require_one_of("scorer", scorer, ("default",))
    settings = _settings(embedder=embedder, mentions=mentions)
    examples = {}
    with _directory(store) as directory, output.progress_bar(quiet or json) as progress:
        for dataset in [datasets.load(folder, limit) for folder in folders]:
            with _engine(settings, create=True, directory=directory / dataset.name) as engine:
                engine.index([dataset.corpus], progress=progress)
                questions = experiment.tracked([query.text for query in dataset.queries], progress, dataset.name)
                examples[dataset.name] = training.examples_of(engine.signals(questions), dataset.queries)
    reports = training.save(examples, to)
    if json:
        output.say_json(shapes.training_json(reports))
    else:
        output.show_training(reports, to)


@app.command()
def demo(
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the index of the sample here.")] = None,
    k: Depth = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try polyad on a bundled sample, offline.

    Indexes it and finds the evidence for six questions. Each question needs two documents: one that names someone or
    something, and one about it.

    Example: polyad demo --store demo-kb
    """
    settings = _settings(k=k)
    with (
        _directory(store) as directory,
        Engine.open(directory) as engine,
        output.progress_bar(quiet or json) as progress,
    ):
        report = engine.index_documents(sample.documents(), progress=progress)
        found = [(query, engine.search(query.text, settings.command.k)) for query in sample.questions()]
    if json:
        output.say_json(shapes.demo_json(report, found))
    else:
        output.show_demo(report, found, store)


def main() -> None:
    """Run the command line."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("polyad: warning: %(message)s"))
    logging.getLogger("polyad").addHandler(handler)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a fresh process
    app(prog_name="polyad")


# From flags to an engine


def _settings(**flags: object) -> Configuration:
    settings = load(flags, os.environ, Path(FILE_NAME))
    for variable in settings.unknown:
        output.warn("warning", f"{variable} in the environment is no setting of polyad")
    return settings


def _engine(
    settings: Configuration, *, create: bool = False, bare: bool = False, directory: Path | None = None
) -> Engine:
    """An engine on the index that the settings name, or on ``directory``; ``bare`` where no model will be needed."""
    path = directory or settings.command.directory()
    if bare:
        return Engine.open(path, create=False, settings=settings.stages)
    if not create:
        Engine.open(path, create=False).close()  # a wrong directory shows before any model is loaded
    return Engine.open(
        path,
        embedder=settings.command.embedder or None,
        mentions=settings.command.mentions or None,
        language_model=OpenAILanguageModel(settings.language_model) if settings.language_model else None,
        settings=settings.stages,
        create=create,
    )


@contextmanager
def _directory(store: str | None) -> Iterator[Path]:
    """The directory given, to be kept; or one that is gone afterwards."""
    kept: AbstractContextManager[str] = nullcontext(store) if store else tempfile.TemporaryDirectory(prefix="polyad-")
    with kept as directory:
        yield Path(directory)


def _search_with(engine: Engine, retriever: str) -> experiment.Search:
    return lambda question, k: engine.search(question, k, retriever=retriever)


if __name__ == "__main__":
    main()
