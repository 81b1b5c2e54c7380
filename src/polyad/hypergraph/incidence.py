"""The incidence structure of a hypergraph: the nodes of each hyperedge, and the hyperedges of each node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyad.model import BoolArray, IntArray


def expand_ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the concatenated integer ranges that begin at ``starts`` and have ``counts`` elements.

    >>> expand_ranges(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist()
    [7, 8, 3, 4, 5]

    Args:
        starts: Shape ``[ranges]``.
        counts: Shape ``[ranges]``, each 0 or more.

    Returns:
        Shape ``[sum of counts]``.
    """
    before = counts.cumsum()
    before -= counts
    numbers: IntArray = (starts - before).repeat(counts)
    numbers += np.arange(len(numbers))
    return numbers


def sort_unique(numbers: IntArray) -> IntArray:
    """Return the sorted unique values of an array of integers. Several times faster than ``numpy.unique``.

    >>> sort_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    return ordered[mark_first_of_equals(ordered)]


def mark_first_of_equals(ordered: IntArray) -> BoolArray:
    """Return a mask of a sorted array that is True at the first of each run of equal numbers."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def is_in(rows: IntArray, sorted_rows: IntArray) -> BoolArray:
    """Return whether each row is in a sorted array. Many times faster than ``numpy.isin``.

    >>> is_in(np.array([5, 2, 9]), np.array([2, 5])).tolist()
    [True, True, False]
    """
    if not len(sorted_rows):
        return np.zeros(len(rows), dtype=bool)
    is_member: BoolArray = sorted_rows[np.minimum(sorted_rows.searchsorted(rows), len(sorted_rows) - 1)] == rows
    return is_member


def union(arrays: Iterable[IntArray]) -> IntArray:
    """Return the rows that are in any of the arrays, sorted and unique."""
    return sort_unique(np.concatenate([np.empty(0, dtype=np.int64), *arrays]))


def rank_in_group(groups: IntArray) -> IntArray:
    """Return the rank of each element within its run of equal elements of a sorted array, from 0.

    >>> rank_in_group(np.array([2, 2, 2, 5])).tolist()
    [0, 1, 2, 0]
    """
    ranks: IntArray = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """A compressed sparse row matrix: the sorted neighbours of each row.

    Attributes:
        offsets: Neighbours of row i are ``neighbours[offsets[i]:offsets[i + 1]]``; shape ``[rows + 1]``.
        neighbours: Shape ``[incidences]``.
    """

    offsets: IntArray
    neighbours: IntArray

    @classmethod
    def from_pairs(cls, rows: IntArray, neighbours: IntArray, row_count: int) -> Adjacency:
        """Build the adjacency from pairs in any order; duplicate pairs count once."""
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
        """Return the number of neighbours of each row in ``rows``, or of every row if None."""
        if rows is None:
            return np.diff(self.offsets)
        return self.offsets[rows + 1] - self.offsets[rows]

    def get_neighbours(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the neighbours of ``rows``, and the position in ``rows`` that each belongs to."""
        degrees = self.degrees(rows)
        owners = np.repeat(np.arange(len(rows)), degrees)
        return self.neighbours[expand_ranges(self.offsets[rows], degrees)], owners


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """A hypergraph as two adjacencies of row numbers. Equal if all rows have the same members.

    Attributes:
        memberships: Hyperedges of each node.
        members: Nodes of each hyperedge.
    """

    memberships: Adjacency
    members: Adjacency

    @classmethod
    def from_incidences(cls, nodes: IntArray, hyperedges: IntArray, node_count: int, edge_count: int) -> Hypergraph:
        """Build the hypergraph from parallel arrays: the node and the hyperedge of each incidence."""
        return cls(
            Adjacency.from_pairs(nodes, hyperedges, node_count), Adjacency.from_pairs(hyperedges, nodes, edge_count)
        )

    @property
    def node_count(self) -> int:
        """The number of nodes, isolated nodes included."""
        return len(self.memberships.offsets) - 1

    @property
    def edge_count(self) -> int:
        """The number of hyperedges, empty hyperedges included."""
        return len(self.members.offsets) - 1
