"""Pays once: replies of a language model are kept, and what they cost goes on an account."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, runtime_checkable

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, LanguageModel, OnOutcome, Prompt, Reply
from polyad.protocols.store import REPLIES, ValueStore
from polyad.text.counting import count_tokens


@runtime_checkable
class _Distinguished(Protocol):
    """A language model that others may share its name with."""

    @property
    def cache_name(self) -> str:
        """What replies are kept by, in place of the name."""


class Asked(Protocol):
    """Keys of replies, as a set has them."""

    def __contains__(self, key: object, /) -> bool:
        """Whether it is among them."""

    def add(self, key: str, /) -> None:
        """Have it among them."""


class CachedLanguageModel:
    """A language model that never asks twice what the reply is known to.

    A reply is kept as soon as it arrives, before the next: a crash loses nothing that was paid for. The same prompt
    twice in a batch is asked once. Failures are not kept, but what they cost is charged. Replies from the cache cost
    nothing and say so.

    Args:
        model: Who is asked when there is no reply.
        replies: Where they are kept; used in the calling thread only.
        charge: Told what each reply and failure has cost, in the calling thread, once the reply is kept.
        recalls: Off, what was said before is never used, as for runs that are to be independent of one another.
    """

    def __init__(
        self, model: LanguageModel, replies: ValueStore, charge: Callable[[Usage], object], *, recalls: bool = True
    ) -> None:
        self._model = model
        self._replies = replies
        self._charge = charge
        self._kept_as = model.cache_name if isinstance(model, _Distinguished) else model.name
        self._account = threading.local()
        self._recalls = recalls

    @contextmanager
    def asking_anew(self, asked: Asked) -> Iterator[None]:
        """Have this thread recall only what was ``asked`` anew: all else is, and kept in place of what was said before.

        Args:
            asked: The keys of these replies, which new ones are added to.
        """
        earlier, self._account.asked_anew = self._asked_anew, asked
        try:
            yield
        finally:
            self._account.asked_anew = earlier

    @property
    def _asked_anew(self) -> Asked | None:
        asked: Asked | None = getattr(self._account, "asked_anew", None)
        return asked

    @property
    def kept_as(self) -> str:
        """The name that its replies are kept by."""
        return self._kept_as

    def _known(self, keys: Sequence[str]) -> dict[str, Reply]:
        asked = self._asked_anew
        if not self._recalls:
            return {}
        values = self._replies.get_values(REPLIES, keys if asked is None else [key for key in keys if key in asked])
        return {key: _parse_reply(value) for key, value in values.items()}

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    @property
    def usage(self) -> Usage:
        """What this thread has spent through this object, on failures too; recalled replies cost nothing."""
        return getattr(self._account, "usage", Usage())

    @property
    def usage_uncached(self) -> Usage:
        """What this thread would have spent had nothing been recalled; of recalled replies the tokens are estimated."""
        return self.usage + getattr(self._account, "recalled", Usage())

    def _recall(self, prompt: Prompt, reply: Reply) -> None:
        """Put on the account what a recalled reply would have cost."""
        tokens = count_tokens(prompt.system) + count_tokens(prompt.user), count_tokens(reply.text)
        earlier = getattr(self._account, "recalled", Usage())
        self._account.recalled = earlier + Usage(1, *tokens, self._model.cost(*tokens))

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        gate: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Ask what is new, recall the rest; see :class:`polyad.protocols.components.LanguageModel`.

        A reply that ``on_outcome`` refuses is not kept, so that it is asked for again the next time.
        """
        positions = self._positions(prompts)
        outcomes: dict[int, Reply | LanguageModelError] = {}
        known = self._known(list(positions))
        for key in list(known):
            if not _deliver(positions[key], known[key], outcomes, on_outcome):
                self._replies.put_values(REPLIES, {key: None})
                del known[key]
            else:
                self._recall(prompts[positions[key][0]], known[key])
        new = [key for key in positions if key not in known]

        def keep(index: int, outcome: Reply | LanguageModelError) -> None:
            key = new[index]
            self._pay(key, outcome)
            if not _deliver(positions[key], outcome, outcomes, on_outcome) and isinstance(outcome, Reply):
                self._replies.put_values(REPLIES, {key: None})

        if new:
            self._model.complete([prompts[positions[key][0]] for key in new], keep, gate)
        return [outcomes[position] for position in range(len(prompts))]

    def _pay(self, key: str, outcome: Reply | LanguageModelError) -> None:
        """Keep a reply, and put what it or a failure cost on the accounts."""
        self._account.usage = self.usage + outcome.usage
        if isinstance(outcome, Reply):
            self._replies.put_values(REPLIES, {key: _format_reply(outcome)})
            if self._asked_anew is not None:
                self._asked_anew.add(key)
        if outcome.usage.calls:
            self._charge(outcome.usage)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The model's own; see :class:`polyad.protocols.components.LanguageModel`."""
        return self._model.cost(prompt_tokens, completion_tokens)

    def known(self, prompts: Sequence[Prompt]) -> list[str | None]:
        """Of each prompt, the reply that is here already and would cost nothing; None where there is none."""
        keys = [build_reply_key(self._kept_as, prompt) for prompt in prompts]
        here = self._known(keys)
        return [here[key].text if key in here else None for key in keys]

    def _positions(self, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
        """Where each key's prompt stands, in order of first appearance."""
        positions: dict[str, list[int]] = {}
        for position, prompt in enumerate(prompts):
            positions.setdefault(build_reply_key(self._kept_as, prompt), []).append(position)
        return positions

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Return the cached reply in one piece, or stream and cache a new one.

        See :class:`polyad.protocols.components.LanguageModel`.
        """
        key = build_reply_key(self._kept_as, prompt)
        known = self._known([key]).get(key)
        if known is not None:
            self._recall(prompt, known)
            on_text(known.text)
            return _recalled(known)
        try:
            reply = self._model.stream(prompt, on_text)
        except LanguageModelError as error:
            self._pay(key, error)
            raise
        self._pay(key, reply)
        return reply


def build_reply_key(model: str, prompt: Prompt) -> str:
    """The key of a reply: a hash of the name that the model's replies are kept by, the parameters and the prompt."""
    parts = [model, prompt.system, prompt.user, prompt.json_schema, prompt.max_tokens, float(prompt.temperature)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


def _deliver(
    positions: Sequence[int],
    outcome: Reply | LanguageModelError,
    outcomes: dict[int, Reply | LanguageModelError],
    on_outcome: OnOutcome | None,
) -> bool:
    """Make ``outcome`` that of each of ``positions``, the cost counted at the first; whether it was accepted."""
    is_accepted = True
    for position in positions:
        outcomes[position] = outcome
        try:
            if on_outcome is not None:
                on_outcome(position, outcome)
        except LanguageModelError as refusal:
            outcomes[position] = refusal
            is_accepted = False
        outcome = _recalled(outcome) if isinstance(outcome, Reply) else _repeated(outcome)
    return is_accepted


def _format_reply(reply: Reply) -> bytes:
    """Return the JSON of a reply, as it is stored; its costs are not stored."""
    return json.dumps({"text": reply.text, "truncated": reply.truncated, "thoughts": reply.thoughts}).encode()


def _parse_reply(value: bytes) -> Reply:
    """Parse a stored reply; it costs nothing."""
    fields = json.loads(value)
    return Reply(
        fields["text"], Usage(), cached=True, truncated=fields["truncated"], thoughts=fields.get("thoughts", "")
    )


def _recalled(reply: Reply) -> Reply:
    return replace(reply, usage=Usage(), cached=True)


def _repeated(error: LanguageModelError) -> LanguageModelError:
    """The same failure, paid for already."""
    kind = NoMoreRepliesError if isinstance(error, NoMoreRepliesError) else LanguageModelError
    return kind(str(error))
