"""A cache of language model replies, with the usage of each thread."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from polyad.errors import LanguageModelError, NoMoreRepliesError, StoreUnavailableError
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, LanguageModel, OnOutcome, Prompt, Reply, report_failure
from polyad.protocols.store import REPLIES, ValueStore
from polyad.text.prompts import count_prompt_tokens
from polyad.text.words import count_tokens

F = TypeVar("F", bound=Callable[..., Any])

_LOG = logging.getLogger(__name__)


@runtime_checkable
class _NamedForCache(Protocol):
    """A protocol of language models with a ``cache_name``, a name for the reply cache that includes the server."""

    @property
    def cache_name(self) -> str:
        """Name of the language model and its server in the cache of replies."""


@runtime_checkable
class _Remote(Protocol):
    """A protocol of language models behind an address."""

    @property
    def endpoint(self) -> str:
        """Address of the language model, without credentials."""


class ReplyKeys(Protocol):
    """A protocol of mutable sets of reply cache keys, such as the built-in ``set``."""

    def __contains__(self, key: object, /) -> bool:
        """Return whether a key is in the set."""

    def add(self, key: str, /) -> None:
        """Add the cache key of a reply to the set."""


class CachedLanguageModel:
    """A language model with a reply cache: a repeated prompt gets the stored reply, without a request.

    Each reply is stored as soon as it arrives, so that a crash loses no paid reply. Equal prompts in a batch are sent
    once. Failures are not cached, but their cost is charged. Cached replies cost nothing. If the store cannot be
    written, as on a full disk, a reply is used all the same, except where a budget limits the cost of many replies.

    Args:
        model: The language model to ask.
        replies: Stores the replies; used in the calling thread only.
        charge: Called with the usage of each reply and failure, in the calling thread, after the reply is stored.
        recalls: Whether cached replies are used. False for runs that should be independent of each other.

    Attributes:
        name: Name of the language model.
        endpoint: Address of the language model without credentials; empty if it is in this process.
        cache_name: Name of the language model in the cache of replies.
        locked: Holds a lock of each reply key while the prompts are asked, if several processes use the cache.
    """

    def __init__(
        self, model: LanguageModel, replies: ValueStore, charge: Callable[[Usage], object], *, recalls: bool = True
    ) -> None:
        self._model = model
        self._replies = replies
        self._charge = charge
        self.name = model.name
        self.endpoint = model.endpoint if isinstance(model, _Remote) else ""
        self.cache_name = model.cache_name if isinstance(model, _NamedForCache) else model.name
        self._account = threading.local()
        self._recalls = recalls
        self.locked: Callable[[Iterable[str]], AbstractContextManager[None]] = lambda _: nullcontext()

    @contextmanager
    def replacing_replies(self, replaced_keys: ReplyKeys) -> Iterator[None]:
        """Replace cached replies by new ones for this thread's prompts in the ``with`` block, except ``replaced_keys``.

        Args:
            replaced_keys: Keys of replies that were already replaced and are read from the cache; new keys are added.
        """
        previous, self._account.replaced_keys = self._replaced_keys, replaced_keys
        try:
            yield
        finally:
            self._account.replaced_keys = previous

    @property
    def _replaced_keys(self) -> ReplyKeys | None:
        keys: ReplyKeys | None = getattr(self._account, "replaced_keys", None)
        return keys

    def _get_cached(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the cached replies among ``keys``, keyed by cache key, without replies that must be replaced."""
        replaced = self._replaced_keys
        if not self._recalls:
            return {}
        if replaced is not None:
            keys = [key for key in keys if key in replaced]
        return {key: _parse_reply(value) for key, value in self._replies.get_values(REPLIES, keys).items()}

    @property
    def usage(self) -> Usage:
        """Token usage of this thread's requests, including failures; cached replies count as zero."""
        return getattr(self._account, "usage", Usage())

    @property
    def usage_uncached(self) -> Usage:
        """Token usage that this thread would have without a cache, with an estimate for cached replies."""
        return self.usage + getattr(self._account, "recalled", Usage())

    def _count_recalled(self, prompt: Prompt, reply: Reply) -> None:
        """Add the estimated token usage of a cached reply to :attr:`usage_uncached`."""
        tokens = count_prompt_tokens(prompt), count_tokens(reply.text)
        earlier = getattr(self._account, "recalled", Usage())
        self._account.recalled = earlier + Usage(1, *tokens, self._model.cost(*tokens))

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        check_budget: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Return a reply or an error for each prompt, from the cache or from the language model.

        A reply that ``on_outcome`` rejects is not cached, so the next call sends its prompt again.
        """
        positions: dict[str, list[int]] = {}  # of equal prompts, by cache key
        for position, prompt in enumerate(prompts):
            positions.setdefault(build_reply_key(self.cache_name, prompt), []).append(position)
        with self.locked(positions):
            return self._complete(prompts, positions, on_outcome, check_budget)

    def _complete(
        self,
        prompts: Sequence[Prompt],
        positions: Mapping[str, list[int]],
        on_outcome: OnOutcome | None,
        check_budget: BudgetCheck | None,
    ) -> list[Reply | LanguageModelError]:
        outcomes: dict[int, Reply | LanguageModelError] = {}
        cached = self._get_cached(list(positions))
        is_optional = check_budget is None
        for key in list(cached):
            if not _deliver(positions[key], cached[key], outcomes, on_outcome):
                with _continue_unstored(is_optional=is_optional):
                    self._replies.put_values(REPLIES, {key: None})
                del cached[key]
            else:
                self._count_recalled(prompts[positions[key][0]], cached[key])
        new = [key for key in positions if key not in cached]

        def store_and_deliver(index: int, outcome: Reply | LanguageModelError) -> None:
            key = new[index]
            with _continue_unstored(is_optional=is_optional):
                self._store_reply(key, outcome)
            if not _deliver(positions[key], outcome, outcomes, on_outcome) and isinstance(outcome, Reply):
                with _continue_unstored(is_optional=is_optional):
                    self._replies.put_values(REPLIES, {key: None})

        if new:
            with self._report_failure() as watch:
                self._model.complete(
                    [prompts[positions[key][0]] for key in new],
                    watch(store_and_deliver),
                    watch(check_budget) if check_budget else None,
                )
        if missing := len(prompts) - len(outcomes):
            raise LanguageModelError(f"the language model {self.name!r} returned no outcome for {missing:,} prompts")
        return [outcomes[position] for position in range(len(prompts))]

    @contextmanager
    def _report_failure(self) -> Iterator[Callable[[F], F]]:
        """Convert exceptions inside the ``with`` block into LanguageModelError.

        Yields:
            A function that returns a callback whose own exceptions, such as that of a closed pipe, pass unchanged.
        """
        errors: list[Exception] = []

        def watch(callback: F) -> F:
            def watched(*args: object) -> object:
                try:
                    return callback(*args)
                except Exception as error:
                    errors.append(error)
                    raise

            return cast(F, watched)

        try:
            with report_failure(LanguageModelError, f"the language model {self.name!r}"):
                yield watch
        except LanguageModelError as error:
            if isinstance(error.__cause__, Exception) and error.__cause__ in errors:
                raise error.__cause__ from None
            raise

    def _store_reply(self, key: str, outcome: Reply | LanguageModelError) -> None:
        """Store a reply in the cache under ``key``, and add the token usage of the reply or error to the totals."""
        self._account.usage = self.usage + outcome.usage
        if isinstance(outcome, Reply):
            fields = {"text": outcome.text, "truncated": outcome.truncated, "thoughts": outcome.thoughts}
            self._replies.put_values(REPLIES, {key: json.dumps(fields).encode()})
            if self._replaced_keys is not None:
                self._replaced_keys.add(key)
        if outcome.usage.calls:
            self._charge(outcome.usage)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of a request in US dollars, from its token counts; 0 if the price is unknown."""
        return self._model.cost(prompt_tokens, completion_tokens)

    def find_replies(self, prompts: Sequence[Prompt]) -> list[str | None]:
        """Return the text of each prompt's cached reply; None for a prompt without a cached reply."""
        keys = [build_reply_key(self.cache_name, prompt) for prompt in prompts]
        cached = self._get_cached(keys)
        return [cached[key].text if key in cached else None for key in keys]

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Return the reply to a prompt from the cache or the model, and pass its text to ``on_text``.

        A cached reply is passed in one piece; a new reply is streamed and cached.

        See :class:`polyad.protocols.components.LanguageModel`.
        """
        key = build_reply_key(self.cache_name, prompt)
        cached = self._get_cached([key]).get(key)
        if cached is not None:
            self._count_recalled(prompt, cached)
            on_text(cached.text)
            return _without_usage(cached)
        try:
            with self._report_failure() as watch:
                reply = self._model.stream(prompt, watch(on_text))
        except LanguageModelError as error:
            with _continue_unstored():
                self._store_reply(key, error)
            raise
        with _continue_unstored():
            self._store_reply(key, reply)
        return reply


@contextmanager
def _continue_unstored(*, is_optional: bool = True) -> Iterator[None]:
    """Log a warning instead of an error of the ``with`` block if the store cannot be written and need not be."""
    try:
        yield
    except StoreUnavailableError as error:
        if not is_optional:
            raise
        _LOG.warning("a reply is used but not stored: %s", error)


def build_reply_key(model: str, prompt: Prompt) -> str:
    """Return the cache key of the reply to a prompt: a hash of the model's name and the prompt with its parameters."""
    parts = [model, prompt.system, prompt.user, prompt.json_schema, prompt.max_tokens, float(prompt.temperature)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


def _deliver(
    positions: Sequence[int],
    outcome: Reply | LanguageModelError,
    outcomes: dict[int, Reply | LanguageModelError],
    on_outcome: OnOutcome | None,
) -> bool:
    """Pass the reply or error of a prompt to ``on_outcome`` for all equal prompts; return whether it was accepted.

    ``outcomes`` receives the reply or error at the ``positions`` of these prompts; only the first has a token usage.
    """
    is_accepted = True
    for position in positions:
        outcomes[position] = outcome
        try:
            if on_outcome is not None:
                on_outcome(position, outcome)
        except LanguageModelError as refusal:
            outcomes[position] = refusal
            is_accepted = False
        outcome = _without_usage(outcome) if isinstance(outcome, Reply) else _copy_without_usage(outcome)
    return is_accepted


def _parse_reply(value: bytes) -> Reply:
    """Return the reply in a JSON value of the cache, with a token usage of zero."""
    fields = json.loads(value)
    return Reply(
        fields["text"], Usage(), cached=True, truncated=fields["truncated"], thoughts=fields.get("thoughts", "")
    )


def _without_usage(reply: Reply) -> Reply:
    return replace(reply, usage=Usage(), cached=True)


def _copy_without_usage(error: LanguageModelError) -> LanguageModelError:
    """Return a copy of an error with zero token usage."""
    kind = NoMoreRepliesError if isinstance(error, NoMoreRepliesError) else LanguageModelError
    return kind(str(error))
