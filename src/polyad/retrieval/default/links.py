"""Links: from the entities that good passages mention to the passages about them, and to others that mention them.

The walk goes passage -> hyperedge -> entity -> passage. A link counts the more, the better its source, the nearer the
hyperedge that makes it is to the question, the fewer passages the entity leads to and the surer it is their subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from polyad.hypergraph.incidence import distinct
from polyad.hypergraph.sparse import Scores
from polyad.model import FloatArray, IntArray
from polyad.view import View

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
        view: The index; of at least one passage.

    Attributes:
        vectors: As given.
        nearest: The passages nearest to each, best first.
        means: Mean cosine of the corpus to each, ``[2]``.
        spreads: Highest cosine of the corpus to each, less its mean, ``[2]``.
    """

    def __init__(self, vectors: FloatArray, view: View) -> None:
        found = view.nearest("passage", vectors, NEAREST)
        highest = np.array([cosines[0] for _, cosines in found], dtype=np.float32)
        self.vectors = vectors
        self.nearest = tuple(rows for rows, _ in found)
        self.means = view.mean_cosines(vectors)
        self.spreads = np.maximum(highest - self.means, 1e-6)
        self._view = view
        nothing = np.empty(0, dtype=np.int64), np.empty((0, len(vectors)), dtype=np.float32)
        self._known = {"passage": nothing, "hyperedge": nothing}

    def similarities(self, kind: Literal["passage", "hyperedge"], rows: IntArray) -> FloatArray:
        """Similarity of each of some rows to the question and to its remainder, ``[rows, 2]``."""
        known, values = self._known[kind]
        places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        missing = distinct(rows[known[places] != rows]) if len(known) else distinct(rows)
        if len(missing):
            found = self._view.cosines(kind, missing, self.vectors)
            relative = np.maximum(0, (found - self.means) / self.spreads).astype(np.float32)
            order = np.argsort(both := np.concatenate([known, missing]))
            known, values = self._known[kind] = both[order], np.concatenate([values, relative])[order]
        similar: FloatArray = values[np.searchsorted(known, rows)]
        return similar


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
    """What following the mentions of the best passages led to.

    Attributes:
        strong: The best link to each passage, whose strong subject it names.
        weak: The same for weaker subjects, times their strength.
        link: The best of both.
        about_link: The best of both from passages about an entity of the question, times the hyperedge's nearness.
        mention: The best mention that each passage shares with a source, by the source's weight and its rarity.
        origins: The passage that the best link to each passage came from, and the entity that made it.
        mentions: What was followed.
        followed: The entities that made links, with the strength of the strongest.
    """

    strong: Scores
    weak: Scores
    link: Scores
    about_link: Scores
    mention: Scores
    origins: dict[int, tuple[int, int]]
    mentions: Mentions
    followed: Scores


def rarity(view: View, entities: IntArray) -> FloatArray:
    """How telling each entity is: 1 for one passage, falling with the logarithm of their number; ``[entities]``."""
    everywhere = np.log(view.passage_count + 1)
    telling: FloatArray = (1 - np.log(np.maximum(view.graph.degrees(entities), 1)) / everywhere).astype(np.float32)
    return telling


def linked(view: View, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """The passages about each of some entities, and what each gets of a link to it: the less, the more share it.

    Of a strong subject the strong ones alone take a share.

    Returns:
        Passages, the position in ``entities`` each belongs to, its share, and how surely it is about the entity.
    """
    passages, owners, strengths = view.graph.about(entities)
    sure = strengths >= 1
    strong = 1 / np.sqrt(np.maximum(1, np.bincount(owners[sure], minlength=len(entities))))
    weak = 1 / np.sqrt(np.maximum(1, np.bincount(owners, minlength=len(entities))))
    share = np.where(sure, strong[owners].astype(np.float32), weak[owners].astype(np.float32) * strengths)
    return passages, owners, share, strengths


def follow(view: View, scores: Scores, about: Scores, scale: SimilarityScale) -> Hop:
    """Follow the mentions of the best passages.

    Args:
        view: The index.
        scores: Of passages; the best :data:`SOURCES` are the sources.
        about: Of passages about an entity of the question.
        scale: Says how near a hyperedge is to the question.
    """
    mentions = _mentions(view, scores, scale)
    targets, pairs, share, strengths = linked(view, mentions.entities)
    away = targets != mentions.sources[pairs]
    targets, pairs, share, is_strong = targets[away], pairs[away], share[away], strengths[away] >= 1
    entities, sources, nearness = mentions.entities[pairs], mentions.sources[pairs], mentions.nearness[pairs]
    values = mentions.weights[pairs] * share
    # By target, then the strongest, then source and entity by id: the first of each target is where its link is from.
    ties = view.order("entity", entities), view.order("passage", sources)
    order = np.lexsort((*ties, -values, targets))
    first = order[np.diff(targets[order], prepend=-1) > 0]
    return Hop(
        strong=Scores.highest(targets[is_strong], values[is_strong]),
        weak=Scores.highest(targets[~is_strong], values[~is_strong]),
        link=Scores.highest(targets, values),
        about_link=Scores.highest(targets, about.at(sources) * share * nearness),
        mention=_shared(view, mentions),
        origins=dict(
            zip(
                targets[first].tolist(),
                zip(sources[first].tolist(), entities[first].tolist(), strict=True),
                strict=True,
            )
        ),
        mentions=mentions,
        followed=Scores.highest(entities, values * (STRENGTH_FLOOR + nearness)),
    )


def _mentions(view: View, scores: Scores, scale: SimilarityScale) -> Mentions:
    sources = scores.best(SOURCES, partial(view.order, "passage"))
    own = scores.at(sources)
    weights = np.maximum(own / max(float(own.max(initial=0)), 1e-6), 0).astype(np.float32)
    edges, source_of_edge = view.graph.hyperedges(sources)
    nearness = scale.similarities("hyperedge", edges).max(axis=1)
    entities, edge_of = view.graph.members(edges)
    telling = view.graph.degrees(entities) <= COMMON
    entities, edge_of = entities[telling], edge_of[telling]
    places = source_of_edge[edge_of]
    return Mentions(entities, sources[places], weights[places], nearness[edge_of])


def _shared(view: View, mentions: Mentions) -> Scores:
    targets, pairs = view.graph.mentions(mentions.entities)
    values = (mentions.weights * rarity(view, mentions.entities))[pairs]
    away = targets != mentions.sources[pairs]
    return Scores.highest(targets[away], values[away])


def anchored(view: View, entities: Scores, scale: SimilarityScale, away_from: int = -1) -> Scores:
    """The best hyperedge of each passage that holds one of some entities and resembles the remainder of the question.

    It says what the question asks, of an entity that counts, in one place: the words of a passage alone do not tell
    whether its name and its answer stand together.

    Args:
        view: The index.
        entities: What each counts.
        scale: Measures similarity to the remainder.
        away_from: Row of a passage that does not count; -1 for none.

    Returns:
        weight x rarity x similarity, of passages that have such a hyperedge.
    """
    telling = view.graph.degrees(entities.rows) <= COMMON
    rows, weights = entities.rows[telling], entities.values[telling]
    edges, owners = view.graph.memberships(rows)
    unique = distinct(edges)
    similarity = scale.similarities("hyperedge", unique)[:, 1][np.searchsorted(unique, edges)]
    values = (weights * rarity(view, rows))[owners] * similarity
    passages = view.graph.passages(edges)
    away = passages != away_from
    return Scores.highest(passages[away], values[away])
