from __future__ import annotations

from collections import defaultdict
from itertools import chain, combinations, zip_longest
from typing import Literal

import pytest

from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad.retrieval.question import QuestionLinker
from polyad_baselines.lightrag import HyperRAGRetriever, LightRAGRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import HyperRAGSettings, LightRAGSettings
from tests.polyad_baselines.cases import QUESTION, BuildCase, Case, NamesOf

LINKER = QuestionLinker(NamesOf("bell", "tarn"), "found")
MODES: tuple[Literal["local", "global", "hybrid"], ...] = ("local", "global", "hybrid")


def rank_passages(case: Case, settings: LightRAGSettings) -> list[str]:
    """LightRAG, or Hyper-RAG by its settings, by the papers' words on dictionaries."""
    is_hypergraph = isinstance(settings, HyperRAGSettings)
    neighbours: dict[str, set[str]] = defaultdict(set)
    homes: dict[str, set[str]] = defaultdict(set)

    def degree(members: tuple[str, ...]) -> int:
        return len(members) if is_hypergraph else sum(len(neighbours[name]) for name in members)

    def count(name: str, passage: str) -> int:
        if is_hypergraph:
            edges = [members for _, _, members in case.list_facts() if name in members]
            return sum(int(other in mentions[passage]) for members in edges for other in members)
        return len(neighbours[name] & mentions[passage])

    for passage, _, members in case.list_facts():
        for first, second in combinations(members, 2):
            neighbours[first].add(second)
            neighbours[second].add(first)
        for member in members:
            homes[member].add(passage)
    mentions = {passage: {name for _, names in facts for name in names} for passage, facts in case.facts.items()}
    low = {name: case.vectors.cosine(name, "bell, tarn") for name in homes}
    entities = sorted((name for name in low if low[name] >= settings.threshold), key=lambda name: (-low[name], name))
    local_passages = []
    for name in entities[: settings.top_k]:
        counts = {passage: count(name, passage) for passage in homes[name]}
        local_passages += sorted(counts, key=lambda passage: (-counts[passage], passage))
    facts = [
        (case.vectors.cosine(text, QUESTION), passage, members, (passage, place))
        for place, (passage, text, members) in enumerate(case.list_facts())
    ]
    similar = [fact for fact in sorted(facts, key=lambda fact: -fact[0]) if fact[0] >= settings.threshold]
    chosen_facts = similar[: settings.top_k]
    if settings.fact_order == "degree":
        chosen_facts.sort(key=lambda fact: (-degree(fact[2]), fact[3]))
    global_passages = [fact[1] for fact in chosen_facts]
    if settings.mode != "hybrid":
        return list(dict.fromkeys(local_passages if settings.mode == "local" else global_passages))
    turns = chain.from_iterable(zip_longest(global_passages, local_passages))
    return list(dict.fromkeys(passage for passage in turns if passage))


@pytest.mark.parametrize("kind", [LightRAGSettings, HyperRAGSettings])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(10))
def test_passages_are_those_of_an_independent_computation(
    make_case: BuildCase, seed: int, mode: Literal["local", "global", "hybrid"], kind: type[LightRAGSettings]
) -> None:
    order: Literal["degree", "cosine"] = "cosine" if seed == 0 else "degree"
    case, settings = make_case(seed), kind(mode=mode, top_k=4, threshold=0.1, fact_order=order)
    build = HyperRAGRetriever if isinstance(settings, HyperRAGSettings) else LightRAGRetriever
    retriever = build(case.vectors, KeywordExtractor(LINKER), settings)
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    assert [hit.passage.id for hit in evidence.passages] == rank_passages(case, settings)
    assert evidence.hyperedges


def test_keywords_are_those_of_the_model_and_otherwise_names_and_words(make_case: BuildCase) -> None:
    case = make_case(3)
    model = ScriptedLanguageModel(['{"high_level": ["casting"], "low_level": ["old isk", "ut"]}', "none", "[]"])
    extractor = KeywordExtractor(LINKER, model)
    first, second = [extractor.extract(QUESTION, case.snapshot) for _ in range(2)]
    assert (first.low_level, first.high_level) == ("old isk, ut", "casting")
    assert (second.low_level, second.high_level) == ("bell, tarn", QUESTION)
    named = ScriptedLanguageModel(['{"high_level_keywords": ["casting"], "low_level_keywords": ["ut"]}'])
    third = KeywordExtractor(LINKER, named).extract(QUESTION, case.snapshot)
    assert (third.low_level, third.high_level) == ("ut", "casting"), "the names of LightRAG's own prompt"


def test_without_names_hybrid_retrieval_is_global(make_case: BuildCase) -> None:
    case = make_case(4)
    nameless = KeywordExtractor(QuestionLinker(NamesOf(), "found"))
    hybrid, only_global = [
        LightRAGRetriever(case.vectors, nameless, LightRAGSettings(mode=mode)).retrieve(
            Query(QUESTION, 5), case.snapshot
        )
        for mode in ("hybrid", "global")
    ]
    assert hybrid == only_global
    assert not hybrid.entities
