from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyad.errors import ConfigurationError
from polyad_bench.datasets.beir import Question, load_beir, require_valid_corpus

QUERIES = [
    {"_id": "q1", "text": "Who?", "metadata": {"answers": ["Anna", 1961]}},
    {"_id": "q2", "text": "Where?"},
    {"_id": "q3", "text": "Nobody knows?"},
    {"_id": 4, "text": "When?", "metadata": None},
]
QRELS = 'query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t2\nq1\tc\t0\nq2\ta\t1\nq9\ta\t1\n4\t"quoted\t1\n'


def write(folder: Path, *, queries: str | None = None, qrels: str = QRELS) -> Path:
    target = folder / "folder"
    (target / "qrels").mkdir(parents=True)
    (target / "corpus.jsonl").write_text("")
    text = "\n".join(map(json.dumps, QUERIES)) + "\n" if queries is None else queries
    (target / "queries.jsonl").write_text(text, encoding="utf-8")
    (target / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return target


def test_questions_with_a_gold_document_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    dataset = load_beir(write(tmp_path))
    assert dataset.name == "folder"
    assert dataset.corpus == tmp_path / "folder" / "corpus.jsonl"
    assert dataset.queries == (
        Question("q1", "Who?", frozenset("ab"), ("Anna", "1961")),
        Question("q2", "Where?", frozenset("a")),
        Question("4", "When?", frozenset(['"quoted'])),
    )


def test_gold_documents_missing_from_the_corpus_are_listed(tmp_path: Path) -> None:
    dataset = load_beir(write(tmp_path))
    assert dataset.unknown == ("q9",)
    assert dataset.find_missing_gold({"a"}) == ['"quoted', "b"]


def test_a_limit_takes_the_first_questions(tmp_path: Path) -> None:
    assert [query.id for query in load_beir(write(tmp_path), limit=2).queries] == ["q1", "q2"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(tmp_path: Path, limit: int) -> None:
    with pytest.raises(ConfigurationError, match=f"limit is {limit}"):
        load_beir(write(tmp_path), limit=limit)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(ConfigurationError, match=missing):
        load_beir(folder)


@pytest.mark.parametrize("line", ["not json", "[1]", '"text"', "3", '{"_id": "q1"}', '{"text": "Who?"}', "null", "{"])
def test_a_line_that_is_no_question_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    folder = write(tmp_path, queries='{"_id": "q1", "text": "Who?"}\n' + line + "\n")
    with pytest.raises(ConfigurationError, match=r"queries.jsonl', line 2"):
        load_beir(folder)


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q\td\ts\nq1\ta\n", "line 2: 2 columns"),
        ("q\td\ts\nq1 a 1\n", "line 2: 1 column "),
        ("q\td\ts\nq1\ta\tyes\n", "line 2: grade 'yes'"),
        ("q1\t0\ta\t1\n", "line 1: 4 columns"),
    ],
)
def test_a_judgement_of_another_form_is_named_with_its_number(tmp_path: Path, qrels: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_beir(write(tmp_path, qrels=qrels))


def test_judgements_may_lack_a_header_and_have_blank_lines_and_fractions(tmp_path: Path) -> None:
    folder = write(tmp_path, qrels="\ufeffq1\ta\t1.0\n\nq1\tb\t0.0\nq1\tc\t-1\n\n")
    assert load_beir(folder).queries[0].gold == {"a"}


def test_blank_lines_among_questions_are_passed_over(tmp_path: Path) -> None:
    folder = write(tmp_path, queries='\n{"_id": "q1", "text": "Who?"}\n\n')
    assert [query.id for query in load_beir(folder).queries] == ["q1"]


@pytest.mark.parametrize("metadata", ['"text"', "[1]", '{"answers": 7}', '{"answers": null}', "{}"])
def test_metadata_of_another_form_holds_no_answers(tmp_path: Path, metadata: str) -> None:
    folder = write(tmp_path, queries='{"_id": "q1", "text": "Who?", "metadata": ' + metadata + "}")
    assert load_beir(folder).queries[0].answers == ()


def test_one_answer_need_not_be_in_a_list(tmp_path: Path) -> None:
    folder = write(tmp_path, queries='{"_id": "q1", "text": "Who?", "metadata": {"answers": "Anna"}}')
    assert load_beir(folder).queries[0].answers == ("Anna",)


def test_a_dataset_without_any_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        load_beir(write(tmp_path, qrels="query-id\tcorpus-id\tscore\nq8\ta\t1\n"))


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "caf\xe9"}\n')
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_beir(folder)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"_id": "q1", "text": "Who?"}', r"queries.jsonl', line 2: question 'q1' stands in line 1 already"),
        ('{"_id": "", "text": "Who?"}', r"queries.jsonl', line 2: the id of a question is empty"),
        ('{"_id": "q2", "text": "  "}', r"queries.jsonl', line 2: question 'q2' is blank"),
    ],
)
def test_a_question_without_an_id_of_its_own_or_words_is_named(tmp_path: Path, second: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_beir(write(tmp_path, queries='{"_id": "q1", "text": "Who?"}\n' + second + "\n"))


@pytest.mark.parametrize("line", ["q1\t\t1", "\ta\t1", " \ta\t0"])
def test_a_judgement_with_an_empty_id_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"test.tsv', line 3: .* has an empty id"):
        load_beir(write(tmp_path, qrels=f"q\td\ts\nq1\ta\t1\n{line}\n"))


