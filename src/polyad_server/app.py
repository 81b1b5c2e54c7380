"""The ASGI application of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from polyad import __version__
from polyad.config import ServerSettings
from polyad.protocols.store import ValueStore
from polyad_server import conversation_routes, graph_routes, index_routes, openai_routes, search_routes
from polyad_server.access import Gatekeeper
from polyad_server.hosts import HostCheck
from polyad_server.limits import BodyLimit, ClientRateLimiter, ConcurrencyLimiter, HeadRequests, split_list
from polyad_server.mcp import build_mcp_server
from polyad_server.mcp_http import AuthorizedMcp, build_mcp_app, get_http_target
from polyad_server.metrics import Metrics
from polyad_server.page_routes import add_page
from polyad_server.problems import add_problem_handlers
from polyad_server.request_log import RequestLog
from polyad_server.results import StatusSchema
from polyad_server.state import ServerState
from polyad_server.workspaces import Workspaces

_EXTRA_THREADS = 32
"""Threads for requests that neither search nor answer."""

_DESCRIPTION = """Search documents as a hypergraph, ask questions with citations, and correct what the index states.

Send the key as `Authorization: Bearer pk_...`; a server without keys answers its own machine. Name the workspace with
`?workspace=NAME` unless the key or the server has only one."""


def create_app(
    workspaces: Workspaces,
    settings: ServerSettings | None = None,
    *,
    retriever: str = "default",
    k: int | None = None,
    root_keys: ValueStore | None = None,
    host: str = "127.0.0.1",
    allow_writes: bool = False,
) -> FastAPI:
    """Return the FastAPI application that serves workspaces (indexes).

    Args:
        workspaces: The indexes.
        settings: Limits and addresses.
        retriever: Retriever of requests that name none.
        k: Number of hits of requests that name none; None for the default.
        root_keys: Store of keys for all workspaces; None for none.
        host: Name or address that the server listens on.
        allow_writes: Whether agents may change an index over MCP, with a key for writing.
    """
    settings = settings or ServerSettings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threads = settings.searches + settings.answers + settings.heavy_requests + 3 * settings.queue + _EXTRA_THREADS
        anyio.to_thread.current_default_thread_limiter().total_tokens = threads
        await anyio.to_thread.run_sync(_load_models, workspaces, retriever)
        async with AsyncExitStack() as sessions:
            for mcp_server in (mcp_reader, mcp_writer):
                await sessions.enter_async_context(mcp_server.session_manager.run())
            app.state.is_ready = True
            yield
            app.state.is_ready = False
        await anyio.to_thread.run_sync(workspaces.close)

    app = FastAPI(
        title="polyad", version=__version__, description=_DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.is_ready = False
    metrics = Metrics(workspaces)
    app.state.gatekeeper = Gatekeeper(workspaces, root_keys, ClientRateLimiter(settings.requests_per_minute))
    app.state.server = ServerState(
        settings,
        ConcurrencyLimiter(settings.searches, settings.queue, "searches"),
        ConcurrencyLimiter(settings.answers, settings.queue, "answers"),
        ConcurrencyLimiter(settings.heavy_requests, settings.queue, "requests of this kind", is_shared=True),
        retriever,
        metrics,
        ClientRateLimiter(settings.model_answers_per_minute),
        k,
    )
    for routes in (search_routes, conversation_routes, index_routes, graph_routes, openai_routes):
        app.router.routes += routes.router.routes  # built once; `include_router` builds them again for each app
    _add_health_routes(app)
    names, origins = list_hosts(settings, host), split_list(settings.cors_origins)
    mcp_reader = build_mcp_server(get_http_target, sends_text=settings.mcp_text)
    mcp_writer = build_mcp_server(get_http_target, allow_writes=allow_writes, sends_text=settings.mcp_text)
    reading_app = build_mcp_app(mcp_reader, names, origins, is_stateful=settings.mcp_sessions)
    writing_app = build_mcp_app(mcp_writer, names, origins, is_stateful=settings.mcp_sessions)
    authorized = AuthorizedMcp(reading_app, writing_app, app.state.gatekeeper, app.state.server)
    app.router.routes += [Route("/mcp", authorized), Route("/mcp/", authorized)]
    add_page(app)
    add_problem_handlers(app)
    _add_middleware(app, settings, names, origins, metrics)
    return app


def _load_models(workspaces: Workspaces, retriever: str) -> None:
    """Load the models of all workspaces, so that no later search has to wait for them."""
    workspaces.map_all(lambda workspace: workspace.engine.prepare(retriever))


def _add_health_routes(app: FastAPI) -> None:
    # asynchronous, so that they also answer while all threads are busy
    @app.get("/healthz", tags=["health"], response_model=StatusSchema)
    async def is_alive() -> JSONResponse:
        """Return 200 while the server runs."""
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", tags=["health"], response_model=StatusSchema)
    async def is_ready() -> Response:
        """Return 200 once the models are loaded, 503 before, while an index is missing and while jobs cannot be run."""
        status = "loading" if not app.state.is_ready else "ready"
        if not app.state.gatekeeper.workspaces.are_stored():
            status = "no index"
        elif status == "ready" and app.state.gatekeeper.workspaces.are_jobs_failing():
            status = "indexing fails"
        return JSONResponse({"status": status}, 200 if status == "ready" else 503)

    @app.get("/metrics", tags=["health"], response_class=PlainTextResponse)
    def read_metrics(request: Request) -> Response:
        """Return the metrics of the server in the format of Prometheus; needs any key if there are keys."""
        app.state.gatekeeper.authenticate(request)
        return Response(app.state.server.metrics.format(), media_type=CONTENT_TYPE_LATEST)


def list_hosts(settings: ServerSettings, host: str) -> list[str]:
    """Return the values of the HTTP header ``Host`` that the server accepts."""
    names = [host, "localhost", "127.0.0.1", "[::1]", *split_list(settings.hosts)]
    if settings.base_url:
        names.append(urlsplit(settings.base_url).hostname or "")
    return list(dict.fromkeys(names))


def _add_middleware(
    app: FastAPI, settings: ServerSettings, names: list[str], origins: list[str], metrics: Metrics
) -> None:
    app.add_middleware(HeadRequests)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_mb * 1_000_000)
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(HostCheck, names=names, origins=origins)
    app.add_middleware(RequestLog, metrics=metrics)
    if settings.proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.proxies)
