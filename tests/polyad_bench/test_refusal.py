from __future__ import annotations

from pathlib import Path

import pytest

from polyad.errors import ConfigurationError
from polyad_bench.datasets.beir import Dataset, Question
from polyad_bench.files import RecordFile
from polyad_bench.runs.records import QuestionRecord, RankedPassage
from polyad_bench.runs.retriever_evaluation import (
    WITHOUT_GOLD,
    measure_refusal,
    read_records_without_gold,
    require_gold_documents,
)

GOLD = frozenset("g")


def record(number: int, *values: float, relevance: bool = True) -> QuestionRecord:
    ranked_passages = [
        RankedPassage(f"p{place}", "d", value * 100, 3, value if relevance else None)
        for place, value in enumerate(values)
    ]
    return QuestionRecord("default", Question(f"q{number}", "Who?", GOLD), tuple(ranked_passages))


def by_key(records: list[QuestionRecord]) -> dict[tuple[str, str], QuestionRecord]:
    return {one.key: one for one in records}


def test_the_refusal_limit_is_the_fifth_percentile_of_answered_questions() -> None:
    answered = [record(0, 0.1, 0.05), *(record(number, 0.2, 0.5) for number in range(1, 20))]
    others = [record(number, 0.05 * number) for number in range(20)]
    refusal = measure_refusal(answered, by_key(others))
    assert refusal is not None
    assert (refusal.refused, refusal.criterion) == (0.5, "relevance"), "10 of 20 are below 0.5"
    assert refusal.flags == tuple(number < 10 for number in range(20))
    assert refusal.roc_auc == pytest.approx((2.5 + 19 * 10.5) / 400)


def test_scores_are_compared_where_a_record_knows_no_relevance() -> None:
    answered = [record(number, 0.5) for number in range(20)]
    others = [record(0, 0.4, relevance=False), *(record(number, 0.6) for number in range(1, 20))]
    refusal = measure_refusal(answered, by_key(others))
    assert refusal is not None
    assert (refusal.refused, refusal.criterion) == (0.05, "score")


def test_questions_without_hits_count_as_refused() -> None:
    refusal = measure_refusal([record(0, 0.0)], by_key([record(0)]))
    assert refusal is not None
    assert (refusal.refused, refusal.roc_auc) == (1.0, 1.0)
    assert measure_refusal([record(0, 0.5)], by_key([record(1, 0.5)])) is None, "no question was put both ways"


def test_records_without_gold_are_read_as_they_were_written(tmp_path: Path) -> None:
    with RecordFile(tmp_path / WITHOUT_GOLD, QuestionRecord) as file:
        file.append(record(0, 0.25))
    assert read_records_without_gold(tmp_path) == by_key([record(0, 0.25)])
    (tmp_path / WITHOUT_GOLD).write_text('{"query_id": 1}\n')
    with pytest.raises(ConfigurationError, match=r"without_gold.jsonl', line 1"):
        read_records_without_gold(tmp_path)
    with pytest.raises(ConfigurationError, match="--refusal takes gold documents out"):
        require_gold_documents(Dataset("x", tmp_path / "corpus.jsonl", (Question("q1", "?", frozenset()),)))
