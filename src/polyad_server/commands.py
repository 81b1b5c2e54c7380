"""The commands that serve indexes: ``polyad serve``, ``polyad mcp`` and the group ``polyad key``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from polyad.cli import options
from polyad.cli.streams import say, say_json, say_result
from polyad.engine import Engine
from polyad.engine.loaders import get_place_name, parse_place
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model import Answer, Evidence
from polyad.protocols.store import ValueStore
from polyad.text.words import format_count
from polyad_server.keys import Key, KeySchema, add_key, list_keys, open_root_keys, remove_key

AllowWrites = Annotated[
    bool, typer.Option("--allow-writes", help="Let agents add documents and retract facts over MCP.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags:
    """Command-line options that ``polyad serve`` and ``polyad mcp`` share."""

    allow_writes: AllowWrites = False
    preset: options.Preset = None
    retriever: options.Retriever = None
    k: options.Depth = None
    rerank: options.Rerank = None
    embedder: options.Embedder = None
    model: options.Model = None
    replies: options.Replies = None


def serve(
    store: Annotated[
        list[str] | None, typer.Option("--store", metavar="DIR", help="Index to serve; repeat. [POLYAD_STORE]")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of indexes to serve, in which the API can create more."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="NAME", help="Address to listen on; other machines need a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for any that is free.")] = 8420,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Processes that search; from 2, others run the jobs and embed the questions."
        ),
    ] = 1,
    *,
    flags: ServeFlags,
) -> None:
    """Serve indexes: a web page, an HTTP API, an OpenAI-compatible API and an MCP server.

    The page is at http://127.0.0.1:8420, the API at /api/v1 (described at /docs), OpenAI's at /v1 and MCP at /mcp.
    Without keys, the server answers only this machine, without asking who it is. Add a key with `polyad key add`, and
    every request needs one; then --host 0.0.0.0 serves other machines. Limits are settings: see [server] in `polyad
    config`.

    Example: polyad serve --store kb --model qwen3
    """
    signal.signal(signal.SIGTERM, _exit)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    settings = options.load_settings(flags)
    stores = [parse_place(each) for each in store or ([settings.command.store] if settings.command.store else [])]
    if not stores and root is None:
        settings.command.require_store()
    try:
        from polyad_server.run import ServerOptions, run_server
        from polyad_server.workers import run_workers
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "server") from error

    def open_index(place: str | Path, create: bool) -> Engine:
        return options.open_engine(settings, create=create, reranks=True, directory=place, has_models=True)

    server = ServerOptions(
        open_index=open_index,
        stores=stores,
        root=root,
        settings=settings.server,
        encoder=settings.stages.encoder,
        host=host,
        port=port,
        retriever=settings.command.retriever,
        k=settings.command.k,
        open_root_keys=partial(_open_root_keys, root),
        allow_writes=flags.allow_writes,
        workers=workers,
    )
    (run_workers if workers > 1 else run_server)(server, say)
    sys.stdout.flush()
    os._exit(0)  # do not wait for threads of answers that did not end in time


def _exit(*_: object) -> NoReturn:
    """End the process with exit status 0 on SIGTERM, before the server handles this signal."""
    sys.exit(0)


def mcp(
    store: options.Store = None,
    *,
    flags: ServeFlags,
) -> None:
    """Offer an index to an agent on this machine over MCP, on the standard streams.

    Agents start this command themselves: enter it in their configuration as the command of an MCP server. The tools
    search, fetch, find_evidence, find_text, outline, ask, describe_entity and list_documents read the index. Agents on
    other machines use `polyad serve`, whose MCP server is at /mcp.

    Example: polyad mcp --store kb
    """
    settings = options.load_settings(flags, store=store)
    try:
        from polyad_server.mcp import build_mcp_server
        from polyad_server.mcp_tools import ToolTarget
    except ImportError as error:
        raise MissingExtraError(error.name or "mcp", "mcp") from error
    with options.open_engine(settings, reranks=True) as engine:

        def search(question: str, k: int | None = None, **arguments: Any) -> Evidence:
            return engine.search(question, k or settings.command.k, retriever=settings.command.retriever, **arguments)

        def answer(question: str) -> Answer:
            return engine.answer(search(question, min_relevance="auto"))

        name = get_place_name(parse_place(settings.command.require_store()))
        target = ToolTarget(engine, name, search, engine.find_text, answer, "")
        build_mcp_server(lambda *_: target, allow_writes=flags.allow_writes, sends_text=settings.server.mcp_text).run(
            "stdio"
        )


@contextmanager
def _open_root_keys(root: Path | None) -> Iterator[ValueStore | None]:
    if root is None:
        yield None
        return
    with _open_keys(root) as keys:
        yield keys


Workspace = Annotated[str, typer.Option("--workspace", metavar="NAME", help="Index in the folder of --store.")]


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name by which you recognise the key.")],
    store: options.Store = None,
    workspace: Workspace = "",
    scope: Annotated[str, typer.Option(metavar="SCOPE", help="read, write or admin.")] = "read",
    days: Annotated[
        int, typer.Option(metavar="N", min=0, max=36_500, help="Days until the key expires; 0 for never.")
    ] = 0,
    json: options.Json = False,
) -> None:
    """Add an API key for an index, and print it once.

    With a folder of indexes as --store, name one of them with --workspace; without it the key is for all of them. Only
    a hash of the key is stored.

    Example: polyad key add chat-window --store kb --scope read
    """
    now = datetime.now(UTC)
    with _open_keys(_get_place(store, workspace)) as keys:
        text = add_key(keys, name, scope, now, now + timedelta(days=days) if days else None)
    say_result(json, {"name": name, "key": text}, say, text)


def list_(store: options.Store = None, workspace: Workspace = "", json: options.Json = False) -> None:
    """List the API keys of an index, without their secrets.

    Example: polyad key list --store kb
    """
    with _open_keys(_get_place(store, workspace)) as store_of_keys:
        keys = list_keys(store_of_keys)
    if json:
        say_json({"keys": [KeySchema.from_object(key) for key in keys]})
    for key in () if json else keys:
        say(_describe(key))


def _describe(key: Key) -> str:
    use = f"last used {key.last_used}" if key.last_used else "never used"
    expiry = f", expires {key.expires}" if key.expires else ""
    return f"{key.name} ({key.id}): {key.scope}, created {key.created}, {use}{expiry}"


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the key.")],
    store: options.Store = None,
    workspace: Workspace = "",
    json: options.Json = False,
) -> None:
    """Remove an API key; a running server rejects it within a second.

    Example: polyad key remove chat-window --store kb
    """
    with _open_keys(_get_place(store, workspace)) as keys:
        key = remove_key(keys, name)
    say_result(json, {"removed": [KeySchema.from_object(key)]}, say, f"removed {key.name}")


def _get_place(store: str | None, workspace: str) -> str | Path:
    place = parse_place(options.load_settings(store=store).command.require_store())
    if isinstance(place, str):
        return f"{place}{'&' if '?' in place else '?'}workspace={workspace}" if workspace else place
    if workspace and Engine.exists(place):
        raise ConfigurationError(f"{str(place)!r} is an index itself; leave out --workspace, or name its parent")
    return place / workspace


@contextmanager
def _open_keys(place: str | Path) -> Iterator[ValueStore]:
    """Yield the key-value store of API keys of an index, or of a folder with several indexes."""
    if isinstance(place, str) or Engine.exists(place):
        with Engine.open(place, create=False) as engine:
            yield engine.values
        return
    if not place.is_dir():
        raise ConfigurationError(f"{str(place)!r} is no folder; expected an index or a folder of indexes")
    with open_root_keys(place) as keys:
        yield keys


def worker(
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="K",
            help="Take jobs of this kind: embed, extract, read, files, addresses, documents or check. Repeat it. [all]",
        ),
    ] = None,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when no worker has a job.")] = False,
    store: options.Store = None,
    preset: options.Preset = None,
    model: options.Model = None,
    replies: options.Replies = None,
    json: options.Json = False,
) -> None:
    """Run a worker that takes uploads, and jobs of `polyad index --workers`, until Ctrl-C.

    In PostgreSQL, `polyad index --workers` queues steps: a worker reads files, asks the language model about documents,
    or embeds and stores documents. The requests that clients send to `polyad serve` are jobs of any index: uploaded
    files, addresses of web pages, documents to index again, and checks; they are processed one after another. If a
    worker ends at any time, another one continues. The limits on requests to the language model hold for all workers
    together. The files to read must have the same paths on all machines with workers that read.

    Example: polyad worker --store postgresql://db/kb --kind embed
    """
    from polyad.engine import loaders
    from polyad.engine.jobs import Worker
    from polyad_server.job_kinds import REQUEST_KINDS

    settings = options.load_settings(store=store, preset=preset, model=model, replies=replies)
    place = parse_place(str(settings.command.require_store()))
    rows = dict(REQUEST_KINDS)
    loader: loaders.Loader = loaders
    if isinstance(place, str):
        from polyad.engine.workers import STEPS, SharedLimitLoader  # imports psycopg

        rows, loader = {**STEPS, **rows}, SharedLimitLoader(place)
    if unknown := sorted({*(kinds or ())} - rows.keys()):
        raise ConfigurationError(f"the kind of jobs is {unknown[0]!r}; expected one of {', '.join(rows)}")
    with options.open_engine(settings, loader=loader) as engine:
        count = Worker(engine, {name: row for name, row in rows.items() if not kinds or name in kinds}).run(
            until_idle=until_idle
        )
    say_result(json, {"jobs": count}, say, f"{format_count(count, 'job')} done")
