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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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
    SETTINGS,
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
    MentionExtractor,
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
from polyad.schemas.errors import FailedShape, error_json, failed_json
from polyad.schemas.evidence import answer_json, evidence_json, usage_json
from polyad.schemas.indexing import index_json
from polyad.schemas.measuring import demo_json
from polyad.text.counting import format_count

_UsageError: Any = typer.BadParameter.__base__  # of an unknown option too; typer has no name for it
_PRINTS_JSON = "polyad.json"  # key in the contexts of the parser
_USAGE_ERRORS = (ConfigurationError, NotFoundError, StoreError)
_INTERRUPTED, _PIPE_CLOSED, _TERMINATED = 130, 141, 143  # exit codes of shells for SIGINT, SIGPIPE and SIGTERM
_AFTER_INTERRUPT = {
    "index": "the documents indexed so far are stored; run the same command again to continue",
    "remove": "either all of the documents were removed or none",
    "demo": "the documents indexed so far are stored if you gave --store",
    **dict.fromkeys(
        ("eval", "run"),
        "the documents indexed so far are stored if you gave --store, and the results so far if you gave --out",
    ),
    "train": "the documents indexed so far are stored if you gave --store; no file of weights is incomplete",
    "questions": "the questions written so far are stored; run the same command again to continue",
    "compare": "the verdicts so far are stored; run the same command again to continue",
    "report": "no file of the report is incomplete; run the same command again to write the rest",
    **dict.fromkeys(("search", "ask"), "no document was changed; complete replies of the language model are stored"),
    **dict.fromkeys(
        ("experiment", "sweep", "ablate"), "the results so far are stored; run the same command again to continue"
    ),
}
"""What an interrupted command leaves behind, by command; by default nothing was changed."""

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")

_EPILOG = f"""Settings come from flags, else from the environment (POLYAD_STORE, POLYAD_MODEL, OPENAI_BASE_URL, ...),
else from {FILE_NAME} in the working directory, else from the user's own; polyad config prints all of them.
Exit codes: 0 success, 1 a failure (of a document or the language model), 2 an error of usage or configuration."""


