from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyad.errors import ConfigurationError
from polyad_bench.datasets.beir import Question, get_document_texts
from polyad_bench.datasets.selection import load_dataset
from polyad_bench.runs.manifest import compute_dataset_digest

MEDICAL: list[dict[str, Any]] = [
    {
        "id": "Medical-1",
        "source": "Medical",
        "question": "Which polyps rarely turn into cancer?",
        "answer": "Hyperplastic ones.",
        "question_type": "Fact Retrieval",
        "evidence": "Hyperplastic polyps rarely turn.; Others; and adenomas, do.",
        "evidence_relations": "x",
    },
    {"id": "Medical-2", "source": "Medical", "question": "Why?", "answer": "So.", "evidence": ["One.", "Two."]},
]
ONE = {"corpus_name": "Medical", "context": "Hyperplastic polyps rarely turn into cancer."}
KIND = "('e', ('r', 'r', 'r'))"


def bench(folder: Path, questions: object, corpus: object) -> Path:
    (folder / "Questions").mkdir(parents=True)
    (folder / "Corpus").mkdir()
    (folder / "Questions" / "medical_questions.json").write_text(json.dumps(questions, indent=1), encoding="utf-8")
    (folder / "Corpus" / "medical.json").write_text(json.dumps(corpus), encoding="utf-8")
    return folder


def topics(folder: Path, prefix: str = "test_", **answers: object) -> Path:
    folder.mkdir(parents=True)
    remaining = {"easy": {"Who?": ["Anna"]}, "hard": {"Who?": ["Berta", "Anna"], "Où?": ["Isk"]}, **answers}
    (folder / f"{prefix}queries.json").write_text(json.dumps({KIND: ["Who?", "Où?", "Who?"]}, indent=1))
    for name, by_question in remaining.items():
        if by_question is not None:
            (folder / f"{prefix}answers_{name}.json").write_text(json.dumps({KIND: by_question}))
    (folder / "train_sentences.txt").write_text("Anna knows Berta.\n\nThe Isk flows.\n")
    (folder / "test_sentences.txt").write_text("The Isk flows.\nBerta knows Carl.\n")
    return folder


def test_questions_of_graphrag_bench_have_statements_for_evidence_and_one_document_is_no_gold(tmp_path: Path) -> None:
    dataset = load_dataset(bench(tmp_path / "bench", MEDICAL, ONE))
    assert (dataset.name, dataset.is_judged) == ("medical", False)
    assert [(one.id, one.title, one.text) for one in dataset.documents or ()] == [("Medical", "", ONE["context"])]
    assert dataset.queries == (
        Question(
            "Medical-1",
            "Which polyps rarely turn into cancer?",
            frozenset(),
            ("Hyperplastic ones.",),
            "Fact Retrieval",
            ("Hyperplastic polyps rarely turn.", "Others; and adenomas, do."),
        ),
        Question("Medical-2", "Why?", frozenset(), ("So.",), "", ("One.", "Two.")),
    )
    assert load_dataset(tmp_path / "bench" / "Questions" / "medical_questions.json") == dataset
    before = compute_dataset_digest(dataset)
    (tmp_path / "bench" / "Corpus" / "medical.json").write_text(json.dumps([ONE]))
    assert compute_dataset_digest(load_dataset(tmp_path / "bench")) != before


def test_of_several_novels_that_of_a_question_is_its_gold(tmp_path: Path) -> None:
    novels = [{"corpus_name": name, "context": f"Part {number}."} for number, name in enumerate(["N1", "N2", "N1"])]
    questions = [{**question, "source": source} for question, source in zip(MEDICAL, ["N2", "N1"], strict=True)]
    dataset = load_dataset(bench(tmp_path / "bench", questions, novels))
    assert [sorted(question.gold) for question in dataset.queries] == [["N2"], ["N1", "N1#2"]]
    assert get_document_texts(dataset, {"N2"}) == {"N2": "Part 1."}
    elsewhere = bench(tmp_path / "other", MEDICAL, novels)
    with pytest.raises(
        ConfigurationError, match=r"line 2: question 'Medical-1' is about 'Medical', which is no corpus"
    ):
        load_dataset(elsewhere)


