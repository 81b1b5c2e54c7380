from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import pytest

from polyad.errors import ConfigurationError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad_baselines.hipporag2 import HippoRAG2Retriever
from polyad_baselines.settings import HippoRAG2Settings
from tests.polyad_baselines.cases import NAMES, QUESTION, BuildCase, Case, assert_same_ranks, rank_with_networkx

SETTINGS = HippoRAG2Settings(top_k_facts=3, top_k_phrases=4, synonym_threshold=0.6, edge_weight=1)


def compute_ranks(case: Case, settings: HippoRAG2Settings) -> dict[str, float]:
    """HippoRAG 2 by the paper's words, on dictionaries."""
    edges: dict[frozenset[str], float] = defaultdict(float)
    homes = defaultdict(set)
    for passage, _, members in case.list_facts():
        for pair in combinations(members, 2):
            edges[frozenset(pair)] += settings.edge_weight
        for member in members:
            homes[member].add(passage)
            edges[frozenset([member, passage])] = 1
    for pair in combinations([name for name in homes if len(name.replace(" ", "")) > 2], 2):
        cosine = case.vectors.cosine(*pair)
        if cosine >= settings.synonym_threshold:
            weight = 0.0 if settings.synonyms_replace_facts else edges[frozenset(pair)]
            edges[frozenset(pair)] = weight + settings.edge_weight * cosine
    texts = {
        f"{passage}|{position}": fact[1]
        for position, (passage, *_) in enumerate(case.list_facts())
        for fact in [case.list_facts()[position]]
    }
    scores = list(case.scale(texts).values())
    facts = case.list_facts()
    best = sorted(range(len(facts)), key=lambda place: (-scores[place], place))[: settings.top_k_facts]
    linked = defaultdict(list)
    for place in best:
        for member in facts[place][2]:
            linked[member].append(scores[place])
    weights = {name: sum(values) / len(values) / len(homes[name]) for name, values in linked.items()}
    order = sorted(weights, key=lambda name: (-weights[name], first_seen(case).index(name)))
    reset = {name: weights[name] for name in order[: settings.top_k_phrases]}
    dense = case.scale({passage: case.get_text(passage) for passage in case.facts})
    nodes = {name: reset.get(name, 0.0) for name in homes}
    return rank_with_networkx(
        edges, {**nodes, **{id: settings.passage_weight * dense[id] for id in case.facts}}, settings.damping
    )


def first_seen(case: Case) -> list[str]:
    return case.snapshot.ids("entity", range(case.snapshot.row_count("entity")))


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_ranks_equal_those_of_networkx(make_case: BuildCase, seed: int, replaces: bool) -> None:
    case, settings = make_case(seed), replace(SETTINGS, synonyms_replace_facts=replaces)
    evidence = HippoRAG2Retriever(case.vectors, settings).retrieve(Query(QUESTION, 9), case.snapshot)
    assert_same_ranks({hit.passage.id: hit.score for hit in evidence.passages}, compute_ranks(case, settings))
    assert [hit.score for hit in evidence.passages] == sorted((hit.score for hit in evidence.passages), reverse=True)
    assert len(evidence.hyperedges) == min(3, len(case.list_facts()))


def test_the_model_removes_facts_and_without_facts_passages_are_ranked_by_similarity(make_case: BuildCase) -> None:
    case = make_case(1)
    retriever = HippoRAG2Retriever(case.vectors, SETTINGS)
    linked = [edge.hyperedge.id for edge in retriever.retrieve(Query(QUESTION, 3), case.snapshot).hyperedges]
    model = ScriptedLanguageModel(['{"facts": [2]}', '{"facts": []}', "no idea"])
    filtered = HippoRAG2Retriever(case.vectors, SETTINGS, model)
    first, second, third = [filtered.retrieve(Query(QUESTION, 3), case.snapshot) for _ in range(3)]
    assert [edge.hyperedge.id for edge in first.hyperedges] == [linked[1]]
    assert not second.hyperedges
    cosines = {id: case.vectors.cosine(case.get_text(id), QUESTION) for id in case.facts}
    assert [hit.passage.id for hit in second.passages] == sorted(cosines, key=lambda id: (-cosines[id], id))[:3]
    assert [edge.hyperedge.id for edge in third.hyperedges] == linked
    assert "1. " in model.prompts[0].user
    assert any(name in model.prompts[0].user for name in NAMES)


@pytest.mark.parametrize(("name", "value"), [("damping", 1.0), ("top_k_facts", 0), ("edge_weight", 0.0)])
def test_settings_outside_their_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=name):
        HippoRAG2Settings(**cast(Any, {name: value}))
