from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.indexing.split import SentenceSplitter
from polyad.model import Document
from polyad.text.json_types import format_value, parse_value
from polyad_bench.datasets.beir import Question
from polyad_bench.measures.evidence import StatementCoverage, StatementRecall, is_covered
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.runs.records import QuestionRecord
from polyad_bench.runs.retriever_evaluation import ask_questions, summarise_records

DOCUMENTS = (
    Document("a", "", "The otter closes its ears. It dives. It hunts at dusk. Crabs hide under stones."),
    Document("b", "", "The bell was cast in 1702. The bell is of bronze."),
    Document("c", "", "The bell hangs in the tower. Otters sleep."),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as made:
        made.index_documents(DOCUMENTS)
        yield made


@pytest.fixture
def recall(engine: Engine) -> StatementRecall:
    return StatementRecall(engine.snapshot("bm25"), SentenceSplitter().sentences, (4, 100))


def test_words_count_as_bm25_has_them(recall: StatementRecall) -> None:
    rare, frequent = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    unknown = math.log(1 + 3.5 / 0.5)
    assert recall.get_weights("The bell of bronze was no submarine.") == pytest.approx(
        {"bell": frequent, "bronz": rare, "no": unknown, "submarin": unknown}
    )


def test_a_statement_is_covered_by_three_sentences_in_a_row_and_not_by_four() -> None:
    weights = {"ear": 1.0, "dive": 1.0, "dusk": 1.0, "crab": 1.0}
    sentences = [frozenset({word}) for word in ("ear", "dive", "dusk", "crab")]
    assert not is_covered(weights, sentences)
    assert is_covered(weights, [frozenset({"ear", "dive"}), *sentences[2:]])
    assert is_covered({**weights, "crab": 0.75}, sentences[:3]), "exactly four fifths are enough"
    assert not is_covered({**weights, "crab": 0.76}, sentences[:3])
    assert not is_covered(weights, [])


def test_texts_are_cut_at_the_budget_and_compared_separately(recall: StatementRecall) -> None:
    statement = "A bell of bronze was cast in 1702"
    first, second = DOCUMENTS[1].text.split(". ")
    assert recall.measure_coverage([statement], [DOCUMENTS[1].text]) == StatementCoverage(1, 1, {4: 0, 100: 1})
    assert recall.measure_coverage([statement], [first, second]).at_words == {4: 0, 100: 0}
    assert recall.measure_coverage(["The otter"], ["The otter closes its ears."]).at_words == {4: 1, 100: 1}


def test_the_ceiling_is_what_any_passage_covers(recall: StatementRecall) -> None:
    statement_coverage = recall.measure_coverage(
        ["The bell is of bronze.", "A submarine dives.", "Otters sleep."], [DOCUMENTS[2].text]
    )
    assert statement_coverage == StatementCoverage(3, 2, {4: 0, 100: 1})


def test_statement_recall_is_the_share_of_covered_statements(engine: Engine, recall: StatementRecall) -> None:
    questions = [
        Question("q1", "Who dives?", frozenset(), evidence=("The otter dives.", "Nobody knows a submarine.")),
        Question("q2", "Where is the bell?", frozenset(), evidence=("The bell hangs in the tower.",)),
        Question("q3", "When?", frozenset()),
    ]
    records = [
        record
        for record, _ in ask_questions(
            "bm25",
            lambda question, k: engine.search(question, k, retriever="bm25", merge=False),
            questions,
            5,
            measure_coverage=lambda question, evidence: (
                recall.measure_coverage(question.evidence, [hit.passage.text for hit in evidence.passages])
                if question.evidence
                else None
            ),
        )
    ]
    result = summarise_records("bm25", records, 5)
    assert (result.recall, result.ndcg, result.recall_at_words[500]) == (None, None, None), "nobody judged documents"
    assert (result.evidence, result.evidence_ceiling) == ({4: pytest.approx(0.0), 100: 0.75}, 0.75)
    assert result.to_json(5)["evidence_recall"] == {"at_words": {"4": 0.0, "100": 0.75}, "ceiling": 0.75}
    assert parse_measure("evidence_recall@100w")(records[0]) == 0.5
    read = [parse_value(format_value(record), QuestionRecord) for record in records]
    assert [record.coverage for record in read] == [record.coverage for record in records]
    assert summarise_records("bm25", read, 5) == result
