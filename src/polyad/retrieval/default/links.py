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
from polyad.retrieval.default.other_languages import OtherLanguages

DENSE_DEPTH = 200
"""Passages ranked by similarity; the rank signals of all other passages are 0."""

SOURCES_PER_HOP = 8
"""Best passages whose mentions are followed at each hop."""

MAX_FOLLOWED_DEGREE = 60
"""Passages of an entity, above which it is not followed: frequent entities lead everywhere."""


class CosineScaler:
    """Rescales the cosines of a question, so that they are comparable between questions and embedders.

    0 is the mean cosine of the corpus (or below it), 1 the passage nearest to the question. Similarities are cached,
    so an instance serves one question.

    Args:
        vectors: Unit vectors of the question and of the rest of the question, ``[2, dimension]``.
        snapshot: An index of at least one passage.
        trust: Trust in the encoder in [0, 1], a factor of all similarities.
        other_languages: The passages in other languages than the question, whose cosines differ; none by default.

    Attributes:
        vectors: The vectors of the question and of the rest of the question.
        nearest: The :data:`DENSE_DEPTH` passages nearest to each vector, best first.
        similar: The nearest passages whose cosine exceeds the mean of the corpus.
        means: Mean cosine of the corpus to each vector, ``[2]``.
        spreads: Highest cosine of the corpus to each vector minus the mean, ``[2]``.
        trust: Trust in the encoder.
        other_languages: The passages in other languages than the question.
    """

    def __init__(
        self,
        vectors: FloatArray,
        snapshot: Snapshot,
        trust: float = 1.0,
        other_languages: OtherLanguages | None = None,
    ) -> None:
        self.other_languages = other_languages or OtherLanguages()
        nearest = self.other_languages.nearest(vectors, DENSE_DEPTH, snapshot)
        highest = np.array([cosines[0] for _, cosines in nearest], dtype=np.float32)
        self.vectors = vectors
        self.trust = trust
        has_others = bool(self.other_languages.languages)
        self.means = self.other_languages.means if has_others else snapshot.mean_cosines(vectors)
        self.spreads = np.maximum(highest - self.means, 1e-6)
        self.nearest = tuple(rows for rows, _ in nearest)
        self.similar = tuple(rows[cosines > mean] for (rows, cosines), mean in zip(nearest, self.means, strict=True))
        self._snapshot = snapshot
        # A sentinel beyond all rows, so that searchsorted always returns a valid position.
        sentinel = np.array([np.iinfo(np.int64).max]), np.zeros((1, len(vectors)), dtype=np.float32)
        self._cache = {"passage": sentinel, "hyperedge": sentinel}

    def similarities(self, kind: Literal["passage", "hyperedge"], rows: IntArray) -> FloatArray:
        """Return similarities of passages or hyperedges to the question, and to the question without entity names.

        Shape ``[rows, 2]``; ``kind`` states what ``rows`` are.
        """
        cached_rows, values = self._cache[kind]
        positions = cached_rows.searchsorted(rows)
        missing = rows[cached_rows[positions] != rows]
        if len(missing):
            missing = sort_unique(missing)
            cosines = self._snapshot.cosines(kind, missing, self.vectors)
            if self.other_languages.languages:  # reading the passages of hyperedges takes time
                passages = missing if kind == "passage" else self._snapshot.graph.passages(missing)
                cosines = cosines - self.other_languages.get_offsets(passages)
            relative = np.maximum(0, (cosines - self.means) / self.spreads * self.trust).astype(np.float32, copy=False)
            cached_rows = np.concatenate([cached_rows, missing])
            order = cached_rows.argsort(kind="stable")  # merges two sorted runs
            cached_rows, values = self._cache[kind] = cached_rows[order], np.concatenate([values, relative])[order]
            positions = cached_rows.searchsorted(rows)
        similarities: FloatArray = values[positions]
        return similarities


