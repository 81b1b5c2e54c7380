"""The command line: the groups of commands, their errors and exit codes.

A command is a function in a module of its own, which is imported when the command runs or prints its help: importing
all modules takes most of a second. Results go to stdout, progress and warnings to stderr. Exit codes: 0 fine; 1
something could not be done though the command was right (a document failed, the language model gave no answer); 2
usage, configuration or a damaged store; 129 the terminal was closed, 130 interrupted, 141 the reader of the output
ended, 143 terminated.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from polyad.cli.command_tables import CommandTable, load_added_tables
from polyad.cli.context import FILE_NAME, SETTINGS, SETTINGS_FILE, TRUSTS_ENDPOINT
from polyad.cli.streams import say, say_json, warn
from polyad.errors import ConfigurationError, NotFoundError, PolyadError, StoreError
from polyad.schemas.errors import FailedSchema, error_json, failed_json

_LOG = logging.getLogger("polyad.cli")

_UsageError: Any = typer.BadParameter.__base__  # of an unknown option too; typer has no name for it
_PRINTS_JSON = "polyad.json"  # key in the contexts of the parser
_USAGE_ERRORS = (ConfigurationError, NotFoundError, StoreError)
_HUNG_UP, _INTERRUPTED, _PIPE_CLOSED, _TERMINATED = 129, 130, 141, 143  # exit codes of shells for signals
_TABLE = CommandTable(
    """
    index index:index Add documents to an index.
    search search:search Find the evidence for a question.
    grep grep:grep Print the lines of the documents that match a pattern exactly.
    ask search:ask Answer a question, with citations.
    remove index:remove Remove documents from an index.
    embed index:embed Replace all vectors of an index by those of another embedding model.
    retract correct:retract Withdraw a fact, an entity from one or all facts, or all facts of some documents.
    restore correct:restore Undo a retraction: name the same fact, entity or filter as for `polyad retract`.
    disable correct:disable Hide documents without removing them.
    enable correct:enable Show documents again that `polyad disable` hid.
    alias correct:alias Let another name stand for an entity: "USA" for "United States".
    export move:export Write an index to a file, to move it, to back it up or to read it with other programs.
    import move:import_ Add the documents and corrections of an exported index; no language model is called.
    migrate move:migrate Copy an index into another store, such as a PostgreSQL database.
    backup maintain:backup Copy an index to a file, also while it is searched and written.
    check maintain:check Check an index for damage, and repair derived data with `--repair`.
    log maintain:log Print the change log of an index, newest first.
    plugins look:plugins List plug-ins: components that other installed packages add to polyad.
    config look:config Print every setting and the source of its value.
    stats look:stats Print sizes, models and costs of an index.
    show look:show Print one document, passage, entity or hyperedge of an index in full.
    list look:list_ List the documents, passages, entities, hyperedges or corrections of an index, one per line.
    facts look:facts Print the facts that contain the given entities, or whose roles meet conditions.
    conflicts look:conflicts List facts and versions that contradict each other, with their documents and dates.
    demo demo:demo Try polyad on a bundled sample, offline.
    """,
    package="polyad.cli",
    after_interrupt={
        "backup": "the backup was not written; an earlier one is unchanged",
        "remove": "either all of the documents were removed or none",
        **dict.fromkeys(
            ("search", "ask"), "no document was changed; complete replies of the language model are stored"
        ),
        **dict.fromkeys(
            ("index", "import", "migrate"),
            "the documents so far are stored; run the same command again to continue",
        ),
        "demo": "the documents indexed so far are stored if you gave --store",
    },
)

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")

_EPILOG = f"""Settings come from flags, else from the environment (POLYAD_STORE, POLYAD_MODEL, OPENAI_BASE_URL, ...),
else from {FILE_NAME} in the working directory, else from the user's own; polyad config prints all of them.
Exit codes: 0 success, 1 a failure (of a document or the language model), 2 an error of usage or configuration."""


class _TerminatedError(KeyboardInterrupt):
    """Raised if the process receives SIGTERM, for example from a service manager, or SIGHUP from a closed terminal."""


class _LazyCommand(TyperCommand):
    """A Typer command whose module is imported only when the command runs or prints its own help.

    Args:
        name: Name of the command.
        reference: Module and name of the function.
        summary: First sentence of the help.
    """

    def __init__(self, name: str, reference: str, summary: str) -> None:
        super().__init__(name, short_help=summary)
        self._reference = reference
        del self.params, self.help, self.callback  # so that __getattr__ returns those of the loaded command

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded, name)

    @cached_property
    def loaded(self) -> Any:
        """The complete Typer command with its options, which is imported at the first access."""
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        from polyad.cli.options import expand_flags  # after the help of the group, which must be fast

        single.command(self.name)(expand_flags(resolve_name(self._reference)))
        return typer.main.get_command(single)


class _Commands(TyperGroup):
    """A Typer group of commands that prints each error as one line, and with ``--json`` also as JSON."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._after_interrupt: dict[str, str] = {}

    def add_table(self, table: CommandTable) -> None:
        """Add the commands of a table, except those whose names are taken."""
        for name, reference, summary in table.rows():
            if name not in self.commands:
                self.add_command(_LazyCommand(name, reference, summary))
                self._after_interrupt[name] = table.after_interrupt.get(name, "nothing was changed")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that ``args`` name; return its name, the command itself and the other arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _LazyCommand):
            command = command.loaded
        if ctx.obj:
            ctx.obj()
        return name, command, rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of a command group; with ``--json``, print an unknown option also as JSON."""
        if ctx.parent is None:
            ctx.meta[_PRINTS_JSON] = "--json" in args
        try:
            with _usage_errors_as_json(ctx):
                return super().parse_args(ctx, args)
        except BrokenPipeError as error:  # of the help
            raise _close_output() from error

    def invoke(self, ctx: Any) -> Any:
        """Run a command; convert exceptions and interrupts into one line on stderr and an exit code."""
        try:
            with _usage_errors_as_json(ctx):
                result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows here, not at the interpreter's end
        except PolyadError as error:
            code = 2 if isinstance(error, _USAGE_ERRORS) else 1
            _LOG.debug("where it failed", exc_info=error)
            raise _fail(ctx, code, "error", error_json(error)) from error
        except KeyboardInterrupt as error:
            is_terminated = isinstance(error, _TerminatedError)
            kind, code = ("terminated", 128 + error.args[0]) if is_terminated else ("interrupted", _INTERRUPTED)
            consequence = self._after_interrupt.get(ctx.invoked_subcommand, "nothing was changed")
            raise _fail(ctx, code, kind, failed_json(kind, consequence)) from error
        except BrokenPipeError as error:
            raise _close_output() from error
        except OSError as error:  # for example a folder without permission, or a full disk
            message = f"{error.filename or 'input or output'}: {error.strerror or error}"
            raise _fail(ctx, 2, "error", failed_json("system", message)) from error
        return result


def _close_output() -> typer.Exit:
    """Discard further output, whose reader has ended, and return the exception that exits without a message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(_PIPE_CLOSED)


