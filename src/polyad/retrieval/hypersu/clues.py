"""Clues: short descriptions of the evidence that a question needs (HyperSU, section 4.2)."""

from __future__ import annotations

from typing import Protocol

from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.loose_json import find_strings
from polyad.replies.schema import STRING, build_array_schema, build_object_schema
from polyad.retrieval.asking import BestEffortPrompter
from polyad.retrieval.question import LinkedQuestion
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_SCHEMA = build_object_schema(clues=build_array_schema(STRING))


class ClueAgent(Protocol):
    """Splits a question into clues: texts whose similarity to hyperedges guides the expansion (HyperSU)."""

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return one or more clues; each of them can activate a hyperedge."""


class QuestionClues:
    """Derives clues without a language model: the question, and the question without its linked names.

    The second clue asks for the unknown part: "Where did the director of film die?" is nearer to the biography of a
    director than the question that names the film.

    Args:
        use_remainder: Whether to add the second clue.
    """

    def __init__(self, *, use_remainder: bool = True) -> None:
        self._use_remainder = use_remainder

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return the question and the question without its linked names."""
        return list(dict.fromkeys([question.text, *([question.remainder] if self._use_remainder else [])]))


class LanguageModelClues:
    """Asks a language model for clues (the paper's prompt A); an unusable reply falls back to the question."""

    def __init__(self, language_model: LanguageModel, max_clues: int, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._prompter = BestEffortPrompter(language_model, "the question itself is the clue")
        self._max_clues = max_clues
        self._instructions = prompts.get_text("hypersu_clues", max_clues=max_clues)

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return at most ``max_clues`` clues of the model, or the question alone if the reply is unusable."""
        prompt = Prompt(user=question.text, system=self._instructions, json_schema=_SCHEMA)
        clues = self._prompter.ask(prompt, lambda reply: find_strings(reply, "clues"), '{"clues": [...]}') or []
        return clues[: self._max_clues] or [question.text]
