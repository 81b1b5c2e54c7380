from __future__ import annotations

from itertools import combinations, pairwise, permutations

import networkx
import pytest

from polyad.model import Query
from polyad.retrieval.question import QuestionLinker
from polyad_baselines.pathrag import PathRAGRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import PathRAGSettings
from tests.baselines.cases import QUESTION, BuildCase, Case, NamesOf

SETTINGS = PathRAGSettings(top_k_entities=4, top_k_paths=6, threshold=0.09, fill=False)
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
    settings = PathRAGSettings(top_k_entities=1)
    evidence = PathRAGRetriever(case.vectors, KEYWORDS, settings).retrieve(Query(QUESTION, 9), case.snapshot)
    assert not evidence.hyperedges
    cosines = {id: case.vectors.cosine(case.get_text(id), QUESTION) for id in case.facts}
    assert [hit.passage.id for hit in evidence.passages] == sorted(cosines, key=lambda id: (-cosines[id], id))
