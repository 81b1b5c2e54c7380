"""The client of an OpenAI-compatible endpoint, with retries and error messages.

Shared by the language model and the embedder. The retries of the SDK are switched off: they do not cover replies that
cannot be used (broken JSON, no text), ignore the per-minute limits, and continue when a quota is exhausted. One retry
loop of tenacity covers all cases.
"""

from __future__ import annotations

import email.utils
import json
import logging
import math
import os
import random
import re
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.openai_api.address import Address, Secrets
from polyad.openai_api.failure import UnusableReplyError
from polyad.openai_api.limits import ReplyLimits
from polyad.openai_api.rate_limit import RateLimiter
from polyad.text.words import sanitize

try:
    import httpx2
    import openai
except ImportError as error:
    raise MissingExtraError("openai", "llm") from error
try:
    import tenacity
except ImportError as error:
    raise MissingExtraError("tenacity", "llm") from error

T = TypeVar("T")

_ANY_KEY = "none"
"""API key if none is set: local servers accept any, and OpenAI's reply says that it is missing."""

_OPENAI = "https://api.openai.com/v1"
"""Default address of the SDK."""

_LONGEST_DELAY = 8.0
_LONGEST_RETRY_AFTER = 300.0
_RETRY_AFTER, _SHORT_RETRY_AFTER = 2.5, 10.0
"""Longest accepted ``Retry-After``: a multiple of the timeout, or this number of seconds if that is more."""

_WHOLE_REPLY = 4.0
"""Maximum time of a whole reply as a multiple of the timeout. With a timeout of 5 s and one retry, a request ends
within a minute; with the default of 120 s a stream of 2,048 tokens may have 4 tokens per second."""

_CONNECT_TIMEOUT = 10.0

_LONG = 16
"""Minimum length of a word in a header of the environment that is a secret, such as ``org-...``, but not ``Bearer``."""

_TEMPORARY_STATUSES = (408, 409, 425, 429)
"""HTTP status codes below 500 after which the same request may succeed later."""

_WRONG_ADDRESS = "; check that the address ends where the API begins, usually in /v1"

_UNREACHABLE_RETRIES = 2
"""Maximum number of retries if no server can be reached; more would only keep the user waiting."""

SdkError = openai.APIError
"""Any error of the SDK about a request or a stream."""

TooSlowError = openai.APITimeoutError
"""The error of the SDK after a timeout."""

REJECTIONS = (
    openai.BadRequestError,
    openai.UnprocessableEntityError,
    openai.NotFoundError,
    openai.InternalServerError,
)
"""Errors of an endpoint that may not accept the request's parameters: OpenRouter sends 404, llama.cpp 500."""

_TOO_LONG = re.compile("(?:input|prompt).{0,40} is (?:too large|too long|larger than)", re.IGNORECASE)

_logger = logging.getLogger(__name__)


NO_SECRETS = Secrets()


class StoppedError(Exception):
    """Raised if the caller cancels the requests while a request waits for its next retry."""