class EntityLinks(NamedTuple):
    """Weighted links from entities to the passages about these entities, as parallel arrays.

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
    """The entities that the best passages mention, and the other passages that these entities lead to, as arrays.

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
    links: EntityLinks

    @classmethod
    def from_incidences(
        cls, snapshot: Snapshot, entities: IntArray, sources: IntArray, weights: FloatArray, similarities: FloatArray
    ) -> FollowedMentions:
        """Build the mentions from parallel arrays: the passage ``sources[i]`` mentions the entity ``entities[i]``.

        The attributes of the class state what the arrays are. Very frequent entities, in over
        :data:`MAX_FOLLOWED_DEGREE` passages, are omitted.
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
            build_links(passages, owners, strengths, len(entities)),
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """The result of one hop of a search: best passages -> entities that they mention -> passages about these entities.

    Attributes:
        link: The strongest link to each passage.
        by_type: The strongest link of three types to each passage of :attr:`link`, 0 if none: by a certain subject, by
            an uncertain subject, and from a passage about an entity of the question, times the similarity of the
            hyperedge; ``[3, passages]``.
        sources: Row number of the passage that the strongest link came from.
        entities: Row number of the entity that made the strongest link.
        shared_mention: The best mention that each passage shares with a source, by source weight times rarity.
        mentions: The followed mentions.
    """

    link: Scores
    by_type: FloatArray
    sources: IntArray
    entities: IntArray
    shared_mention: Scores
    mentions: FollowedMentions

    def get_link_strengths(self, passages: IntArray) -> FloatArray:
        """Return the strongest link to each passage, separately for three types of links; ``[3, passages]``."""
        links = np.zeros((3, len(passages)), dtype=np.float32)
        if len(self.link):
            positions, is_linked = self.link.find_positions(passages)
            np.copyto(links, self.by_type[:, positions], where=is_linked)
        return links

    def find_strongest_link(self, passage: int) -> tuple[float, int, int]:
        """Return the strongest link to a passage as (strength, source passage, entity); (0, -1, -1) without a link."""
        position = int(self.link.rows.searchsorted(passage))
        if position == len(self.link) or self.link.rows[position] != passage:
            return 0.0, -1, -1
        return float(self.link.values[position]), int(self.sources[position]), int(self.entities[position])


def compute_rarity(snapshot: Snapshot, passage_counts: IntArray) -> FloatArray:
    """Return the rarity of entities by the number of passages that mention them: 1 for one passage, near 0 for all."""
    log_corpus_size = np.log(snapshot.passage_count + 1)
    rarity: FloatArray = (1 - np.log(np.maximum(passage_counts, 1)) / log_corpus_size).astype(np.float32)
    return rarity


def build_links(passages: IntArray, entities: IntArray, strengths: FloatArray, entity_count: int) -> EntityLinks:
    """Build weighted links from entities to the passages about them, from parallel arrays of all mentions.

    The more passages are about an entity, the less each link weighs: a share is 1 / sqrt(passages about the entity).
    For a strong subject, only passages with a strong subject are counted.

    Args:
        passages: Row numbers of the passages that mention the entities.
        entities: Index of the entity that each passage mentions, from 0 to ``entity_count`` - 1.
        strengths: How certain it is that the passage is about the entity; 0 or below if it only mentions it.
        entity_count: Number of entities.
    """
    about = (strengths > 0).nonzero()[0]
    passages, entities, strengths = passages[about], entities[about], strengths[about]
    is_strong = strengths >= 1
    strong = 1 / np.sqrt(np.maximum(1, np.bincount(entities[is_strong], minlength=entity_count)))
    weak = 1 / np.sqrt(np.maximum(1, np.bincount(entities, minlength=entity_count)))
    shares = np.where(is_strong, strong[entities].astype(np.float32), weak[entities].astype(np.float32) * strengths)
    return EntityLinks(passages, entities, shares, is_strong)


def follow_mentions(
    snapshot: Snapshot, passage_scores: Scores, subject_scores: Scores, similarity: CosineScaler
) -> Hop:
    """Search one hop: from the passages with the best scores, via the entities that they mention, to further passages.

    Args:
        snapshot: The index.
        passage_scores: Scores of passages; the best are the sources.
        subject_scores: How certainly each passage is about an entity of the question.
        similarity: Measures the similarity of hyperedges.
    """
    sources = passage_scores.top_k(SOURCES_PER_HOP, partial(rank_by_id, snapshot, "passage"))
    source_scores = passage_scores.get(sources)
    weights = np.maximum(source_scores / max(float(source_scores.max(initial=0)), 1e-6), 0).astype(np.float32)
    mentions = select_mentions(snapshot, sources, weights, similarity)
    elsewhere = (mentions.links.passages != mentions.sources[mentions.links.owners]).nonzero()[0]
    targets, owners, shares, is_strong = (column[elsewhere] for column in mentions.links)
    entities, sources, similarities = mentions.entities[owners], mentions.sources[owners], mentions.similarities[owners]
    values = mentions.weights[owners] * shares
    # Sorted by target, then by strength, then by id of source and entity: the first of each target is its best link.
    ties = rank_by_id(snapshot, "entity", entities), rank_by_id(snapshot, "passage", sources)
    order = np.lexsort((*ties, -values, targets))
    starts = mark_first_of_equals(targets[order]).nonzero()[0]
    best = order[starts]
    from_subject = subject_scores.get(sources) * shares * similarities
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
    )


def select_mentions(
    snapshot: Snapshot, sources: IntArray, weights: FloatArray, similarity: CosineScaler
) -> FollowedMentions:
    """Return the entities that the passages ``sources`` mention, without very frequent entities."""
    edges, source_of_edge = snapshot.graph.hyperedges(sources)
    similarities = similarity.similarities("hyperedge", edges).max(axis=1)
    entities, edge_of_entity = snapshot.graph.members(edges)
    positions = source_of_edge[edge_of_entity]
    return FollowedMentions.from_incidences(
        snapshot, entities, sources[positions], weights[positions], similarities[edge_of_entity]
    )


def score_entity_hyperedges(
    snapshot: Snapshot, entities: IntArray, weights: FloatArray, similarity: CosineScaler
) -> tuple[IntArray, IntArray, FloatArray]:
    """Score each hyperedge of ``entities`` by the entity's weight times the similarity to the question without names.

    Such a hyperedge can state in one place what the question asks of the entity. The terms of a whole passage do not
    show whether the name of the entity and the answer stand together.

    Args:
        snapshot: The index.
        entities: Row numbers of entities that are not too frequent.
        weights: Weight of each entity.
        similarity: Measures similarity to the rest of the question.

    Returns:
        Parallel arrays: row of the hyperedge's passage, index of the entity in ``entities``, and score.
    """
    edges, owners = snapshot.graph.memberships(entities)
    values = weights[owners] * similarity.similarities("hyperedge", edges)[:, 1]
    return snapshot.graph.passages(edges), owners, values
