"""The incidence structure of a hypergraph: which nodes each hyperedge joins, and which hyperedges join each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.model import BoolArray, FloatArray, IntArray


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Ranges of numbers, one after the other: from each of ``starts`` as many as ``counts`` says.

    >>> ranges(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist()
    [7, 8, 3, 4, 5]

    Args:
        starts: Shape ``[ranges]``.
        counts: Shape ``[ranges]``, 0 or more each.

    Returns:
        Shape ``[sum of counts]``.
    """
    before = counts.cumsum()
    before -= counts
    numbers: IntArray = (starts - before).repeat(counts)
    numbers += np.arange(len(numbers))
    return numbers


def distinct(numbers: IntArray) -> IntArray:
    """Sorted, each once; of numbers of 0 and above. Several times faster than ``numpy.unique``.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    return ordered[first_of_equals(ordered)]


def first_of_equals(ordered: IntArray) -> BoolArray:
    """Which of some sorted numbers differ from the one before."""
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def places_within(owners: IntArray) -> IntArray:
    """For each of some sorted numbers, how many equal ones stand before it.

    >>> places_within(np.array([2, 2, 2, 5])).tolist()
    [0, 1, 2, 0]
    """
    places: IntArray = np.arange(len(owners)) - np.searchsorted(owners, owners)
    return places


@dataclass(frozen=True, slots=True, eq=False)
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Adjacency):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.neighbours, other.neighbours)

    def __getitem__(self, row: int) -> IntArray:
        """The neighbours of one row."""
        return self.neighbours[self.offsets[row] : self.offsets[row + 1]]

    def degrees(self, rows: IntArray | None = None) -> IntArray:
        """How many neighbours each of ``rows`` has (each row there is, when None)."""
        if rows is None:
            return np.diff(self.offsets)
        return self.offsets[rows + 1] - self.offsets[rows]

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """All neighbours of ``rows``, and for each of them the position in ``rows`` it belongs to."""
        places, owners = self.places(rows)
        return self.neighbours[places], owners

    def places(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Where the neighbours of ``rows`` stand in :attr:`neighbours`, and for each the position in ``rows``."""
        degrees = self.degrees(rows)
        owners = np.repeat(np.arange(len(rows)), degrees)
        return ranges(self.offsets[rows], degrees), owners


@dataclass(frozen=True, slots=True, eq=False)
class WeightedAdjacency:
    """An adjacency whose pairs have weights.

    Attributes:
        adjacency: The neighbours of each row.
        weights: Of each pair, in the order of ``adjacency.neighbours``; float32 ``[incidences]``.
    """

    adjacency: Adjacency
    weights: FloatArray

    @classmethod
    def from_pairs(cls, rows: IntArray, neighbours: IntArray, weights: FloatArray, row_count: int) -> WeightedAdjacency:
        """Compress pairs in any order; of a pair that occurs twice the higher weight counts."""
        pairs = rows * (int(neighbours.max(initial=0)) + 1) + neighbours
        order = np.argsort(pairs, kind="stable")  # several times faster than lexsort where most are in order
        first = first_of_equals(pairs[order])
        if not first.all():
            order = np.lexsort((-weights, pairs))
        rows, neighbours, weights = rows[order], neighbours[order], weights[order]
        adjacency = Adjacency(np.searchsorted(rows[first], np.arange(row_count + 1)), neighbours[first])
        return cls(adjacency, weights[first].astype(np.float32))

    @property
    def rows(self) -> IntArray:
        """The row of each pair."""
        return np.repeat(np.arange(len(self.adjacency.offsets) - 1), self.adjacency.degrees())

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """All neighbours of ``rows``, the position in ``rows`` each belongs to, and its weight."""
        places, owners = self.adjacency.places(rows)
        return self.adjacency.neighbours[places], owners, self.weights[places]


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """Nodes and hyperedges as row numbers. Two are equal when their rows have the same members.

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
