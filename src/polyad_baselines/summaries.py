"""Summaries by a language model, many at a time; a summary that fails is left out with a warning."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from polyad.errors import LanguageModelError
from polyad.model import Evidence, Hyperedge, HyperedgeKind, ScoredHyperedge
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.thoughts import remove_thoughts
from polyad.text.prompts import escape_tags
from polyad.text.words import sanitize, shorten_at_word

_LOG = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4
"""About the characters of a token, to estimate lengths."""


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
    limit = max_input_tokens * CHARACTERS_PER_TOKEN
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


def list_texts(evidence: Evidence, texts: Sequence[tuple[str, float, str]]) -> Evidence:
    """Return the evidence with texts of a language model in place of facts.

    Args:
        evidence: The evidence.
        texts: Text and score of each, best first, and the id of a passage on which it is based, for citations.
    """
    edges = [
        Hyperedge(f"{passage}/text{place}", HyperedgeKind.FACT, text, passage, 0, 0)
        for place, (text, _, passage) in enumerate(texts)
    ]
    scored = [ScoredHyperedge(edge, (), score) for edge, (_, score, _) in zip(edges, texts, strict=True)]
    return replace(evidence, hyperedges=tuple(scored), trace=())
