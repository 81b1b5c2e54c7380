"""Pays once: replies of a language model, kept in the store with the index they were bought for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from polyad.errors import LanguageModelError
from polyad.model import Usage
from polyad.protocols import Gate, LanguageModel, Prompt, Reply, Store


class CachedLanguageModel:
    """A language model that never asks twice what the store already knows the reply to.

    A reply is stored as soon as it arrives, before the next: a crash loses nothing that was paid for. The same prompt
    twice in a batch is asked once. Failures are not kept. Replies from the cache cost nothing and say so.

    Args:
        model: Who is asked when there is no reply.
        store: Where the replies are; used in the calling thread only.

    Attributes:
        usage: What was spent through this object; recalled replies cost nothing.
    """

    def __init__(self, model: LanguageModel, store: Store) -> None:
        self._model = model
        self._store = store
        self.usage = Usage()

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_reply: Callable[[int, Reply], None] | None = None,
        gate: Gate | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Ask what is new, recall the rest; see :class:`polyad.protocols.LanguageModel`.

        Of a reply that ``on_reply`` refuses the cost alone is kept, so that it is asked for again the next time.
        """
        positions = self._positions(prompts)
        outcomes: dict[int, Reply | LanguageModelError] = {}
        known = self._store.cached_replies(list(positions))
        for key in list(known):
            if not _deliver(positions[key], known[key], outcomes, on_reply):
                self._store.cache_reply(key, _recalled(known.pop(key)), usable=False)
        new = [key for key in positions if key not in known]

        def keep(index: int, reply: Reply) -> None:
            key = new[index]
            self.usage += reply.usage
            self._store.cache_reply(key, reply)
            if not _deliver(positions[key], reply, outcomes, on_reply):
                self._store.cache_reply(key, _recalled(reply), usable=False)

        asked = self._model.complete([prompts[positions[key][0]] for key in new], keep, gate) if new else []
        for key, outcome in zip(new, asked, strict=True):
            if isinstance(outcome, LanguageModelError):
                outcomes.update(dict.fromkeys(positions[key], outcome))
        return [outcomes[position] for position in range(len(prompts))]

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The model's own; see :class:`polyad.protocols.LanguageModel`."""
        return self._model.cost(prompt_tokens, completion_tokens)

    def known(self, prompts: Sequence[Prompt]) -> list[bool]:
        """Of each prompt, whether its reply is here already and asking would cost nothing."""
        keys = [reply_key(self.name, prompt) for prompt in prompts]
        here = self._store.cached_replies(keys)
        return [key in here for key in keys]

    def _positions(self, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
        """Where each key's prompt stands, in order of first appearance."""
        positions: dict[str, list[int]] = {}
        for position, prompt in enumerate(prompts):
            positions.setdefault(reply_key(self.name, prompt), []).append(position)
        return positions

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Recall the reply in one piece, or stream it and keep it; see :class:`polyad.protocols.LanguageModel`."""
        key = reply_key(self.name, prompt)
        known = self._store.cached_replies([key]).get(key)
        if known is not None:
            on_text(known.text)
            return _recalled(known)
        reply = self._model.stream(prompt, on_text)
        self.usage += reply.usage
        self._store.cache_reply(key, reply)
        return reply


def reply_key(model: str, prompt: Prompt) -> str:
    """The key of a reply: a hash of the model's name, the parameters and the prompt."""
    parts = [model, prompt.system, prompt.user, prompt.json_schema, prompt.max_tokens, float(prompt.temperature)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


def _deliver(
    positions: Sequence[int],
    reply: Reply,
    outcomes: dict[int, Reply | LanguageModelError],
    on_reply: Callable[[int, Reply], None] | None,
) -> bool:
    """Make ``reply`` the outcome at each of ``positions``, the cost counted at the first; whether it was accepted."""
    for position in positions:
        outcomes[position] = reply
        try:
            if on_reply is not None:
                on_reply(position, reply)
        except LanguageModelError as error:
            outcomes.update(dict.fromkeys(positions, error))
            return False
        reply = _recalled(reply)
    return True


def _recalled(reply: Reply) -> Reply:
    return replace(reply, usage=Usage(), cached=True)
