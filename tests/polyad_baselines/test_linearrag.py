from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest

from polyad.model import Query
from polyad.retrieval.question import QuestionLinker
from polyad_baselines.linearrag import LinearRAGRetriever
from polyad_baselines.settings import LinearRAGSettings
from tests.polyad_baselines.cases import QUESTION, BuildCase, Case, NamesOf, assert_same_ranks, rank_with_networkx

SETTINGS = LinearRAGSettings(rounds=3, threshold=0.05, top_k_sentences=2)
QUESTION_NAMES = ("bell", "tarn", "old isk")


def compute_ranks(case: Case, settings: LinearRAGSettings) -> dict[str, float]:
    """LinearRAG by the paper's words, on dictionaries."""
    counts: Counter[tuple[str, str]] = Counter()
    for passage, _, members in case.list_facts():
        counts.update((member, passage) for member in members)
    totals: Counter[str] = Counter()
    for (_, passage), count in counts.items():
        totals[passage] += count
    edges = {frozenset(pair): count / totals[pair[1]] for pair, count in counts.items()}
    names = sorted({name for name, _ in counts})
    active: dict[str, tuple[float, int]] = {}
    for query_name in QUESTION_NAMES:
        best = max(names, key=lambda name: (case.vectors.cosine(name, query_name), -names.index(name)))
        cosine = case.vectors.cosine(best, query_name)
        active[best] = max(active.get(best, (0.0, 1)), (cosine, 1))
    weights = defaultdict(float, {name: score for name, (score, _) in active.items()})
    current, used = dict(active), set()
    for tier in range(2, settings.rounds + 1):
        following = {}
        for name, (score, _) in sorted(current.items(), key=lambda item: (-item[1][0], item[0])):
            if score < settings.threshold:
                continue
            edge_of = [place for place, fact in enumerate(case.list_facts()) if name in fact[2] and place not in used]
            edge_of.sort(key=lambda place: (-case.vectors.cosine(case.list_facts()[place][1], QUESTION), place))
            for place in edge_of[: settings.top_k_sentences]:
                used.add(place)
                _, text, members = case.list_facts()[place]
                received = score * case.vectors.cosine(text, QUESTION)
                for member in members if received >= settings.threshold else ():
                    weights[member] += received
                    following[member] = received, tier
        active.update(following)
        current = following
    dense = case.scale({passage: case.get_text(passage) for passage in case.facts})
    reset = {name: max(0.0, weights[name]) for name in names}
    for passage in case.facts:
        bonus = sum(
            score * math.log(1 + counts[name, passage]) / tier for name, (score, tier) in sorted(active.items())
        )
        reset[passage] = settings.passage_weight * (settings.passage_ratio * dense[passage] + math.log(1 + bonus))
    return rank_with_networkx(edges, reset, settings.damping)


@pytest.mark.parametrize("seed", range(30))
def test_ranks_equal_those_of_networkx(make_case: BuildCase, seed: int) -> None:
    case = make_case(seed)
    retriever = LinearRAGRetriever(case.vectors, QuestionLinker(NamesOf(*QUESTION_NAMES), "found"), SETTINGS)
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    assert_same_ranks({hit.passage.id: hit.score for hit in evidence.passages}, compute_ranks(case, SETTINGS))
    assert evidence.entities


def test_a_question_without_names_ranks_passages_by_similarity(make_case: BuildCase) -> None:
    case = make_case(2)
    retriever = LinearRAGRetriever(case.vectors, QuestionLinker(NamesOf(), "found"), SETTINGS)
    evidence = retriever.retrieve(Query(QUESTION, 3), case.snapshot)
    cosines = {id: case.vectors.cosine(case.get_text(id), QUESTION) for id in case.facts}
    assert [hit.passage.id for hit in evidence.passages] == sorted(cosines, key=lambda id: (-cosines[id], id))[:3]
    assert not evidence.entities
