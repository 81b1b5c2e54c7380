"""Pays once: replies of a language model, kept in the store with the index they were bought for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from polyad.errors import LanguageModelError
from polyad.model import Usage
from polyad.protocols import LanguageModel, Prompt, Reply, Store


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
        self, prompts: Sequence[Prompt], on_reply: Callable[[int, Reply], None] | None = None
    ) -> list[Reply | LanguageModelError]:
        """Ask what is new, recall the rest; see :class:`polyad.protocols.LanguageModel`."""
        positions = self._positions(prompts)
        outcomes: dict[int, Reply | LanguageModelError] = {}

        def deliver(position: int, outcome: Reply | LanguageModelError) -> None:
            outcomes[position] = outcome
            if on_reply is not None and isinstance(outcome, Reply):
                on_reply(position, outcome)

        known = self._store.cached_replies(list(positions))
        new = [key for key in positions if key not in known]
        for key, reply in known.items():
            for position in positions[key]:
                deliver(position, _recalled(reply))

        def keep(index: int, reply: Reply) -> None:
            self._keep(new[index], reply)
            first, *others = positions[new[index]]
            deliver(first, reply)
            for position in others:
                deliver(position, _recalled(reply))

        asked = self._model.complete([prompts[positions[key][0]] for key in new], keep) if new else []
        for index, outcome in enumerate(asked):
            if isinstance(outcome, LanguageModelError):
                for position in positions[new[index]]:
                    deliver(position, outcome)
        return [outcomes[position] for position in range(len(prompts))]

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
        self._keep(key, reply)
        return reply

    def _keep(self, key: str, reply: Reply) -> None:
        self._store.cache_reply(key, reply)
        self.usage += reply.usage


def reply_key(model: str, prompt: Prompt) -> str:
    """The key of a reply: a hash of the model's name, the parameters and the prompt."""
    parts = [model, prompt.system, prompt.user, prompt.json_schema, prompt.max_tokens, float(prompt.temperature)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


def _recalled(reply: Reply) -> Reply:
    return replace(reply, usage=Usage(), cached=True)
