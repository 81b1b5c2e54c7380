from __future__ import annotations

import time
from dataclasses import replace

import pytest

from polyad.errors import ConfigurationError
from polyad.model import Evidence, Passage, ScoredPassage, Timings
from polyad_bench.datasets.beir import Question
from polyad_bench.runs.retriever_evaluation import (
    PASSAGES_PER_DOCUMENT,
    ask_questions,
    evaluate_retriever,
    summarise_records,
)


def evidence(question: str, *documents: str, encode: float = 1.0, retrieve: float = 1.0) -> Evidence:
    passages = tuple(
        ScoredPassage(Passage(f"{document}#{place:04}", document, "", "", 0, 0), 1.0 - place)
        for place, document in enumerate(documents)
    )
    return Evidence(question, "scripted", passages, timings=Timings(encode, retrieve))


QUERIES = [
    Question("1", "first", frozenset({"a", "b"})),
    Question("2", "second", frozenset({"c"})),
    Question("3", "third", frozenset({"d"})),
]
ANSWERS = {
    "first": evidence("first", "a", "x", "b", encode=2.0, retrieve=8.0),
    "second": evidence("second", "x", "c", encode=4.0, retrieve=16.0),
    "third": evidence("third", encode=6.0, retrieve=24.0),
}


class Scripted:
    """Answers from a table, and counts."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []

    def __call__(self, question: str, k: int) -> Evidence:
        self.requests.append((question, k))
        return ANSWERS[question]


def silent(done: int, total: int | None, message: str) -> None:
    pass


def test_measures_are_averaged_over_all_questions_also_those_without_a_hit() -> None:
    result = evaluate_retriever("scripted", Scripted(), QUERIES, 3, silent)
    assert result.recall == pytest.approx((1 + 1 + 0) / 3)
    assert result.all_recall == pytest.approx((1 + 1 + 0) / 3)
    assert result.mrr == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_only_the_first_k_documents_count_for_recall() -> None:
    result = evaluate_retriever("scripted", Scripted(), QUERIES[:1], 2, silent)
    assert (result.recall, result.all_recall) == (0.5, 0.0)


def test_recall_counts_documents_not_passages() -> None:
    actual = evidence("first", "x", "x", "x", "a", "b")
    result = evaluate_retriever("scripted", lambda *_: actual, QUERIES[:1], 2, silent)
    assert (result.recall, result.all_recall, result.mrr) == (0.5, 0.0, 0.5)


def test_latencies_are_of_each_question_with_its_encoding() -> None:
    result = evaluate_retriever("scripted", Scripted(), QUERIES, 3, silent)
    assert (result.latency_p50, result.encode_p50) == (20.0, 4.0)
    assert result.latency_p95 == pytest.approx(29.0)  # nine tenths of the way from 20 to 30


def test_the_retriever_is_prepared_before_the_first_question_and_each_is_asked_once() -> None:
    search, prepared = Scripted(), []
    list(ask_questions("scripted", search, QUERIES, 3, load_models=lambda: prepared.append(len(search.requests))))
    assert prepared == [0]
    assert search.requests == [
        ("first", 3 * PASSAGES_PER_DOCUMENT),
        ("second", 3 * PASSAGES_PER_DOCUMENT),
        ("third", 3 * PASSAGES_PER_DOCUMENT),
    ]


def test_tokens_are_those_spent_on_all_questions_where_a_reply_is_paid_for_once() -> None:
    search = Scripted()
    records = ask_questions(
        "scripted",
        search,
        QUERIES,
        3,
        count_tokens=lambda: (100 + 30 * len(set(search.requests)), 90 * len(search.requests)),
    )
    result = summarise_records("scripted", [record for record, _ in records], 3)
    assert (result.llm_tokens_per_query, result.llm_tokens_uncached_per_query) == (30, 90)


def test_evidence_without_timings_counts_with_the_time_it_took() -> None:
    def slow(question: str, k: int) -> Evidence:
        time.sleep(0.01)
        return replace(ANSWERS[question], timings=Timings())

    result = evaluate_retriever("scripted", slow, QUERIES, 3, silent)
    assert result.latency_p95 >= result.latency_p50 >= 10
    assert result.encode_p50 == 0


def test_no_questions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no questions to measure 'scripted' with"):
        evaluate_retriever("scripted", Scripted(), [], 3, silent)


def test_progress_is_told_after_each_question() -> None:
    messages: list[tuple[int, int | None]] = []
    evaluate_retriever("scripted", Scripted(), QUERIES, 3, lambda done, total, message: messages.append((done, total)))
    assert messages == [(1, 3), (2, 3), (3, 3)]


def test_json_has_the_shape_that_the_command_line_promises() -> None:
    results = evaluate_retriever("scripted", Scripted(), QUERIES, 3, silent).to_json(3)
    assert results == {
        "retriever": "scripted",
        "recall@3": 0.6667,
        "all_recall@3": 0.6667,
        "mrr": 0.5,
        "latency_ms": {"p50": 20.0, "p95": 29.0, "encode_p50": 4.0},
        "llm_tokens_per_query": 0.0,
        "llm_tokens_uncached_per_query": 0.0,
        "hits@3": 0.6667,
        "ndcg@3": 0.5169,
        "recall_at_words": {"500": 0.6667, "1000": 0.6667, "2000": 0.6667},
    }
