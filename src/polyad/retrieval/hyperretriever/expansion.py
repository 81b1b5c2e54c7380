"""Which triples a search keeps and which it follows: HyperRAG's adaptive search (section 3.1.5, eqs. 11 and 12).

The paper says both that M hyperedges are to be kept at each hop (section 3.1.5) and for each question (appendix B.1).
With ``minimum_over = "hop"`` the threshold is lowered at each hop by itself. With ``question`` the search goes on at
tau_0 until nothing new is plausible; only where all it has kept are fewer than M hyperedges is the threshold lowered,
for what was discarded, and in a hypergraph that is not sparse the search goes on from what that lets in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.distance import Triples
from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import Scores, find_top_positions
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_walk import SearchSpace, TripleWalk

Plausibilities = Callable[[Triples, FloatArray], FloatArray]
"""f_theta of some triples, whose hyperedges are those of the index, and their extras."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptTriples:
    """Kept triples as parallel arrays, each of shape ``[triples]``, in the order they were met.

    Attributes:
        heads: Rows of entities.
        edges: Rows of hyperedges of the index.
        tails: Rows of entities.
        plausibilities: float32, in (0, 1): of each triple, and of the way to it.
        hops: The hop each was met at, from 1.
    """

    heads: IntArray
    edges: IntArray
    tails: IntArray
    plausibilities: FloatArray
    hops: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _Met:
    """Triples of one hop, with rows of the search space.

    Attributes:
        triples: As the walk gave them.
        plausibilities: Of each by itself.
        scores: Of each and the way to it.
        hop: Its number, from 1.
    """

    triples: Triples
    plausibilities: FloatArray
    scores: FloatArray
    hop: int

    def at(self, positions: IntArray) -> _Met:
        """Some of them."""
        triples = self.triples
        chosen = Triples(triples.heads[positions], triples.edges[positions], triples.tails[positions])
        return _Met(chosen, self.plausibilities[positions], self.scores[positions], self.hop)


def expanded(
    walk: TripleWalk,
    space: SearchSpace,
    topics: IntArray,
    plausibilities: Plausibilities,
    settings: HyperRetrieverSettings,
) -> KeptTriples:
    """Search from a question's topic entities; one pass of the scorer for each hop.

    Args:
        walk: From them.
        space: That is walked.
        topics: Rows of entities.
        plausibilities: Of triples.
        settings: Thresholds and limits.
    """
    search = _Search(walk, space, topics, plausibilities, settings)
    if settings.minimum_over == "question":
        search.by_question()
    else:
        search.by_hop()
    return search.found()


