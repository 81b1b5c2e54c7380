"""Links: from the entities that good passages mention to the passages about them, and to others that mention them.

The walk goes passage -> hyperedge -> entity -> passage. A link is stronger the better its source passage scores, the
more similar its hyperedge is to the question, the fewer passages the entity leads to and the more certain it is that
the entity is their subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from polyad.hypergraph.sparse import Scores, mark_first_of_equals, rank_by_id, sort_unique
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot

DENSE_DEPTH = 200
"""Passages ranked by similarity; the rank signals of all other passages are 0."""

SOURCES_PER_HOP = 8
"""Best passages whose mentions are followed at each hop."""

MAX_FOLLOWED_DEGREE = 60
"""Passages of an entity, above which it is not followed: frequent entities lead everywhere."""

MIN_HYPEREDGE_SHARE = 0.3
"""Share of a link that counts for its entity even if the hyperedge does not resemble the question."""


class SimilarityScale:
    """Scales cosines to similarities that are comparable between embedding models and questions.

    0 is the mean cosine of the corpus (or below it), 1 the passage nearest to the question. Similarities are cached,
    so an instance serves one question.

    Args:
        vectors: Unit vectors of the question and of the rest of the question, ``[2, dimension]``.
        snapshot: An index of at least one passage.

    Attributes:
        vectors: As given.
        nearest: The :data:`DENSE_DEPTH` passages nearest to each vector, best first.
        similar: The nearest passages whose cosine exceeds the mean of the corpus.
        means: Mean cosine of the corpus to each vector, ``[2]``.
        spreads: Highest cosine of the corpus to each vector minus the mean, ``[2]``.
    """

    def __init__(self, vectors: FloatArray, snapshot: Snapshot) -> None:
        nearest = snapshot.nearest("passage", vectors, DENSE_DEPTH)
        highest = np.array([cosines[0] for _, cosines in nearest], dtype=np.float32)
        self.vectors = vectors
        self.means = snapshot.mean_cosines(vectors)
        self.spreads = np.maximum(highest - self.means, 1e-6)
        self.nearest = tuple(rows for rows, _ in nearest)
        self.similar = tuple(rows[cosines > mean] for (rows, cosines), mean in zip(nearest, self.means, strict=True))
        self._snapshot = snapshot
        # A sentinel beyond all rows, so that searchsorted always returns a valid position.
        sentinel = np.array([np.iinfo(np.int64).max]), np.zeros((1, len(vectors)), dtype=np.float32)
        self._cache = {"passage": sentinel, "hyperedge": sentinel}

    def similarities(self, kind: Literal["passage", "hyperedge"], rows: IntArray) -> FloatArray:
        """Return two similarities per row: to the question, and to the question without its entity names.

        Shape ``[rows, 2]``.
        """
        cached_rows, values = self._cache[kind]
        positions = cached_rows.searchsorted(rows)
        missing = rows[cached_rows[positions] != rows]
        if len(missing):
            missing = sort_unique(missing)
            cosines = self._snapshot.cosines(kind, missing, self.vectors)
            relative = np.maximum(0, (cosines - self.means) / self.spreads).astype(np.float32, copy=False)
            cached_rows = np.concatenate([cached_rows, missing])
            order = cached_rows.argsort(kind="stable")  # merges two sorted runs
            cached_rows, values = self._cache[kind] = cached_rows[order], np.concatenate([values, relative])[order]
            positions = cached_rows.searchsorted(rows)
        similarities: FloatArray = values[positions]
        return similarities


class Links(NamedTuple):
    """Weighted links, each from an entity to a passage about the entity, as parallel arrays.

    Attributes:
        passages: Row number of each passage.
        owners: Position of the entity that each passage is about.
        shares: Share of a link to the entity, in (0, 1]: the more passages are about it, the less each receives.
        is_strong: Whether the entity is certainly the passage's subject (strength 1).
    """

    passages: IntArray
    owners: IntArray
    shares: FloatArray
    is_strong: BoolArray


@dataclass(frozen=True, slots=True)
class FollowedMentions:
    """The entity mentions in the best passages from which the search continues to further passages.

    Attributes:
        entities: Row number of each mention's entity.
        sources: Row number of the passage that mentions it.
        weights: Weight of the source, in [0, 1].
        similarities: Similarity of the hyperedge to the question or to its rest, the higher of the two.
        rarities: Rarity of the entity.
        other_passages: Row numbers of further passages that mention one of the entities.
        mention_of_other: Position of the mention by which each of :attr:`other_passages` was reached.
        links: The passages about the entities.
    """

    entities: IntArray
    sources: IntArray
    weights: FloatArray
    similarities: FloatArray
    rarities: FloatArray
    other_passages: IntArray
    mention_of_other: IntArray
    links: Links

    @classmethod
    def from_incidences(
        cls, snapshot: Snapshot, entities: IntArray, sources: IntArray, weights: FloatArray, similarities: FloatArray
    ) -> FollowedMentions:
        """Build the followed mentions from parallel arrays: entity, passage, passage weight, hyperedge similarity.

        Very frequent entities, in over :data:`MAX_FOLLOWED_DEGREE` passages, are omitted.
        """
        degrees = snapshot.graph.mention_counts(entities)
        rare = (degrees <= MAX_FOLLOWED_DEGREE).nonzero()[0]
        entities, sources, weights, similarities = entities[rare], sources[rare], weights[rare], similarities[rare]
        passages, owners, strengths = snapshot.graph.mentions(entities)
        elsewhere = (passages != sources[owners]).nonzero()[0]
        return cls(
            entities,
            sources,
            weights,
            similarities,
            compute_rarity(snapshot, degrees[rare]),
            passages[elsewhere],
            owners[elsewhere],
            find_links(passages, owners, strengths, len(entities)),
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """One search step: from the best passages to the entities in them, and on to passages about these entities.

    Attributes:
        link: The strongest link to each passage.
        by_type: The strongest link of three types to each passage of :attr:`link`, 0 if none: by a certain subject, by
            an uncertain subject, and from a passage about an entity of the question, times the similarity of the
            hyperedge; ``[3, passages]``.
        sources: Row number of the passage that the strongest link came from.
        entities: Row number of the entity that made the strongest link.
        shared_mention: The best mention that each passage shares with a source, by source weight times rarity.
        mentions: The followed mentions.
        linked_entities: Row number and strength of the entity of each link.
    """

    link: Scores
    by_type: FloatArray
    sources: IntArray
    entities: IntArray
    shared_mention: Scores
    mentions: FollowedMentions
    linked_entities: tuple[IntArray, FloatArray]

    def get_links_to(self, passages: IntArray) -> FloatArray:
        """Return for each passage the strongest link to it, for three types of links; shape ``[3, passages]``."""
        links = np.zeros((3, len(passages)), dtype=np.float32)
        if len(self.link):
            positions, is_linked = self.link.find_positions(passages)
            np.copyto(links, self.by_type[:, positions], where=is_linked)
        return links

    def find_origin(self, passage: int) -> tuple[float, int, int]:
        """Return the strongest link to a passage as (strength, source passage, entity); (0, -1, -1) without a link."""
        position = int(self.link.rows.searchsorted(passage))
        if position == len(self.link) or self.link.rows[position] != passage:
            return 0.0, -1, -1
        return float(self.link.values[position]), int(self.sources[position]), int(self.entities[position])


def compute_rarity(snapshot: Snapshot, degrees: IntArray) -> FloatArray:
    """Return the rarity of each entity: 1 if one passage mentions the entity, near 0 if all passages do."""
    log_corpus_size = np.log(snapshot.passage_count + 1)
    rarity: FloatArray = (1 - np.log(np.maximum(degrees, 1)) / log_corpus_size).astype(np.float32)
    return rarity


def find_links(passages: IntArray, owners: IntArray, strengths: FloatArray, entity_count: int) -> Links:
    """Return weighted links from each entity to the passages about it; with more passages, each weighs less.

    A share is 1 / sqrt(passages about the entity). Strong subjects are divided among strong subjects only.

    Args:
        passages: Row numbers of the passages that mention the entities.
        owners: Position of the entity that each passage mentions.
        strengths: How certain it is that the passage is about the entity; 0 or below if it only mentions it.
        entity_count: Number of entities.
    """
    about = (strengths > 0).nonzero()[0]
    passages, owners, strengths = passages[about], owners[about], strengths[about]
    is_strong = strengths >= 1
    strong = 1 / np.sqrt(np.maximum(1, np.bincount(owners[is_strong], minlength=entity_count)))
    weak = 1 / np.sqrt(np.maximum(1, np.bincount(owners, minlength=entity_count)))
    shares = np.where(is_strong, strong[owners].astype(np.float32), weak[owners].astype(np.float32) * strengths)
    return Links(passages, owners, shares, is_strong)


def follow_mentions(snapshot: Snapshot, scores: Scores, about: Scores, scale: SimilarityScale) -> Hop:
    """Return the search step from the best passages by ``scores`` to passages about the entities in them.

    Args:
        snapshot: The index.
        scores: Scores of passages; the best are the sources.
        about: Scores of the passages about an entity of the question.
        scale: Measures the similarity of hyperedges.
    """
    sources = scores.top_k(SOURCES_PER_HOP, partial(rank_by_id, snapshot, "passage"))
    source_scores = scores.get(sources)
    weights = np.maximum(source_scores / max(float(source_scores.max(initial=0)), 1e-6), 0).astype(np.float32)
    mentions = select_mentions(snapshot, sources, weights, scale)
    elsewhere = (mentions.links.passages != mentions.sources[mentions.links.owners]).nonzero()[0]
    targets, owners, shares, is_strong = (column[elsewhere] for column in mentions.links)
    entities, sources, similarities = mentions.entities[owners], mentions.sources[owners], mentions.similarities[owners]
    values = mentions.weights[owners] * shares
    # Sorted by target, then by strength, then by id of source and entity: the first of each target is its best link.
    ties = rank_by_id(snapshot, "entity", entities), rank_by_id(snapshot, "passage", sources)
    order = np.lexsort((*ties, -values, targets))
    starts = mark_first_of_equals(targets[order]).nonzero()[0]
    best = order[starts]
    from_subject = about.get(sources) * shares * similarities
    by_type = np.stack([values * is_strong, values * ~is_strong, from_subject])[:, order]
    return Hop(
        link=Scores(targets[best], values[best]),
        by_type=np.maximum.reduceat(by_type, starts, axis=1) if len(starts) else by_type,
        sources=sources[best],
        entities=entities[best],
        shared_mention=Scores.from_max(
            mentions.other_passages, (mentions.weights * mentions.rarities)[mentions.mention_of_other]
        ),
        mentions=mentions,
        linked_entities=(entities, values * (MIN_HYPEREDGE_SHARE + similarities)),
    )


def select_mentions(
    snapshot: Snapshot, sources: IntArray, weights: FloatArray, scale: SimilarityScale
) -> FollowedMentions:
    """Return the entity mentions in the passages ``sources`` with ``weights``, without very frequent entities."""
    edges, source_of_edge = snapshot.graph.hyperedges(sources)
    similarities = scale.similarities("hyperedge", edges).max(axis=1)
    entities, edge_of_entity = snapshot.graph.members(edges)
    positions = source_of_edge[edge_of_entity]
    return FollowedMentions.from_incidences(
        snapshot, entities, sources[positions], weights[positions], similarities[edge_of_entity]
    )


class AnchorHyperedges(NamedTuple):
    """The hyperedges that contain an entity named in the question (anchors), with their scores.

    Attributes:
        passages: Row number of each hyperedge's passage.
        owners: Position of the entity that the hyperedge joins.
        values: Weight of the entity times the similarity of the hyperedge to the rest of the question.
    """

    passages: IntArray
    owners: IntArray
    values: FloatArray


def score_anchor_hyperedges(
    snapshot: Snapshot, entities: IntArray, weights: FloatArray, scale: SimilarityScale
) -> AnchorHyperedges:
    """Score the hyperedges of ``entities`` by similarity to the question without its entity names.

    They state what the question asks, of an entity that counts, in one place; the terms of a whole passage do not tell
    whether its name and its answer stand together.

    Args:
        snapshot: The index.
        entities: Row numbers of entities that are not too frequent.
        weights: Weight of each entity.
        scale: Measures similarity to the rest of the question.
    """
    edges, owners = snapshot.graph.memberships(entities)
    values = weights[owners] * scale.similarities("hyperedge", edges)[:, 1]
    return AnchorHyperedges(snapshot.graph.passages(edges), owners, values)
