"""The names and keywords of a question."""

from __future__ import annotations

from polyad.retrieval.question import LinkedQuestion


def list_names(question: LinkedQuestion) -> list[str]:
    """Return the distinct names in a question, in order of appearance."""
    mentions = sorted([*question.entities.values(), *question.unlinked], key=lambda item: (item.start, -item.end))
    return list(dict.fromkeys(mention.name for mention in mentions))
