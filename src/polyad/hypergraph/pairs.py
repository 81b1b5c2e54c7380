"""A hypergraph cut into pairs, as systems have it that store relations between two entities.

That is not injective once a hyperedge has three members (phi_B of HyperGraphRAG: Proposition 1, proof in appendix B.1):
{a, b, c} and {a, b}, {a, c}, {b, c} have the same pairs.
"""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.incidence import Hypergraph, ranges
from polyad.model import IntArray


def binary(graph: Hypergraph) -> tuple[Hypergraph, IntArray]:
    """The hypergraph cut into hyperedges of two nodes, which can stand in for it where a retriever wants to compare.

    A pair is kept once for each hyperedge it comes from, so that each new hyperedge still has one text and one source.
    Hyperedges of fewer than two nodes stay as they are: nothing may vanish from retrieval.

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
    nodes = np.concatenate([first, second, graph.members.get_neighbours(origins[single])[0]])
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
