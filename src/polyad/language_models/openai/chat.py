"""Requests to a chat-completions endpoint: concurrent or streamed, with usage and cost."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.openai.dialect import DialectLearner
from polyad.language_models.openai.reply import ReceivedReply, ThoughtlessStream
from polyad.model import Usage
from polyad.openai_api.endpoint import (
    REJECTIONS,
    Endpoint,
    EndpointError,
    SdkError,
    TooSlowError,
    build_sleep,
    parse_json_object,
)
from polyad.openai_api.failure import UnusableReplyError
from polyad.openai_api.rate_limit import RateLimiter, Reservation
from polyad.openai_api.slots import Slots
from polyad.protocols.components import BudgetCheck, Prompt, Reply
from polyad.text.prompts import count_prompt_tokens
from polyad.text.words import count_tokens, format_count

_logger = logging.getLogger(__name__)

_HOPELESS = 50
"""Number of consecutive failed requests, each after its retries, after which a batch is stopped."""

_DEFAULT_REPLY_TOKENS = 512
"""Tokens that a reply without ``max_tokens`` reserves of the per-minute limit until its usage is known."""

_LONGEST_TOKEN = 16
"""Maximum average number of characters per token; a server that sends more ignores ``max_tokens``."""

_CUT_PROMPT = 2
"""Ratio of our token count of a prompt to the server's above which the server has cut the prompt."""

_DONE, _DONE_BYTES = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE), len(b"data: [DONE]")

_LONG_PROMPT = 1000
"""Minimum number of tokens of a prompt for this comparison."""


