"""The numbers by which passages are cited, and what stands behind each.

A passage of the evidence has its rank as its number, whatever the budget leaves out, so that ``[3]`` means the same to
the model, to the reader and in the trace. Facts bring in passages that are not in the evidence; these take the numbers
that follow, in the order in which they are first needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyad.model import ScoredPassage

LARGEST_NUMBER = 999
"""Larger numbers in brackets are not read as citations; see :mod:`polyad.answering.citations`."""


@dataclass(frozen=True, slots=True)
class Source:
    """What may be cited under one number; ``text`` is all that the model is shown of it."""

    number: int
    passage_id: str
    document_id: str
    text: str


class Numbering:
    """Gives each passage one number, and keeps it.

    Args:
        passages: Those of the evidence, best first.
    """

    def __init__(self, passages: Sequence[ScoredPassage]) -> None:
        self._numbers: dict[str, int] = {}
        for number, scored in enumerate(passages, start=1):
            self._numbers.setdefault(scored.passage.id, number)
        self._next = len(passages) + 1

    def number(self, passage_id: str) -> int:
        """The number of a passage; the next free one when it has none yet."""
        if passage_id not in self._numbers:
            self._numbers[passage_id] = self._next
            self._next += 1
        return self._numbers[passage_id]


def document_of(passage_id: str) -> str:
    """The document that a passage was cut from, as its id tells (see :mod:`polyad.model`).

    >>> document_of("notes#1.md#4")
    'notes#1.md'
    """
    return passage_id.rpartition("#")[0] or passage_id
