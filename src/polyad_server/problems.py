"""Errors of the server, and their responses: ``application/problem+json`` (RFC 9457), or OpenAI's format under /v1."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match

from polyad.errors import (
    ConfigurationError,
    EmbedderError,
    IndexMismatchError,
    LanguageModelError,
    NotFoundError,
    PageImageError,
    PolyadError,
    RerankerError,
    StoreError,
    StoreNotFoundError,
)
from polyad.schemas.errors import error_json

if TYPE_CHECKING:  # an MCP server on standard streams does without FastAPI
    from fastapi import FastAPI

_LOG = logging.getLogger("polyad.server.problems")

_ENDPOINT = re.compile(r" at \w+://\S*[^\s:;,.]")

PROBLEM_TYPE = "application/problem+json"


class RequestError(PolyadError):
    """Raised if the server rejects a request; holds the HTTP status and a machine-readable kind.

    Attributes:
        status: HTTP status.
        kind: Name of the problem for programs, such as ``rate_limited``.
        retry_after: Seconds after which the client may try again; 0 if that does not help.
    """

    hint = "see /docs for the requests that the server accepts"

    def __init__(self, status: int, kind: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.kind, self.retry_after = status, kind, retry_after


_STATUSES: tuple[tuple[type[PolyadError], int], ...] = (
    (NotFoundError, 404),
    (PageImageError, 404),
    (StoreNotFoundError, 503),  # another process deleted or replaced the index
    (IndexMismatchError, 503),
    (ConfigurationError, 422),
    (LanguageModelError, 502),
    (StoreError, 503),
)


def get_status(error: PolyadError) -> int:
    """Return the HTTP status for an exception."""
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def get_kind(error: PolyadError) -> str:
    """Return the machine-readable kind of an exception, such as ``not_found``."""
    return error.kind if isinstance(error, RequestError) else error_json(error).error.kind


def describe_error(error: Exception) -> str:
    """Return the message of an error for a client, and log the error of a model or store.

    The message has no address of a model or database, which concerns the operator alone.
    """
    is_of_store = isinstance(error, IndexMismatchError | StoreError | StoreNotFoundError)
    if not is_of_store and not isinstance(error, EmbedderError | LanguageModelError | RerankerError):
        return str(error)
    _LOG.warning("%s", error)
    if is_of_store:
        return "the index is not available; try again later (the log of the server has the cause)"
    return _ENDPOINT.sub("", str(error))


def respond(request: Request, status: int, kind: str, message: str, retry_after: int = 0) -> JSONResponse:
    """Return the error response to a request, in the format of the requested API (OpenAI's or polyad's)."""
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if request.url.path.startswith("/v1/"):
        return JSONResponse(format_openai_error(status, kind, message), status, headers)
    body = {"type": "about:blank", "title": kind.replace("_", " "), "status": status, "kind": kind, "detail": message}
    return JSONResponse(body, status, headers, media_type=PROBLEM_TYPE)


def format_openai_error(status: int, kind: str, message: str) -> dict[str, Any]:
    """Format an error as a JSON object in OpenAI's format."""
    type = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    return {"error": {"message": message, "type": type, "param": None, "code": kind}}


def add_problem_handlers(app: FastAPI) -> None:
    """Register exception handlers that convert every error of an application into a response."""
    from fastapi.exceptions import RequestValidationError

    @app.exception_handler(PolyadError)
    def _(request: Request, error: PolyadError) -> JSONResponse:
        retry_after = error.retry_after if isinstance(error, RequestError) else 0
        return respond(request, get_status(error), get_kind(error), describe_error(error), retry_after)

    @app.exception_handler(RequestValidationError)
    def _(request: Request, error: RequestValidationError) -> JSONResponse:
        details = "; ".join(describe_invalid_value(each) for each in error.errors())
        return respond(request, 422, "invalid_request", details)

    @app.exception_handler(HTTPException)
    def _(request: Request, error: HTTPException) -> JSONResponse:
        status, detail = error.status_code, str(error.detail)
        if status == 405 and not any(route.matches(request.scope)[0] is Match.PARTIAL for route in app.routes):
            status, detail = 404, "Not Found"  # the web page rejects the methods of all unknown routes
        kind = {404: "no_such_route", 405: "method_not_allowed"}.get(status, "http_error")
        response = respond(request, status, kind, detail)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    def _(request: Request, _error: Exception) -> JSONResponse:
        return respond(request, 500, "internal", "the server failed; its log contains the cause")


def describe_invalid_value(error: Mapping[str, Any]) -> str:
    """Return the place and the reason of an error that pydantic found in a request."""
    if error["type"] == "json_invalid":
        return f"the body is not JSON at character {error['loc'][-1]}; expected an object"
    place = ".".join(str(part) for part in error["loc"] if part != "body")
    return f"{place}: {error['msg']}" if place else str(error["msg"])
