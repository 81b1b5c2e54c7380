"""One OpenAI-compatible endpoint: the client, and which failures are worth another try.

Shared by the language model and the embedder. The SDK's own retries are switched off: they neither cover a reply that
cannot be used (broken JSON, no text) nor count towards the per-minute limits, and they try again when a quota is
spent. One loop, tenacity's, does it all.
"""

from __future__ import annotations

import email.utils
import json
import logging
import math
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.openai_api.address import Address, Secrets
from polyad.openai_api.failure import UnusableReplyError
from polyad.openai_api.limits import Limits
from polyad.openai_api.rate_limit import RateLimiter
from polyad.text.cleaning import sanitize

try:
    import openai
except ImportError as error:
    raise MissingExtraError("openai", "llm") from error
try:
    import tenacity
except ImportError as error:
    raise MissingExtraError("tenacity", "llm") from error

T = TypeVar("T")

_ANY_KEY = "none"
"""Sent where no key is set: local servers take any, and OpenAI's own answer says what is missing."""

_OPENAI = "https://api.openai.com/v1"
"""Where the SDK goes when nothing else is said."""

_LONGEST_DELAY = 8.0
_LONGEST_RETRY_AFTER = 300.0
_RETRY_AFTER, _SHORT_RETRY_AFTER = 2.5, 10.0
"""A server may ask to be left alone for so many times the timeout, or so many seconds."""

_WHOLE_REPLY = 4.0
"""Times the timeout until a reply has to be whole. With 5 s and one further try, an answer or a failure is there within
a minute, whatever the server does; with the default of 120 s a stream may say 4 tokens a second for 2,048."""

_CONNECT_TIMEOUT = 10.0

_LONG = 16
"""Characters of a word in a header of the environment that is taken for a secret: ``org-`` and what follows it is one,
``Bearer`` and ``production`` are none."""

_PASSING = (408, 409, 425, 429)
"""Statuses below 500 of what may pass."""

_WRONG_ADDRESS = "; check that the address ends where the API begins, usually in /v1"

_UNREACHABLE_RETRIES = 2
"""Where nobody is at the address, waiting longer seldom helps and keeps a person waiting."""

SdkError = openai.APIError
"""Whatever the SDK says went wrong with a request or a stream."""

TooSlowError = openai.APITimeoutError
"""The endpoint was silent for too long."""

REJECTIONS = (
    openai.BadRequestError,
    openai.UnprocessableEntityError,
    openai.NotFoundError,
    openai.InternalServerError,
)
"""The endpoint may not accept the request as it is written: OpenRouter says so with 404, llama.cpp with 500."""

_logger = logging.getLogger(__name__)


NOTHING_SECRET = Secrets()


class StoppedError(Exception):
    """The caller gave up on the whole batch while this request waited for its turn."""


class EndpointError(Exception):
    """A request failed for good. The message is for the user.

    Attributes:
        concerns_all: Whether every other request would fail the same way: a wrong key, a wrong model, nobody there.
    """

    def __init__(self, message: str, *, concerns_all: bool = False) -> None:
        super().__init__(message)
        self.concerns_all = concerns_all