class Chat:
    """A thread-safe client of one chat model at one endpoint, with limits on concurrency and rate.

    Attributes:
        address: Scheme, host and path of the endpoint's URL, without credentials.
        spent: Total token usage of all requests by this client.
    """

    def __init__(self, settings: LanguageModelSettings, limiter: RateLimiter | None = None) -> None:
        self._settings = settings
        self._limiter = limiter or RateLimiter(settings.requests_per_minute, settings.tokens_per_minute)
        self._endpoint = Endpoint(
            base_url=settings.base_url,
            api_key=settings.api_key,
            model=settings.model,
            timeout=settings.timeout,
            max_retries=settings.max_retries,
            retry_delay=settings.retry_delay,
            max_reply_bytes=settings.max_reply_bytes,
            limiter=self._limiter,
        )
        self.address = self._endpoint.address
        self._slots = Slots(settings.concurrency, TooSlowError)
        self._dialect = DialectLearner()
        self._account = threading.Lock()
        self.spent = Usage()
        self._warned = False

    def outcomes(
        self, prompts: Sequence[Prompt], check_budget: BudgetCheck | None = None
    ) -> Iterator[tuple[int, Reply | LanguageModelError]]:
        """Send prompts concurrently; yield the index of each prompt with its reply or error, in order of arrival.

        After an interrupt no request is sent; pending replies, which are paid for, are yielded before the interrupt is
        raised again. A second interrupt does not wait for them.

        Args:
            prompts: The prompts.
            check_budget: Called before each request; raises NoMoreRepliesError if the budget is exhausted.
        """
        if not prompts:
            return
        batch = _Batch(self, check_budget)
        pool = ThreadPoolExecutor(min(self._settings.concurrency, len(prompts)), thread_name_prefix="polyad-llm")
        try:
            futures: dict[Future[Reply | LanguageModelError], int] = {
                pool.submit(batch.ask, prompt): position for position, prompt in enumerate(prompts)
            }
            waiting = set(futures)
            try:
                for future in as_completed(futures):
                    waiting.remove(future)
                    yield futures[future], future.result()
            except KeyboardInterrupt:
                batch.stop.set()
                if len(prompts) == 1:  # a question: nobody waits for an answer that was interrupted
                    raise
                under_way = [future for future in waiting if not future.cancel()]
                count = format_count(len(under_way), "request")
                _logger.warning("waiting for %s to end; interrupt again to stop at once", count)
                for future in as_completed(under_way):
                    if not future.exception():  # StoppedError, where it was waiting for another try
                        yield futures[future], future.result()
                raise
        finally:
            # The caller failed or was interrupted twice: do not wait for other requests, and wake sleeping threads.
            batch.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, bill: Bill, stop: threading.Event | None = None) -> Reply:
        """Send the prompt of ``bill`` (token usage of one prompt), with retries, and return the reply.

        The usage in the reply includes failed attempts.

        Raises:
            EndpointError: The request failed.
            NoMoreRepliesError: The budget is exhausted.
            StoppedError: ``stop`` was set.
        """
        return self._endpoint.run(lambda: self._request_without_stream(bill, stop), stop)

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Return the reply to one prompt, and pass its text to ``on_text`` as it arrives.

        Failed requests are repeated only as long as no text was passed on.

        Raises:
            LanguageModelError: The request failed, or the stream broke off.
        """
        bill = Bill(self, prompt)
        try:
            return self._endpoint.run(lambda: self._request_stream(bill, on_text))
        except EndpointError as error:
            raise LanguageModelError(str(error), bill.total) from error

    def charge(self, usage: Usage) -> None:
        """Add the token usage of one request to this client's total, :attr:`spent`."""
        with self._account:
            self.spent += usage

    def compute_usage(self, prompt: Prompt, received: ReceivedReply) -> Usage:
        """Return the token usage of one request: the numbers that the endpoint reported, or else an estimate."""
        prompt_tokens = received.find_token_count("prompt_tokens")
        completion_tokens = received.find_token_count("completion_tokens")
        if prompt_tokens is None:
            prompt_tokens = count_prompt_tokens(prompt)
        else:
            self._warn_of_cut_prompt(prompt_tokens, count_prompt_tokens(prompt))
        if completion_tokens is None:
            completion_tokens = count_tokens(received.text)
        return Usage(1, prompt_tokens, completion_tokens, self.cost(prompt_tokens, completion_tokens))

    def _warn_of_cut_prompt(self, read_tokens: int, sent_tokens: int) -> None:
        """Log a warning, once, if the server read far fewer tokens than were sent: Ollama cuts long prompts."""
        if 0 < read_tokens < sent_tokens / _CUT_PROMPT and sent_tokens > _LONG_PROMPT and not self._warned:
            self._warned = True
            _logger.warning(
                "%s read %s of a prompt of about %s, and replied to that part; give the model a longer context "
                "(Ollama: OLLAMA_CONTEXT_LENGTH), or lower passage_tokens (indexing) or max_context_tokens (answers)",
                self._settings.model,
                format_count(read_tokens, "token"),
                format_count(sent_tokens, "token"),
            )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of a request in US dollars, from its token counts; 0 if the settings have no prices."""
        prices = self._settings
        return (prompt_tokens * prices.prompt_price + completion_tokens * prices.completion_price) / 1_000_000

    def _request_without_stream(self, bill: Bill, stop: threading.Event | None) -> Reply:
        """Send the prompt of ``bill`` in one request, without streaming, and return the reply."""
        bill.check()
        with self._slots.acquire(lambda: build_sleep(stop)(0.0)):
            reservation = self._reserve(bill.prompt, stop)
            received = ReceivedReply(self._endpoint.secrets, _get_max_characters(bill.prompt))
            received.add_whole(
                parse_json_object(self._send_prompt(bill.prompt, stream=False).text, self._endpoint.secrets)
            )
        bill.add(received, reservation)
        return _build_reply(received, received.get_text(), bill)

    def _request_stream(self, bill: Bill, on_text: Callable[[str], None]) -> Reply:
        """Send the prompt of ``bill`` in one request, pass the streamed text to ``on_text``, and return the reply."""
        reservation = self._reserve(bill.prompt, None)
        output = ThoughtlessStream(on_text)
        received = ReceivedReply(self._endpoint.secrets, _get_max_characters(bill.prompt))
        broken: Exception | None = None
        try:
            with contextlib.closing(self._stream_events(bill.prompt, received)) as events:
                for event in events:
                    output.feed(received.add(event))
                    if received.is_full:
                        break
                output.feed(received.finish())
        except (SdkError, UnusableReplyError) as error:
            if not received.events:
                raise
            broken = error
        if not received.events:  # the endpoint ignored the request for a stream
            reply = self._request_without_stream(bill, None)
            on_text(reply.text)
            return reply
        bill.add(received, reservation)
        if not received.finish_reason:
            broken = broken or UnusableReplyError("it ended before the reply did")
        if broken is not None:
            raise _build_stream_error(broken, output.characters) from broken
        try:
            text = received.get_text()
        except UnusableReplyError as error:
            if output.characters:
                raise _build_stream_error(error, output.characters) from error
            raise
        output.finish()
        return _build_reply(received, text, bill)

    def _stream_events(self, prompt: Prompt, received: ReceivedReply) -> Generator[Mapping[str, Any], None, None]:
        """Send a prompt, and yield the events of its streamed reply; a regular end marks ``received`` as complete."""
        with self._send_prompt(prompt, stream=True) as stream:
            stream.response = response = _WatchedResponse(stream.response)
            try:
                for event in stream:
                    yield event.to_dict(mode="json", warnings=False)
            except (ValueError, AttributeError, RecursionError) as error:
                raise UnusableReplyError(f"an event is not what the protocol allows: {error}") from error
            if response.is_complete:
                received.complete()

    def _send_prompt(self, prompt: Prompt, *, stream: bool) -> Any:
        """Send one prompt, again without each request parameter that the endpoint rejects, and return the response."""
        completions = self._endpoint.client.chat.completions
        create: Callable[..., Any] = completions.create if stream else completions.with_raw_response.create
        self._endpoint.begin()
        while True:
            dialect = self._dialect.current
            body = dialect.build_request(self._settings.model, prompt, stream=stream)
            if self._settings.seed:
                body["seed"] = self._settings.seed
            try:
                return create(**body)
            except REJECTIONS as error:
                if not self._dialect.learn(f"{error.param} {error.body}", dialect, body):
                    raise

    def _reserve(self, prompt: Prompt, stop: threading.Event | None) -> Reservation:
        expected = count_prompt_tokens(prompt) + (prompt.max_tokens or _DEFAULT_REPLY_TOKENS)
        return self._limiter.acquire(expected, build_sleep(stop))


class _WatchedResponse:
    """A wrapper of an HTTP response that records whether the event stream ended with ``[DONE]``."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._last_bytes = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    @property
    def is_complete(self) -> bool:
        return _DONE.search(self._last_bytes) is not None

    def iter_bytes(self) -> Iterator[bytes]:
        for piece in self._response.iter_bytes():
            self._last_bytes = self._last_bytes[-_DONE_BYTES:] + piece
            yield piece