class _TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM, for example from a service manager."""


class _Commands(TyperGroup):
    """A group of commands that reports each error as one line and an exit code, with ``--json`` also as JSON."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the group, printing an unknown one as JSON if the command line has ``--json``."""
        if ctx.parent is None:
            ctx.meta[_PRINTS_JSON] = "--json" in args
        with _usage_errors_as_json(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, turning errors and interrupts into a line on the error stream and an exit code."""
        try:
            if ctx.obj:
                ctx.obj()
            with _usage_errors_as_json(ctx):
                result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows here, not at the interpreter's end
        except PolyadError as error:
            code = 2 if isinstance(error, _USAGE_ERRORS) else 1
            raise _fail(ctx, code, "error", error_json(error)) from error
        except KeyboardInterrupt as error:
            is_terminated = isinstance(error, _TerminatedError)
            kind, code = ("terminated", _TERMINATED) if is_terminated else ("interrupted", _INTERRUPTED)
            consequence = _AFTER_INTERRUPT.get(ctx.invoked_subcommand, "nothing was changed")
            raise _fail(ctx, code, kind, failed_json(kind, consequence)) from error
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader stopped: not an error
            raise typer.Exit(_PIPE_CLOSED) from error
        except OSError as error:  # for example a folder without permission, or a full disk
            message = f"{error.filename or 'input or output'}: {error.strerror or error}"
            raise _fail(ctx, 2, "error", failed_json("system", message)) from error
        return result


def _fail(ctx: Any, code: int, label: str, failed: FailedShape) -> typer.Exit:
    """Print an error, with ``--json`` also as JSON, and return the exception that ends the command."""
    output.warn(label, failed["error"]["message"])
    if ctx.meta[_PRINTS_JSON]:
        with suppress(OSError):  # the standard output may be what failed
            output.say_json(failed)
    return typer.Exit(code)


@contextmanager
def _usage_errors_as_json(ctx: Any) -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if ctx.parent is None and ctx.meta[_PRINTS_JSON]:
            output.say_json(failed_json("usage", error.format_message(), "polyad COMMAND --help lists the options"))
        raise


app = typer.Typer(
    name="polyad",
    cls=_Commands,
    help="Index documents as a hypergraph, search them for evidence, and answer questions with citations.",
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


def _print_version(is_set: bool) -> None:
    if is_set:
        output.say(f"polyad {__version__}")
        raise typer.Exit


@app.callback()
def _polyad(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help=f"Settings file to use in place of {FILE_NAME}.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.KEY=VALUE",
            help="Set one value, such as hypersu.decay=0.3; also parameters of a paper that files cannot set. Repeat.",
        ),
    ] = None,
    verbose: Annotated[
        int,
        typer.Option("-v", "--verbose", count=True, show_default=False, help="Log progress; repeat for more."),
    ] = 0,
    trust_endpoint: Annotated[
        bool,
        typer.Option(
            "--trust-endpoint", help=f"Send API keys of the environment to an endpoint that only {FILE_NAME} names."
        ),
    ] = False,
) -> None:
    """Apply the options of ``polyad`` itself. The help of the group is that of the app."""
    TRUSTS_ENDPOINT.set(trust_endpoint)
    SETTINGS_FILE.set(config)
    SETTINGS.set(settings or [])
    logging.getLogger("polyad").setLevel(_log_level(verbose))


def _log_level(verbose: int) -> int:
    """Return the log level of ``-v``, else of ``POLYAD_LOG``, else that of warnings.

    Raises:
        ConfigurationError: ``POLYAD_LOG`` is no log level.
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
        list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders; with --force also ids of documents.")
    ] = None,
    store: Store = None,
    preset: Preset = None,
    method: Method = None,
    embedder: Embedder = None,
    mention_extractor: MentionExtractor = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    max_cost: MaxCost = 0.0,
    max_tokens: MaxTokens = 0,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what the language model would cost, without indexing."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove documents whose files are missing below PATH, unless the whole folder is empty."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Rebuild unchanged documents too, without reusing replies; without PATH all documents."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if files of unsupported types were skipped.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add documents to an index.

    Creates the index if necessary. Reads .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .eml .csv .jsonl and
    source code. Changed documents are replaced and unchanged ones skipped, so running the same command again is cheap.
    A document that cannot be read is reported, the others are indexed, and the exit code is 1. Files of unsupported
    types are skipped and listed.

    With --method facts a language model extracts facts, with one call per passage. Its replies are stored, so that a
    stopped run continues where it stopped. With --method tuples each line of a .jsonl file or row of a .csv file is a
    fact: {"relation", "arguments": [{"role", "entity"}, ...]}, or a row whose columns are roles. Facts that may change
    need an "_id": without it a corrected line is a new fact, and the old one stays until it is removed.

    Example: polyad index handbook/ trials.pdf --store kb
    """
    settings = settings_from(
        store=store,
        preset=preset,
        method=method,
        embedder=embedder,
        mention_extractor=mention_extractor,
        model=model,
        replies=replies,
        reply_cache=reply_cache,
    )
    paths = paths or []
    if not paths and not force:
        raise ConfigurationError("no PATH was given; expected files or folders to index")
    for path in () if force else paths:  # before an index is created in vain
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
    """Print the estimated cost of indexing; a new index is estimated in a temporary directory."""
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
    mention_extractor: MentionExtractor = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the evidence for a question.

    Prints the best passages with page and heading; adjacent passages are merged into one hit. With --max-words, long
    passages are cut to the parts most similar to the question. Only the retriever `hypermemory` needs a language model.

    Each command loads the models of its retriever: none for `bm25`, the embedding model for the others. Loading takes
    seconds, a search milliseconds. For many questions load it once in Python: polyad.Engine.open(DIR).

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
        mention_extractor=mention_extractor,
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
    """Return whether there are no hits because the index has no documents."""
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
    mention_extractor: MentionExtractor = None,
    model: Model = None,
    replies: Replies = None,
    reply_cache: ReplyCache = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer a question, with citations.

    A language model writes the answer from the evidence of `polyad search`, with the source of each statement. Any
    OpenAI-compatible endpoint will do: set the model with --model and the endpoint with OPENAI_BASE_URL. Without a
    model, the evidence is printed.

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
        mention_extractor=mention_extractor,
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
        if answer is None:  # streamed after the progress bar has ended
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
    document_ids: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT_ID", help="Ids as printed by `polyad list documents`.")
    ],
    store: Store = None,
    json: Json = False,
) -> None:
    """Remove documents from an index.

    Their passages, hyperedges and entities are removed too. If one id is unknown, no document is removed.

    Example: polyad remove handbook/old.md --store kb
    """
    with open_engine(settings_from(store=store), bare=True) as engine:
        engine.remove(document_ids)
        remaining = engine.catalogue.statistics().documents
    if json:
        output.say_json({"removed": document_ids, "documents": remaining})
    else:
        output.say(f"{len(document_ids)} removed, {format_count(remaining, 'document')} left")


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
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory that keeps the index of the sample.")
    ] = None,
    k: Depth = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try polyad on a bundled sample, offline.

    Indexes the sample and searches for the evidence of six questions. Each question needs two documents: one that
    mentions a name, and one about that name.

    Example: polyad demo --store demo-kb
    """
    settings = settings_from(k=k)
    with (
        directory_for(store) as directory,
        output.progress_bar(quiet or json) as progress,
        Engine.open(directory) as engine,
    ):
        report = engine.index_documents(sample.documents(), progress=progress)
        results = [(query, engine.search(query.text, settings.command.depth)) for query in sample.questions()]
    if json:
        output.say_json(demo_json(report, results))
    else:
        output.show_demo(report, results, store)


class _Formatter(logging.Formatter):
    """Formats log records like the warnings of the commands: ``polyad: warning: ...``."""

    def format(self, record: logging.LogRecord) -> str:
        return f"polyad: {record.levelname.lower()}: {record.getMessage()}"


def main(on_start: Callable[[], None] | None = None) -> None:
    """Run the command line.

    Args:
        on_start: Called when a command starts, from which on an interrupt is handled like an error.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter())
    logging.getLogger("polyad").addHandler(handler)
    if sys.stdout is None:  # the parent process closed the standard output
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (it is open to the end)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a fresh process
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app(prog_name="polyad", obj=on_start)
    except SystemExit as end:
        if end.code in (_INTERRUPTED, _TERMINATED):  # do not wait for requests of other threads
            sys.stdout.flush()
            os._exit(int(end.code))
        raise


def _terminate(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends this process at once
    raise _TerminatedError
