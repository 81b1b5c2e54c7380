from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations
from pathlib import Path

import networkx
import pytest

from polyad.engine import Engine
from polyad.engine.changes import change_settings
from polyad.engine.settings import Settings
from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad.presets import Value
from polyad.protocols.components import Embedder, Prompt
from polyad_baselines.graph import build_hypergraph
from polyad_baselines.graphrag import GraphRAGRetriever, find_communities
from polyad_baselines.graphrag_local import GraphRAGLocalRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import GraphRAGLocalSettings, GraphRAGSettings
from tests.polyad_baselines.cases import NAMES, QUESTION, BuildCase, Case
from tests.polyad_baselines.test_lightrag import LINKER


def reply(prompt: Prompt) -> str:
    """A report is its facts; the help of a report is the number of its tarns, 20 each, or none."""
    if prompt.json_schema is None:
        return prompt.user.removeprefix("<text>\n").removesuffix("\n</text>")
    return f'{{"score": {20 * prompt.user.split("<text>")[1].count("tarn")}}}'


def rate_passages(case: Case) -> dict[str, float]:
    """The best rating of each passage, over the communities of networkx."""
    graph = networkx.Graph()
    graph.add_nodes_from(sorted({name for _, _, members in case.list_facts() for name in members}))
    keys = case.snapshot.ids("entity", range(case.snapshot.row_count("entity")))
    for _, _, members in case.list_facts():
        for pair in combinations(sorted(members, key=keys.index), 2):
            weight = graph.get_edge_data(*pair, {"weight": 0})["weight"]
            graph.add_edge(*pair, weight=weight + 1)
    edges = sorted((*sorted(pair, key=keys.index), data["weight"]) for *pair, data in graph.edges(data=True))
    ordered = networkx.Graph()
    ordered.add_nodes_from(sorted(graph))
    ordered.add_weighted_edges_from(edges)
    *_, partition = networkx.community.louvain_partitions(ordered, seed=0)
    ratings: dict[str, float] = {}
    for group in partition:
        facts = [(passage, text) for passage, text, members in case.list_facts() if group & set(members)]
        rating = min(100, 20 * sum(text.count("tarn") for _, text in facts))
        for passage, _ in facts if rating else ():
            ratings[passage] = max(ratings.get(passage, 0), rating)
    return ratings


@pytest.mark.parametrize("seed", range(30))
def test_passages_have_the_rating_of_their_best_community(make_case: BuildCase, seed: int) -> None:
    case = make_case(seed)
    model = ScriptedLanguageModel(reply)
    retriever = GraphRAGRetriever(case.vectors, model, GraphRAGSettings())
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    assert {hit.passage.id: hit.score for hit in evidence.passages} == rate_passages(case)
    scores = [hit.score for hit in evidence.passages]
    assert scores == sorted(scores, reverse=True)
    communities = len(retriever.prepare(case.snapshot))
    assert len(model.prompts) == 2 * communities
    retriever.retrieve(Query("Where?", 2), case.snapshot)
    assert len(model.prompts) == 3 * communities, "reports are written once"


def test_finer_partitions_have_more_communities(make_case: BuildCase) -> None:
    case = make_case(7)
    graph = build_hypergraph(case.snapshot)
    keys = case.snapshot.ids("entity", range(graph.node_count))
    coarse, fine = [find_communities(graph, keys, level) for level in (0, 9)]
    assert len(coarse) <= len(fine)
    for groups in (coarse, fine):
        assert sorted(keys[row] for rows in groups for row in rows.tolist()) == sorted(set(keys) & set(NAMES))


def test_a_report_without_a_rating_is_left_out_and_without_any_the_search_fails(make_case: BuildCase) -> None:
    case = make_case(8)
    reports = ["a report"] * len(
        GraphRAGRetriever(case.vectors, ScriptedLanguageModel(reply), GraphRAGSettings()).prepare(case.snapshot)
    )
    ratings = ['{"score": 50}', *["no idea"] * (len(reports) - 1)]
    retriever = GraphRAGRetriever(case.vectors, ScriptedLanguageModel([*reports, *ratings]), GraphRAGSettings())
    assert {hit.score for hit in retriever.retrieve(Query(QUESTION, 9), case.snapshot).passages} == {50.0}
    with pytest.raises(LanguageModelError):
        retriever.retrieve(Query(QUESTION, 9), case.snapshot)  # the script has ended


def test_a_report_is_written_from_the_facts_of_the_highest_degree(make_case: BuildCase) -> None:
    case = make_case(11)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for _, _, members in case.list_facts():
        for one, other in permutations(members, 2):
            neighbours[one].add(other)
    retriever = GraphRAGRetriever(case.vectors, ScriptedLanguageModel(reply), GraphRAGSettings(max_community_tokens=20))
    for community in retriever.prepare(case.snapshot):
        ids = case.snapshot.ids("hyperedge", community.facts)
        facts = {
            f"{passage}/{place:03}": fact for passage in case.facts for place, fact in enumerate(case.facts[passage])
        }
        order = sorted(ids, key=lambda id: (-sum(len(neighbours[name]) for name in facts[id][1]), id))
        assert ids == order
        assert community.report.startswith(facts[ids[0]][0][:20])


def test_reports_are_evidence_for_answers(small_index_dir: Path, embedder: Embedder) -> None:
    model = ScriptedLanguageModel(lambda prompt: '{"score": 70}' if prompt.json_schema else "A report [1].")
    changes: dict[str, Value] = {
        "graphrag.evidence": "reports",
        "answer.hyperedge_share": 1.0,
        "answer.entity_share": 0.0,
    }
    settings = change_settings(Settings(), changes)
    with Engine.open(
        small_index_dir, embedder=embedder, language_model=model, create=False, settings=settings
    ) as engine:
        evidence = engine.search("Who cast the Bell of Tarn?", retriever="graphrag")
        assert evidence.passages
        assert {edge.hyperedge.text for edge in evidence.hyperedges} == {"A report [1]."}
        answer = engine.ask("Who cast the Bell of Tarn?", retriever="graphrag")
        assert "A report" in answer.context.text
        assert "<passage" not in answer.context.text
        assert answer.citations


@pytest.mark.parametrize("seed", range(20))
def test_local_search_equals_an_independent_computation(make_case: BuildCase, seed: int) -> None:
    case, settings = make_case(seed), GraphRAGLocalSettings(top_k_entities=3, top_k_facts=1)
    retriever = GraphRAGLocalRetriever(case.vectors, KeywordExtractor(LINKER), settings)
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    names = {name for _, _, members in case.list_facts() for name in members}
    cosines = {name: case.vectors.cosine(name, QUESTION) for name in names}
    chosen_names = sorted(names, key=lambda name: (-cosines[name], name))[:3]
    expected: dict[str, None] = {}
    for name in chosen_names:
        relations: dict[str, set[str]] = defaultdict(set)
        for passage, _, members in case.list_facts():
            if name in members:
                relations[passage] |= {*members} - {name}
        expected |= dict.fromkeys(sorted(relations, key=lambda passage: (-len(relations[passage]), passage)))
    assert [hit.passage.id for hit in evidence.passages] == list(expected)
    shared = [len({entity.key for entity in edge.members} & {*chosen_names}) > 1 for edge in evidence.hyperedges]
    assert shared == sorted(shared, reverse=True)
    assert 0 < len(shared) <= 3