class Bill:
    """The total token usage of all requests for one prompt, including failed attempts and retries."""

    def __init__(self, chat: Chat, prompt: Prompt, check_budget: BudgetCheck | None = None) -> None:
        self.prompt = prompt
        self.total = Usage()
        self._chat = chat
        self._check_budget = check_budget

    def check(self) -> None:
        """Raise NoMoreRepliesError if another request for the prompt would exceed the token or cost budget."""
        if self._check_budget:
            self._check_budget(self.prompt, self.total)

    def add(self, received: ReceivedReply, reservation: Reservation) -> None:
        """Add the usage of one request to the totals of the prompt, the model and the rate limiter."""
        usage = self._chat.compute_usage(self.prompt, received)
        reservation.settle(usage.tokens)
        self._chat.charge(usage)
        self.total += usage


class _Batch:
    """Prompts that are sent concurrently; an error such as a wrong API key cancels all remaining prompts."""

    def __init__(self, chat: Chat, check_budget: BudgetCheck | None) -> None:
        self.stop = threading.Event()
        self._chat = chat
        self._check_budget = check_budget
        self._doom: NoMoreRepliesError | None = None
        self._failures = 0

    def ask(self, prompt: Prompt) -> Reply | LanguageModelError:
        if self._doom:
            return NoMoreRepliesError(str(self._doom))
        bill = Bill(self._chat, prompt, self._check_budget)
        try:
            reply = self._chat.ask(bill, self.stop)
        except NoMoreRepliesError as error:
            error.usage = bill.total
            self._doom = error
            return error
        except EndpointError as error:
            return self._build_failure(error, bill.total)
        self._failures = 0
        return reply

    def _build_failure(self, error: EndpointError, usage: Usage) -> LanguageModelError:
        self._failures += 1
        is_hopeless = error.concerns_all or self._failures >= _HOPELESS
        failure = (NoMoreRepliesError if is_hopeless else LanguageModelError)(str(error), usage)
        failure.__cause__ = error
        if isinstance(failure, NoMoreRepliesError):
            self._doom = failure
        return failure


def _build_reply(received: ReceivedReply, text: str, bill: Bill) -> Reply:
    return Reply(text, bill.total, truncated=received.truncated, thoughts=received.get_thoughts(text))


def _build_stream_error(cause: Exception, passed_characters: int) -> UnusableReplyError:
    """Return the error for a stream that broke off; a retry is possible if no characters were passed to the caller."""
    message = f"the stream broke off after {format_count(passed_characters, 'character')} ({cause})"
    return UnusableReplyError(message, is_temporary=passed_characters == 0)


def _get_max_characters(prompt: Prompt) -> int | None:
    """Return the highest plausible number of characters in the reply to a prompt; None for no limit."""
    return _LONGEST_TOKEN * prompt.max_tokens if prompt.max_tokens else None
