"""Term coverage: which terms of a question a passage contains, and which it adds to another passage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import is_in
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import FollowedMentions
from polyad.text.terms import extract_query_terms


@dataclass(frozen=True, slots=True)
class TermCoverage:
    """The terms of a question that each of several passages contains, with a weight for each term.

    Attributes:
        weights: Inverse document frequency of each term as a share of the sum over the question; ``[terms]``. Terms
            that no passage contains are included.
        passages: Row numbers of the passages, sorted.
        is_contained: Whether each passage contains each term, ``[passages, terms]``.
    """

    weights: FloatArray
    passages: IntArray
    is_contained: BoolArray

    @classmethod
    def from_question(cls, question: str, snapshot: Snapshot, passages: IntArray) -> TermCoverage:
        """Look up which terms of a question each passage contains; ``passages`` are sorted row numbers."""
        terms = extract_query_terms(question)
        counts = np.maximum(1, snapshot.terms.document_frequencies(terms)).astype(np.float32)
        rarity = np.log(1 + snapshot.passage_count / counts)
        weights: FloatArray = (rarity / max(float(rarity.sum()), 1e-9)).astype(np.float32)
        return cls(weights, passages, snapshot.terms.contains(terms, passages))

    def find_contained_terms(self, passages: IntArray) -> BoolArray:
        """Return which terms each passage contains, as a matrix ``[passages, terms]``.

        :attr:`passages` must include these passages.
        """
        contained: BoolArray = self.is_contained[self.passages.searchsorted(passages)]
        return contained

    def compute_coverage(self, is_contained: BoolArray) -> FloatArray:
        """Return the weighted share of the question's terms that each passage contains, in [0, 1]."""
        coverage: FloatArray = np.where(is_contained, self.weights, np.float32(0)).sum(axis=1)
        return coverage

    def compute_gain(self, passages: IntArray, is_contained: BoolArray, mentions: FollowedMentions) -> FloatArray:
        """Return the share of the question's terms, in [0, 1], that each passage adds to a source passage linked to it.

        Args:
            passages: Row numbers, sorted.
            is_contained: Which terms each passage contains, ``[passages, terms]``.
            mentions: The followed mentions, which name the sources.

        Returns:
            The maximum over these sources of the source's weight times the share of the question that the passage
            contains and the source lacks; 0 if the passage shares no entity with a source; ``[passages]``.
        """
        sources = sort_unique(mentions.sources)
        is_candidate = is_in(mentions.other_passages, passages)
        columns = passages.searchsorted(mentions.other_passages[is_candidate])
        pairs = mentions.mention_of_other[is_candidate]
        weights = np.zeros((len(sources), len(passages)), dtype=np.float32)
        np.maximum.at(weights, (sources.searchsorted(mentions.sources[pairs]), columns), mentions.weights[pairs])
        lacking = (~self.find_contained_terms(sources)) * self.weights
        gains = weights * (lacking @ is_contained.T.astype(np.float32))
        best: FloatArray = gains.max(axis=0, initial=0.0)
        return best
