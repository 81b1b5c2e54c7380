"""A limit on the language model usage of one run."""

from __future__ import annotations

import threading

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.model import Usage
from polyad.protocols.components import LanguageModel, Prompt
from polyad.text.prompts import count_prompt_tokens
from polyad.text.words import count_tokens, format_count

MARGIN = 1.25
"""Factor on the expected tokens of a request: replies differ in length, and a request cannot be cancelled."""

FIRST_PROMPT = 1.2
"""Prompt tokens of the endpoint for each token that polyad counts, until the first reply states the number."""

FIRST_REPLY = 1.0
"""Expected completion tokens for each prompt token, until the first reply; too high for short passages."""


_NO_USAGE = Usage()


class Budget:
    """A limit on the tokens or the cost of language model requests in one run.

    A request that would exceed the limit raises an error before it is sent.

    Use it as a :data:`polyad.protocols.components.BudgetCheck`. Requests in progress count with their expected tokens,
    so that many concurrent requests cannot exceed the budget together. The expected tokens are learnt from the replies:
    the endpoint's tokens for each token counted here, and completion tokens for each token of the passage. Thread-safe.

    Args:
        language_model: The model, which knows the prices.
        max_cost: US dollars; 0 for no limit.
        max_tokens: Prompt and completion tokens together; 0 for no limit.

    Attributes:
        spent: Usage of all completed requests.
    """

    def __init__(self, language_model: LanguageModel, *, max_cost: float = 0.0, max_tokens: int = 0) -> None:
        self.spent = Usage()
        self._language_model = language_model
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._in_progress: dict[tuple[str, str], Usage] = {}
        self._counted = 0  # tokens of the completed prompts, as polyad counts them
        self._passage_tokens = 0  # tokens of the completed prompts without the instructions
        self._refusals: dict[str, tuple[str, str]] = {}  # limit and setting by message
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt, spent: Usage = _NO_USAGE) -> None:
        """Check that ``prompt`` fits the budget, and count it as in progress.

        Args:
            prompt: The prompt to send.
            spent: Usage of earlier tries of this prompt.

        Raises:
            NoMoreRepliesError: the budget has no room for the prompt.
        """
        if not (self._max_cost or self._max_tokens):
            return
        with self._lock:
            expected = self._estimate(prompt) + spent
            self._in_progress.pop(_key(prompt), None)
            in_progress = sum(self._in_progress.values(), _NO_USAGE)
            total = self.spent + in_progress + expected
            if self._max_cost and total.cost > self._max_cost:
                usage = f"${self.spent.cost:,.4f} spent, ${in_progress.cost:,.4f} expected for requests in progress"
                raise self._build_refusal(f"${self._max_cost:,.4g}", usage, "max_cost")
            if self._max_tokens and total.tokens > self._max_tokens:
                usage = f"{self.spent.tokens:,} spent, {in_progress.tokens:,} expected for requests in progress"
                raise self._build_refusal(format_count(self._max_tokens, "token"), usage, "max_tokens")
            self._in_progress[_key(prompt)] = expected

    def _build_refusal(self, limit: str, usage: str, setting: str) -> NoMoreRepliesError:
        error = _build_error(limit, usage, setting)
        self._refusals[str(error)] = limit, setting
        return error

    def update_failure(self, failure: LanguageModelError) -> LanguageModelError:
        """Return ``failure`` with the final amount spent if the budget was exceeded, else unchanged.

        The amount is final when all requests in progress have ended.
        """
        with self._lock:
            limit, setting = self._refusals.get(str(failure), ("", ""))
            usage = f"${self.spent.cost:,.4f} spent" if setting == "max_cost" else f"{self.spent.tokens:,} spent"
        return _build_error(limit, usage, setting) if limit else failure

    def settle(self, prompt: Prompt, usage: Usage) -> None:
        """Replace the estimated usage of ``prompt`` by ``usage``, the actual token usage, after the request ended."""
        with self._lock:
            self._in_progress.pop(_key(prompt), None)
            if usage.calls:
                self.spent += usage
                self._counted += count_prompt_tokens(prompt)
                self._passage_tokens += count_tokens(prompt.user)

    def _estimate(self, prompt: Prompt) -> Usage:
        length = count_prompt_tokens(prompt)
        if self._counted and self._passage_tokens:
            prompt_tokens = length * self.spent.prompt_tokens / self._counted
            completion_tokens = count_tokens(prompt.user) * self.spent.completion_tokens / self._passage_tokens
        else:
            prompt_tokens, completion_tokens = length * FIRST_PROMPT, length * FIRST_REPLY
        tokens = round(MARGIN * prompt_tokens), round(MARGIN * completion_tokens)
        return Usage(1, *tokens, self._language_model.cost(*tokens))


def _key(prompt: Prompt) -> tuple[str, str]:
    return prompt.system, prompt.user


def _build_error(limit: str, usage: str, setting: str) -> NoMoreRepliesError:
    return NoMoreRepliesError(
        f"the budget of {limit} has no room for another request ({usage}); the extracted facts are stored, "
        f"and the same command with a higher --{setting.replace('_', '-')} continues from there"
    )