class Endpoint:
    """Sends requests to one endpoint until they succeed or are beyond hope; safe to use from many threads.

    Args:
        base_url: Where it is; empty for the SDK's default (``OPENAI_BASE_URL``, else OpenAI's own).
        api_key: Sent as a bearer token; empty for the SDK's default (``OPENAI_API_KEY``). With that one, and with no
            other, go ``OPENAI_ORG_ID``, ``OPENAI_PROJECT_ID`` and ``OPENAI_CUSTOM_HEADERS``, as the SDK sends them.
        model: Named in error messages.
        timeout: Seconds the endpoint may be silent; its reply has to be whole in four times as many.
        max_retries: Further tries after a failure that may pass.
        retry_delay: Seconds before the first further try; doubles with each.
        max_reply_bytes: Longest reply; see :class:`polyad.openai_api.limits.Limits`.
        limiter: Told when the endpoint asks to be left alone for a while.

    Raises:
        ConfigurationError: the key cannot be sent.
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
        self._limits = Limits(_WHOLE_REPLY * timeout, max_reply_bytes)
        address = Address.of(base_url.strip() or os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI)
        self.client = _client(address, api_key.strip(), timeout, self._limits)
        weakref.finalize(self, self.client.close).atexit = False  # the SDK closes only clients that it made itself
        self.address = address.shown
        headers = " ".join(_headers_of_environment().values()).split()
        self.secrets = Secrets(
            [*address.secrets, self.client.api_key, *(word for word in headers if len(word) >= _LONG)]
        )

    def begin(self) -> None:
        """Say that a try begins now, before its request is sent: from here on its time counts."""
        self._limits.start()

    def run(self, attempt: Callable[[], T], stop: threading.Event | None = None) -> T:
        """Call ``attempt`` until it succeeds, fails for good or has used up its retries.

        Args:
            attempt: Sends one request; raises the SDK's errors or UnusableReplyError.
            stop: Once set, waiting ends with StoppedError.

        Raises:
            EndpointError: it did not succeed.
            StoppedError: ``stop`` was set.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._may_pass),
            stop=self._is_enough,
            wait=self._wait,
            sleep=build_sleep(stop),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except (openai.OpenAIError, UnusableReplyError) as error:
            explained = self._explained(error)
        # Outside, and so without the SDK's own error, which says all that the server did.
        raise EndpointError(self.secrets.hidden(str(explained)), concerns_all=explained.concerns_all)

    def _may_pass(self, error: BaseException) -> bool:
        longest = min(_LONGEST_RETRY_AFTER, max(_SHORT_RETRY_AFTER, _RETRY_AFTER * self._timeout))
        return (retry_after(error) or 0.0) <= longest and may_pass(error)

    def _is_enough(self, state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        unreachable = isinstance(error, openai.APIConnectionError) and _never_connected(error)
        retries = min(self._max_retries, _UNREACHABLE_RETRIES) if unreachable else self._max_retries
        return state.attempt_number > retries

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        # A little chance on top keeps the threads from coming back all at once.
        delay: float = min(self._retry_delay * 2 ** (state.attempt_number - 1), _LONGEST_DELAY)
        delay *= 0.75 + 0.25 * random.random()
        asked = retry_after(error)
        if asked is not None:
            self._limiter.hold(asked)
            delay = max(asked, delay)
        _logger.info(
            "%s failed (%s); trying again in %.1f s", self._model, extract_error_message(error, self.secrets), delay
        )
        return delay

    def _explained(self, error: openai.OpenAIError | UnusableReplyError) -> EndpointError:
        where = f"model {self._model!r} at {self.address}"
        if isinstance(error, openai.APIStatusError):
            return self._status_explained(error, where)
        if isinstance(error, openai.APIConnectionError) and _never_connected(error):
            return EndpointError(
                f"{where} cannot be reached ({_cause(error)}); check the address and that the server is running",
                concerns_all=True,
            )
        if isinstance(error, openai.APITimeoutError):
            limit = f"timeout = {self._timeout:g} s of silence, {_WHOLE_REPLY * self._timeout:g} s for a whole reply"
            fix = "raise the timeout, lower the concurrency or use a faster model"
            return EndpointError(f"{where} did not answer in time ({limit}); {fix}")
        if isinstance(error, openai.APIConnectionError):
            return EndpointError(f"the connection to {where} broke ({_cause(error)}); look into the server's log")
        return EndpointError(f"{where}: {error}")

    def _status_explained(self, error: openai.APIStatusError, where: str) -> EndpointError:
        status, said = error.status_code, extract_error_message(error.body or error.message, self.secrets)
        if status == 401:
            return EndpointError(f"{where} refused the API key ({said}); set OPENAI_API_KEY", concerns_all=True)
        if status == 402 or _quota_spent(error):
            return EndpointError(f"{where}: the account has no credit left ({said})", concerns_all=True)
        if status == 403:
            return EndpointError(f"{where} does not allow this request ({said}); check what the API key may do")
        if status == 404:
            fix = "check the model's name, and that the address ends where the API begins, usually in /v1"
            return EndpointError(f"{where} was not found ({said}); {fix}", concerns_all=True)
        if status == 429:
            asked = retry_after(error)
            hint = f"asks to wait {asked:g} s; " if asked else ""
            fix = "set requests_per_minute or tokens_per_minute, or lower the concurrency"
            return EndpointError(f"{where} has had too many requests ({said}); {hint}{fix}")
        if "context" in said.lower() or "context_length" in str(error.code):
            fix = "give the model a longer context, or lower passage_tokens (indexing) or max_context_tokens (answers)"
            return EndpointError(f"{where} has no room for the prompt ({said}); {fix}")
        fix = "; look into the server's log, or try again when it is ready" if status >= 500 else ""
        return EndpointError(f"{where} answered with status {status}: {said}{fix}")


def _client(address: Address, api_key: str, timeout: float, limits: Limits) -> openai.OpenAI:
    of_environment = os.environ.get("OPENAI_API_KEY", "").strip()
    key = api_key or of_environment or _ANY_KEY
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("the API key has characters that no key has; look at OPENAI_API_KEY")
    silence = openai.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT))
    return openai.OpenAI(
        base_url=address.url,
        default_query=address.query,
        default_headers=None if api_key in ("", of_environment) else _alone(key),
        api_key=key,
        timeout=silence,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(timeout=silence, event_hooks=limits.hooks()),
    )


