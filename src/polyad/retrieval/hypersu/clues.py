"""Clues: what a question needs evidence of, one short description for each aspect (HyperSU, section 4.2)."""

from __future__ import annotations

from typing import Protocol

from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.loose_json import strings_under
from polyad.replies.schema import STRING, array_of, object_of
from polyad.retrieval.asking import BestEffortPrompter
from polyad.retrieval.question import LinkedQuestion
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_SCHEMA = object_of(clues=array_of(STRING))


class ClueAgent(Protocol):
    """Derives clues from a question."""

    def clues(self, question: LinkedQuestion) -> list[str]:
        """One clue or more; any of them may activate a hyperedge."""


class QuestionClues:
    """Clues without a language model: the question, and the question without the names it links to.

    The second asks for what is sought, not for more about what is known: "Where did the director of film die?" is
    nearer to the biography of a director than the question that names the film.

    Args:
        use_remainder: Whether there is a second.
    """

    def __init__(self, *, use_remainder: bool = True) -> None:
        self._use_remainder = use_remainder

    def clues(self, question: LinkedQuestion) -> list[str]:
        """The question and its remainder."""
        return list(dict.fromkeys([question.text, *([question.remainder] if self._use_remainder else [])]))


class LanguageModelClues:
    """Clues by a language model (the paper's prompt A); an unusable reply falls back to the question."""

    def __init__(self, language_model: LanguageModel, max_clues: int, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._prompter = BestEffortPrompter(language_model, "the question itself is the clue")
        self._max_clues = max_clues
        self._instructions = prompts.text("hypersu_clues", max_clues=max_clues)

    def clues(self, question: LinkedQuestion) -> list[str]:
        """At most ``max_clues`` of the model's clues, or the question alone."""
        prompt = Prompt(user=question.text, system=self._instructions, json_schema=_SCHEMA)
        clues = self._prompter.ask(prompt, lambda reply: strings_under(reply, "clues"), '{"clues": [...]}') or []
        return clues[: self._max_clues] or [question.text]