def _fail(ctx: Any, code: int, label: str, failed: FailedSchema) -> typer.Exit:
    """Print an error on stderr, with ``--json`` also as JSON, and return the exception that exits with ``code``."""
    with suppress(OSError):  # the terminal may be closed
        warn(label, failed.error.message)
    if ctx.meta[_PRINTS_JSON]:
        with suppress(OSError):  # writing to the standard output may be the failure
            say_json(failed)
    return typer.Exit(code)


@contextmanager
def _usage_errors_as_json(ctx: Any) -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if ctx.parent is None and ctx.meta[_PRINTS_JSON]:
            say_json(failed_json("usage", error.format_message(), "polyad COMMAND --help lists the options"))
        raise


class _Top(_Commands):
    """The commands of ``polyad``: its own, and those that other packages add by entry points (``polyad.commands``)."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.add_table(_TABLE)
        self._is_complete = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command or group, or None; packages that add commands are asked for names that polyad lacks."""
        if cmd_name not in self.commands:
            self._add_tables()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, those of the groups last."""
        self._add_tables()
        return sorted(super().list_commands(ctx), key=lambda name: isinstance(self.commands[name], TyperGroup))

    def _add_tables(self) -> None:
        if self._is_complete:
            return
        self._is_complete = True
        for table in load_added_tables():
            if not table.group:
                self.add_table(table)
                continue
            if table.group not in self.commands:
                self.add_command(_build_group(table.group, table.help))
            group = self.commands[table.group]
            if isinstance(group, _Commands):
                group.add_table(table)


def _build_group(name: str, help_text: str) -> TyperGroup:
    return typer.main.get_group(
        typer.Typer(
            name=name,
            cls=_Commands,
            help=help_text,
            callback=lambda: None,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
        )
    )


app = typer.Typer(
    name="polyad",
    cls=_Top,
    help="Index documents as a hypergraph, search them for evidence, and answer questions with citations.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_set: bool) -> None:
    if is_set:
        from polyad import __version__  # reading it from the package takes 40 ms

        say(f"polyad {__version__}")
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
            "--trust-endpoint",
            help=f"Send keys and passwords of the environment to endpoints that only {FILE_NAME} names.",
        ),
    ] = False,
) -> None:
    """Apply the global options of ``polyad``, such as ``--config`` and ``--verbose``.

    The help of the group is that of the app.
    """
    TRUSTS_ENDPOINT.set(trust_endpoint)
    SETTINGS_FILE.set(config)
    SETTINGS.set(settings or [])
    logging.getLogger("polyad").setLevel(_log_level(verbose))


def _log_level(verbose: int) -> int:
    """Return the log level: WARNING, or lower if ``-v`` is set (``verbose`` times) or ``POLYAD_LOG`` names a level.

    Raises:
        ConfigurationError: ``POLYAD_LOG`` is no log level.
    """
    name = os.environ.get("POLYAD_LOG", "").strip().upper()
    if verbose:
        name = "INFO" if verbose == 1 else "DEBUG"
    if name not in {"", *_LEVELS}:
        raise ConfigurationError(f"POLYAD_LOG is {name.lower()!r}; expected one of {', '.join(_LEVELS).lower()}")
    return int(getattr(logging, name or "WARNING"))


class _Formatter(logging.Formatter):
    """A log formatter that prints log messages in the style of other warnings: ``polyad: warning: ...``."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"polyad: {record.levelname.lower()}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def main(on_start: Callable[[], None] | None = None) -> None:
    """Run the command line of polyad with the arguments of this process.

    Args:
        on_start: Called when a command starts, from which on an interrupt is handled like an error.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter())
    # The package mcp would add a handler whose tracebacks take 80 ms each, during which a server does nothing else.
    logging.getLogger().addHandler(handler)
    if sys.stdout is None:  # the parent process closed the standard output
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (it is open to the end)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the streams of a fresh process
    signal.signal(signal.SIGTERM, _terminate)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminate)
    try:
        app(prog_name="polyad", obj=on_start)
    except SystemExit as end:
        if end.code in (_HUNG_UP, _INTERRUPTED, _TERMINATED):  # do not wait for requests of other threads
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(int(end.code))
        raise


def _terminate(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # a second signal ends this process at once
    raise _TerminatedError(number)
