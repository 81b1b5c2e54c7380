"""The words of a question in passages: how much of it each covers, and what it adds to what another one covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import is_in
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import Mentions
from polyad.text.terms import query_terms


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The words of a question that tell passages apart.

    Attributes:
        weights: Of each word, its inverse document frequency as a share of the sum over all of the question, those that
            no passage holds included; ``[words]``.
        passages: Rows of those that were looked into, sorted.
        holds: Which words each of them holds, ``[passages, words]``.
    """

    weights: FloatArray
    passages: IntArray
    holds: BoolArray

    @classmethod
    def of(cls, question: str, snapshot: Snapshot, passages: IntArray) -> QuestionWords:
        """The words of a question, over an index, in some of its passages."""
        words = query_terms(question)
        counts = np.maximum(1, snapshot.terms.document_frequencies(words)).astype(np.float32)
        rarity = np.log(1 + snapshot.passage_count / counts)
        weights: FloatArray = (rarity / max(float(rarity.sum()), 1e-9)).astype(np.float32)
        return cls(weights, passages, snapshot.terms.contains(words, passages))

    def held(self, passages: IntArray) -> BoolArray:
        """Which words each of some passages holds that were looked into, ``[passages, words]``."""
        found: BoolArray = self.holds[self.passages.searchsorted(passages)]
        return found

    def coverage(self, held: BoolArray) -> FloatArray:
        """The share of the question, by the rarity of its words, that each passage holds; in [0, 1]."""
        found: FloatArray = np.where(held, self.weights, np.float32(0)).sum(axis=1)
        return found

    def gain(self, passages: IntArray, held: BoolArray, mentions: Mentions) -> FloatArray:
        """What each passage adds to the words of a source with which it shares an entity, in [0, 1].

        Args:
            passages: Rows, sorted.
            held: Which words each of them holds, ``[passages, words]``.
            mentions: Of the sources.

        Returns:
            The most over all such sources of the source's weight x the share of the question that the passage holds
            and the source does not; 0 where it shares nothing; ``[passages]``.
        """
        sources = sort_unique(mentions.sources)
        known = is_in(mentions.others, passages)
        places, pairs = passages.searchsorted(mentions.others[known]), mentions.pairs[known]
        weights = np.zeros((len(sources), len(passages)), dtype=np.float32)
        np.maximum.at(weights, (sources.searchsorted(mentions.sources[pairs]), places), mentions.weights[pairs])
        missing = (~self.held(sources)) * self.weights
        gained = weights * (missing @ held.T.astype(np.float32))
        most: FloatArray = gained.max(axis=0, initial=0.0)
        return most