def _headers_of_environment() -> dict[str, str]:
    """The headers that the SDK takes from the environment, beside the key."""
    variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    headers = {name: os.environ.get(variable, "") for name, variable in variables.items()}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers


def _alone(key: str) -> Mapping[str, Any]:
    """What has the SDK send ``key`` without the headers that go with the key of the environment."""
    omitted = {name: openai.omit for name in _headers_of_environment() if name.lower() != "authorization"}
    return {**omitted, "Authorization": f"Bearer {key}"}


def build_sleep(stop: threading.Event | None) -> Callable[[float], None]:
    """A way to sleep that ends with StoppedError as soon as ``stop`` is set."""

    def sleep(seconds: float) -> None:
        if stop is None:
            time.sleep(seconds)
        elif stop.wait(seconds):
            raise StoppedError

    return sleep


def may_pass(error: BaseException) -> bool:
    """Whether the same request could succeed a little later."""
    if isinstance(error, UnusableReplyError):
        return error.may_pass
    if isinstance(error, openai.APIStatusError):
        if _quota_spent(error):
            return False
        return error.status_code in _PASSING or error.status_code >= 500
    # What is left of the SDK's errors about a request: cut connections, timeouts, an error inside a stream.
    return isinstance(error, openai.APIError)


def retry_after(error: BaseException | None) -> float | None:
    """Seconds that the endpoint asks to wait: ``Retry-After`` in seconds or as a date, or ``retry-after-ms``."""
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


def parse_json_object(body: str, secrets: Secrets = NOTHING_SECRET) -> dict[str, Any]:
    """The JSON object that ``body`` is; without ``secrets`` in what is said of one that is not.

    Raises:
        UnusableReplyError: it is not one.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        hint = _WRONG_ADDRESS if body.lstrip().startswith("<") else ""
        raise UnusableReplyError(f"the reply is not JSON: {secrets.hidden(body)[:80]!r}{hint}") from error
    if not isinstance(parsed, dict):
        raise UnusableReplyError(f"the reply is not a JSON object: {secrets.hidden(body)[:80]!r}")
    if reported := parsed.get("error"):
        status = reported.get("code") if isinstance(reported, dict) else None
        is_final = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
        hint = _WRONG_ADDRESS if "endpoint" in str(reported).lower() else ""
        raise UnusableReplyError(
            f"the reply reports an error: {extract_error_message(reported, secrets)}{hint}", may_pass=not is_final
        )
    return parsed


def encode_safely(text: str) -> str:
    """``text`` without what no request can carry: halves of surrogate pairs, as broken files contain them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def extract_error_message(body: object, secrets: Secrets = NOTHING_SECRET) -> str:
    """The message in the body of an error, in one line without secrets; at most 300 characters."""
    if isinstance(body, list) and len(body) == 1:  # as Google wraps it
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    said = body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body
        metadata = body.get("metadata")
        if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter: what the provider behind it said
            said = f"{said}: {metadata['raw']}"
    # Hidden before it is cut, lest half of a secret be left.
    return secrets.hidden(sanitize(" ".join(str(said).split())))[:300]


def _quota_spent(error: openai.APIStatusError) -> bool:
    return error.status_code == 429 and "insufficient_quota" in (error.code, error.type)


def _never_connected(error: openai.APIConnectionError) -> bool:
    # By name: which HTTP library is underneath changed between versions of the SDK.
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")


def _cause(error: Exception) -> str:
    return str(error.__cause__) or type(error.__cause__).__name__
