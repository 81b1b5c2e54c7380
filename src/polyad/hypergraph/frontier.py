"""Frontier expansion: activation spreads from nodes through active hyperedges to new nodes, a bounded number a hop.

HyperSU, section 4.2. At hop t a node v not yet reached receives

    c_t(v) = max over hyperedges u that contain v of [ alpha(u) * max over frontier nodes z in u of a(z) ]

The best ``width`` new nodes are kept with a(v) = c_t(v) * decay^t and become the next frontier. The bridge score of a
hyperedge is b(u) = max over hops of [ alpha(u) * max over frontier nodes z in u of a(z) ].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyad.hypergraph.sparse import Order, Scores, among, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.snapshot import Graph

Activation = Callable[[IntArray], FloatArray]
"""alpha: the activation in [0, 1] of each of some hyperedges. Asked only about hyperedges the walk touches."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What an expansion reached.

    Attributes:
        bridges: Bridge score b(u) > 0 of each hyperedge it went through.
        entered_from: The frontier node through which each of them got that score.
        nodes: Activation a(v) of each node reached, the seeds included.
    """

    bridges: dict[int, float]
    entered_from: dict[int, int]
    nodes: dict[int, float]


def expand(
    graph: Graph,
    seeds: dict[int, float],
    activation: Activation,
    order: Order,
    *,
    depth: int,
    width: int,
    decay: float,
) -> Walk:
    """Expand from ``seeds`` (node -> a(z) in (0, 1]) for ``depth`` hops of at most ``width`` new nodes each.

    Args:
        graph: The hypergraph.
        seeds: The first frontier.
        activation: alpha; see :data:`Activation`.
        order: Of nodes, breaks ties.
        depth: Hops. 0 reaches the seeds only.
        width: K: new nodes kept at each hop, the strongest first.
        decay: beta in (0, 1].
    """
    walk = Walk({}, {}, dict(seeds))
    frontier = reached = np.array(sorted(seeds), dtype=np.int64)
    strengths = np.array([seeds[node] for node in frontier.tolist()], dtype=np.float32)
    for hop in range(1, depth + 1):
        edges, scores, sources = _bridge_scores(graph, frontier, strengths, activation, order)
        _record(walk, edges, scores, sources)
        received = _received(graph, edges, scores, reached)
        nodes = np.sort(received.best(width, order))
        if not len(nodes):
            break
        reached = union([reached, nodes])
        frontier, strengths = nodes, received.at(nodes) * np.float32(decay**hop)
        walk.nodes.update(zip(frontier.tolist(), strengths.tolist(), strict=True))
    return walk


def _bridge_scores(
    graph: Graph, frontier: IntArray, strengths: FloatArray, activation: Activation, order: Order
) -> tuple[IntArray, FloatArray, IntArray]:
    """The active hyperedges incident to the frontier, their scores at this hop, and the strongest node of each."""
    edges, owners = graph.memberships(frontier)
    # By edge, then strongest node, then order: the first of each edge is its maximum.
    ranked = np.lexsort((order(frontier)[owners], -strengths[owners], edges))
    edges, owners = edges[ranked], owners[ranked]
    first = np.flatnonzero(np.diff(edges, prepend=-1))
    edges, best = edges[first], owners[first]
    scores = activation(edges) * strengths[best]
    active = scores > 0
    return edges[active], scores[active], frontier[best[active]]


def _record(walk: Walk, edges: IntArray, scores: FloatArray, sources: IntArray) -> None:
    for edge, score, source in zip(edges.tolist(), scores.tolist(), sources.tolist(), strict=True):
        if score > walk.bridges.get(edge, 0.0):
            walk.bridges[edge] = score
            walk.entered_from[edge] = source


def _received(graph: Graph, edges: IntArray, scores: FloatArray, reached: IntArray) -> Scores:
    """c_t(v) of every node not yet reached that an active hyperedge contains."""
    members, owners = graph.members(edges)
    new = ~among(members, reached)
    return Scores.highest(members[new], scores[owners[new]])
