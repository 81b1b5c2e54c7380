"""A language model in this process that says what a script tells it to."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

from polyad.errors import LanguageModelError
from polyad.language_models.scripted.server import Request
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, OnOutcome, Prompt, Reply
from polyad.text.counting import count_tokens, format_count

Line = str | Reply | LanguageModelError
"""What a scripted model may be told to say."""


class ScriptedLanguageModel:
    """A language model in this process: no network, no thread, no chance.

    Args:
        replies: Computed from the prompt, or one after the other in the order of asking.
        name: The model's name, part of the key under which replies are cached.

    Attributes:
        prompts: Everything it was asked, in order.

    >>> model = ScriptedLanguageModel(["Paris [1]."])
    >>> model.stream(Prompt(user="Where?"), print).usage.calls
    Paris
     [1].
    1
    """

    def __init__(self, replies: Callable[[Prompt], Line] | Sequence[Line], name: str = "scripted") -> None:
        self.prompts: list[Prompt] = []
        self._name = name
        self._replies = replies
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        gate: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Say the next lines of the script; see :class:`polyad.protocols.components.LanguageModel`."""
        return [self._outcome(position, prompt, on_outcome, gate) for position, prompt in enumerate(prompts)]

    def _outcome(
        self, position: int, prompt: Prompt, on_outcome: OnOutcome | None, gate: BudgetCheck | None
    ) -> Reply | LanguageModelError:
        try:
            if gate is not None:
                gate(prompt, Usage())
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
        """Nothing; see :class:`polyad.protocols.components.LanguageModel`."""
        return 0.0

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Say the next line word by word; see :class:`polyad.protocols.components.LanguageModel`."""
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
            line = self._replies(prompt)
        elif position < len(self._replies):
            line = self._replies[position]
        else:
            return LanguageModelError(
                f"the script has {format_count(len(self._replies), 'reply')} and was asked for one more"
            )
        if not isinstance(line, str):
            return line
        asked = count_tokens(prompt.system) + count_tokens(prompt.user)
        return Reply(line, Usage(1, asked, count_tokens(line)))


def cite_first_passage(request: Request) -> str:
    """Answer with the first sentence of the first passage in the request, cited; or say that there is none."""
    messages = request.get("messages") or [{}]
    asked = str(messages[-1].get("content"))
    passage = re.search(r'<passage number="1"[^>]*>\s*(.+?)\s*</passage>', asked, re.DOTALL)
    if passage is None:
        return "I was given no passage to answer from."
    sentence = re.match(r".+?[.!?](?=\s|$)|.+", passage[1], re.DOTALL)
    words = sentence[0] if sentence else passage[1]
    return f"{words.rstrip('.!?')} [1]."
