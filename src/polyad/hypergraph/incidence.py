"""The incidence structure of a hypergraph: which nodes each hyperedge joins, and which hyperedges join each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.model import IntArray


@dataclass(frozen=True, slots=True)
class Adjacency:
    """One side of an incidence: for each row its neighbours, sorted, in compressed rows.

    Attributes:
        offsets: Neighbours of row i are ``neighbours[offsets[i]:offsets[i + 1]]``; shape ``[rows + 1]``.
        neighbours: Shape ``[incidences]``.
    """

    offsets: IntArray
    neighbours: IntArray

    @classmethod
    def from_pairs(cls, rows: IntArray, neighbours: IntArray, row_count: int) -> Adjacency:
        """Compress pairs in any order; a pair that occurs twice counts once."""
        order = np.lexsort((neighbours, rows))
        rows, neighbours = rows[order], neighbours[order]
        if len(rows):
            first = np.concatenate([[True], (rows[1:] != rows[:-1]) | (neighbours[1:] != neighbours[:-1])])
            rows, neighbours = rows[first], neighbours[first]
        offsets = np.searchsorted(rows, np.arange(row_count + 1))
        return cls(offsets, neighbours)

    def __getitem__(self, row: int) -> IntArray:
        """The neighbours of one row."""
        return self.neighbours[self.offsets[row] : self.offsets[row + 1]]

    def degrees(self, rows: IntArray | None = None) -> IntArray:
        """How many neighbours each of ``rows`` has (each row there is, when None)."""
        if rows is None:
            return np.diff(self.offsets)
        return self.offsets[rows + 1] - self.offsets[rows]

    def gather(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """All neighbours of ``rows``, and for each of them the position in ``rows`` it belongs to."""
        degrees = self.degrees(rows)
        owners = np.repeat(np.arange(len(rows)), degrees)
        starts = np.cumsum(degrees) - degrees
        positions = np.arange(degrees.sum()) - np.repeat(starts, degrees) + np.repeat(self.offsets[rows], degrees)
        return self.neighbours[positions], owners


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """Nodes and hyperedges as row numbers.

    Attributes:
        memberships: Hyperedges of each node.
        members: Nodes of each hyperedge.
    """

    memberships: Adjacency
    members: Adjacency

    @classmethod
    def from_incidences(cls, nodes: IntArray, hyperedges: IntArray, node_count: int, edge_count: int) -> Hypergraph:
        """Build from parallel arrays of incidences, each a node in a hyperedge."""
        return cls(
            Adjacency.from_pairs(nodes, hyperedges, node_count), Adjacency.from_pairs(hyperedges, nodes, edge_count)
        )

    @property
    def node_count(self) -> int:
        """How many nodes there are, of any degree."""
        return len(self.memberships.offsets) - 1

    @property
    def edge_count(self) -> int:
        """How many hyperedges there are, of any arity."""
        return len(self.members.offsets) - 1
