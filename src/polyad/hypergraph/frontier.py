"""Frontier expansion: activation spreads from nodes through active hyperedges to a bounded number of new nodes per hop.

HyperSU, section 4.2. At hop t an unreached node v receives

    c_t(v) = max over hyperedges u that contain v of [ alpha(u) * max over frontier nodes z in u of a(z) ]

The ``width`` best new nodes get a(v) = c_t(v) * decay^t and become the next frontier. The bridge score of a
hyperedge is b(u) = max over hops of [ alpha(u) * max over frontier nodes z in u of a(z) ].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.sparse import Scores, SortKey, is_in, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Graph

Activation = Callable[[IntArray], FloatArray]
"""Returns alpha(u), the activation of each hyperedge in [0, 1]. Called only for hyperedges incident to a frontier."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a walk through a hypergraph: the hyperedges and nodes that it reached, with their scores.

    Attributes:
        bridges: Bridge score b(u) > 0 of each active hyperedge.
        entered_from: The frontier node that gave each hyperedge its bridge score.
        nodes: Activation a(v) of each reached node, seeds included.
    """

    bridges: dict[int, float]
    entered_from: dict[int, int]
    nodes: dict[int, float]


def expand_frontier(
    graph: Graph,
    seeds: dict[int, float],
    activation: Activation,
    sort_key: SortKey,
    *,
    depth: int,
    width: int,
    decay: float,
) -> Walk:
    """Spread scores from the nodes ``seeds`` along hyperedges, which ``activation`` weighs, for ``depth`` hops.

    Args:
        graph: The hypergraph.
        seeds: The first frontier: a(z) in (0, 1] by node.
        activation: alpha, which returns the weight of hyperedges; see :data:`Activation`.
        sort_key: Returns a sort key for each node, which breaks ties.
        depth: Number of hops. 0 reaches only the seeds.
        width: K, the number of new nodes per hop, strongest first.
        decay: beta in (0, 1], by which scores are multiplied at each hop.
    """
    walk = Walk({}, {}, dict(seeds))
    frontier = reached = np.array(sorted(seeds), dtype=np.int64)
    node_scores = np.array([seeds[node] for node in frontier.tolist()], dtype=np.float32)
    for hop in range(1, depth + 1):
        edges, scores, sources = _compute_bridge_scores(graph, frontier, node_scores, activation, sort_key)
        _record_bridges(walk, edges, scores, sources)
        received = _score_new_nodes(graph, edges, scores, reached)
        nodes = np.sort(received.top_k(width, sort_key))
        if not len(nodes):
            break
        reached = union([reached, nodes])
        frontier, node_scores = nodes, received.get(nodes) * np.float32(decay**hop)
        walk.nodes.update(zip(frontier.tolist(), node_scores.tolist(), strict=True))
    return walk


def _compute_bridge_scores(
    graph: Graph, frontier: IntArray, node_scores: FloatArray, activation: Activation, sort_key: SortKey
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the hyperedges of the nodes ``frontier`` and their scores: the highest node score times ``activation``.

    Hyperedges with the score 0 are omitted.

    Args:
        graph: The hypergraph.
        frontier: The nodes that the last hop reached.
        node_scores: a(z) of each of these nodes.
        activation: Returns the weight of hyperedges.
        sort_key: Returns a sort key for each node, which breaks ties.

    Returns:
        Three parallel arrays: hyperedge, bridge score, and the frontier node with the highest score in the hyperedge.
    """
    edges, owners = graph.memberships(frontier)
    # By edge, then strongest node, then sort key: the first entry of each edge is its maximum.
    ranked = np.lexsort((sort_key(frontier)[owners], -node_scores[owners], edges))
    edges, owners = edges[ranked], owners[ranked]
    first = np.flatnonzero(np.diff(edges, prepend=-1))
    edges, best = edges[first], owners[first]
    scores = activation(edges) * node_scores[best]
    active = scores > 0
    return edges[active], scores[active], frontier[best[active]]


def _record_bridges(walk: Walk, edges: IntArray, scores: FloatArray, sources: IntArray) -> None:
    for edge, score, source in zip(edges.tolist(), scores.tolist(), sources.tolist(), strict=True):
        if score > walk.bridges.get(edge, 0.0):
            walk.bridges[edge] = score
            walk.entered_from[edge] = source


def _score_new_nodes(graph: Graph, edges: IntArray, scores: FloatArray, reached: IntArray) -> Scores:
    """Return for each node of ``edges`` (hyperedges) that is not in ``reached`` the highest score of its hyperedges.

    This is c_t(v) of HyperSU.
    """
    members, owners = graph.members(edges)
    new = ~is_in(members, reached)
    return Scores.from_max(members[new], scores[owners[new]])
