from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise, permutations

import networkx
import numpy as np
import pytest

from polyad.model import Query
from polyad.retrieval.question import QuestionLinker
from polyad_baselines.graph import build_hypergraph
from polyad_baselines.path_flow import PathFlow
from polyad_baselines.pathrag import PathRAGRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import PathRAGSettings
from tests.polyad_baselines.cases import QUESTION, BuildCase, Case, NamesOf

SETTINGS = PathRAGSettings(top_k_entities=4, top_k_paths=6, threshold=0.09, flow="graph", sources=False)
KEYWORDS = KeywordExtractor(QuestionLinker(NamesOf("bell", "tarn"), "found"))


def compute_flow(graph: networkx.Graph, start: str, settings: PathRAGSettings) -> dict[str, float]:
    """The resource of each node: hop by hop over shortest distances."""
    distances = networkx.single_source_shortest_path_length(graph, start)
    resources = {start: 1.0}
    for hop in range(1, settings.max_hops + 1):
        for node in sorted(node for node, distance in distances.items() if distance == hop):
            shares = [
                resources[before] / graph.degree[before]
                for before in graph[node]
                if distances[before] == hop - 1 and before in resources
            ]
            if flow := sum(share for share in shares if share >= settings.threshold):
                resources[node] = settings.decay * flow
    return resources


def list_paths(case: Case, settings: PathRAGSettings) -> list[tuple[tuple[str, ...], float]]:
    """PathRAG by the paper's words, on a graph of networkx."""
    graph = networkx.Graph([pair for _, _, members in case.list_facts() for pair in combinations(members, 2)])
    cosines = {name: case.vectors.cosine(name, "bell, tarn") for name in graph}
    chosen_names = sorted(graph, key=lambda name: (-cosines[name], name))[: settings.top_k_entities]
    scores: dict[tuple[str, ...], float] = {}
    for start, end in permutations(chosen_names, 2):
        resources = compute_flow(graph, start, settings)
        distances = networkx.single_source_shortest_path_length(graph, start)
        for path in networkx.all_simple_paths(graph, start, end, settings.max_hops):
            falls = all(distances[node] == place for place, node in enumerate(path))
            open_nodes = all(
                node in resources and resources[node] / graph.degree[node] >= settings.threshold for node in path[:-1]
            )
            if falls and open_nodes:
                key = min(tuple(path), tuple(path[::-1]))
                score = sum(resources[node] for node in path) / (len(path) - 1)
                scores[key] = max(scores.get(key, 0), score)
    ranked = sorted(scores, key=lambda path: (-round(scores[path], 9), sorted(path)))
    return [(path, scores[path]) for path in ranked[: settings.top_k_paths]]


