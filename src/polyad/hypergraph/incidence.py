"""A whole hypergraph in memory: the nodes of each hyperedge, and the hyperedges of each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.sparse import expand_ranges, mark_first_of_equals
from polyad.model import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """A compressed sparse row (CSR) matrix with the sorted neighbours of each row.

    Attributes:
        offsets: Neighbours of row i are ``neighbours[offsets[i]:offsets[i + 1]]``; shape ``[rows + 1]``.
        neighbours: Shape ``[incidences]``.
    """

    offsets: IntArray
    neighbours: IntArray

    @classmethod
    def from_pairs(cls, rows: IntArray, neighbours: IntArray, row_count: int) -> Adjacency:
        """Build the matrix from (row, neighbour) pairs in any order; duplicates count once."""
        order = np.lexsort((neighbours, rows))
        rows, neighbours = rows[order], neighbours[order]
        is_first = mark_first_of_equals(rows)
        is_first[1:] |= neighbours[1:] != neighbours[:-1]
        offsets = np.searchsorted(rows[is_first], np.arange(row_count + 1))
        return cls(offsets, neighbours[is_first])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Adjacency):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.neighbours, other.neighbours)

    def __getitem__(self, row: int) -> IntArray:
        """Return the neighbours of one row."""
        return self.neighbours[self.offsets[row] : self.offsets[row + 1]]

    def degrees(self, rows: IntArray | None = None) -> IntArray:
        """Return the number of neighbours of each of ``rows``, or of all rows if ``rows`` is None."""
        if rows is None:
            return np.diff(self.offsets)
        return self.offsets[rows + 1] - self.offsets[rows]

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the neighbours of ``rows`` as parallel arrays: neighbour, and index of its row in ``rows``."""
        degrees = self.degrees(rows)
        owners = np.repeat(np.arange(len(rows)), degrees)
        return self.neighbours[expand_ranges(self.offsets[rows], degrees)], owners


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """A hypergraph, stored as the hyperedges of each node and the nodes of each hyperedge.

    Attributes:
        memberships: Hyperedges of each node.
        members: Nodes of each hyperedge.
    """

    memberships: Adjacency
    members: Adjacency

    @classmethod
    def from_incidences(cls, nodes: IntArray, hyperedges: IntArray, node_count: int, edge_count: int) -> Hypergraph:
        """Build the hypergraph from (node, hyperedge) pairs in parallel arrays.

        >>> graph = Hypergraph.from_incidences(np.array([0, 1, 1]), np.array([0, 0, 1]), node_count=2, edge_count=2)
        >>> graph.members[0].tolist(), graph.memberships[1].tolist()
        ([0, 1], [0, 1])
        """
        return cls(
            Adjacency.from_pairs(nodes, hyperedges, node_count), Adjacency.from_pairs(hyperedges, nodes, edge_count)
        )

    @property
    def node_count(self) -> int:
        """The number of nodes, including nodes without hyperedges."""
        return len(self.memberships.offsets) - 1

    @property
    def edge_count(self) -> int:
        """The number of hyperedges, including hyperedges without nodes."""
        return len(self.members.offsets) - 1


def split_into_pairs(graph: Hypergraph) -> tuple[Hypergraph, IntArray]:
    """Return (graph with one edge per pair of nodes in a hyperedge, original hyperedge of each edge).

    The split loses information: {a, b, c} and {a, b}, {a, c}, {b, c} have the same pairs (HyperGraphRAG, Proposition 1
    and appendix B.1: phi_B is not injective).

    A pair occurs once for each hyperedge that contains it, so that every new hyperedge has one text and one passage.
    Hyperedges of fewer than two nodes stay as they are, so that nothing vanishes from retrieval.

    Returns:
        The binary hypergraph over the same nodes, its hyperedges sorted by their original hyperedge, then by members;
        and for each new hyperedge the row of the original hyperedge in ``graph``, ``[new hyperedges]``.
    """
    first, second = _pair_members(graph)
    degrees = graph.members.degrees()
    origins = np.repeat(np.arange(graph.edge_count), np.where(degrees < 2, 1, degrees * (degrees - 1) // 2))
    # Pairs come in the order of their hyperedges, so the n-th pair is the n-th new hyperedge that is a pair.
    pairs = np.flatnonzero(degrees[origins] >= 2)
    single = np.flatnonzero(degrees[origins] == 1)
    nodes = np.concatenate([first, second, graph.members.get_neighbours(origins[single])[0]])
    edges = np.concatenate([pairs, pairs, single])
    return Hypergraph.from_incidences(nodes, edges, graph.node_count, len(origins)), origins


def _pair_members(graph: Hypergraph) -> tuple[IntArray, IntArray]:
    """Return the node pairs of each hyperedge as parallel arrays, the lower node first.

    The pairs are sorted by hyperedge, then by node.
    """
    members = graph.members
    edges = np.repeat(np.arange(graph.edge_count), members.degrees())
    positions = np.arange(len(edges))
    later = members.offsets[edges + 1] - positions - 1
    second = members.neighbours[expand_ranges(positions + 1, later)]
    return np.repeat(members.neighbours, later), second
