"""Resolves the key and the workspace of a request, for every route."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from polyad.errors import PolyadError, StoreError
from polyad.protocols.store import ValueStore
from polyad.schemas import versioned
from polyad_server.keys import LEDGER, NO_KEY, Key, Scope, has_any_key, list_keys, record_use, split_key
from polyad_server.limits import ClientRateLimiter, check_value_count
from polyad_server.problems import RequestError
from polyad_server.workspaces import Workspace, Workspaces

_KEY_CACHE_SECONDS = 1.0
"""Seconds after which keys are read again, so that new and removed keys take effect."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated sender of a request: the holder of an API key, or a local client without a key.

    Attributes:
        key: The key; None without keys.
        workspace: Name of the only workspace that the key is for; empty for all workspaces.
        scope: Permission of the key: read, write or admin.
    """

    key: Key | None
    workspace: str
    scope: Scope

    def require(self, scope: Scope) -> None:
        """Raise RequestError if the permission of the sender does not include ``scope``."""
        if self.scope < scope:
            actual, needed = self.scope.name.lower(), scope.name.lower()
            raise RequestError(
                403,
                "scope_required",
                f"the key has the scope {actual}; expected {needed}: polyad key add NAME --store DIR --scope {needed}",
            )


@dataclass(frozen=True, slots=True)
class Access:
    """The authorisation of a request: its sender, and the workspace (index) that it may use."""

    principal: Principal
    workspace: Workspace


class Gatekeeper:
    """Authenticates requests by API key, and decides which workspaces (indexes) each key may use.

    Args:
        workspaces: The workspaces, with their keys.
        root_keys: Store of keys for all workspaces; None for none.
        limiter: Limits the requests of each key.
    """

    def __init__(self, workspaces: Workspaces, root_keys: ValueStore | None, limiter: ClientRateLimiter) -> None:
        self.workspaces = workspaces
        self._root_keys = root_keys
        self._limiter = limiter
        self._lock = threading.Lock()
        self._keys: Mapping[str, tuple[str, Key]] = {}
        self._loaded = float("-inf")
        self._had_keys = False

    def has_keys(self) -> bool:
        """Return whether the server has any API key; if so, every request needs a key."""
        return bool(self._load_keys())

    def authenticate(self, request: Request) -> Principal:
        """Return the sender of a request: the holder of its API key, or a local client if the server has no keys.

        A request is authenticated and counted once; later calls return the same sender.

        Raises:
            RequestError: The request has no valid key, or too many requests had this key.
        """
        if not hasattr(request.state, "principal"):
            address = request.client.host if request.client else ""
            forwarded = request.headers.getlist("x-forwarded-for")  # by a proxy, for clients of other machines
            is_local = all(is_loopback(each.strip()) for each in ",".join([address, *forwarded]).split(","))
            header = request.headers.get("authorization", "")
            request.state.principal = self._authenticate(header, address, is_local)
        principal: Principal = request.state.principal
        return principal

    def _authenticate(self, authorization: str, address: str, is_local: bool) -> Principal:
        keys = self._load_keys()
        if not keys and not self._had_keys:  # removing the last key does not admit everybody
            if not is_local:
                raise RequestError(401, "key_required", "without keys only this machine is served")
            self._limiter.count(address)
            return Principal(None, "", Scope.ADMIN)
        scheme, _, text = authorization.partition(" ")
        id, secret = split_key(text.strip()) if scheme.lower() == "bearer" else ("", "")
        workspace, key = keys.get(id, ("", NO_KEY))
        now = datetime.now(UTC)
        if not key.is_valid(secret, now):
            self._limiter.count(address)
            raise RequestError(401, "key_required", "no valid key; expected Authorization: Bearer pk_...")
        self._limiter.count(key.id)
        self._record_use(workspace, key, now)
        return Principal(key, workspace, Scope[key.scope.upper()])

    def is_current(self, principal: Principal) -> bool:
        """Return whether a sender that was authenticated earlier would still be admitted."""
        keys, key = self._load_keys(), principal.key
        if key is None:
            return not self._had_keys
        return key.id in keys and not key.has_expired(datetime.now(UTC))

    def authorize(self, request: Request, workspace: str, scope: Scope) -> Access:
        """Return the permission of a request to use a workspace, or raise an error; every route calls this function.

        Args:
            request: The request.
            workspace: Name of the workspace; empty for the only workspace that the key or the server has.
            scope: Permission that the route needs.

        Raises:
            RequestError: The key is missing, invalid or lacks the scope, or may not use a workspace of this name.
        """
        principal = self.authenticate(request)
        request.state.key = principal.key.id if principal.key else ""
        principal.require(scope)
        name = workspace or principal.workspace or self._get_only_workspace()
        request.state.workspace = name
        is_permitted = principal.workspace in ("", name)
        try:
            opened = self.workspaces.find(name) if is_permitted else None
        except PolyadError as error:  # also of kinds that would blame the request
            raise StoreError(f"the workspace {name} cannot be opened: {error}") from error
        if opened is None:
            raise RequestError(404, "no_such_workspace", f"there is no workspace {workspace!r} for this key")
        return Access(principal, opened)

    def list_names(self, principal: Principal) -> list[str]:
        """Return the names of the workspaces that a sender may use."""
        return [principal.workspace] if principal.workspace else self.workspaces.list_names()

    def _get_only_workspace(self) -> str:
        names = self.workspaces.list_names()
        if len(names) != 1:
            raise RequestError(
                422, "workspace_required", "the server has several workspaces, or none; name one: ?workspace=NAME"
            )
        return names[0]

    def _load_keys(self) -> Mapping[str, tuple[str, Key]]:
        """Return all API keys by key id, each with the name of the workspace (index) that stores it."""
        with self._lock:
            if time.monotonic() - self._loaded > _KEY_CACHE_SECONDS:
                keys: dict[str, tuple[str, Key]] = {}
                loaded = self.workspaces.map_all(lambda each: (list_keys(each.values), has_any_key(each.values)))
                for name, (listed, has_any) in loaded.items():
                    keys |= {key.id: (name, key) for key in listed}
                    self._had_keys |= has_any
                for name in set(self.workspaces.list_names()) - loaded.keys():  # cannot be used now
                    keys |= {id: entry for id, entry in self._keys.items() if entry[0] == name}
                    place = self.workspaces.find_place(name)
                    self._had_keys |= place is not None and Path(place, LEDGER).exists()
                if self._root_keys is not None:
                    keys |= {key.id: ("", key) for key in list_keys(self._root_keys)}
                self._keys, self._loaded = keys, time.monotonic()
                self._had_keys |= bool(keys)
            return self._keys

    def _record_use(self, workspace: str, key: Key, now: datetime) -> None:
        with suppress(PolyadError):  # a search must not fail because the index is read-only
            opened = self.workspaces.find(workspace) if workspace else None
            store = opened.values if opened else self._root_keys
            if store is not None:
                record_use(store, key, now)


class AuthenticatedRoute(APIRoute):
    """A route that authenticates a request before it reads the body, so that only clients with a key send large ones.

    FastAPI reads and parses the body before it calls dependencies. A route returns an object, which the type of its
    result describes in ``/openapi.json``, or a response.
    """

    encode: Callable[[object], Any] = staticmethod(versioned)
    """Converts the result of a route to JSON."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, self._respond(endpoint, settings.get("status_code") or 200), **settings)

    def _respond(self, endpoint: Callable[..., Any], status: int) -> Callable[..., Response]:
        """Return a function that responds with the result of ``endpoint``, whose type describes the response.

        FastAPI would validate and copy the result before it encodes it.
        """

        @wraps(endpoint)
        def respond(**values: Any) -> Response:
            result = endpoint(**values)
            return result if isinstance(result, Response) else JSONResponse(self.encode(result), status)

        return respond

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def authenticate_and_handle(request: Request) -> Response:
            await run_sync(request.app.state.gatekeeper.authenticate, request)
            if not request.headers.get("content-type", "").startswith("application/json"):
                return await handle(request)
            check_value_count(await request.body())
            watching = asyncio.create_task(_abandon_on_disconnect(request))
            try:
                return await handle(request)
            finally:
                watching.cancel()

        return authenticate_and_handle


