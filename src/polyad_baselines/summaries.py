"""Summaries by a language model, many at a time; a summary that fails is left out with a warning."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from polyad.errors import LanguageModelError
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.thoughts import remove_thoughts
from polyad.text.prompts import escape_tags
from polyad.text.words import sanitize, shorten_at_word

_LOG = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 4


def write_summaries(
    language_model: LanguageModel, instructions: str, texts: Sequence[str], max_input_tokens: int
) -> list[str]:
    """Return a summary of each text, in order; an empty string if the model gave no usable reply.

    Args:
        language_model: The language model.
        instructions: Instructions for the model.
        texts: The texts; a longer one is cut.
        max_input_tokens: About the tokens of a text that the model reads.
    """
    limit = max_input_tokens * _CHARACTERS_PER_TOKEN
    shortened = [escape_tags(shorten_at_word(text, limit), ["text"]) for text in texts]
    outcomes = language_model.complete(
        [Prompt(system=instructions, user=f"<text>\n{text}\n</text>") for text in shortened]
    )
    for outcome in outcomes:
        if isinstance(outcome, LanguageModelError):
            _LOG.warning("a summary is left out: %s", outcome)
    return [
        "" if isinstance(outcome, LanguageModelError) else sanitize(remove_thoughts(outcome.text)).strip()
        for outcome in outcomes
    ]
