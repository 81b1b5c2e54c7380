"""Which terms of a question each passage contains: where passages do not say what they are about, these count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.sparse import is_in, sort_unique
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import FollowedMentions
from polyad.retrieval.question import LinkedQuestion
from polyad.text.words import extract_query_terms

HUB_DEGREE = 2000
"""Passages that mention an entity of the question, above which the entity adds no candidates."""


@dataclass(frozen=True, slots=True)
class TermCoverage:
    """A table of the question terms that each passage contains, with the weight (idf) of each term.

    Attributes:
        weights: Inverse document frequency of each term as a share of the sum over the question; ``[terms]``. Terms
            that no passage contains are included.
        passages: Row numbers of the passages, sorted.
        is_contained: Whether each passage contains each term, ``[passages, terms]``.
        is_unknown: Whether the index lacks each term, and no linked name has it; ``[terms]``.
    """

    weights: FloatArray
    passages: IntArray
    is_contained: BoolArray
    is_unknown: BoolArray

    @classmethod
    def from_question(cls, question: LinkedQuestion, snapshot: Snapshot, passages: IntArray) -> TermCoverage:
        """Build the table of which terms of the question each of ``passages`` (sorted row numbers) contains.

        A passage that mentions an entity of the question by another name, such as an alias, also contains the terms of
        the name in the question. Very frequent entities are omitted.
        """
        language = snapshot.infer_language(question.text)
        terms = extract_query_terms(question.text, language)
        counts = snapshot.document_frequencies(terms)
        rarity = np.log(1 + snapshot.passage_count / np.maximum(1, counts).astype(np.float32))
        weights: FloatArray = (rarity / max(float(rarity.sum()), 1e-9)).astype(np.float32)
        is_contained = snapshot.contains_terms(terms, passages)
        names = [set(extract_query_terms(mention.name, language)) for mention in question.entities.values()]
        is_in_name = np.array([[term in name for term in terms] for name in names], dtype=bool).reshape(
            len(names), len(terms)
        )
        entities = np.array(list(question.entities), dtype=np.int64)
        is_rare = snapshot.graph.mention_counts(entities) <= HUB_DEGREE
        mentioning, owners, _ = snapshot.graph.mentions(entities[is_rare])
        is_row = is_in(mentioning, passages)
        np.logical_or.at(is_contained, passages.searchsorted(mentioning[is_row]), is_in_name[is_rare][owners[is_row]])
        return cls(weights, passages, is_contained, (counts == 0) & ~is_in_name.any(axis=0))

    def find_contained_terms(self, passages: IntArray) -> BoolArray:
        """Return a boolean mask of the question terms in each passage; shape ``[..., terms]``.

        :attr:`passages` must include these passages.
        """
        contained: BoolArray = self.is_contained[self.passages.searchsorted(passages)]
        return contained

    def compute_coverage(self, is_contained: BoolArray) -> FloatArray:
        """Return the sum of the weights (idf shares) of the question terms in the mask ``is_contained``, in [0, 1]."""
        coverage: FloatArray = np.where(is_contained, self.weights, np.float32(0)).sum(axis=-1)
        return coverage

    def compute_gain(self, passages: IntArray, is_contained: BoolArray, mentions: FollowedMentions) -> FloatArray:
        """Return the share of question terms that each passage adds to a best passage with which it shares an entity.

        Args:
            passages: Row numbers, sorted.
            is_contained: Which terms each passage contains, ``[passages, terms]``.
            mentions: The mentions of entities in the best passages (the sources).

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