@pytest.mark.parametrize(
    ("questions", "corpus", "message"),
    [
        (
            [*MEDICAL, MEDICAL[0]],
            ONE,
            r"medical_questions.json', line 21: question 'Medical-1' stands in line 2 already",
        ),
        ([{**MEDICAL[0], "id": " "}], ONE, r"line 2: 'id' is ' '; expected a text"),
        ([{**MEDICAL[0], "question": 3}], ONE, r"line 2: 'question' is '3'; expected a text"),
        ([], ONE, "medical_questions.json' holds no question"),
        (MEDICAL, [], "medical.json' holds no document"),
        (MEDICAL, [{"corpus_name": "x"}], r"medical.json', line 1: 'context' is 'None'"),
        (["Who?"], ONE, r"line 2: 'Who\?'; expected an object"),
    ],
)
def test_errors_in_graphrag_bench_name_the_line(
    tmp_path: Path, questions: object, corpus: object, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_dataset(bench(tmp_path / "bench", questions, corpus))


def test_a_torn_file_is_named_with_the_line_where_it_ends(tmp_path: Path) -> None:
    folder = bench(tmp_path / "bench", MEDICAL, ONE)
    path = folder / "Questions" / "medical_questions.json"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ConfigurationError, match=r"medical_questions.json', line \d+: .* is no JSON"):
        load_dataset(folder)
    path.write_text("[" + json.dumps(MEDICAL[0]))
    with pytest.raises(ConfigurationError, match=r"line 1: .* is no JSON"):
        load_dataset(folder)


def test_of_several_files_of_questions_one_has_to_be_named(tmp_path: Path) -> None:
    folder = bench(tmp_path / "bench", MEDICAL, ONE)
    (folder / "Questions" / "novel_questions.json").write_text("[]")
    with pytest.raises(ConfigurationError):
        load_dataset(folder)
    with pytest.raises(ConfigurationError, match=r"novel_questions.json' has no corpus"):
        load_dataset(folder / "Questions" / "novel_questions.json")


@pytest.mark.parametrize("prefix", ["", "test_"])
def test_answers_of_wikitopics_are_easy_or_hard_and_questions_come_once(tmp_path: Path, prefix: str) -> None:
    dataset = load_dataset(topics(tmp_path / "art", prefix))
    assert dataset.name == "art"
    assert dataset.queries == (
        Question("q00001", "Who?", frozenset(), ("Anna", "Berta"), KIND, easy=("Anna",), hard=("Berta", "Anna")),
        Question("q00002", "Où?", frozenset(), ("Isk",), KIND, hard=("Isk",)),
    )
    assert [(one.id, one.text) for one in dataset.documents or ()] == [
        ("test_sentences:1", "The Isk flows."),
        ("test_sentences:2", "Berta knows Carl."),
        ("train_sentences:1", "Anna knows Berta."),
    ]


def test_wikitopics_may_have_its_corpus_as_facts(tmp_path: Path) -> None:
    folder = topics(tmp_path / "art")
    (folder / "facts.jsonl").write_text("{}")
    dataset = load_dataset(folder)
    assert (dataset.documents, dataset.corpus) == (None, folder / "facts.jsonl")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"hard": {"Who?": ["Berta"]}}, r"test_queries.json', line 4: there is no answer to 'Où\?'"),
        ({"hard": ["Berta"]}, "answers_hard.json': expected answers by question"),
        ({"easy": None, "hard": None}, "answers_easy.json' is missing"),
    ],
)
def test_errors_in_wikitopics_are_named(tmp_path: Path, answers: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_dataset(topics(tmp_path / "art", **answers))


def test_questions_without_judgements_are_a_data_set_too(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "Who?", "evidence": ["X."]}\n')
    dataset = load_dataset(tmp_path)
    assert (dataset.queries, dataset.is_judged) == ((Question("q", "Who?", frozenset(), evidence=("X.",)),), False)
    (tmp_path / "queries.jsonl").write_text("\n")
    with pytest.raises(ConfigurationError, match=r"queries.jsonl' holds no question"):
        load_dataset(tmp_path)
    with pytest.raises(ConfigurationError):
        load_dataset(tmp_path / "corpus.jsonl")
