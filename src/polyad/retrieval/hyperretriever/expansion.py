"""HyperRAG's adaptive search: selects the triples to accept and to follow (section 3.1.5, equations 11 and 12).

The paper requires M accepted hyperedges at each hop (section 3.1.5) and for each question (appendix B.1). With
``minimum_over = "hop"`` the threshold is lowered at each hop. With ``question`` the search continues at tau_0 until no
new triple is plausible. Only if it accepted fewer than M hyperedges is the threshold lowered for the rejected triples,
and unless the hypergraph is sparse the search continues from the triples that are then accepted.

The paper also adjusts tau_0 by the class of density (equation 12) but gives no values; tau_0 stays the same here, and
the class decides only whether the search continues from late triples and how many triples of a hop are accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.distance import Triples
from polyad.hypergraph.sparse import Scores, find_top_positions, sort_unique, union
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_walk import TripleWalk

ScoreTriples = Callable[[Triples, FloatArray], FloatArray]
"""Returns the plausibility (f_theta) of triples, from their rows in the snapshot and their other features."""


@dataclass(frozen=True, slots=True, eq=False)
class AcceptedTriples:
    """The triples (head, hyperedge, tail) that a search accepted as plausible, as parallel arrays.

    Attributes:
        heads: Row numbers of entities.
        edges: Row numbers of hyperedges in the snapshot.
        tails: Row numbers of entities.
        plausibilities: Plausibility of the triple and of the path to it, float32 in (0, 1).
        hops: Number of the hop, from 1.
    """

    heads: IntArray
    edges: IntArray
    tails: IntArray
    plausibilities: FloatArray
    hops: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _ScoredTriples:
    """The triples (head, hyperedge, tail) of one hop as row numbers, with their plausibilities.

    Attributes:
        triples: The triples.
        plausibilities: Plausibility of each triple alone.
        scores: Plausibility of each triple and of the path to it.
        hop: Number of the hop, from 1.
    """

    triples: Triples
    plausibilities: FloatArray
    scores: FloatArray
    hop: int

    def select(self, positions: IntArray) -> _ScoredTriples:
        """Return only the triples at ``positions``, which are indices or a boolean mask."""
        selected = self.triples.select(positions)
        return _ScoredTriples(selected, self.plausibilities[positions], self.scores[positions], self.hop)


def search_triples(walk: TripleWalk, score_triples: ScoreTriples, settings: HyperRetrieverSettings) -> AcceptedTriples:
    """Return the plausible triples (head, hyperedge, tail) that ``walk`` reaches from the entities of a question.

    Triples are searched hop by hop; a head and a tail are two entities of the hyperedge.

    Args:
        walk: A walk that has not begun.
        score_triples: Returns the plausibility of triples.
        settings: Thresholds and limits.
    """
    search = _Search(walk, score_triples, settings)
    if settings.minimum_over == "question":
        search.run_by_question()
    else:
        search.run_by_hop()
    return search.collect()


class _Search:
    """The state of one search for plausible triples (head, hyperedge, tail)."""

    def __init__(self, walk: TripleWalk, score_triples: ScoreTriples, settings: HyperRetrieverSettings) -> None:
        self._walk = walk
        self._space = walk.space
        self._score_triples = score_triples
        self._settings = settings
        self._paths = Scores(walk.topics, np.ones(len(walk.topics), dtype=np.float32))  # of the best path to an entity
        self._hop_count = 0
        self._accepted: list[_ScoredTriples] = []

    def run_by_hop(self) -> None:
        """Search hop by hop; lower the threshold within each hop that has too few plausible hyperedges."""
        while hop := self._score_hop():
            accepted, followed = select_triples(
                hop.triples.edges, hop.plausibilities, self._space.density, self._settings
            )
            self._accepted.append(hop.select(accepted))
            if not len(followed):
                break
            self._follow([hop.select(followed)])

    def run_by_question(self) -> None:
        """Search all hops with one threshold, and again with lower thresholds while too few hyperedges are accepted."""
        settings, rejected = self._settings, list[_ScoredTriples]()
        for reduction in range(settings.reductions + 1):
            threshold = settings.threshold - settings.decay * reduction
            accepted = [hop.select(np.flatnonzero(hop.plausibilities >= threshold)) for hop in rejected]
            rejected = [hop.select(np.flatnonzero(hop.plausibilities < threshold)) for hop in rejected]
            self._accepted += accepted
            is_continued = any(len(hop.triples) for hop in accepted) and self._space.density > settings.low_density
            if is_continued:
                self._follow(accepted)
            if is_continued or not reduction:
                rejected += self._search_at_threshold(threshold)
            if self._count_accepted() >= settings.minimum_hyperedges:
                break

    def _count_accepted(self) -> int:
        """Return the number of accepted triples, or of their hyperedges, by ``minimum_counts``."""
        if self._settings.minimum_counts == "triples":
            return sum(len(hop.triples) for hop in self._accepted)
        return len(union(self._space.to_snapshot_rows(hop.triples.edges) for hop in self._accepted))

    def collect(self) -> AcceptedTriples:
        """Return all triples that the search accepted, in the order in which they were reached."""
        triples, nothing = Triples.concatenate(hop.triples for hop in self._accepted), np.empty(0, dtype=np.int64)
        return AcceptedTriples(
            triples.heads,
            self._space.to_snapshot_rows(triples.edges),
            triples.tails,
            np.concatenate([nothing.astype(np.float32), *(hop.scores for hop in self._accepted)]),
            np.concatenate([nothing, *(np.full(len(hop.triples), hop.hop) for hop in self._accepted)]),
        )

    def _search_at_threshold(self, threshold: float) -> list[_ScoredTriples]:
        """Search hop by hop until no triple is as plausible as ``threshold``; return the rejected triples."""
        rejected = []
        while hop := self._score_hop():
            is_accepted = _limit_if_dense(
                hop.plausibilities >= threshold, hop.plausibilities, self._space.density, self._settings
            )
            rejected.append(hop.select(np.flatnonzero(~is_accepted)))
            if not is_accepted.any():
                break
            self._accepted.append(hop.select(np.flatnonzero(is_accepted)))
            self._follow([self._accepted[-1]])
        return rejected

    def _score_hop(self) -> _ScoredTriples | None:
        """Return the triples of the next hop with their scores; None if no triples or hops remain."""
        if self._hop_count == self._settings.depth > 0:
            return None
        triples, extras = self._walk.enumerate_hop()
        if not len(triples):
            return None
        self._hop_count += 1
        edges = self._space.to_snapshot_rows(triples.edges)
        plausibilities = self._score_triples(Triples(triples.heads, edges, triples.tails), extras)
        return _ScoredTriples(
            triples,
            plausibilities,
            plausibilities * self._paths.get(triples.heads) ** self._settings.path_weight,
            self._hop_count,
        )

    def _follow(self, triples_by_hop: list[_ScoredTriples]) -> None:
        """Continue the search from the tail entities of the triples in ``triples_by_hop``, one item for each hop."""
        triples = Triples.concatenate(hop.triples for hop in triples_by_hop)
        scores = np.concatenate([self._paths.values, *(hop.scores for hop in triples_by_hop)])
        self._paths = Scores.from_max(np.concatenate([self._paths.rows, triples.tails]), scores)
        self._walk.follow(triples, np.arange(len(triples)))


def select_triples(
    triple_edges: IntArray, plausibilities: FloatArray, edges_per_entity: float, settings: HyperRetrieverSettings
) -> tuple[IntArray, IntArray]:
    """Select triples of one hop: return (indices of the accepted triples, indices of those where the search continues).

    See section 3.1.5, equations 11 and 12.

    Triples that reach tau_0 are accepted and followed. If they belong to fewer than M hyperedges, the threshold is
    lowered and further triples are accepted; these are followed unless the hypergraph is sparse. In a dense hypergraph
    the number of accepted triples is limited.

    Args:
        triple_edges: Row number of each triple's hyperedge.
        plausibilities: Plausibility of each triple, in (0, 1).
        edges_per_entity: Number of hyperedges per entity, Delta(G).
        settings: Thresholds and limits.

    Returns:
        Positions of the accepted triples and of the triples to follow, each sorted.
    """
    lowered = lower_threshold(triple_edges, plausibilities, settings)
    accepted = _limit_if_dense(plausibilities >= lowered, plausibilities, edges_per_entity, settings)
    followed = (
        accepted & (plausibilities >= settings.threshold) if edges_per_entity <= settings.low_density else accepted
    )
    return np.flatnonzero(accepted), np.flatnonzero(followed)


def lower_threshold(triple_edges: IntArray, plausibilities: FloatArray, settings: HyperRetrieverSettings) -> float:
    """Return the plausibility threshold, lowered in steps until ``minimum_hyperedges`` hyperedges reach the threshold.

    A hyperedge reaches the threshold if one of its triples does. The formula before equation 11 counts triples instead
    (``minimum_counts``). If too few reach any threshold, the lowest threshold is returned.
    """
    for reduction in range(settings.reductions + 1):
        threshold = settings.threshold - settings.decay * reduction
        reaching = triple_edges[plausibilities >= threshold]
        count = len(reaching) if settings.minimum_counts == "triples" else len(sort_unique(reaching))
        if count >= settings.minimum_hyperedges:
            break
    return threshold


def _limit_if_dense(
    accepted: BoolArray, plausibilities: FloatArray, edges_per_entity: float, settings: HyperRetrieverSettings
) -> BoolArray:
    """Return the mask ``accepted``, limited to the ``max_triples`` most plausible triples if the hypergraph is dense.

    A hypergraph is dense if it has more than ``high_density`` hyperedges per entity.
    """
    if edges_per_entity <= settings.high_density or accepted.sum() <= settings.max_triples:
        return accepted
    top = find_top_positions(np.where(accepted, plausibilities, -1), settings.max_triples, lambda positions: positions)
    best = np.zeros(len(plausibilities), dtype=bool)
    best[top] = True
    return best
