"""A limit on what one run may spend on its language model."""

from __future__ import annotations

import threading

from polyad.errors import NoMoreRepliesError
from polyad.model import Usage
from polyad.protocols import LanguageModel, Prompt
from polyad.text.tokens import count_tokens

FIRST_GUESS = 0.5
"""Completion tokens for each prompt token, before the first reply has shown how long they are."""


class Budget:
    """Lets prompts pass as long as they and their likely replies fit; a :data:`polyad.protocols.Gate`.

    What is under way counts with its expected tokens, so that many requests at a time do not overshoot together. Safe
    to use from many threads.

    Args:
        model: Knows the prices.
        max_cost: US dollars; 0 for no limit.
        max_tokens: Prompt and completion tokens together; 0 for no limit.
    """

    def __init__(self, model: LanguageModel, *, max_cost: float = 0.0, max_tokens: int = 0) -> None:
        self.spent = Usage()
        self._model = model
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._under_way = Usage()
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt) -> None:
        """Let ``prompt`` pass and count it as under way.

        Raises:
            NoMoreRepliesError: it does not fit any more.
        """
        with self._lock:
            expected = self._expected(prompt)
            total = self.spent + self._under_way + expected
            if self._max_cost and total.cost > self._max_cost:
                raise _spent(f"${self._max_cost:,.4g}", f"${self.spent.cost:,.4f}", "max_cost")
            if self._max_tokens and total.prompt_tokens + total.completion_tokens > self._max_tokens:
                tokens = self.spent.prompt_tokens + self.spent.completion_tokens
                raise _spent(f"{self._max_tokens:,} tokens", f"{tokens:,}", "max_tokens")
            self._under_way += expected

    def settle(self, prompt: Prompt, usage: Usage) -> None:
        """Count what a prompt that passed really cost."""
        with self._lock:
            waiting = self._under_way
            self._under_way = Usage(
                max(0, waiting.calls - 1),
                max(0, waiting.prompt_tokens - count_prompt_tokens(prompt)),
                *self._share(waiting),
            )
            self.spent += usage

    def _expected(self, prompt: Prompt) -> Usage:
        prompt_tokens = count_prompt_tokens(prompt)
        ratio = self.spent.completion_tokens / self.spent.prompt_tokens if self.spent.prompt_tokens else FIRST_GUESS
        completion_tokens = round(prompt_tokens * ratio)
        return Usage(1, prompt_tokens, completion_tokens, self._model.cost(prompt_tokens, completion_tokens))

    def _share(self, waiting: Usage) -> tuple[int, float]:
        """Expected completion tokens and cost of all but one of what is under way."""
        left = (waiting.calls - 1) / waiting.calls if waiting.calls > 1 else 0.0
        return round(waiting.completion_tokens * left), waiting.cost * left


def count_prompt_tokens(prompt: Prompt) -> int:
    """Estimated length of a prompt in tokens, without what a server makes of a schema."""
    return count_tokens(prompt.system) + count_tokens(prompt.user)


def _spent(limit: str, so_far: str, setting: str) -> NoMoreRepliesError:
    return NoMoreRepliesError(
        f"the budget of {limit} is spent ({so_far} so far); what was extracted is kept, and the same command with a "
        f"higher --{setting.replace('_', '-')} goes on from there"
    )