class _Search:
    """One search, hop by hop."""

    def __init__(
        self,
        walk: TripleWalk,
        space: SearchSpace,
        topics: IntArray,
        plausibilities: Plausibilities,
        settings: HyperRetrieverSettings,
    ) -> None:
        self._walk = walk
        self._space = space
        self._plausibilities = plausibilities
        self._settings = settings
        self._ways = Scores(topics, np.ones(len(topics), dtype=np.float32))  # the best to each entity
        self._hops = 0
        self._kept: list[_Met] = []

    def by_hop(self) -> None:
        """Lower the threshold at each hop where too few hyperedges reach it."""
        while met := self._hop():
            kept, followed = choose(met.triples.edges, met.plausibilities, self._space.density, self._settings)
            self._kept.append(met.at(kept))
            if not len(followed):
                break
            self._follow([met.at(followed)])

    def by_question(self) -> None:
        """Go on at tau_0 until nothing new reaches it; lower it where all that was kept is too little."""
        settings, discarded = self._settings, list[_Met]()
        for reduction in range(settings.reductions + 1 if settings.adaptive else 1):
            threshold = settings.threshold - settings.decay * reduction
            accepted = [met.at(np.flatnonzero(met.plausibilities >= threshold)) for met in discarded]
            discarded = [met.at(np.flatnonzero(met.plausibilities < threshold)) for met in discarded]
            self._kept += accepted
            goes_on = any(len(met.triples) for met in accepted) and self._space.density > settings.low_density
            if goes_on:
                self._follow(accepted)
            if goes_on or not reduction:
                discarded += self._converge(threshold)
            edges = [self._space.origins(met.triples.edges) for met in self._kept]
            if len(sort_unique(np.concatenate([*edges, np.empty(0, dtype=np.int64)]))) >= settings.minimum_hyperedges:
                break

    def found(self) -> KeptTriples:
        """What was kept, in the order in which it was."""
        kept = [*self._kept, _NOTHING]
        return KeptTriples(
            np.concatenate([met.triples.heads for met in kept]),
            self._space.origins(np.concatenate([met.triples.edges for met in kept])),
            np.concatenate([met.triples.tails for met in kept]),
            np.concatenate([met.scores for met in kept]),
            np.concatenate([np.full(len(met.triples), met.hop) for met in kept]),
        )

    def _converge(self, threshold: float) -> list[_Met]:
        """Hops while triples reach a threshold; those that do not."""
        left = []
        while met := self._hop():
            reaches = _within_limit(
                met.plausibilities >= threshold, met.plausibilities, self._space.density, self._settings
            )
            left.append(met.at(np.flatnonzero(~reaches)))
            if not reaches.any():
                break
            self._kept.append(met.at(np.flatnonzero(reaches)))
            self._follow([self._kept[-1]])
        return left

    def _hop(self) -> _Met | None:
        """The next triples; none at the end of the walk or of the hops that are allowed."""
        if self._hops == self._settings.depth > 0:
            return None
        triples, extras = self._walk.hop()
        if not len(triples):
            return None
        self._hops += 1
        own = self._plausibilities(Triples(triples.heads, self._space.origins(triples.edges), triples.tails), extras)
        return _Met(triples, own, own * self._ways.get(triples.heads) ** self._settings.path_weight, self._hops)

    def _follow(self, chosen: list[_Met]) -> None:
        """Go on from the tails of some triples."""
        heads, edges, tails = (
            np.concatenate([getattr(met.triples, name) for met in chosen]) for name in ("heads", "edges", "tails")
        )
        scores = np.concatenate([met.scores for met in chosen])
        rows, values = np.concatenate([self._ways.rows, tails]), np.concatenate([self._ways.values, scores])
        self._ways = Scores.from_max(rows, values)
        self._walk.follow(Triples(heads, edges, tails), np.arange(len(heads)))


_NO_ROWS = np.empty(0, dtype=np.int64)
_NO_SCORES = np.empty(0, dtype=np.float32)
_NOTHING = _Met(Triples(_NO_ROWS, _NO_ROWS, _NO_ROWS), _NO_SCORES, _NO_SCORES, 1)


def choose(
    edges: IntArray, scores: FloatArray, density: float, settings: HyperRetrieverSettings
) -> tuple[IntArray, IntArray]:
    """Which triples of a hop are kept, and which of these are expanded (HyperRAG, section 3.1.5, eq. 11 and 12).

    What reaches tau_0 is kept and expanded. Where that is fewer than M hyperedges, the threshold is lowered and what
    reaches it then is kept too; it is expanded only in a hypergraph that is not sparse. In a dense one the most
    plausible are kept, up to a limit.

    Args:
        edges: Hyperedge of each triple.
        scores: How plausible each is, in (0, 1).
        density: Delta(G).
        settings: Thresholds and limits.

    Returns:
        Positions of the kept triples, and of those to expand, each sorted.
    """
    lowered = final_threshold(edges, scores, settings) if settings.adaptive else settings.threshold
    kept = _within_limit(scores >= lowered, scores, density, settings)
    followed = kept & (scores >= settings.threshold) if density <= settings.low_density else kept
    return np.flatnonzero(kept), np.flatnonzero(followed)


def final_threshold(edges: IntArray, scores: FloatArray, settings: HyperRetrieverSettings) -> float:
    """The first of tau_0, tau_0 - c, .. that ``minimum_hyperedges`` reach, or the last (HyperRAG, eq. 11)."""
    for reduction in range(settings.reductions + 1):
        threshold = settings.threshold - settings.decay * reduction
        if len(sort_unique(edges[scores >= threshold])) >= settings.minimum_hyperedges:
            break
    return threshold


def _within_limit(kept: BoolArray, scores: FloatArray, density: float, settings: HyperRetrieverSettings) -> BoolArray:
    """In a dense hypergraph the most plausible of what is kept, at most ``triples_kept``; else all of it."""
    if density <= settings.high_density or kept.sum() <= settings.triples_kept:
        return kept
    most = find_top_positions(np.where(kept, scores, -1), settings.triples_kept, lambda places: places)
    best = np.zeros(len(scores), dtype=bool)
    best[most] = True
    return best
