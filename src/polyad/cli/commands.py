"""The command line: each command a few lines over :class:`polyad.engine.engine.Engine`.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 fine; 1 something could not be done though the
command was right (a document failed, the language model gave no answer); 2 usage, configuration or a damaged store;
130 interrupted, 143 terminated.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from polyad import __version__, sample
from polyad.cli import evaluate_experiments as cli_evaluate_experiments
from polyad.cli import evaluate_runs as cli_evaluate_runs
from polyad.cli import look as cli_look
from polyad.cli import measure as cli_measure
from polyad.cli import output
from polyad.cli import questions as cli_questions
from polyad.cli import train as cli_train
from polyad.cli.options import (
    SETTINGS_FILE,
    TRUSTS_ENDPOINT,
    Depth,
    Embedder,
    Explain,
    Form,
    Json,
    MaxCost,
    MaxTokens,
    MaxWords,
    Mentions,
    Method,
    MinRelevance,
    Model,
    Preset,
    Quiet,
    Replies,
    ReplyCache,
    Rerank,
    Retriever,
    Rewrite,
    Store,
    directory_for,
    open_engine,
    require_use_of_rewriting,
    settings_from,
)
from polyad.cli.settings import FILE_NAME, Configuration
from polyad.engine import Engine
from polyad.engine.registry import retrievers
from polyad.errors import ConfigurationError, NoLanguageModelError, NotFoundError, PolyadError, StoreError
from polyad.model import Evidence
from polyad.protocols.components import Progress
from polyad.readers.files import require_reachable
from polyad.schemas.evidence import answer_json, evidence_json, usage_json
from polyad.schemas.indexing import index_json
from polyad.schemas.measuring import demo_json
from polyad.text.counting import format_count

_USAGE_ERRORS = (ConfigurationError, NotFoundError, StoreError)
_INTERRUPTED, _PIPE_CLOSED, _TERMINATED = 130, 141, 143  # what a shell reports of one ended by SIGINT, PIPE, TERM
_AFTER_INTERRUPT = {
    "index": "the documents indexed so far are kept; the same command goes on from there",
    "remove": "either all of the documents were removed or none",
    "demo": "the documents indexed so far are kept if you gave --store",
    **dict.fromkeys(
        ("eval", "run"),
        "the documents indexed so far are kept if you gave --store, and the questions asked if you gave --out",
    ),
    "train": "the documents indexed so far are kept if you gave --store; each file of weights is whole, or as it was",
    "questions": "what the language model has written is kept; the same command goes on",
    "compare": "the verdicts so far are kept; the same command goes on",
    "report": "each file of the report is whole, or as it was; the same command writes all of them",
    **dict.fromkeys(("search", "ask"), "no document was changed; whole replies of the language model are kept"),
    **dict.fromkeys(("experiment", "sweep", "ablate"), "the questions asked so far are kept; the same command goes on"),
}

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")

_EPILOG = f"""Settings come from flags, else from the environment (POLYAD_STORE, POLYAD_MODEL, OPENAI_BASE_URL, ...),
else from {FILE_NAME} in the working directory, else from the user's own; polyad config shows them all.
Exit codes: 0 fine, 1 something failed (a document, the language model), 2 usage or configuration."""


class _TerminatedError(KeyboardInterrupt):
    """Somebody asked this process to end: a service manager, a machine that shuts down."""


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
            is_terminated = isinstance(error, _TerminatedError)
            consequence = _AFTER_INTERRUPT.get(ctx.invoked_subcommand, "nothing was changed")
            output.warn("terminated" if is_terminated else "interrupted", consequence)
            raise typer.Exit(_TERMINATED if is_terminated else _INTERRUPTED) from error
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: not an error
            raise typer.Exit(_PIPE_CLOSED) from error
        except OSError as error:  # a folder that may not be entered, a disk that is full
            output.warn("error", f"{error.filename or 'input or output'}: {error.strerror or error}")
            raise typer.Exit(2) from error
        return result


app = typer.Typer(
    name="polyad",
    cls=_Commands,
    help="Find and cite the evidence for a question in your documents, by walking a hypergraph of what they say.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


bench = typer.Typer(
    cls=_Commands,
    help="Measure retrievers on questions, compare runs and train weights. `polyad eval` is short for `bench run`.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.say(f"polyad {__version__}")
        raise typer.Exit


@app.callback()
def _polyad(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help=f"Settings, in place of {FILE_NAME}.")
    ] = None,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Say what is done; twice: more.")
    ] = 0,
    trust_endpoint: Annotated[
        bool,
        typer.Option(
            "--trust-endpoint", help=f"Send API keys of the environment to an endpoint that only {FILE_NAME} names."
        ),
    ] = False,
) -> None:
    """Options of ``polyad`` itself; the help text of the group is the app's."""
    TRUSTS_ENDPOINT.set(trust_endpoint)
    SETTINGS_FILE.set(config)
    logging.getLogger("polyad").setLevel(_log_level(verbose))


