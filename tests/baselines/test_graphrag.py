from __future__ import annotations

from itertools import combinations

import networkx
import pytest

from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad.protocols.components import Prompt
from polyad_baselines.graph import build_hypergraph
from polyad_baselines.graphrag import GraphRAGRetriever, find_communities
from polyad_baselines.settings import GraphRAGSettings
from tests.baselines.cases import NAMES, QUESTION, BuildCase, Case


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
