"""Conversations with a chat-completions endpoint: prompts out; replies, and what they cost, in.

Imports the SDK; :mod:`polyad.openai_api` is the part of it that can be imported without.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.openai.dialect import DialectInUse
from polyad.language_models.openai.reply import Received, Showing
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
from polyad.text.counting import count_tokens, format_count

_logger = logging.getLogger(__name__)

_HOPELESS = 50
"""Requests that fail one after another, each after its retries, before the rest of a batch is given up."""

_DEFAULT_REPLY_TOKENS = 512
"""What a reply without ``max_tokens`` is expected to take of the per-minute limit until its usage is known."""

_LONGEST_TOKEN = 16
"""Characters that a token has at most, on average over a reply: a server that says more goes beyond what was asked."""

_CUT_PROMPT = 2
"""How many times more tokens a prompt has to have here than the server says, before it is taken to be cut there."""

_LONG_PROMPT = 1000
"""Tokens of a prompt from which on it is compared with what the server says."""


class Chat:
    """One endpoint and one model; safe to use from many threads."""

    def __init__(self, settings: LanguageModelSettings) -> None:
        self._settings = settings
        self._limiter = RateLimiter(settings.requests_per_minute, settings.tokens_per_minute)
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
        self._slots = Slots(settings.concurrency, TooSlowError)
        self._dialect = DialectInUse()
        self._account = threading.Lock()
        self._spent = Usage()
        self._warned = False

    @property
    def address(self) -> str:
        """Where the endpoint is: scheme, host and path."""
        return self._endpoint.address

    @property
    def spent(self) -> Usage:
        """The cost of everything so far."""
        return self._spent

    def outcomes(
        self, prompts: Sequence[Prompt], gate: BudgetCheck | None = None
    ) -> Iterator[tuple[int, Reply | LanguageModelError]]:
        """Ask all that ``gate`` lets pass; yield each prompt's position and outcome in the order of arrival.

        Interrupted while it waits, it sends nothing more, yields what is still under way, since that is paid for, and
        then lets the interrupt go on; a second interrupt does not wait.
        """
        if not prompts:
            return
        batch = _Batch(self, gate)
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
                under_way = [future for future in waiting if not future.cancel()]
                _logger.warning("waiting for %d requests under way; interrupt again to lose them", len(under_way))
                for future in as_completed(under_way):
                    if not future.exception():  # StoppedError, where it was waiting for another try
                        yield futures[future], future.result()
                raise
        finally:
            # The caller failed, or was interrupted twice: nobody waits for the rest, and no thread goes on sleeping.
            batch.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, bill: Bill, stop: threading.Event | None = None) -> Reply:
        """Ask the prompt of ``bill``, with retries. The usage is that of all tries.

        Raises:
            EndpointError: it failed for good.
            NoMoreRepliesError: another try is more than may be spent.
            StoppedError: ``stop`` was set.
        """
        return self._endpoint.run(lambda: self._whole(bill, stop), stop)

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Ask one prompt and pass the reply on as it comes, with retries until its first text.

        Raises:
            LanguageModelError: it failed for good, or broke off.
        """
        bill = Bill(self, prompt)
        try:
            return self._endpoint.run(lambda: self._streamed(bill, on_text))
        except EndpointError as error:
            raise LanguageModelError(str(error), bill.total) from error

    def charge(self, usage: Usage) -> None:
        """Add to what was spent."""
        with self._account:
            self._spent += usage

    def usage_of(self, prompt: Prompt, received: Received) -> Usage:
        """What one try cost, by the endpoint's count, or by an estimate where it gives none."""
        prompt_tokens = received.reported("prompt_tokens")
        completion_tokens = received.reported("completion_tokens")
        if prompt_tokens is None:
            prompt_tokens = _prompt_tokens(prompt)
        else:
            self._compare(prompt_tokens, _prompt_tokens(prompt))
        if completion_tokens is None:
            completion_tokens = count_tokens(received.text)
        return Usage(1, prompt_tokens, completion_tokens, self.cost(prompt_tokens, completion_tokens))

    def _compare(self, read: int, sent: int) -> None:
        """Warn, once, of a server that reads only a part of what it is sent, as Ollama does without a word."""
        if 0 < read < sent / _CUT_PROMPT and sent > _LONG_PROMPT and not self._warned:
            self._warned = True
            _logger.warning(
                "%s read %s of a prompt of about %s, and replied to that part; give the model a longer context "
                "(Ollama: OLLAMA_CONTEXT_LENGTH), or lower passage_tokens (indexing) or max_context_tokens (answers)",
                self._settings.model,
                format_count(read, "token"),
                format_count(sent, "token"),
            )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Of so many tokens, by the prices set."""
        prices = self._settings
        return (prompt_tokens * prices.prompt_price + completion_tokens * prices.completion_price) / 1_000_000

    def _whole(self, bill: Bill, stop: threading.Event | None) -> Reply:
        """One try at a reply in one piece."""
        bill.check()
        with self._slots.one(lambda: build_sleep(stop)(0.0)):
            reservation = self._turn(bill.prompt, stop)
            received = Received(self._endpoint.secrets, _most_characters(bill.prompt))
            received.add_whole(parse_json_object(self._send(bill.prompt, stream=False).text, self._endpoint.secrets))
        bill.add(received, reservation)
        return _reply(received, received.usable_text(), bill)

    def _streamed(self, bill: Bill, on_text: Callable[[str], None]) -> Reply:
        """One try at a reply in pieces."""
        reservation = self._turn(bill.prompt, None)
        showing = Showing(on_text)
        received = Received(self._endpoint.secrets, _most_characters(bill.prompt))
        broken: Exception | None = None
        try:
            with contextlib.closing(self._events(bill.prompt)) as events:
                for event in events:
                    showing.feed(received.add(event))
                    if received.is_full:
                        break
                showing.feed(received.finish())
        except (SdkError, UnusableReplyError) as error:
            if not received.events:
                raise
            broken = error
        if not received.events:  # the endpoint ignored the wish and answered in one piece, which is no stream
            return self._shown_whole(bill, on_text)
        bill.add(received, reservation)
        if not received.finish_reason:
            broken = broken or UnusableReplyError("it ended before the reply did")
        if broken is not None:
            raise self._broken_off(broken, showing.characters) from broken
        try:
            text = received.usable_text()
        except UnusableReplyError as error:
            if showing.characters:
                raise self._broken_off(error, showing.characters) from error
            raise
        showing.finish()
        return _reply(received, text, bill)

    def _shown_whole(self, bill: Bill, on_text: Callable[[str], None]) -> Reply:
        reply = self._whole(bill, None)
        on_text(reply.text)
        return reply

    def _broken_off(self, cause: Exception, shown: int) -> UnusableReplyError:
        # What the user has seen cannot be taken back: from its first character on there is no other try.
        message = f"the stream broke off after {format_count(shown, 'character')} ({cause})"
        return UnusableReplyError(message, may_pass=shown == 0)

    def _events(self, prompt: Prompt) -> Generator[Mapping[str, Any], None, None]:
        """The events of a streamed reply."""
        with self._send(prompt, stream=True) as stream:
            try:
                for event in stream:
                    yield event.to_dict(mode="json", warnings=False)
            except (ValueError, AttributeError, RecursionError) as error:
                raise UnusableReplyError(f"an event is not what the protocol allows: {error}") from error

    def _send(self, prompt: Prompt, *, stream: bool) -> Any:
        """Send one request, in as many wordings as it takes until the endpoint accepts one."""
        completions = self._endpoint.client.chat.completions
        create: Callable[..., Any] = completions.create if stream else completions.with_raw_response.create
        self._endpoint.begin()
        while True:
            spoken = self._dialect.now
            body = spoken.request(self._settings.model, prompt, stream=stream)
            if self._settings.seed:
                body["seed"] = self._settings.seed
            try:
                return create(**body)
            except REJECTIONS as error:
                if not self._dialect.learn(f"{error.param} {error.body}", spoken, body):
                    raise

    def _turn(self, prompt: Prompt, stop: threading.Event | None) -> Reservation:
        expected = _prompt_tokens(prompt) + (prompt.max_tokens or _DEFAULT_REPLY_TOKENS)
        return self._limiter.acquire(expected, build_sleep(stop))


class Bill:
    """What the tries at one prompt cost together."""

    def __init__(self, chat: Chat, prompt: Prompt, gate: BudgetCheck | None = None) -> None:
        self.prompt = prompt
        self.total = Usage()
        self._chat = chat
        self._gate = gate

    def check(self) -> None:
        """Raise NoMoreRepliesError where another try is more than may be spent."""
        if self._gate:
            self._gate(self.prompt, self.total)

    def add(self, received: Received, reservation: Reservation) -> None:
        """Add what one try cost."""
        usage = self._chat.usage_of(self.prompt, received)
        reservation.settle(usage.tokens)
        self._chat.charge(usage)
        self.total += usage


class _Batch:
    """Prompts asked together: what would fail every one of them, such as a wrong key, spares the rest the request."""

    def __init__(self, chat: Chat, gate: BudgetCheck | None) -> None:
        self.stop = threading.Event()
        self._chat = chat
        self._gate = gate
        self._doom: NoMoreRepliesError | None = None
        self._failures = 0

    def ask(self, prompt: Prompt) -> Reply | LanguageModelError:
        if self._doom:
            return NoMoreRepliesError(str(self._doom))
        bill = Bill(self._chat, prompt, self._gate)
        try:
            reply = self._chat.ask(bill, self.stop)
        except NoMoreRepliesError as error:
            error.usage = bill.total
            self._doom = error
            return error
        except EndpointError as error:
            return self._failed(error, bill.total)
        self._failures = 0
        return reply

    def _failed(self, error: EndpointError, spent: Usage) -> LanguageModelError:
        self._failures += 1
        is_hopeless = error.concerns_all or self._failures >= _HOPELESS
        failure = (NoMoreRepliesError if is_hopeless else LanguageModelError)(str(error), spent)
        failure.__cause__ = error
        if isinstance(failure, NoMoreRepliesError):
            self._doom = failure
        return failure


def _reply(received: Received, text: str, bill: Bill) -> Reply:
    return Reply(text, bill.total, truncated=received.truncated, thoughts=received.thoughts(text))


def _most_characters(prompt: Prompt) -> int | None:
    """How long the reply to a prompt may be; None for no limit."""
    return _LONGEST_TOKEN * prompt.max_tokens if prompt.max_tokens else None


def _prompt_tokens(prompt: Prompt) -> int:
    return count_tokens(prompt.system) + count_tokens(prompt.user)
