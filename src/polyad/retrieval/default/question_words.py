"""The words of a question in passages: how much of it each covers, and what it adds to what another one covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.model import BoolArray, FloatArray, IntArray
from polyad.retrieval.default.links import Mentions
from polyad.retrieval.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Which passages hold which words of a question.

    Attributes:
        weights: Of each word, its inverse document frequency as a share of the sum over all of the question, those that
            no passage holds included; ``[words]``.
        rows: The passages that hold each word, sorted.
    """

    weights: FloatArray
    rows: tuple[IntArray, ...]

    @classmethod
    def of(cls, question: str, snapshot: Snapshot) -> QuestionWords:
        """The words of a question and the passages that hold them."""
        rows = snapshot.passages_with_words(question)
        counts = np.array([max(1, len(found)) for found in rows], dtype=np.float32)
        rarity = np.log(1 + snapshot.passage_count / counts)
        weights: FloatArray = (rarity / max(float(rarity.sum()), 1e-9)).astype(np.float32)
        return cls(weights, tuple(rows))

    def held(self, passages: IntArray) -> BoolArray:
        """Which words each of some passages holds, ``[passages, words]``."""
        held = np.zeros((len(passages), len(self.rows)), dtype=bool)
        for column, rows in enumerate(self.rows):
            if len(rows):
                held[:, column] = rows.take(np.searchsorted(rows, passages), mode="clip") == passages
        return held

    def coverage(self, passages: IntArray) -> FloatArray:
        """The share of the question, by the rarity of its words, that each passage holds; in [0, 1]."""
        found: FloatArray = np.where(self.held(passages), self.weights, np.float32(0)).sum(axis=1)
        return found

    def gain(self, passages: IntArray, mentions: Mentions, snapshot: Snapshot) -> FloatArray:
        """What each passage adds to the words of a source with which it shares an entity, in [0, 1].

        Args:
            passages: Rows, sorted.
            mentions: Of the sources.
            snapshot: The index.

        Returns:
            The most over all such sources of the source's weight x the share of the question that the passage holds
            and the source does not; 0 where it shares nothing; ``[passages]``.
        """
        sources = np.unique(mentions.sources)
        targets, pairs = snapshot.passages_of_entity.gather(mentions.entities)
        places = np.searchsorted(passages, targets)
        known = (places < len(passages)) & (passages.take(places, mode="clip") == targets)
        weights = np.zeros((len(sources), len(passages)), dtype=np.float32)
        np.maximum.at(
            weights,
            (np.searchsorted(sources, mentions.sources[pairs[known]]), places[known]),
            mentions.weights[pairs[known]],
        )
        missing = (~self.held(sources)) * self.weights
        gained = weights * (missing @ self.held(passages).T.astype(np.float32))
        most: FloatArray = gained.max(axis=0, initial=0.0)
        return most
