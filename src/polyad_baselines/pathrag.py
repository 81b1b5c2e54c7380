"""PathRAG (Chen et al., 2025): paths between the entities of a question, pruned by the flow of a resource.

Paths between the entities that fit the question are ranked by the flow of the public code
(:mod:`polyad_baselines.path_flow`), or by that of the paper (section 4.2): from each retrieved entity a resource of 1
flows to the neighbours, and on for some hops:

    S(v) = sum over the nodes u before v of decay * S(u) / degree(u)

A node with S(v) / degree(v) below ``threshold`` passes nothing on. A path between two retrieved entities has the
reliability sum of S over its nodes / number of its edges, in the better of its two directions. The paper's flow needs
entities of few neighbours: with the threshold of the public code, one of more than three passes nothing on.

The passages of the best paths come first. The sources of the public code follow: passages of the entities and facts
that fit the keywords of the question, in the order of LightRAG.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from polyad.hypergraph.sparse import rank_by_id
from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import RankedHyperedge, build_evidence, fill_with_similar, read_entity_names
from polyad_baselines.graph import get_neighbours
from polyad_baselines.lightrag import LightRAGRetriever
from polyad_baselines.pairs import PairGraph, PairRetriever
from polyad_baselines.path_flow import Path, PathFlow
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import LightRAGSettings, PathRAGSettings


@dataclass(frozen=True, slots=True)
class Flow:
    """The resource that flows from one entity.

    Attributes:
        resources: Resource of each reached entity.
        sources: Entities from which each received the resource.
    """

    resources: dict[int, float]
    sources: dict[int, list[int]]

    def list_paths(self, target: int) -> list[Path]:
        """Return the paths on which the resource came to an entity."""
        if target not in self.sources:
            return [(target,)]
        return [(*path, target) for source in self.sources[target] for path in self.list_paths(source)]

    def score(self, path: Path) -> float:
        """Return the reliability of a path."""
        return sum(self.resources[node] for node in path) / (len(path) - 1)


class PathRAGRetriever(PairRetriever[PathRAGSettings]):
    """Ranks the passages of reliable paths between the entities that fit a question."""

    name: ClassVar[str] = "pathrag"

    def __init__(self, embedder: Embedder, keywords: KeywordExtractor, settings: PathRAGSettings) -> None:
        super().__init__(embedder, keywords, settings)
        self._lightrag = LightRAGRetriever(embedder, keywords, LightRAGSettings(top_k=settings.top_k_entities))

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the most reliable paths as evidence, with the facts and entities of the paths."""
        keywords = self._keywords.extract(query.text, snapshot)
        names = keywords.low_level or keywords.high_level
        vector, name_vector = self._embedder.encode([query.text, names], "query")
        ((entities, cosines),) = snapshot.nearest("entity", name_vector[None], self._settings.top_k_entities)
        graph = self.prepare(snapshot)
        paths = self._find_paths(snapshot, graph, entities)
        facts = self._list_facts(snapshot, graph, paths, vector)
        sources = self._lightrag.find_sources(keywords, snapshot).reasons if self._settings.sources else {}
        return self._build_evidence(query, snapshot, vector, facts, sources, list(zip(entities, cosines, strict=True)))

    def _find_paths(self, snapshot: Snapshot, graph: PairGraph, entities: IntArray) -> list[tuple[Path, float]]:
        """Return the most reliable paths between retrieved entities, best first; ties by the keys of entities."""
        if self._settings.flow == "paths":

            def sort(rows: IntArray) -> IntArray:
                return rows[rank_by_id(snapshot, "entity", rows).argsort()]

            return PathFlow(graph.hypergraph, entities, self._settings, sort).list_paths()
        scores: dict[Path, float] = {}
        for start in entities.tolist():
            flow = self._spread(graph, start)
            for end in entities.tolist():
                if end != start and end in flow.resources:
                    for path in flow.list_paths(end):
                        undirected = min(path, path[::-1])
                        scores[undirected] = max(scores.get(undirected, 0.0), flow.score(path))
        rows = sorted({node for path in scores for node in path})
        keys = dict(zip(rows, snapshot.ids("entity", rows), strict=True))
        ranked = sorted(scores, key=lambda path: (-round(scores[path], 9), sorted(keys[node] for node in path)))
        return [(path, scores[path]) for path in ranked[: self._settings.top_k_paths]]

    def _spread(self, graph: PairGraph, start: int) -> Flow:
        """Let the resource flow from an entity, hop by hop, to entities that no earlier hop reached."""
        settings = self._settings
        flow = Flow({start: 1.0}, {})
        frontier = {start: 1.0}
        for _ in range(settings.max_hops):
            received: dict[int, float] = defaultdict(float)
            for node, resource in sorted(frontier.items()):
                degree = int(graph.degrees[node])
                if not degree or resource / degree < settings.threshold:
                    continue
                for neighbour in get_neighbours(graph.hypergraph, node).tolist():
                    if neighbour not in flow.resources:
                        received[neighbour] += settings.decay * resource / degree
                        flow.sources.setdefault(neighbour, []).append(node)
            flow.resources.update(received)
            frontier = received
        return flow

    def _list_facts(
        self, snapshot: Snapshot, graph: PairGraph, paths: list[tuple[Path, float]], vector: FloatArray
    ) -> list[RankedHyperedge]:
        """Return the facts of the edges of paths, by the reliability of the best path, then by cosine, then by id."""
        names = read_entity_names(snapshot, sorted({node for path, _ in paths for node in path}))
        facts: dict[int, RankedHyperedge] = {}
        for path, score in paths:
            matched = " - ".join(names[node] for node in path)
            for first, second in pairwise(path):
                memberships = graph.hypergraph.memberships
                shared = np.intersect1d(memberships[first], memberships[second])
                for fact in shared.tolist():
                    facts.setdefault(fact, RankedHyperedge(fact, score, matched, "path", (first, second)))
        rows = np.array(list(facts), dtype=np.int64)
        cosines, ids = snapshot.cosines("hyperedge", rows, vector), rank_by_id(snapshot, "hyperedge", rows)
        scores = np.array([round(facts[row].score, 9) for row in rows.tolist()])
        order = np.lexsort((ids, -cosines, -scores))
        return [facts[row] for row in rows[order].tolist()]

    def _build_evidence(
        self,
        query: Query,
        snapshot: Snapshot,
        vector: FloatArray,
        facts: list[RankedHyperedge],
        sources: dict[int, str],
        entities: list[tuple[int, float]],
    ) -> Evidence:
        passages: dict[int, tuple[float, str]] = {}
        owners = snapshot.graph.passages(np.array([fact.row for fact in facts], dtype=np.int64))
        for fact, passage in zip(facts, owners.tolist(), strict=True):
            passages.setdefault(passage, (fact.score, f"on the path {fact.matched}"))
        floor = min([1.0, *(score for score, _ in passages.values())])
        for place, (passage, reason) in enumerate(sources.items(), 2):
            passages.setdefault(passage, (floor / place, reason))
        ranked = [(row, score, reason) for row, (score, reason) in passages.items()][: query.k]
        if self._settings.fill:
            ranked = fill_with_similar(snapshot, ranked, vector, query.k)
        return build_evidence(
            snapshot,
            query.text,
            self.name,
            ranked,
            facts,
            [(int(row), float(cosine)) for row, cosine in entities],
        )