class EndpointError(Exception):
    """Raised if a request fails after all retries, with a message for the user.

    Attributes:
        concerns_all: Whether all other requests would fail too, for example because of a wrong API key.
        status: HTTP status of the response, 413 if a text was too long; None without a response.
    """

    def __init__(self, message: str, *, concerns_all: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.concerns_all = concerns_all
        self.status = status


class Endpoint:
    """A thread-safe client of one OpenAI-compatible endpoint that retries failed requests.

    Args:
        base_url: Address; empty for ``OPENAI_BASE_URL``, else OpenAI.
        api_key: API key; empty for ``OPENAI_API_KEY``. Only with the latter are ``OPENAI_ORG_ID``,
            ``OPENAI_PROJECT_ID`` and ``OPENAI_CUSTOM_HEADERS`` sent.
        model: Name of the model, for error messages.
        timeout: Maximum silence of the endpoint in seconds; a whole reply may take four times as long.
        max_retries: Maximum number of retries.
        retry_delay: Seconds before the first retry; doubles with each retry.
        max_reply_bytes: Maximum size of a reply; see :class:`polyad.openai_api.limits.ReplyLimits`.
        limiter: Limits requests per minute, and pauses when the endpoint asks for it.

    Raises:
        ConfigurationError: The API key contains invalid characters.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        timeout: float,
        max_retries: int,
        retry_delay: float,
        max_reply_bytes: int,
        limiter: RateLimiter,
    ) -> None:
        self._model = model
        self._max_retries = max_retries
        self._retry_delay = retry_delay
        self._limiter = limiter
        self._timeout = timeout
        self._limits = ReplyLimits(_WHOLE_REPLY * timeout, max_reply_bytes)
        address = Address.parse(base_url.strip() or os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI)
        self.client = _create_client(address, api_key.strip(), timeout, self._limits)
        weakref.finalize(self, self.client.close).atexit = False  # the SDK closes only clients that it created
        self.address = address.label
        headers = " ".join(_headers_of_environment().values()).split()
        self.secrets = Secrets(
            [*address.secrets, self.client.api_key, *(word for word in headers if len(word) >= _LONG)]
        )

    def begin(self) -> None:
        """Start the time limit of this thread's next request."""
        self._limits.start()

    def run(self, attempt: Callable[[], T], stop: threading.Event | None = None) -> T:
        """Return the result of ``attempt``, which is called again after temporary failures.

        Args:
            attempt: Sends one request; raises an error of the SDK or UnusableReplyError.
            stop: If this event is set, waiting ends with StoppedError.

        Raises:
            EndpointError: The request failed.
            StoppedError: ``stop`` was set.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._is_worth_retrying),
            stop=self._has_spent_retries,
            wait=self._wait,
            sleep=build_sleep(stop),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except (openai.OpenAIError, UnusableReplyError) as error:
            explanation = self._explain(error)
            status = error.status_code if isinstance(error, openai.APIStatusError) else None
            status = 413 if _is_too_long(error) else status
        # Raised outside of the except block, without the SDK's error as context, which may contain secrets.
        raise EndpointError(self.secrets.mask(str(explanation)), concerns_all=explanation.concerns_all, status=status)

    def request_json(self, send: Callable[[], str], parse: Callable[[Mapping[str, Any]], T]) -> T:
        """Call ``send``, with retries, and return the result of ``parse`` for the JSON object in the response.

        Args:
            send: Sends the request and returns the text of the reply.
            parse: Parses the reply; raises ValueError for a reply that the same request would get again.

        Raises:
            EndpointError: The request failed.
        """

        def attempt() -> T:
            self.begin()
            body = parse_json_object(send(), self.secrets)
            try:
                return parse(body)
            except ValueError as error:
                raise UnusableReplyError(str(error), is_temporary=False) from error

        return self.run(attempt)

    def _is_worth_retrying(self, error: BaseException) -> bool:
        longest = min(_LONGEST_RETRY_AFTER, max(_SHORT_RETRY_AFTER, _RETRY_AFTER * self._timeout))
        return (get_retry_after(error) or 0.0) <= longest and is_temporary(error)

    def _has_spent_retries(self, state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        is_unreachable = isinstance(error, openai.APIConnectionError) and _is_unreachable(error)
        retries = min(self._max_retries, _UNREACHABLE_RETRIES) if is_unreachable else self._max_retries
        return state.attempt_number > retries

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        # Random delays keep the threads from retrying at the same time.
        delay: float = min(self._retry_delay * 2 ** (state.attempt_number - 1), _LONGEST_DELAY)
        delay *= 0.75 + 0.25 * random.random()
        requested = get_retry_after(error)
        if requested is not None:
            self._limiter.hold(requested)
            delay = max(requested, delay)
        _logger.info(
            "%s failed (%s); trying again in %.1f s", self._model, extract_error_message(error, self.secrets), delay
        )
        return delay

    def _explain(self, error: openai.OpenAIError | UnusableReplyError) -> EndpointError:
        where = f"model {self._model!r} at {self.address}"
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error, where)
        if isinstance(error, openai.APIConnectionError) and _is_unreachable(error):
            fix = "check the address and that the server is running"
            if self.address == _OPENAI:
                fix = "for a server of your own set OPENAI_BASE_URL, such as http://localhost:11434/v1"
            return EndpointError(f"{where} cannot be reached ({_get_cause(error)}); {fix}", concerns_all=True)
        if isinstance(error, openai.APITimeoutError):
            limit = f"timeout = {self._timeout:g} s of silence, {_WHOLE_REPLY * self._timeout:g} s for a whole reply"
            fix = "raise the timeout, lower the concurrency or use a faster model"
            return EndpointError(f"{where} did not answer in time ({limit}); {fix}")
        if isinstance(error, openai.APIConnectionError):
            return EndpointError(f"the connection to {where} broke ({_get_cause(error)}); look into the server's log")
        return EndpointError(f"{where}: {error}")

    def _explain_status(self, error: openai.APIStatusError, where: str) -> EndpointError:
        status, message = error.status_code, extract_error_message(error.body or error.message, self.secrets)
        if status == 401:
            return EndpointError(f"{where} refused the API key ({message}); set OPENAI_API_KEY", concerns_all=True)
        if status == 402 or _is_quota_exhausted(error):
            return EndpointError(f"{where}: the account has no credit left ({message})", concerns_all=True)
        if status == 403:
            return EndpointError(f"{where} does not allow this request ({message}); check what the API key may do")
        if status == 404:
            fix = "check the model's name, and that the address ends where the API begins, usually in /v1"
            return EndpointError(f"{where} was not found ({message}); {fix}", concerns_all=True)
        if status == 429:
            requested = get_retry_after(error)
            hint = f"asks to wait {requested:g} s; " if requested else ""
            fix = "set requests_per_minute or tokens_per_minute, or lower the concurrency"
            return EndpointError(f"{where} has had too many requests ({message}); {hint}{fix}")
        if "context" in message.lower() or "context_length" in str(error.code):
            fix = "give the model a longer context, or lower passage_tokens (indexing) or max_context_tokens (answers)"
            return EndpointError(f"{where} has no room for the prompt ({message}); {fix}")
        fix = "; look into the server's log, or try again when it is ready" if status >= 500 else ""
        return EndpointError(f"{where} answered with status {status}: {message}{fix}")


def _create_client(address: Address, api_key: str, timeout: float, limits: ReplyLimits) -> openai.OpenAI:
    environment_key = os.environ.get("OPENAI_API_KEY", "").strip()
    key = api_key or environment_key or _ANY_KEY
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("the API key contains invalid characters; expected printable ASCII in OPENAI_API_KEY")
    silence = openai.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT))
    return openai.OpenAI(
        base_url=address.url,
        default_query=address.query,
        default_headers=None if api_key in ("", environment_key) else _build_headers(key),
        api_key=key,
        timeout=silence,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(
            timeout=silence, event_hooks=limits.hooks(), verify=_create_ssl_context()
        ),
    )


@cache
def _create_ssl_context() -> ssl.SSLContext:
    """Return the TLS settings that all clients share, since loading the certificates takes 45 ms."""
    return httpx2.create_ssl_context()


def _headers_of_environment() -> dict[str, str]:
    """Return the HTTP headers that OpenAI's SDK adds because of environment variables."""
    variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    headers = {name: os.environ.get(variable, "") for name, variable in variables.items()}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers


def _build_headers(key: str) -> Mapping[str, Any]:
    """Return HTTP headers with this API key, without headers from environment variables."""
    omitted = {name: openai.omit for name in _headers_of_environment() if name.lower() != "authorization"}
    return {**omitted, "Authorization": f"Bearer {key}"}


def build_sleep(stop: threading.Event | None) -> Callable[[float], None]:
    """Return a function like :func:`time.sleep` that raises StoppedError as soon as ``stop`` is set."""

    def sleep(seconds: float) -> None:
        if stop is None:
            time.sleep(seconds)
        elif stop.wait(seconds):
            raise StoppedError

    return sleep


def is_temporary(error: BaseException) -> bool:
    """Return whether a request that failed with ``error`` may succeed if it is repeated."""
    if isinstance(error, UnusableReplyError):
        return error.is_temporary
    if isinstance(error, openai.APIStatusError):
        if _is_quota_exhausted(error) or _is_too_long(error):
            return False
        return error.status_code in _TEMPORARY_STATUSES or error.status_code >= 500
    # The other errors of the SDK: broken connections, timeouts, an error within a stream.
    return isinstance(error, openai.APIError)


def get_retry_after(error: BaseException | None) -> float | None:
    """Return the seconds to wait that a response's header ``Retry-After`` states; None without this header."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers: Mapping[str, str] = error.response.headers
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def parse_json_object(body: str, secrets: Secrets = NO_SECRETS) -> dict[str, Any]:
    """Return the JSON object in the body of a response as a dictionary.

    Args:
        body: Text of the reply.
        secrets: Strings to mask in the error message.

    Raises:
        UnusableReplyError: The text is no JSON object, or reports an error.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        hint = _WRONG_ADDRESS if body.lstrip().startswith("<") else ""
        raise UnusableReplyError(f"the reply is not JSON: {secrets.mask(body)[:80]!r}{hint}") from error
    if not isinstance(parsed, dict):
        raise UnusableReplyError(f"the reply is not a JSON object: {secrets.mask(body)[:80]!r}")
    if reported := parsed.get("error"):
        status = reported.get("code") if isinstance(reported, dict) else None
        is_final = isinstance(status, int) and 400 <= status < 500 and status not in _TEMPORARY_STATUSES
        hint = _WRONG_ADDRESS if "endpoint" in str(reported).lower() else ""
        raise UnusableReplyError(
            f"the reply reports an error: {extract_error_message(reported, secrets)}{hint}", is_temporary=not is_final
        )
    return parsed


def extract_error_message(body: object, secrets: Secrets = NO_SECRETS) -> str:
    """Return the message of an error response on one line, shortened and with secrets masked."""
    if isinstance(body, list) and len(body) == 1:  # Google wraps the error in a list
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    message = body
    if isinstance(body, dict):
        message = body.get("message") or body.get("detail") or body
        metadata = body.get("metadata")
        if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter adds the message of the provider
            message = f"{message}: {metadata['raw']}"
    # The message is masked before it is cut, so that no part of a secret remains.
    return secrets.mask(sanitize(" ".join(str(message).split())))[:300]


def _is_quota_exhausted(error: openai.APIStatusError) -> bool:
    return error.status_code == 429 and "insufficient_quota" in (error.code, error.type)


def _is_too_long(error: Exception) -> bool:
    """Return whether a text exceeds the model's input, for which llama.cpp sends the status 500."""
    return isinstance(error, openai.InternalServerError) and _TOO_LONG.search(str(error)) is not None


def _is_unreachable(error: openai.APIConnectionError) -> bool:
    # Compared by class name, because versions of the SDK use different HTTP libraries.
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")


def _get_cause(error: Exception) -> str:
    return str(error.__cause__) or type(error.__cause__).__name__
