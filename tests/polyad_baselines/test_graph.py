"""The graph of entity pairs: equal to one whose pairs are listed, in memory that grows with the size of the facts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import pytest

from polyad.hypergraph.incidence import Hypergraph, split_into_pairs
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad.protocols.components import Retriever
from polyad_baselines.graph import WeightedGraph, count_neighbours, get_neighbours
from polyad_baselines.graphrag import GraphRAGRetriever
from polyad_baselines.hipporag2 import HippoRAG2Retriever
from polyad_baselines.lightrag import LightRAGRetriever
from polyad_baselines.pathrag import PathRAGRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import GraphRAGSettings, HippoRAG2Settings, LightRAGSettings, PathRAGSettings
from tests.polyad_baselines.cases import Case, build_case_of_facts
from tests.polyad_baselines.test_graphrag import reply
from tests.polyad_baselines.test_lightrag import LINKER

KEYWORDS = KeywordExtractor(LINKER)


@pytest.mark.parametrize("seed", range(20))
def test_a_walk_over_facts_equals_one_over_their_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = [rng.choice(12, rng.integers(1, 7), replace=False) for _ in range(rng.integers(1, 9))]
    facts = np.repeat(np.arange(len(edges)), [len(edge) for edge in edges])
    hypergraph = Hypergraph.from_incidences(np.concatenate(edges), facts, 12, len(edges))
    first, second = rng.integers(0, 15, (2, 6))
    weights, reset = rng.random(6), rng.random(15)
    pairs, _ = split_into_pairs(hypergraph)
    members = pairs.members.get_neighbours(np.flatnonzero(pairs.members.degrees() == 2))[0]
    listed = WeightedGraph.from_edges(
        np.concatenate([first, members[::2]]),
        np.concatenate([second, members[1::2]]),
        np.concatenate([weights, np.full(len(members) // 2, 2.0)]),
        15,
    )
    graph = WeightedGraph.from_edges(first, second, weights, 15, hypergraph, pair_weight=2.0)
    assert graph.strengths == pytest.approx(listed.strengths)
    assert graph.rank_nodes(reset, 0.6) == pytest.approx(listed.rank_nodes(reset, 0.6), abs=1e-11)
    expected = networkx.Graph(zip(members[::2].tolist(), members[1::2].tolist(), strict=True))
    expected.add_nodes_from(range(12))
    assert count_neighbours(hypergraph).tolist() == [expected.degree[node] for node in range(12)]
    assert [get_neighbours(hypergraph, node).tolist() for node in range(12)] == [
        sorted(expected[node]) for node in range(12)
    ]


RETRIEVERS: dict[str, Callable[[Case], Retriever]] = {
    "hipporag2": lambda case: HippoRAG2Retriever(case.vectors, HippoRAG2Settings(synonym_threshold=1.1)),
    "lightrag": lambda case: LightRAGRetriever(case.vectors, KEYWORDS, LightRAGSettings(threshold=-1)),
    "pathrag": lambda case: PathRAGRetriever(case.vectors, KEYWORDS, PathRAGSettings()),
    "graphrag": lambda case: GraphRAGRetriever(case.vectors, ScriptedLanguageModel(reply), GraphRAGSettings()),
}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_memory_grows_with_the_entities_of_a_fact_and_not_with_their_square(tmp_path: Path, name: str) -> None:
    peaks = []
    for count in (1000, 3000):
        members = tuple(f"bell {number:04}" for number in range(count))
        case = build_case_of_facts(tmp_path / str(count), {"p#0000": [("bells of tarn", members)]})
        retriever = RETRIEVERS[name](case)
        tracemalloc.start()
        assert retriever.retrieve(Query("Who cast the bell of tarn?", 1), case.snapshot).passages
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 4 * peaks[0], "nine times as much if pairs were stored"