def list_paths_of_the_code(case: Case, settings: PathRAGSettings) -> list[tuple[tuple[str, ...], float]]:
    """The flow of the public code over all paths between two entities, on dictionaries."""
    graph = networkx.Graph([pair for _, _, members in case.list_facts() for pair in combinations(members, 2)])
    cosines = {name: case.vectors.cosine(name, "bell, tarn") for name in graph}
    ends = sorted(graph, key=lambda name: (-cosines[name], name))[: settings.top_k_entities]
    ranked = []
    for start, end in permutations(ends, 2):
        paths = [tuple(path) for path in networkx.all_simple_paths(graph, start, end, settings.max_hops)]
        following: dict[str, set[str]] = defaultdict(set)
        for path in paths:
            for first, second in pairwise(path):
                following[first].add(second)
        flows: list[dict[tuple[str, str], float]] = [
            {(start, node): 1 / len(following[start]) for node in following[start]}
        ]
        for hop in range(1, settings.max_hops):
            flows.append(defaultdict(float))
            for (_, node), resource in flows[hop - 1].items():
                if node != end and resource > settings.threshold:
                    for other in following[node]:
                        flows[hop][node, other] += resource * settings.decay / len(following[node])
        for path in paths:
            resource = sum(flow.get(edge, 0.0) for edge in pairwise(path) for flow in flows)
            score = round(resource / (len(path) - 1), 9)
            ranked.append((-score, ends.index(start), ends.index(end), path))
    listed: dict[frozenset[str], tuple[tuple[str, ...], float]] = {}
    for score, _, _, path in sorted(ranked):
        listed.setdefault(frozenset(path), (path, -score))
    return list(listed.values())[: settings.top_k_paths]


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_paths_are_those_of_the_flow_of_the_public_code(make_case: BuildCase, seed: int, hops: int) -> None:
    case = make_case(seed)
    threshold = [0.3, 0.1, 0.02, 0.5][seed % 4]
    settings = PathRAGSettings(top_k_entities=6, max_hops=hops, threshold=threshold, top_k_paths=[4, 15, 100][seed % 3])
    hypergraph = build_hypergraph(case.snapshot)
    keys = case.snapshot.ids("entity", range(hypergraph.node_count))
    vector = case.vectors.encode(["bell, tarn"], "query")
    ((ends, _),) = case.snapshot.nearest("entity", vector, settings.top_k_entities)
    flow = PathFlow(hypergraph, ends, settings, lambda rows: np.array(sorted(rows.tolist(), key=keys.__getitem__)))
    retrieved = [(tuple(keys[row] for row in path), score) for path, score in flow.list_paths()]
    expected = list_paths_of_the_code(case, settings)
    assert [path for path, _ in retrieved] == [path for path, _ in expected]
    assert [score for _, score in retrieved] == pytest.approx([score for _, score in expected])


def test_the_default_settings_find_paths_between_entities_of_many_neighbours(make_case: BuildCase) -> None:
    counts = []
    for seed in range(10):
        case = make_case(seed)
        evidence = PathRAGRetriever(case.vectors, KEYWORDS, PathRAGSettings()).retrieve(
            Query(QUESTION, 9), case.snapshot
        )
        counts.append(len({step.matched for step in evidence.trace}))
        assert {hit.reason.split()[0] for hit in evidence.passages} <= {"on", "mentions", "states"}
    assert min(counts) >= 5, "paths that add facts; the flow over the whole graph finds none in most cases"


@pytest.mark.parametrize("seed", range(30))
def test_facts_are_those_of_the_paths_of_an_independent_computation(make_case: BuildCase, seed: int) -> None:
    case = make_case(seed)
    evidence = PathRAGRetriever(case.vectors, KEYWORDS, SETTINGS).retrieve(Query(QUESTION, 9), case.snapshot)
    expected: dict[str, float] = {}
    for path, score in list_paths(case, SETTINGS):
        for pair in pairwise(path):
            for passage, text, members in case.list_facts():
                if set(pair) <= set(members):
                    expected.setdefault(f"{passage}: {text}", score)
    listed = {f"{edge.hyperedge.passage_id}: {edge.hyperedge.text}": edge.score for edge in evidence.hyperedges}
    assert listed == pytest.approx(expected)
    best = {
        passage: max(s for text, s in expected.items() if text.startswith(passage))
        for passage in case.facts
        if any(text.startswith(passage) for text in expected)
    }
    assert {hit.passage.id: hit.score for hit in evidence.passages} == pytest.approx(best)
    scores = [hit.score for hit in evidence.passages]
    assert scores == sorted(scores, reverse=True)


def test_similar_passages_follow_those_of_paths(make_case: BuildCase) -> None:
    case = make_case(5)
    settings = PathRAGSettings(top_k_entities=1, sources=False, fill=True)
    evidence = PathRAGRetriever(case.vectors, KEYWORDS, settings).retrieve(Query(QUESTION, 9), case.snapshot)
    assert not evidence.hyperedges
    cosines = {id: case.vectors.cosine(case.get_text(id), QUESTION) for id in case.facts}
    assert [hit.passage.id for hit in evidence.passages] == sorted(cosines, key=lambda id: (-cosines[id], id))