async def _abandon_on_disconnect(request: Request) -> None:
    """Wait until the client disconnects, and stop the work of the request, such as an answer, which frees its slot.

    Routes whose work can be stopped set ``request.state.abandon`` to a function that stops it.

    The body has to be read before, because both are messages of the same channel.
    """
    while (await request.receive())["type"] != "http.disconnect":
        pass
    while (abandon := getattr(request.state, "abandon", None)) is None:  # the search before the answer is not stopped
        await asyncio.sleep(_POLL_SECONDS)
    abandon()


def is_loopback(address: str) -> bool:
    """Return whether an IP address is a loopback address, such as 127.0.0.1."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def require(scope: Scope) -> Callable[..., Access]:
    """Return a FastAPI dependency that checks that a request's API key has ``scope`` for a workspace."""

    def authorize(
        request: Request,
        workspace: Annotated[
            str, Query(max_length=200, description="Workspace; may be left out if the key or the server has only one.")
        ] = "",
        _authorization: Annotated[str, Header(alias="Authorization", include_in_schema=False)] = "",
    ) -> Access:
        gatekeeper: Gatekeeper = request.app.state.gatekeeper
        return gatekeeper.authorize(request, workspace, scope)

    return authorize


Reader = Annotated[Access, Depends(require(Scope.READ))]
Writer = Annotated[Access, Depends(require(Scope.WRITE))]
