"""A language model in this process that returns scripted replies."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

from polyad.errors import LanguageModelError
from polyad.language_models.scripted.server import Request
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, OnOutcome, Prompt, Reply
from polyad.text.prompts import count_prompt_tokens
from polyad.text.words import count_tokens, format_count

ScriptedOutcome = str | Reply | LanguageModelError
"""Outcome of a request to a scripted model; a string is the text of a reply."""


class ScriptedLanguageModel:
    """A language model for tests: returns prepared replies, without network.

    Args:
        replies: A function of the prompt, or a sequence of outcomes, one for each request.
        name: The model's name, part of the key under which replies are cached.

    Attributes:
        name: Name of the scripted language model.
        prompts: All prompts that the model received, in order.

    >>> model = ScriptedLanguageModel(["Paris [1]."])
    >>> model.stream(Prompt(user="Where?"), print).usage.calls
    Paris
     [1].
    1
    """

    def __init__(
        self, replies: Callable[[Prompt], ScriptedOutcome] | Sequence[ScriptedOutcome], name: str = "scripted"
    ) -> None:
        self.prompts: list[Prompt] = []
        self.name = name
        self._replies = replies
        self._lock = threading.Lock()

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        check_budget: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Return the next prepared reply or error for each prompt.

        See :class:`polyad.protocols.components.LanguageModel`.
        """
        return [self._outcome(position, prompt, on_outcome, check_budget) for position, prompt in enumerate(prompts)]

    def _outcome(
        self, position: int, prompt: Prompt, on_outcome: OnOutcome | None, check_budget: BudgetCheck | None
    ) -> Reply | LanguageModelError:
        try:
            if check_budget is not None:
                check_budget(prompt, Usage())
            outcome = self._next(prompt)
        except LanguageModelError as error:
            outcome = error
        try:
            if on_outcome is not None:
                on_outcome(position, outcome)
        except LanguageModelError as refusal:
            return refusal
        return outcome

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:  # noqa: ARG002  # the protocol's parameters
        """Return 0, because scripted replies have no price."""
        return 0.0

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Return the next prepared reply, and pass its text to ``on_text`` word by word.

        See :class:`polyad.protocols.components.LanguageModel`.
        """
        outcome = self._next(prompt)
        if isinstance(outcome, LanguageModelError):
            raise outcome
        for piece in re.findall(r"\s*\S+|\s+$", outcome.text):
            on_text(piece)
        return outcome

    def _next(self, prompt: Prompt) -> Reply | LanguageModelError:
        with self._lock:
            position = len(self.prompts)
            self.prompts.append(prompt)
        if callable(self._replies):
            outcome = self._replies(prompt)
        elif position < len(self._replies):
            outcome = self._replies[position]
        else:
            return LanguageModelError(
                f"the script has {format_count(len(self._replies), 'reply')}; expected one for each request"
            )
        if not isinstance(outcome, str):
            return outcome
        return Reply(outcome, Usage(1, count_prompt_tokens(prompt), count_tokens(outcome)))


def cite_first_passage(request: Request) -> str:
    """Return a test reply to a chat request: the first sentence of its first passage, with a citation.

    Without a passage, the reply is a fixed text.
    """
    messages = request.get("messages") or [{}]
    prompt = str(messages[-1].get("content"))
    passage = re.search(r'<passage number="1"[^>]*>\s*(.+?)\s*</passage>', prompt, re.DOTALL)
    if passage is None:
        return "I was given no passage to answer from."
    sentence = re.match(r".+?[.!?](?=\s|$)|.+", passage[1], re.DOTALL)
    words = sentence[0] if sentence else passage[1]
    return f"{words.rstrip('.!?')} [1]."


_PASSAGE = re.compile(r'<passage(?: title="[^\n]*")?>\n(.*?)\n</passage>', re.DOTALL)


def extract_passage(prompt: str) -> str:
    r"""Return the passage inside the ``<passage>`` tags of a prompt for indexing; without tags, the whole prompt.

    >>> extract_passage('<passage title="Ada">\nShe met him.\n</passage>')
    'She met him.'
    """
    match = _PASSAGE.search(prompt)
    return match[1] if match else prompt
