"""Links: from the entities that good passages mention to the passages about them, and to others that mention them.

The walk goes passage -> hyperedge -> entity -> passage. A link counts the more, the better its source, the nearer the
hyperedge that makes it is to the question, the fewer passages the entity leads to and the surer it is their subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from polyad.hypergraph.incidence import mark_first_of_equals, sort_unique
from polyad.hypergraph.sparse import Scores
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.snapshot import Snapshot

NEAREST = 200
"""Passages ranked by similarity; the signals of ranks are 0 for all others."""

SOURCES = 8
"""Best passages whose mentions are followed, at each hop."""

COMMON = 60
"""Entities of more passages than this are not followed: they lead everywhere."""

STRENGTH_FLOOR = 0.3
"""Share of a link that counts as the strength of its entity, however far its hyperedge is from the question."""


class SimilarityScale:
    """Turns cosines into similarities that mean the same for every encoder and question.

    0 is the mean of the corpus and all below it, 1 the passage nearest to the question. What was measured is kept: it
    belongs to one question.

    Args:
        vectors: Of the question and of its remainder, ``[2, dimension]``.
        snapshot: The index; of at least one passage.

    Attributes:
        vectors: As given.
        nearest: The passages nearest to each, best first.
        similar: Those of them that are more similar than the mean of the corpus.
        means: Mean cosine of the corpus to each, ``[2]``.
        spreads: Highest cosine of the corpus to each, less its mean, ``[2]``.
    """

    def __init__(self, vectors: FloatArray, snapshot: Snapshot) -> None:
        found = snapshot.nearest("passage", vectors, NEAREST)
        highest = np.array([cosines[0] for _, cosines in found], dtype=np.float32)
        self.vectors = vectors
        self.means = snapshot.mean_cosines(vectors)
        self.spreads = np.maximum(highest - self.means, 1e-6)
        self.nearest = tuple(rows for rows, _ in found)
        self.similar = tuple(rows[cosines > mean] for (rows, cosines), mean in zip(found, self.means, strict=True))
        self._snapshot = snapshot
        last = np.array([np.iinfo(np.int64).max]), np.zeros((1, len(vectors)), dtype=np.float32)
        self._known = {"passage": last, "hyperedge": last}

    def similarities(self, kind: Literal["passage", "hyperedge"], rows: IntArray) -> FloatArray:
        """Similarity of each of some rows to the question and to its remainder, ``[rows, 2]``."""
        known, values = self._known[kind]  # the last of them is beyond all rows
        places = known.searchsorted(rows)
        missing = rows[known[places] != rows]
        if len(missing):
            missing = sort_unique(missing)
            found = self._snapshot.cosines(kind, missing, self.vectors)
            relative = np.maximum(0, (found - self.means) / self.spreads).astype(np.float32, copy=False)
            known = np.concatenate([known, missing])
            order = known.argsort(kind="stable")  # of two sorted runs: they are merged
            known, values = self._known[kind] = known[order], np.concatenate([values, relative])[order]
            places = known.searchsorted(rows)
        similar: FloatArray = values[places]
        return similar


class Links(NamedTuple):
    """Passages about some entities.

    Attributes:
        passages: Their rows.
        owners: The position of the entity that each is about.
        shares: What each gets of a link to its entity, in (0, 1].
        sure: Whether it is surely about it.
    """

    passages: IntArray
    owners: IntArray
    shares: FloatArray
    sure: BoolArray


@dataclass(frozen=True, slots=True)
class Mentions:
    """The mentions that are followed, one an incidence, of entities that are not too common.

    Attributes:
        entities: Row of each.
        sources: Row of the passage that mentions it.
        weights: Of the source, in [0, 1].
        nearness: Similarity of the hyperedge to the question or its remainder.
        rarities: Of the entity.
        others: Rows of the passages that mention an entity beside its source; ``pairs`` says by which mention each.
        about: The passages about the entities; see :func:`linked`.
    """

    entities: IntArray
    sources: IntArray
    weights: FloatArray
    nearness: FloatArray
    rarities: FloatArray
    others: IntArray
    pairs: IntArray
    about: Links

    @classmethod
    def of(
        cls, snapshot: Snapshot, entities: IntArray, sources: IntArray, weights: FloatArray, nearness: FloatArray
    ) -> Mentions:
        """Those of entities that are not too common, from parallel arrays."""
        degrees = snapshot.graph.mention_counts(entities)
        telling = (degrees <= COMMON).nonzero()[0]
        entities, sources, weights, nearness = entities[telling], sources[telling], weights[telling], nearness[telling]
        passages, pairs, strengths = snapshot.graph.mentions(entities)
        away = (passages != sources[pairs]).nonzero()[0]
        return cls(
            entities,
            sources,
            weights,
            nearness,
            rarity(snapshot, degrees[telling]),
            passages[away],
            pairs[away],
            linked(passages, pairs, strengths, len(entities)),
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """What following the mentions of the best passages led to.

    Attributes:
        link: The best link to each passage.
        strong: Of each passage in ``link``, the best where it is the entity's strong subject; ``[link]``, as the rest.
        weak: The best where it is a weaker subject, times the strength.
        about_link: The best from passages about an entity of the question, times the hyperedge's nearness.
        sources: Row of the passage that the best link to it came from.
        entities: Row of the entity that made that link.
        mention: The best mention that each passage shares with a source, by the source's weight and its rarity.
        mentions: What was followed.
        followed: Entity and strength of each link.
    """

    link: Scores
    strong: FloatArray
    weak: FloatArray
    about_link: FloatArray
    sources: IntArray
    entities: IntArray
    mention: Scores
    mentions: Mentions
    followed: tuple[IntArray, FloatArray]

    def links_to(self, passages: IntArray) -> FloatArray:
        """What strong, weak and about links count for each of some passages, ``[3, passages]``."""
        found = np.zeros((3, len(passages)), dtype=np.float32)
        if len(self.link):
            places, known = self.link.find_positions(passages)
            np.copyto(found, np.stack([self.strong, self.weak, self.about_link])[:, places], where=known)
        return found

    def origin(self, passage: int) -> tuple[float, int, int]:
        """Strength, source and entity of the best link to a passage; (0, -1, -1) where none leads there."""
        place = int(self.link.rows.searchsorted(passage))
        if place == len(self.link) or self.link.rows[place] != passage:
            return 0.0, -1, -1
        return float(self.link.values[place]), int(self.sources[place]), int(self.entities[place])


def rarity(snapshot: Snapshot, degrees: IntArray) -> FloatArray:
    """How telling entities of some degrees are: 1 for one passage, falling with the logarithm; ``[degrees]``."""
    everywhere = np.log(snapshot.passage_count + 1)
    telling: FloatArray = (1 - np.log(np.maximum(degrees, 1)) / everywhere).astype(np.float32)
    return telling


def linked(passages: IntArray, owners: IntArray, strengths: FloatArray, count: int) -> Links:
    """The passages about each of some entities, and what each gets of a link to it: the less, the more share it.

    Of a strong subject the strong ones alone take a share.

    Args:
        passages: That mention the entities.
        owners: Which of the entities each does.
        strengths: How surely it is about it.
        count: Of the entities.
    """
    about = (strengths > 0).nonzero()[0]
    passages, owners, strengths = passages[about], owners[about], strengths[about]
    sure = strengths >= 1
    strong = 1 / np.sqrt(np.maximum(1, np.bincount(owners[sure], minlength=count)))
    weak = 1 / np.sqrt(np.maximum(1, np.bincount(owners, minlength=count)))
    shares = np.where(sure, strong[owners].astype(np.float32), weak[owners].astype(np.float32) * strengths)
    return Links(passages, owners, shares, sure)


def follow(snapshot: Snapshot, scores: Scores, about: Scores, scale: SimilarityScale) -> Hop:
    """Follow the mentions of the best passages.

    Args:
        snapshot: The index.
        scores: Of passages; the best :data:`SOURCES` are the sources.
        about: Of passages about an entity of the question.
        scale: Says how near a hyperedge is to the question.
    """
    mentions = _mentions(snapshot, scores, scale)
    away = (mentions.about.passages != mentions.sources[mentions.about.owners]).nonzero()[0]
    targets, pairs, share, is_strong = (column[away] for column in mentions.about)
    entities, sources, nearness = mentions.entities[pairs], mentions.sources[pairs], mentions.nearness[pairs]
    values = mentions.weights[pairs] * share
    # By target, then the strongest, then source and entity by id: the first of each target is where its link is from.
    ties = snapshot.rank_by_id("entity", entities), snapshot.rank_by_id("passage", sources)
    order = np.lexsort((*ties, -values, targets))
    starts = mark_first_of_equals(targets[order]).nonzero()[0]
    first = order[starts]

    def best(links: FloatArray) -> FloatArray:
        """The highest of the links to each target."""
        found: FloatArray = np.maximum.reduceat(links[order], starts) if len(starts) else links
        return found

    return Hop(
        link=Scores(targets[first], values[first]),
        strong=best(np.where(is_strong, values, np.float32(0))),
        weak=best(np.where(is_strong, np.float32(0), values)),
        about_link=best(about.get(sources) * share * nearness),
        sources=sources[first],
        entities=entities[first],
        mention=Scores.from_max(mentions.others, (mentions.weights * mentions.rarities)[mentions.pairs]),
        mentions=mentions,
        followed=(entities, values * (STRENGTH_FLOOR + nearness)),
    )


def _mentions(snapshot: Snapshot, scores: Scores, scale: SimilarityScale) -> Mentions:
    sources = scores.top_k(SOURCES, partial(snapshot.rank_by_id, "passage"))
    own = scores.get(sources)
    weights = np.maximum(own / max(float(own.max(initial=0)), 1e-6), 0).astype(np.float32)
    edges, source_of_edge = snapshot.graph.hyperedges(sources)
    nearness = scale.similarities("hyperedge", edges).max(axis=1)
    entities, edge_of = snapshot.graph.members(edges)
    places = source_of_edge[edge_of]
    return Mentions.of(snapshot, entities, sources[places], weights[places], nearness[edge_of])


class Anchors(NamedTuple):
    """Hyperedges that hold some entities.

    Attributes:
        passages: Of each.
        owners: The position of the entity that each holds.
        values: Weight of the entity x similarity of the hyperedge to the remainder of the question.
    """

    passages: IntArray
    owners: IntArray
    values: FloatArray


def anchored(snapshot: Snapshot, entities: IntArray, weights: FloatArray, scale: SimilarityScale) -> Anchors:
    """The hyperedges that hold one of some entities and resemble the remainder of the question.

    They say what the question asks, of an entity that counts, in one place: the words of a passage alone do not tell
    whether its name and its answer stand together.

    Args:
        snapshot: The index.
        entities: Rows, of none that is too common.
        weights: What each counts, times its rarity.
        scale: Measures similarity to the remainder.
    """
    edges, owners = snapshot.graph.memberships(entities)
    values = weights[owners] * scale.similarities("hyperedge", edges)[:, 1]
    return Anchors(snapshot.graph.passages(edges), owners, values)
