"""The flow of PathRAG's public code: over all paths of at most three edges between two entities.

A resource of 1 at the first entity is divided among the first edges of the paths. An edge with more than ``threshold``
passes ``decay`` of its resource on, divided among the edges that follow it in the paths. A path has the mean resource
of its edges; of paths over the same entities the best one counts.

The public code lists all paths. Here a first edge with at most ``threshold`` passes nothing on, so that the paths of
such a pair of entities differ in their length alone, and are listed only until there are enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise, permutations

import numpy as np

from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import union
from polyad.model import IntArray
from polyad_baselines.graph import get_neighbours, iterate_neighbours
from polyad_baselines.settings import PathRAGSettings

Path = tuple[int, ...]
"""Entities of a path, from one retrieved entity to another."""

_DECIMALS = 9
"""Decimals of a score that count, so that the last bits do not order equal paths."""


class PathFlow:
    """The paths between some entities of a hypergraph, by their resource.

    Args:
        hypergraph: Entities of facts.
        ends: Entities between which the paths are searched, the most similar to the question first.
        settings: The parameters of the public code.
        sort: Sorts entities by key, to break ties.
    """

    def __init__(
        self, hypergraph: Hypergraph, ends: IntArray, settings: PathRAGSettings, sort: Callable[[IntArray], IntArray]
    ) -> None:
        self._settings, self._sort = settings, sort
        self._hypergraph = hypergraph
        self._ends: list[int] = ends.tolist()
        self._neighbours = {end: get_neighbours(hypergraph, end) for end in self._ends}
        self._is_near = {end: np.zeros(hypergraph.node_count, dtype=bool) for end in self._ends}
        for end, neighbours in self._neighbours.items():
            self._is_near[end][neighbours] = True
        self._rows = union(self._neighbours.values())
        self._shared = self._count_shared()

    def list_paths(self) -> list[tuple[Path, float]]:
        """Return the paths with the highest scores, best first; ties by the order of their ends, then by key."""
        batches: list[tuple[float, int, int, Iterable[Path]]] = []
        for (place, start), (other, end) in permutations(enumerate(self._ends), 2):
            for score, paths in self._list_batches(start, end):
                batches.append((-round(score, _DECIMALS), place, other, paths))
        listed: dict[frozenset[int], tuple[Path, float]] = {}
        for score, _, _, paths in sorted(batches, key=lambda batch: batch[:3]):
            for path in paths:
                if len(listed) == self._settings.top_k_paths:
                    return list(listed.values())
                listed.setdefault(frozenset(path), (path, -score))
        return list(listed.values())

    def _count_shared(self) -> dict[int, IntArray]:
        """Return the number of neighbours that each end shares with each of the entities :attr:`_rows`."""
        shared = {end: np.zeros(len(self._rows), dtype=np.int64) for end in self._ends}
        if self._settings.max_hops > 2:
            for positions, neighbours in iterate_neighbours(self._hypergraph, self._rows):
                for end, counts in shared.items():
                    counts += np.bincount(positions[self._is_near[end][neighbours]], minlength=len(counts))
        return shared

    def _list_batches(self, start: int, end: int) -> list[tuple[float, Iterable[Path]]]:
        """Return the paths from one entity to another, grouped by their scores."""
        nodes, near = self._neighbours[start], self._is_near[end]
        is_first = near[nodes] if self._settings.max_hops > 1 else np.zeros(len(nodes), dtype=bool)
        is_first |= self._shared[end][self._rows.searchsorted(nodes)] > int(near[start])
        is_first |= nodes == end
        first = nodes[is_first]
        if not len(first):
            return []
        if 1 / len(first) > self._settings.threshold:
            return self._score_paths(start, end, first)
        lengths = range(1, self._settings.max_hops + 1)
        return [(1 / len(first) / length, self._iterate_paths(start, end, first, length)) for length in lengths]

    def _score_paths(self, start: int, end: int, first: IntArray) -> list[tuple[float, Iterable[Path]]]:
        settings = self._settings
        firsts = set(first.tolist())
        following: dict[int, list[int]] = {}

        def follow(node: int) -> list[int]:
            if node not in following:
                direct = [end] if self._is_near[end][node] and settings.max_hops > 1 else []
                further = (
                    self._list_middle(start, end, node).tolist() if node in firsts and settings.max_hops > 2 else []
                )
                following[node] = direct + further
            return following[node]

        resources: dict[tuple[int, int], float] = defaultdict(float)
        paths: list[Path] = []
        for node in first.tolist():
            resources[start, node] = 1 / len(first)
            if node == end:
                paths.append((start, end))
                continue
            share = settings.decay / len(first) / len(follow(node))
            for second in follow(node):
                resources[node, second] += share
                paths.append((start, node, second) if second == end else (start, node, second, end))
                if second != end and share > settings.threshold:
                    for third in follow(second):
                        resources[second, third] += settings.decay * share / len(follow(second))
        scores = {path: sum(resources[edge] for edge in pairwise(path)) / (len(path) - 1) for path in paths}
        places = {node: place for place, node in enumerate(self._sort(union(map(np.array, paths))).tolist())}

        def rank(path: Path) -> tuple[float, list[int]]:
            return -round(scores[path], _DECIMALS), [places[node] for node in path]

        return [(-score, list(group)) for score, group in groupby(sorted(paths, key=rank), lambda path: rank(path)[0])]

    def _iterate_paths(self, start: int, end: int, first: IntArray, length: int) -> Iterator[Path]:
        """Yield the paths of a number of edges, sorted by key."""
        if length == 1:
            yield from [(start, end)] if self._is_near[end][start] else []
            return
        for node in self._sort(first[first != end]).tolist():
            if length == 2:
                yield from [(start, node, end)] if self._is_near[end][node] else []
            else:
                for second in self._sort(self._list_middle(start, end, node)).tolist():
                    yield start, node, second, end

    def _list_middle(self, start: int, end: int, node: int) -> IntArray:
        """Return the entities between an entity and the end of a path."""
        neighbours = get_neighbours(self._hypergraph, node)
        middle: IntArray = neighbours[self._is_near[end][neighbours] & (neighbours != start)]
        return middle
