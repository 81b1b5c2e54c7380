"""A limit on what one run may spend on its language model."""

from __future__ import annotations

import threading

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.model import Usage
from polyad.protocols.components import LanguageModel, Prompt
from polyad.text.counting import count_tokens, format_count

MARGIN = 1.25
"""What a request may take, for each token it is expected to take: replies differ, and none can be called back."""

FIRST_PROMPT = 1.2
"""Prompt tokens for each one counted here, before the first reply has shown how the endpoint counts."""

FIRST_REPLY = 1.0
"""Completion tokens for each one of the prompt, likewise; about right for long passages, much for short ones."""


NOTHING = Usage()


class Budget:
    """Checks that a prompt and its expected reply fit the budget.

    Use it as a :data:`polyad.protocols.components.BudgetCheck`.

    What is under way counts with its expected tokens, so that many requests at a time do not overshoot together. What
    to expect is learnt from the replies: how many tokens the endpoint counts for each one counted here, and how many
    it says for each one of the text it is asked about. Safe to use from many threads.

    Args:
        language_model: Knows the prices.
        max_cost: US dollars; 0 for no limit.
        max_tokens: Prompt and completion tokens together; 0 for no limit.
    """

    def __init__(self, language_model: LanguageModel, *, max_cost: float = 0.0, max_tokens: int = 0) -> None:
        self.spent = Usage()
        self._language_model = language_model
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._under_way: dict[tuple[str, str], Usage] = {}
        self._counted = 0  # tokens of the prompts that were replied to, as counted here
        self._asked_about = 0  # and of their part without the instructions
        self._refusals: dict[str, tuple[str, str]] = {}  # message, limit and setting of each
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt, spent: Usage = NOTHING) -> None:
        """Let ``prompt`` pass and count it as under way, with what earlier tries at it cost.

        Raises:
            NoMoreRepliesError: it does not fit any more.
        """
        if not (self._max_cost or self._max_tokens):
            return
        with self._lock:
            expected = self._expected(prompt) + spent
            self._under_way.pop(_key(prompt), None)
            under_way = sum(self._under_way.values(), NOTHING)
            total = self.spent + under_way + expected
            if self._max_cost and total.cost > self._max_cost:
                taken = f"${self.spent.cost:,.4f} spent, ${under_way.cost:,.4f} expected for requests under way"
                raise self._refused(f"${self._max_cost:,.4g}", taken, "max_cost")
            if self._max_tokens and total.tokens > self._max_tokens:
                taken = f"{self.spent.tokens:,} spent, {under_way.tokens:,} expected for requests under way"
                raise self._refused(format_count(self._max_tokens, "token"), taken, "max_tokens")
            self._under_way[_key(prompt)] = expected

    def _refused(self, limit: str, taken: str, setting: str) -> NoMoreRepliesError:
        error = _spent(limit, taken, setting)
        self._refusals[str(error)] = limit, setting
        return error

    def closed(self, failure: LanguageModelError) -> LanguageModelError:
        """A refusal of this budget with what was spent once all that was under way had come; others as they are."""
        with self._lock:
            limit, setting = self._refusals.get(str(failure), ("", ""))
            taken = f"${self.spent.cost:,.4f} spent" if setting == "max_cost" else f"{self.spent.tokens:,} spent"
        return _spent(limit, taken, setting) if limit else failure

    def settle(self, prompt: Prompt, usage: Usage) -> None:
        """Count what a prompt really cost, all tries together; nothing for one that did not pass."""
        with self._lock:
            self._under_way.pop(_key(prompt), None)
            if usage.calls:
                self.spent += usage
                self._counted += count_prompt_tokens(prompt)
                self._asked_about += count_tokens(prompt.user)

    def _expected(self, prompt: Prompt) -> Usage:
        length = count_prompt_tokens(prompt)
        if self._counted and self._asked_about:
            asked = length * self.spent.prompt_tokens / self._counted
            said = count_tokens(prompt.user) * self.spent.completion_tokens / self._asked_about
        else:
            asked, said = length * FIRST_PROMPT, length * FIRST_REPLY
        tokens = round(MARGIN * asked), round(MARGIN * said)
        return Usage(1, *tokens, self._language_model.cost(*tokens))


def count_prompt_tokens(prompt: Prompt) -> int:
    """Estimated length of a prompt in tokens, without what a server makes of a schema."""
    return count_tokens(prompt.system) + count_tokens(prompt.user)


def _key(prompt: Prompt) -> tuple[str, str]:
    return prompt.system, prompt.user


def _spent(limit: str, so_far: str, setting: str) -> NoMoreRepliesError:
    return NoMoreRepliesError(
        f"the budget of {limit} has no room for another request ({so_far}); what was extracted is kept, "
        f"and the same command with a higher --{setting.replace('_', '-')} goes on from there"
    )
