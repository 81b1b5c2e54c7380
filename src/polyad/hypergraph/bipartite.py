"""A hypergraph written as an ordinary graph: the bipartite form loses nothing, the pairwise one does.

HyperGraphRAG stores its hypergraph in a graph database as Phi(G_H) (section 4.1, eq. 5): nodes and hyperedges are both
vertices, and each incidence is one edge between the two kinds. Phi is a bijection (Proposition 2, proof in appendix
B.2). Systems that store relations between two entities keep phi_B instead: the pairs that share a hyperedge. That is
not injective once a hyperedge has three members (Proposition 1, proof in appendix B.1): {a, b, c} and {a, b}, {a, c},
{b, c} have the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyad.errors import ConfigurationError
from polyad.hypergraph.incidence import Hypergraph, ranges
from polyad.model import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Bipartite:
    """Phi(G_H): ``node_count + edge_count`` vertices, and an edge for each incidence.

    The pairs are in one order only, so that equal graphs have equal forms and ``==`` compares graphs.

    Attributes:
        node_count: Vertices that are nodes of the hypergraph, of any degree.
        edge_count: Vertices that are hyperedges, of any arity.
        pairs: (hyperedge, node), sorted, each once; shape ``[incidences, 2]``.

    Raises:
        ConfigurationError: The pairs are of another shape, name rows that do not exist, or are out of order.
    """

    node_count: int
    edge_count: int
    pairs: IntArray

    def __post_init__(self) -> None:
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise ConfigurationError(f"pairs have shape {self.pairs.shape}; expected (incidences, 2)")
        outside = np.any((self.pairs < 0) | (self.pairs >= (self.edge_count, self.node_count)), axis=1)
        if outside.any():
            raise ConfigurationError(
                f"pair {tuple(self.pairs[outside][0].tolist())} is not in the graph; expected a hyperedge below "
                f"{self.edge_count} and a node below {self.node_count}; raise the counts or leave the pair out"
            )
        ascending = np.diff(self.pairs[:, 0] * self.node_count + self.pairs[:, 1]) > 0
        if not ascending.all():
            late = self.pairs[1:][~ascending][0]
            raise ConfigurationError(
                f"pair {tuple(late.tolist())} is out of order or there twice; expected pairs sorted by hyperedge, then "
                "node; use numpy.unique(pairs, axis=0)"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bipartite):
            return NotImplemented
        counts = (self.node_count, self.edge_count) == (other.node_count, other.edge_count)
        return counts and np.array_equal(self.pairs, other.pairs)


def to_bipartite(graph: Hypergraph) -> Bipartite:
    """Write a hypergraph as a bipartite graph, losing nothing (Phi: HyperGraphRAG, eq. 5).

    >>> graph = Hypergraph.from_incidences(np.array([0, 1, 2, 1]), np.array([0, 0, 0, 1]), 3, 2)
    >>> to_bipartite(graph).pairs.tolist()
    [[0, 0], [0, 1], [0, 2], [1, 1]]
    """
    edges = np.repeat(np.arange(graph.edge_count), graph.members.degrees())
    return Bipartite(graph.node_count, graph.edge_count, np.column_stack([edges, graph.members.neighbours]))


def from_bipartite(bipartite: Bipartite) -> Hypergraph:
    """Read a hypergraph back: the members of a hyperedge are its neighbours (Phi^-1: HyperGraphRAG, appendix B.2)."""
    edges, nodes = bipartite.pairs.T
    return Hypergraph.from_incidences(nodes, edges, bipartite.node_count, bipartite.edge_count)


def pairwise(graph: Hypergraph) -> IntArray:
    """The pairs of nodes that share a hyperedge: what is left of a hypergraph when relations join two at a time.

    phi_B of HyperGraphRAG, appendix B.1. Lossy; see the module's docstring.

    >>> graph = Hypergraph.from_incidences(np.array([0, 1, 2, 1, 2]), np.array([0, 0, 0, 1, 1]), 3, 2)
    >>> pairwise(graph).tolist()
    [[0, 1], [0, 2], [1, 2]]

    Returns:
        Pairs of distinct nodes, the lower row first, sorted, each once; shape ``[pairs, 2]``. Time and memory grow
        with the square of the arity.
    """
    first, second = _pairs_within(graph)
    # One number a pair: sorting numbers is many times faster than sorting rows of two.
    codes = np.unique(first * graph.node_count + second)
    return np.column_stack(np.divmod(codes, max(graph.node_count, 1)))


def binary(graph: Hypergraph) -> tuple[Hypergraph, IntArray]:
    """The hypergraph cut into hyperedges of two nodes, which can stand in for it where a retriever wants to compare.

    Unlike :func:`pairwise` it keeps a pair once for each hyperedge it comes from, so that each new hyperedge still has
    one text and one source. Hyperedges of fewer than two nodes stay as they are: nothing may vanish from retrieval.

    Returns:
        The binary hypergraph, of the same nodes, its hyperedges sorted by where they came from, then by members; and
        for each of them the row in ``graph`` of the hyperedge it came from, ``[new hyperedges]``.
    """
    first, second = _pairs_within(graph)
    degrees = graph.members.degrees()
    origins = np.repeat(np.arange(graph.edge_count), np.where(degrees < 2, 1, degrees * (degrees - 1) // 2))
    # Pairs come in the order of their hyperedges, so the n-th pair is the n-th new hyperedge that is a pair.
    pairs = np.flatnonzero(degrees[origins] >= 2)
    single = np.flatnonzero(degrees[origins] == 1)
    nodes = np.concatenate([first, second, graph.members.gather(origins[single])[0]])
    edges = np.concatenate([pairs, pairs, single])
    return Hypergraph.from_incidences(nodes, edges, graph.node_count, len(origins)), origins


def _pairs_within(graph: Hypergraph) -> tuple[IntArray, IntArray]:
    """The unordered pairs within each hyperedge, lower row first; sorted by hyperedge, then pair."""
    members = graph.members
    edges = np.repeat(np.arange(graph.edge_count), members.degrees())
    positions = np.arange(len(edges))
    later = members.offsets[edges + 1] - positions - 1
    second = members.neighbours[ranges(positions + 1, later)]
    return np.repeat(members.neighbours, later), second
