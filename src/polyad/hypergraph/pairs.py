"""Hyperedges split into pairs of nodes, as systems that store binary relations hold them.

The split is not injective for hyperedges of three members (phi_B of HyperGraphRAG: Proposition 1, proof in appendix
B.1): {a, b, c} and {a, b}, {a, c}, {b, c} have the same pairs.
"""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.incidence import Hypergraph, expand_ranges
from polyad.model import IntArray


def split_into_pairs(graph: Hypergraph) -> tuple[Hypergraph, IntArray]:
    """Replace each hyperedge by a hyperedge for each pair of its nodes, to compare with binary relations.

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
    """Return the unordered pairs of members of each hyperedge, lower row first, sorted by hyperedge, then pair."""
    members = graph.members
    edges = np.repeat(np.arange(graph.edge_count), members.degrees())
    positions = np.arange(len(edges))
    later = members.offsets[edges + 1] - positions - 1
    second = members.neighbours[expand_ranges(positions + 1, later)]
    return np.repeat(members.neighbours, later), second
