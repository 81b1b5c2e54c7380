"""Weighted graphs over the rows of a snapshot, and personalised PageRank on them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import Hypergraph, split_into_pairs
from polyad.hypergraph.sparse import find_top_positions, rank_by_id
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.evidence import RankedPassage

Weights = npt.NDArray[np.float64]
"""Weights of nodes or edges; float64, because ranks differ by less than float32 resolves."""

T = TypeVar("T")

_TOLERANCE = 1e-12
"""Change of all ranks together at which the iteration ends."""

_DECIMALS = 10
"""Decimals of a rank that count, so that the last bits do not order equal passages."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedGraph:
    """An undirected weighted graph, as the transition probabilities of a random walk.

    Attributes:
        node_count: Number of nodes, isolated nodes included.
        sources: Node from which each transition starts; int ``[transitions]``.
        targets: Node at which it ends; int ``[transitions]``.
        probabilities: Weight of the edge over the weight of all edges of the source; ``[transitions]``.
        weights: Weight of the edge; ``[transitions]``.
    """

    node_count: int
    sources: IntArray
    targets: IntArray
    probabilities: Weights
    weights: Weights

    @classmethod
    def from_edges(cls, first: IntArray, second: IntArray, weights: Weights, node_count: int) -> WeightedGraph:
        """Build the graph from edges in parallel arrays; the weights of parallel edges are added, loops are left out.

        >>> graph = WeightedGraph.from_edges(np.array([0, 1]), np.array([1, 0]), np.array([1.0, 2.0]), 2)
        >>> graph.weights.tolist()
        [3.0, 3.0]
        """
        keep = (first != second) & (weights > 0)
        sources, targets = np.concatenate([first[keep], second[keep]]), np.concatenate([second[keep], first[keep]])
        codes, places = np.unique(sources * node_count + targets, return_inverse=True)
        sums: Weights = np.zeros(len(codes))
        np.add.at(sums, places, np.concatenate([weights[keep], weights[keep]]))
        sources, targets = codes // max(1, node_count), codes % max(1, node_count)
        strengths: Weights = np.zeros(node_count)
        np.add.at(strengths, sources, sums)
        return cls(node_count, sources, targets, sums / strengths[sources], sums)

    def get_neighbours(self, node: int) -> IntArray:
        """Return the neighbours of a node, sorted."""
        start, end = np.searchsorted(self.sources, [node, node + 1])
        return self.targets[start:end]

    def rank_nodes(self, reset: Weights, damping: float) -> Weights:
        """Return the personalised PageRank of each node; ``[nodes]``, with the sum 1.

            r = damping * r P + (1 - damping) * reset / sum(reset)

        A walk that comes to a node without edges starts again.

        Args:
            reset: Weight of each node as the start of a walk, 0 or more and not all 0; ``[nodes]``.
            damping: Probability of another step, in [0, 1).
        """
        reset = reset / reset.sum()
        is_dangling = np.bincount(self.sources, minlength=self.node_count) == 0
        ranks = reset
        change = 1.0
        while change > _TOLERANCE:
            moved = np.bincount(self.targets, ranks[self.sources] * self.probabilities, self.node_count)
            following = damping * (moved + ranks[is_dangling].sum() * reset) + (1 - damping) * reset
            change = float(np.abs(following - ranks).sum())
            ranks = following
        return ranks


class SnapshotCache(Generic[T]):
    """A cache of what a retriever computes from the latest snapshot; safe for threads.

    Args:
        build: Computes the value from a snapshot.
    """

    def __init__(self, build: Callable[[Snapshot], T]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._latest: tuple[Snapshot, T] | None = None

    def get(self, snapshot: Snapshot) -> T:
        """Return the value of a snapshot, computed at the first request."""
        with self._lock:
            if self._latest is None or self._latest[0] is not snapshot:
                self._latest = snapshot, self._build(snapshot)
            return self._latest[1]


def build_hypergraph(snapshot: Snapshot) -> Hypergraph:
    """Return the hypergraph of the snapshot without name variants, in memory; deleted rows have no members."""
    entities, edges = snapshot.graph.members(np.arange(snapshot.row_count("hyperedge")), variants=False)
    return Hypergraph.from_incidences(entities, edges, snapshot.row_count("entity"), snapshot.row_count("hyperedge"))


def pair_facts(hypergraph: Hypergraph) -> tuple[IntArray, IntArray, IntArray]:
    """Return the entity pairs of the facts, as arrays: first entity, second entity, hyperedge.

    A triple is one pair. A fact of more entities counts as all their pairs, since papers on graphs know no larger ones.
    """
    pairs, origins = split_into_pairs(hypergraph)
    edges = np.flatnonzero(pairs.members.degrees() == 2)
    members, _ = pairs.members.get_neighbours(edges)
    return members[::2], members[1::2], origins[edges]


def build_pair_graph(hypergraph: Hypergraph) -> WeightedGraph:
    """Return the graph of entities with an edge between the entities of a fact, weighted by the number of facts."""
    first, second, _ = pair_facts(hypergraph)
    return WeightedGraph.from_edges(first, second, np.ones(len(first)), hypergraph.node_count)


def count_mentions(snapshot: Snapshot, hypergraph: Hypergraph) -> tuple[IntArray, IntArray, IntArray]:
    """Return the mentions of entities in passages, as arrays: entity, passage, number of hyperedges with the entity."""
    edges = np.flatnonzero(hypergraph.members.degrees())
    entities, owners = hypergraph.members.get_neighbours(edges)
    size = max(1, snapshot.row_count("passage"))
    codes, counts = np.unique(entities * size + snapshot.graph.passages(edges)[owners], return_counts=True)
    return codes // size, codes % size, counts


def normalize_min_max(values: npt.NDArray[np.floating]) -> Weights:
    """Return the values scaled to [0, 1] by their lowest and highest; all 1 if they are equal.

    >>> normalize_min_max(np.array([1.0, 3.0, 2.0])).tolist()
    [0.0, 1.0, 0.5]
    """
    lowest, highest = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    scaled = np.asarray(values, dtype=np.float64) - lowest
    return scaled / (highest - lowest) if highest > lowest else np.ones(len(values))


def rank_similar(snapshot: Snapshot, vector: FloatArray, kind: Kind = "passage") -> tuple[IntArray, Weights]:
    """Return all rows of a kind by cosine with the question, best first, and the cosines."""
    ((rows, cosines),) = snapshot.nearest(kind, vector[None], snapshot.row_count(kind))
    return rows, cosines.astype(np.float64)


def select_passages(snapshot: Snapshot, rows: IntArray, scores: Weights, k: int, reason: str) -> list[RankedPassage]:
    """Return the ``k`` passages with the highest scores, best first, ties by id."""
    rounded = np.round(scores, _DECIMALS)
    order = partial(rank_by_id, snapshot, "passage")
    best = find_top_positions(rounded, k, lambda positions: order(rows[positions]))
    return [(row, score, reason) for row, score in zip(rows[best].tolist(), rounded[best].tolist(), strict=True)]