def corpus_of(folder: Path, *lines: str) -> Path:
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    return folder


A, B = '{"_id": "a", "text": "A."}', '{"id": "b", "text": "B."}'
SMALL = "q\td\ts\nq1\ta\t1\nq1\tb\t1\nq1\tc\t0\n"


def test_a_corpus_that_holds_what_is_judged_is_sound(tmp_path: Path) -> None:
    require_valid_corpus(load_beir(corpus_of(write(tmp_path, qrels=SMALL), A, "", "not json", B)))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((A, "", A, B), r"corpus.jsonl', line 3: document 'a' stands in line 1 already"),
        ((A, '{"_id": " ", "text": "B."}'), r"corpus.jsonl', line 2: the id of a document is empty"),
        ((), r"corpus.jsonl' holds no document"),
        ((A,), r"test.tsv', line 3: document 'b' is judged to be evidence for question 'q1' and is not in"),
    ],
)
def test_a_corpus_that_cannot_be_measured_on_is_refused(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        require_valid_corpus(load_beir(corpus_of(write(tmp_path, qrels=SMALL), *lines)))


@pytest.mark.parametrize("id", ["null", '["x"]', "1.5", "true", "{}"])
def test_an_id_that_is_no_text_is_named_with_its_line(tmp_path: Path, id: str) -> None:
    folder = write(tmp_path, queries='{"_id": "q1", "text": "Who?"}\n' + f'{{"_id": {id}, "text": "Where?"}}\n')
    with pytest.raises(ConfigurationError, match=r"queries.jsonl', line 2: the id of a question is"):
        load_beir(folder)
    folder = write(tmp_path / "other")
    (folder / "corpus.jsonl").write_text(f'{{"_id": {id}, "text": "x"}}\n')
    with pytest.raises(ConfigurationError, match=r"corpus.jsonl', line 1: the id of a document is"):
        require_valid_corpus(load_beir(folder))


@pytest.mark.parametrize(
    ("line", "message"),
    [("q1\ta\tnan", "line 3: grade 'nan'"), ("q1\ta\t0", "line 3: 'a' is judged otherwise for 'q1' than in line 2")],
)
def test_judgements_that_say_nothing_or_both_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_beir(write(tmp_path, qrels=f"query-id\tcorpus-id\tscore\nq1\ta\t1\n{line}\n"))
    assert load_beir(write(tmp_path / "twice", qrels="q1\ta\t1\nq1\ta\t2\n")).queries[0].gold == {"a"}
