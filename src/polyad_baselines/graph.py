"""Weighted graphs over the rows of a snapshot, and personalised PageRank on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import find_top_positions, rank_by_id, sort_unique
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

_BLOCK = 1 << 18
"""Incidences whose neighbours are compared at a time; a node of more is compared alone."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedGraph:
    """An undirected weighted graph for random walks: single edges, and the entity pairs of facts.

    The pairs of a fact are not stored, since their number grows with the square of its entities. They are the product
    of the incidence matrix with its transpose, without the diagonal.

    Attributes:
        sources: Node at which each single edge starts, once for each direction; int ``[transitions]``.
        targets: Node at which it ends; int ``[transitions]``.
        weights: Its weight; below 0 to lower that of a pair; ``[transitions]``.
        members: Entity of each incidence of the facts, which are the first nodes; int ``[incidences]``.
        facts: Row of its fact; int ``[incidences]``.
        pair_weight: Weight of an entity pair for each fact with both.
        strengths: Sum of the weights at each node, isolated nodes included; ``[nodes]``.
    """

    sources: IntArray
    targets: IntArray
    weights: Weights
    members: IntArray
    facts: IntArray
    pair_weight: float
    strengths: Weights

    @classmethod
    def from_edges(
        cls,
        first: IntArray,
        second: IntArray,
        weights: Weights,
        node_count: int,
        hypergraph: Hypergraph | None = None,
        pair_weight: float = 1.0,
    ) -> WeightedGraph:
        """Build the graph; the weights of parallel edges are added, loops are left out.

        Args:
            first: One end of each single edge.
            second: The other end.
            weights: Weights of the single edges.
            node_count: Number of nodes.
            hypergraph: Facts, whose entities are joined in pairs; None for none.
            pair_weight: Weight of a pair for each fact.

        >>> graph = WeightedGraph.from_edges(np.array([0, 1]), np.array([1, 0]), np.array([1.0, 2.0]), 2)
        >>> graph.strengths.tolist()
        [3.0, 3.0]
        """
        keep = first != second
        sources, targets = np.concatenate([first[keep], second[keep]]), np.concatenate([second[keep], first[keep]])
        weights = np.concatenate([weights[keep], weights[keep]])
        members = facts = np.empty(0, dtype=np.int64)
        strengths = _sum_by_group(sources, weights, node_count)
        if hypergraph:
            members, facts = hypergraph.members.get_neighbours(np.arange(hypergraph.edge_count))
            pair_counts = (hypergraph.members.degrees()[facts] - 1).astype(np.float64)
            strengths += pair_weight * _sum_by_group(members, pair_counts, node_count)
        return cls(sources, targets, weights, members, facts, pair_weight, strengths)

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.strengths)

    def rank_nodes(self, reset: Weights, damping: float) -> Weights:
        """Return the personalised PageRank of each node; ``[nodes]``, with the sum 1.

            r = damping * r P + (1 - damping) * reset / sum(reset)

        A walk that comes to a node without edges starts again.

        Args:
            reset: Weight of each node as the start of a walk, 0 or more and not all 0; ``[nodes]``.
            damping: Probability of another step, in [0, 1).
        """
        reset = reset / reset.sum()
        is_dangling = self.strengths == 0
        ranks = reset
        change = 1.0
        while change > _TOLERANCE:
            moved = self._move(ranks / np.where(is_dangling, 1, self.strengths))
            following = damping * (moved + ranks[is_dangling].sum() * reset) + (1 - damping) * reset
            change = float(np.abs(following - ranks).sum())
            ranks = following
        return ranks

    def _move(self, shares: Weights) -> Weights:
        """Return what each node receives if every node sends its share times the weight over each edge; ``[nodes]``."""
        moved = _sum_by_group(self.targets, shares[self.sources] * self.weights, self.node_count)
        sums = np.bincount(self.facts, shares[self.members])
        others = sums[self.facts] - shares[self.members]
        return moved + self.pair_weight * _sum_by_group(self.members, others, self.node_count)


def _sum_by_group(groups: IntArray, values: Weights, group_count: int) -> Weights:
    """Return the sum of the values of each group; ``[group_count]``."""
    return np.bincount(groups, values, group_count).astype(np.float64)


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


def iterate_neighbours(hypergraph: Hypergraph, nodes: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the nodes that share a hyperedge with each of ``nodes``, in blocks, so that not all are in memory at once.

    Yields:
        Positions in ``nodes``, sorted, and a neighbour of each; every pair once, sorted.
    """
    edges, owners = hypergraph.memberships.get_neighbours(nodes)
    sizes = np.bincount(owners, hypergraph.members.degrees(edges), len(nodes)).cumsum() // _BLOCK
    for block in np.split(np.arange(len(nodes)), np.flatnonzero(np.diff(sizes)) + 1):
        edges, owners = hypergraph.memberships.get_neighbours(nodes[block])
        members, places = hypergraph.members.get_neighbours(edges)
        pairs = sort_unique(owners[places] * hypergraph.node_count + members)
        positions, neighbours = block[pairs // max(1, hypergraph.node_count)], pairs % max(1, hypergraph.node_count)
        is_other = nodes[positions] != neighbours
        yield positions[is_other], neighbours[is_other]


def get_neighbours(hypergraph: Hypergraph, node: int) -> IntArray:
    """Return the nodes that share a hyperedge with a node, sorted."""
    return next(iterate_neighbours(hypergraph, np.array([node])))[1]


def count_neighbours(hypergraph: Hypergraph) -> IntArray:
    """Return the number of nodes that share a hyperedge with each node; ``[nodes]``."""
    nodes = np.arange(hypergraph.node_count)
    blocks = (np.bincount(positions, minlength=len(nodes)) for positions, _ in iterate_neighbours(hypergraph, nodes))
    return sum(blocks, np.zeros(len(nodes), dtype=np.int64))


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
