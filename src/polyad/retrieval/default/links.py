"""Links: from the entities that good passages mention to the passages about them, and to others that mention them.

The walk goes passage -> hyperedge -> entity -> passage. A link counts the more, the better its source, the nearer the
hyperedge that makes it is to the question, the fewer passages the entity leads to and the surer it is their subject.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.cosines import cosines
from polyad.hypergraph.incidence import distinct
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
class Mentions:
    """The mentions that are followed, one an incidence, of entities that are not too common.

    Attributes:
        entities: Row of each.
        sources: Row of the passage that mentions it.
        weights: Of the source, in [0, 1].
        nearness: Similarity of the hyperedge to the question or its remainder.
    """

    entities: IntArray
    sources: IntArray
    weights: FloatArray
    nearness: FloatArray


@dataclass(frozen=True, slots=True)
class Hop:
    """What following the mentions of the best passages led to. Arrays over all passages, 0 where nothing led.

    Attributes:
        strong: The best link to the passage, whose strong subject it names.
        weak: The same for weaker subjects, times their strength.
        about_link: The best of both from passages about an entity of the question, times the hyperedge's nearness.
        mention: The best mention that the passage shares with a source, by the source's weight and its rarity.
        source: Row of the passage that the link came from; -1 where none.
        entity: Row of the entity that made the link; -1 where none.
        mentions: What was followed.
        followed: Rows of the entities that made links, with the strength of the strongest.
    """

    strong: FloatArray
    weak: FloatArray
    about_link: FloatArray
    mention: FloatArray
    source: IntArray
    entity: IntArray
    mentions: Mentions
    followed: dict[int, float]

    @property
    def link(self) -> FloatArray:
        """The best link to each passage."""
        return np.maximum(self.strong, self.weak)


def shares_of(snapshot: Snapshot, entities: IntArray) -> tuple[FloatArray, FloatArray]:
    """What each passage gets of a link to an entity, the less the more passages share it.

    Returns:
        For a strong subject, of which the strong ones alone take a share, and for a weaker one; ``[entities]`` each.
    """
    strong = 1 / np.sqrt(np.maximum(1, snapshot.strong_degrees[entities]))
    weak = 1 / np.sqrt(np.maximum(1, snapshot.passages_about.degrees(entities)))
    return strong.astype(np.float32), weak.astype(np.float32)


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
    targets, pairs, strengths = snapshot.subjects.gather(mentions.entities)
    away = targets != mentions.sources[pairs]
    targets, pairs, strengths = targets[away], pairs[away], strengths[away]
    entities, sources = mentions.entities[pairs], mentions.sources[pairs]
    strong_share, weak_share = shares_of(snapshot, entities)
    is_strong = strengths >= 1
    share = np.where(is_strong, strong_share, weak_share * strengths)
    values = mentions.weights[pairs] * share
    strong, weak = np.zeros(count, dtype=np.float32), np.zeros(count, dtype=np.float32)
    np.maximum.at(strong, targets[is_strong], values[is_strong])
    np.maximum.at(weak, targets[~is_strong], values[~is_strong])
    order = np.lexsort((-entities, -sources, values))  # the strongest is written last, the first row among equals
    source, entity = np.full(count, -1), np.full(count, -1)
    source[targets[order]] = sources[order]
    entity[targets[order]] = entities[order]
    about_link = np.zeros(count, dtype=np.float32)
    np.maximum.at(about_link, targets, about[sources] * share * mentions.nearness[pairs])
    followed: dict[int, float] = {}
    reached = values * (STRENGTH_FLOOR + mentions.nearness[pairs])
    for row, strength in zip(entities.tolist(), reached.tolist(), strict=True):
        followed[row] = max(strength, followed.get(row, 0.0))
    return Hop(strong, weak, about_link, _shared(snapshot, mentions), source, entity, mentions, followed)


def _mentions(snapshot: Snapshot, scores: FloatArray, scale: SimilarityScale) -> Mentions:
    sources = best(scores, SOURCES)
    highest = max(float(scores[sources].max(initial=0)), 1e-6)
    weights = np.maximum(scores[sources] / highest, 0).astype(np.float32)
    edges, source_of_edge = snapshot.hyperedges_of_passage.gather(sources)
    nearness = scale.relative(snapshot.hyperedge_vectors[edges]).max(axis=1).astype(np.float32)
    entities, edge_of = snapshot.graph.members.gather(edges)
    telling = snapshot.passages_of_entity.degrees(entities) <= COMMON
    entities, edge_of = entities[telling], edge_of[telling]
    places = source_of_edge[edge_of]
    return Mentions(entities, sources[places], weights[places], nearness[edge_of])


def _shared(snapshot: Snapshot, mentions: Mentions) -> FloatArray:
    targets, pairs = snapshot.passages_of_entity.gather(mentions.entities)
    values = mentions.weights[pairs] * snapshot.rarity[mentions.entities[pairs]]
    away = targets != mentions.sources[pairs]
    shared = np.zeros(snapshot.passage_count, dtype=np.float32)
    np.maximum.at(shared, targets[away], values[away])
    return shared


def anchored(
    snapshot: Snapshot, entities: IntArray, weights: FloatArray, scale: SimilarityScale, away_from: int = -1
) -> FloatArray:
    """The best hyperedge of each passage that holds one of some entities and resembles the remainder of the question.

    It says what the question asks, of an entity that counts, in one place: the words of a passage alone do not tell
    whether its name and its answer stand together.

    Args:
        snapshot: The index.
        entities: Rows, each once.
        weights: What each counts, ``[entities]``.
        scale: Measures similarity to the remainder.
        away_from: Row of a passage that does not count; -1 for none.

    Returns:
        weight x rarity x similarity, over all passages; 0 where there is no such hyperedge.
    """
    found = np.zeros(snapshot.passage_count, dtype=np.float32)
    telling = snapshot.passages_of_entity.degrees(entities) <= COMMON
    entities, weights = entities[telling], weights[telling]
    edges, owners = snapshot.graph.memberships.gather(entities)
    unique = distinct(edges)
    similarity = scale.relative(snapshot.hyperedge_vectors[unique])[:, 1][np.searchsorted(unique, edges)]
    values = weights[owners] * snapshot.rarity[entities[owners]] * similarity
    passages = snapshot.passage_of[edges]
    away = passages != away_from
    np.maximum.at(found, passages[away], values[away].astype(np.float32))
    return found
