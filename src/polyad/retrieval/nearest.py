"""Which part of a passage fits a question best: its hyperedges, by how near they are to the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyad.model import FloatArray, Hyperedge, IntArray, Passage, Span
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.text.counting import terms
from polyad.text.lexicon import FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a passage's text, and how near it is to the question; higher is nearer."""

    span: Span
    nearness: float


Nearest = Callable[[Sequence[Passage]], Sequence[Sequence[Part]]]
"""The parts of each of some passages, those nearest to a question first; all of a passage that has no hyperedges."""


class NearestParts:
    """Measures the hyperedges of passages against one question: by cosine, or where nothing is embedded by words.

    Args:
        snapshot: The index.
        question: What was asked.
        embedder: Embeds the question when the first passage is asked about; None to count words that both have.
    """

    def __init__(self, snapshot: Snapshot, question: str, embedder: Embedder | None) -> None:
        self._snapshot = snapshot
        self._question = question
        self._embedder = embedder
        self._known: dict[str, Sequence[Part]] = {}

    def __call__(self, passages: Sequence[Passage]) -> Sequence[Sequence[Part]]:
        """The parts of each passage, nearest first, ties in their order. See :data:`Nearest`."""
        new = [passage for passage in passages if passage.id not in self._known]
        if new:
            self._known.update(zip((passage.id for passage in new), self._parts(new), strict=True))
        return [self._known[passage.id] for passage in passages]

    def _parts(self, passages: Sequence[Passage]) -> list[Sequence[Part]]:
        known = self._snapshot.find_passage_rows([passage.id for passage in passages])
        places = [place for place, passage in enumerate(passages) if passage.id in known]
        rows = np.array([known[passages[place].id] for place in places], dtype=np.int64)
        found, owners = self._snapshot.graph.hyperedges(rows)
        edges = self._snapshot.hyperedges(found.tolist())
        nearness = self._by_cosine(found) if self._embedder else [self._by_words(edge) for edge in edges]
        parts: list[list[Part]] = [[] for _ in passages]
        for edge, owner, near in zip(edges, owners.tolist(), nearness, strict=True):
            span = _within(passages[places[owner]], edge)
            if span.start < span.end:
                parts[places[owner]].append(Part(span, near))
        return [
            sorted(own, key=lambda part: (-part.nearness, part.span.start, part.span.end))
            or [Part(Span(0, len(passage.text)), 0.0)]
            for passage, own in zip(passages, parts, strict=True)
        ]

    def _by_cosine(self, rows: IntArray) -> list[float]:
        found: list[float] = self._snapshot.cosines("hyperedge", rows, self._vector).tolist()
        return found

    def _by_words(self, edge: Hyperedge) -> float:
        return float(len(self._words & set(terms(edge.text))))

    @cached_property
    def _vector(self) -> FloatArray:
        assert self._embedder is not None
        vector: FloatArray = self._embedder.encode([self._question], "query")[0]
        return vector

    @cached_property
    def _words(self) -> set[str]:
        return set(terms(self._question)) - FUNCTION_WORDS


def _within(passage: Passage, edge: Hyperedge) -> Span:
    length = len(passage.text)
    return Span(min(max(edge.start, 0), length), min(max(edge.end, 0), length))
