"""Links: from the entities that good passages mention to the passages about them, and to others that mention them.

The walk goes passage -> hyperedge -> entity -> passage. A link counts the more, the better its source, the nearer the
hyperedge that makes it is to the question, and the fewer passages the entity leads to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.cosines import cosines
from polyad.model import FloatArray, IntArray
from polyad.retrieval.ranking import best
from polyad.retrieval.snapshot import Snapshot

SOURCES = 8
"""Best passages whose mentions are followed, at each hop."""

COMMON = 60
"""Entities of more passages than this are not followed: they lead everywhere."""

STRENGTH_FLOOR = 0.3
"""Share of a link that counts as the strength of its entity, however far its hyperedge is from the question."""


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """Turns cosines into similarities that mean the same for every encoder and question.

    0 is the mean of the corpus and all below it, 1 the passage nearest to the question.

    Attributes:
        vectors: Of the question and of its remainder, ``[2, dimension]``.
        means: Mean cosine of the corpus to each, ``[2]``.
        spreads: Highest cosine of the corpus to each, less its mean, ``[2]``.
    """

    vectors: FloatArray
    means: FloatArray
    spreads: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, snapshot: Snapshot) -> tuple[SimilarityScale, FloatArray]:
        """The scale of some vectors, and with it the similarity of every passage to them, ``[vectors, passages]``."""
        found = cosines(snapshot.passage_vectors, vectors).T
        means = vectors @ snapshot.mean_passage_vector
        spreads = np.maximum(found.max(axis=1, initial=-1.0) - means, 1e-6)
        similarities: FloatArray = np.maximum(0, (found - means[:, None]) / spreads[:, None])
        return cls(vectors, means, spreads), similarities

    def relative(self, others: FloatArray) -> FloatArray:
        """Similarity of each of some vectors to the question and to its remainder, ``[others, 2]``."""
        result: FloatArray = np.maximum(0, (cosines(others, self.vectors) - self.means) / self.spreads)
        return result


@dataclass(frozen=True, slots=True)
class Hop:
    """What following the mentions of the best passages led to. Arrays over all passages, 0 where nothing led.

    Attributes:
        link: The best link to the passage, whose subject it names.
        about_link: The same, from passages about an entity of the question, times the nearness of the hyperedge.
        mention: The best mention that the passage shares with a source, by the source's weight and its rarity.
        source: Row of the passage that the link came from; -1 where none.
        entity: Row of the entity that made the link; -1 where none.
        followed: Rows of the entities that made links, with the strength of the strongest.
    """

    link: FloatArray
    about_link: FloatArray
    mention: FloatArray
    source: IntArray
    entity: IntArray
    followed: dict[int, float]


@dataclass(frozen=True, slots=True)
class _Mentions:
    """The mentions that are followed, one an incidence: entity, source, its weight, nearness of its hyperedge."""

    entities: IntArray
    sources: IntArray
    weights: FloatArray
    nearness: FloatArray


def follow(snapshot: Snapshot, scores: FloatArray, about: FloatArray, scale: SimilarityScale) -> Hop:
    """Follow the mentions of the best passages.

    Args:
        snapshot: The index.
        scores: Of all passages; the best :data:`SOURCES` are the sources.
        about: Of all passages, above 0 for those about an entity of the question.
        scale: Says how near a hyperedge is to the question.
    """
    mentions = _mentions(snapshot, scores, scale)
    count = snapshot.passage_count
    targets, pairs = snapshot.passages_about.gather(mentions.entities)
    away = targets != mentions.sources[pairs]
    targets, pairs = targets[away], pairs[away]
    entities, sources = mentions.entities[pairs], mentions.sources[pairs]
    share = (1 / np.sqrt(snapshot.passages_about.degrees(entities))).astype(np.float32)
    values = mentions.weights[pairs] * share
    order = np.lexsort((-entities, -sources, values))  # the strongest is written last, the first row among equals
    link = np.zeros(count, dtype=np.float32)
    source = np.full(count, -1)
    entity = np.full(count, -1)
    link[targets[order]] = values[order]
    source[targets[order]] = sources[order]
    entity[targets[order]] = entities[order]
    about_link = np.zeros(count, dtype=np.float32)
    np.maximum.at(about_link, targets, about[sources] * share * mentions.nearness[pairs])
    followed: dict[int, float] = {}
    strengths = values * (STRENGTH_FLOOR + mentions.nearness[pairs])
    for row, strength in zip(entities.tolist(), strengths.tolist(), strict=True):
        followed[row] = max(strength, followed.get(row, 0.0))
    return Hop(link, about_link, _shared(snapshot, mentions), source, entity, followed)


def _mentions(snapshot: Snapshot, scores: FloatArray, scale: SimilarityScale) -> _Mentions:
    sources = best(scores, SOURCES)
    highest = max(float(scores[sources].max(initial=0)), 1e-6)
    weights = np.maximum(scores[sources] / highest, 0).astype(np.float32)
    edges, source_of_edge = snapshot.hyperedges_of_passage.gather(sources)
    nearness = scale.relative(snapshot.hyperedge_vectors[edges]).max(axis=1).astype(np.float32)
    entities, edge_of = snapshot.graph.members.gather(edges)
    telling = snapshot.passages_of_entity.degrees(entities) <= COMMON
    entities, edge_of = entities[telling], edge_of[telling]
    places = source_of_edge[edge_of]
    return _Mentions(entities, sources[places], weights[places], nearness[edge_of])


def _shared(snapshot: Snapshot, mentions: _Mentions) -> FloatArray:
    targets, pairs = snapshot.passages_of_entity.gather(mentions.entities)
    values = mentions.weights[pairs] * snapshot.rarity[mentions.entities[pairs]]
    away = targets != mentions.sources[pairs]
    shared = np.zeros(snapshot.passage_count, dtype=np.float32)
    np.maximum.at(shared, targets[away], values[away])
    return shared
