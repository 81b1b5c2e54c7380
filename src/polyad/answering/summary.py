"""Summarises the descriptions of an entity from many passages."""

from __future__ import annotations

from polyad.answering.layout import escape_marks
from polyad.errors import LanguageModelError, NoLanguageModelError
from polyad.model import Entity
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.thoughts import remove_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import count_tokens, sanitize, separate_markup, shorten_at_word

SHORT = 150
"""Tokens up to which descriptions need no summary."""

LONGEST = 24_000
"""Characters of descriptions that are summarised; longer descriptions are cut."""


def summarise(entity: Entity, language_model: LanguageModel | None, prompts: Prompts = DEFAULT_PROMPTS) -> str:
    """Return the descriptions of an entity; long descriptions are summarised by a language model.

    Raises:
        NoLanguageModelError: The descriptions are long, and no language model is configured.
        LanguageModelError: The model gave no usable reply.
    """
    if count_tokens(entity.description) <= SHORT:
        return entity.description
    if language_model is None:
        raise NoLanguageModelError(
            f"a summary of {entity.name!r}, of which {count_tokens(entity.description):,} tokens are said,"
        )
    instructions = prompts.get_text("entity_summary")
    text = (
        f"{entity.name}\n<descriptions>\n{escape_marks(shorten_at_word(entity.description, LONGEST))}\n</descriptions>"
    )
    (outcome,) = language_model.complete([Prompt(system=instructions, user=text)])
    if isinstance(outcome, LanguageModelError):
        raise outcome
    return separate_markup(sanitize(remove_thoughts(outcome.text))).strip()