def _log_level(verbose: int) -> int:
    """What ``-v`` says, else ``POLYAD_LOG``, else warnings.

    Raises:
        ConfigurationError: the variable names no level.
    """
    name = os.environ.get("POLYAD_LOG", "").strip().upper()
    if verbose:
        name = "INFO" if verbose == 1 else "DEBUG"
    if name not in {"", *_LEVELS}:
        raise ConfigurationError(f"POLYAD_LOG is {name.lower()!r}; expected one of {', '.join(_LEVELS).lower()}")
    return int(getattr(logging, name or "WARNING"))


@app.command()
def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders; with --force also document ids.")
    ] = None,
    store: Store = None,
    preset: Preset = None,
    method: Method = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    max_cost: MaxCost = 0.0,
    max_tokens: MaxTokens = 0,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what the language model would cost, and index nothing."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove documents that came from a PATH and are gone, unless nothing else is there either."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Build anew what is unchanged too, asking the model anew; all files without a PATH."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when files were skipped because of their kind.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add documents to an index.

    The index is made when there is none. Reads .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .eml .csv .jsonl
    and source code. A document that was indexed before is replaced if it changed and left alone if not, so running the
    same command again is cheap. One that cannot be read is reported and the rest goes on; the exit code is then 1.
    Files of other kinds are skipped, and listed by kind.

    With --method facts a language model extracts what each passage says, one call a passage; what it has replied is
    kept, so that a run that was stopped goes on where it was. With --method tuples each line of a .jsonl, or row of a
    .csv, is a fact: {"relation", "arguments": [{"role", "entity"}, ...]}, or a row whose columns are roles. Give facts
    an "_id" if they may change: without it a corrected line is a new fact, and the wrong one stays until removed.

    Example: polyad index handbook/ trials.pdf --store kb
    """
    settings = settings_from(
        store=store,
        preset=preset,
        method=method,
        embedder=embedder,
        mentions=mentions,
        model=model,
        replies=replies,
        reply_cache=reply_cache,
    )
    paths = paths or []
    if not paths and not force:
        raise ConfigurationError("no PATH is named; expected files or folders to index")
    for path in () if force else paths:  # before an index is made for nothing
        require_reachable(path)
    method = settings.method
    if (
        settings.command.method == "facts"
        and settings.language_model is None
        and not Engine.exists(settings.command.store)
    ):
        raise NoLanguageModelError("the method 'facts'")
    if dry_run:
        _show_estimate(settings, paths, json, force=force)
        return
    with output.progress_bar(quiet or json) as progress, open_engine(settings, create=True) as engine:
        report = engine.index(
            paths, method=method, max_cost=max_cost, max_tokens=max_tokens, prune=prune, force=force, progress=progress
        )
    output.warn_of_failures(report)
    output.warn_of_duplicates(report)
    output.warn_of_nothing(report, paths)
    if json:
        output.say_json(index_json(report))
    else:
        output.show_index_report(report)
    if not report.is_complete or (strict and report.skipped):
        raise typer.Exit(1)


def _show_estimate(settings: Configuration, paths: list[Path], json: bool, *, force: bool) -> None:
    """Of a new index in a directory that is gone afterwards: estimating leaves nothing behind."""
    store = settings.command.store
    directory = store if store and Engine.exists(store) else None
    with (
        directory_for(directory) as place,
        open_engine(settings, create=True, directory=place) as engine,
    ):
        usage = engine.estimate(paths, method=settings.method, force=force)
    if json:
        output.say_json({"estimate": usage_json(usage)})
    else:
        output.show_estimate(usage)


@app.command()
def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    store: Store = None,
    preset: Preset = None,
    retriever: Retriever = None,
    k: Depth = None,
    max_words: MaxWords = None,
    min_relevance: MinRelevance = None,
    rerank: Rerank = None,
    explain: Explain = False,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the evidence for a question.

    Prints the best passages with page and heading; adjacent passages are one hit. With --max-words, long passages are
    cut to the parts most similar to the question. Only the retriever `hypermemory` needs a language model.

    Each search loads what its retriever needs: `bm25` no model, the others the embedding model, which takes seconds
    where the search itself takes milliseconds. For many questions keep it loaded: polyad.Engine.open(DIR) in Python.

    Example: polyad search "Who funded the trial?" --store kb --explain
    """
    settings = settings_from(
        store=store,
        preset=preset,
        retriever=retriever,
        k=k,
        max_words=max_words,
        min_relevance=min_relevance,
        rerank=rerank,
        rewrite=rewrite,
        embedder=embedder,
        mentions=mentions,
        model=model,
        replies=replies,
        reply_cache=reply_cache,
    )
    require_use_of_rewriting(rewrite, [settings.command.retriever])
    searches = retrievers[settings.command.retriever]
    with (
        output.progress_bar(quiet or json) as progress,
        open_engine(settings, reranks=True, searches=searches) as engine,
    ):
        progress(0, None, "questions answered, loading")
        evidence = _search(engine, question, settings, progress)
        is_empty = _is_empty(engine, evidence)
    if is_empty:
        output.warn_of_no_documents()
    if json:
        output.say_json(evidence_json(evidence, explain))
    else:
        output.show_evidence(evidence, explain)


def _search(engine: Engine, question: str, settings: Configuration, progress: Progress) -> Evidence:
    command = settings.command
    return engine.search(
        question,
        command.k,
        max_words=command.max_words,
        retriever=command.retriever,
        min_relevance=command.min_relevance,
        progress=progress,
    )


def _is_empty(engine: Engine, evidence: Evidence) -> bool:
    """Whether nothing was found because there is nothing to find."""
    return not evidence.passages and not engine.catalogue.statistics().documents


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    store: Store = None,
    preset: Preset = None,
    retriever: Retriever = None,
    k: Depth = None,
    max_words: MaxWords = None,
    min_relevance: MinRelevance = None,
    rerank: Rerank = None,
    explain: Explain = False,
    form: Form = None,
    rewrite: Rewrite = None,
    embedder: Embedder = None,
    mentions: Mentions = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer a question, with citations.

    The answer is made from the evidence that `polyad search` finds, each claim with its source. It is written by a
    language model behind any OpenAI-compatible endpoint: name the model with --model and the endpoint with
    OPENAI_BASE_URL. Without a model the evidence is printed instead.

    Example: OPENAI_BASE_URL=http://localhost:11434/v1 polyad ask "Who funded the trial?" --store kb --model qwen3
    """
    settings = settings_from(
        store=store,
        preset=preset,
        retriever=retriever,
        k=k,
        max_words=max_words,
        min_relevance=min_relevance,
        rerank=rerank,
        form=form,
        rewrite=rewrite,
        embedder=embedder,
        mentions=mentions,
        model=model,
        replies=replies,
        reply_cache=reply_cache,
    )
    require_use_of_rewriting(rewrite, [settings.command.retriever])
    streams = settings.language_model is not None and not json and sys.stdout.isatty()
    with ExitStack() as stack:
        with output.progress_bar(quiet or json) as progress:
            progress(0, None, "questions answered, loading")
            engine = stack.enter_context(open_engine(settings, reranks=True))
            evidence = _search(engine, question, settings, progress)
            progress(0, None, "questions answered, writing")
            is_empty = _is_empty(engine, evidence)
            answer = None if streams else engine.answer(evidence)
        if answer is None:  # streamed, which would run into a progress bar
            try:
                answer = engine.answer(evidence, output.say_piece)
            finally:
                output.say()
    if is_empty:
        output.warn_of_no_documents()
    if json:
        output.say_json(answer_json(answer, explain))
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
    with open_engine(settings_from(store=store), bare=True) as engine:
        engine.remove(document_ids)
        left = engine.catalogue.statistics().documents
    if json:
        output.say_json({"removed": document_ids, "documents": left})
    else:
        output.say(f"{len(document_ids)} removed, {format_count(left, 'document')} left")


app.command()(cli_look.plugins)
app.command()(cli_look.config)
app.command()(cli_look.stats)
app.command()(cli_look.show)
app.command("list")(cli_look.list_)
app.command()(cli_look.facts)
app.command("eval")(cli_measure.evaluate)
bench.command("run")(cli_measure.evaluate)
bench.command()(cli_evaluate_runs.compare)
bench.command()(cli_evaluate_runs.report)
bench.command()(cli_evaluate_experiments.sweep)
bench.command()(cli_evaluate_experiments.ablate)
bench.command()(cli_evaluate_experiments.experiment)
bench.command()(cli_questions.questions)
bench.command("train")(cli_train.train)
app.add_typer(bench, name="bench")


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
    settings = settings_from(k=k)
    with (
        directory_for(store) as directory,
        output.progress_bar(quiet or json) as progress,
        Engine.open(directory) as engine,
    ):
        report = engine.index_documents(sample.documents(), progress=progress)
        found = [(query, engine.search(query.text, settings.command.depth)) for query in sample.questions()]
    if json:
        output.say_json(demo_json(report, found))
    else:
        output.show_demo(report, found, store)


class _Formatter(logging.Formatter):
    """One line, like the warnings of the commands."""

    def format(self, record: logging.LogRecord) -> str:
        return f"polyad: {record.levelname.lower()}: {record.getMessage()}"


def main() -> None:
    """Run the command line."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter())
    logging.getLogger("polyad").addHandler(handler)
    if sys.stdout is None:  # whoever started this process closed it
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (it is open to the end)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a fresh process
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app(prog_name="polyad")
    except SystemExit as end:
        if end.code in (_INTERRUPTED, _TERMINATED):  # nobody waits for what other threads have asked for
            sys.stdout.flush()
            os._exit(int(end.code))
        raise


def _terminate(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends this process at once
    raise _TerminatedError
