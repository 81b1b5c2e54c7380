"""Data sets of questions on a corpus, and BEIR folders: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

Other layouts have modules of their own: see :mod:`polyad_bench.datasets.selection`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.schemas.places import shorten
from polyad.text.words import format_count
from polyad_bench.files import parse_json, read_lines


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a data set, with the ids of its gold (relevant) documents and its accepted answers.

    Attributes:
        id: Id of the question, unique in the data set.
        text: Text of the question.
        gold: Ids of the documents that contain the evidence for the answer; empty if no document has been judged.
        answers: Accepted answers; each is correct.
        type: Question type of the data set.
        evidence: Statements that support the answer.
        easy: Answers that the documents state, if the data set distinguishes such answers (HyperRAG, WikiTopics).
        hard: Answers that must be inferred. Easy and hard answers are among ``answers``.
    """

    id: str
    text: str
    gold: frozenset[str]
    answers: tuple[str, ...] = ()
    type: str = ""
    evidence: tuple[str, ...] = ()
    easy: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set for evaluation: a corpus of documents, and questions with gold (relevant) documents.

    If some questions have gold documents, the questions without gold documents are left out.

    Attributes:
        name: Name of the folder.
        corpus: File of the documents.
        queries: The questions.
        unknown: Ids of questions that have judgements but are missing in the file of questions, sorted.
        documents: The documents, if ``corpus`` is no file that polyad reads; otherwise None.
        others: Files beside the corpus; None for the usual files of a BEIR folder.
    """

    name: str
    corpus: Path
    queries: tuple[Question, ...]
    unknown: tuple[str, ...] = ()
    documents: tuple[Document, ...] | None = None
    others: tuple[Path, ...] | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of all files of the data set: corpus, questions and relevance judgements."""
        others = self.others
        if others is None:
            beside = (self.corpus.parent / "queries.jsonl", _get_qrels_path(self.corpus.parent))
            others = tuple(path for path in beside if path.exists())
        return (self.corpus, *others)

    @property
    def is_judged(self) -> bool:
        """Whether any question of the data set has gold (relevant) documents."""
        return any(query.gold for query in self.queries)

    def find_missing_gold(self, document_ids: Container[str]) -> list[str]:
        """Return the sorted ids of gold (relevant) documents that are not in ``document_ids``.

        No retriever can find these documents.
        """
        return sorted({id for query in self.queries for id in query.gold if id not in document_ids})


def load_beir(folder: Path, limit: int | None = None) -> Dataset:
    """Return a data set read from a folder in the format of the BEIR benchmark.

    Args:
        folder: Folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``. Without a folder ``qrels``,
            questions have no gold documents.
        limit: Number of questions, from the first; at least 1, or None for all.

    Raises:
        ConfigurationError: a file is missing or has another format.
    """
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}; expected 1 or more")
    corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", _get_qrels_path(folder)
    is_judged = qrels.parent.exists()
    for path in (corpus, queries, *([qrels] if is_judged else [])):
        if not path.is_file():
            raise ConfigurationError(
                f"{str(path)!r} is missing; expected a BEIR folder with corpus.jsonl, queries.jsonl and qrels/test.tsv"
            )
    gold: dict[str, set[str]] = {}
    for _, query, document, is_gold in _read_judgements(qrels) if is_judged else ():
        if is_gold:
            gold.setdefault(query, set()).add(document)
    questions = _read_questions(queries, gold)
    if not questions:
        raise ConfigurationError(f'{str(queries)!r} holds no question {{"_id", "text"}}')
    judged = [query for query in questions if query.gold] if is_judged else questions
    if not judged:
        raise ConfigurationError(f"no question of {str(queries)!r} has a gold document in {str(qrels)!r}")
    unknown = sorted(gold.keys() - {query.id for query in questions})
    return Dataset(folder.resolve().name, corpus, tuple(judged[:limit]), tuple(unknown))


def require_valid_corpus(dataset: Dataset) -> None:
    """Raise ConfigurationError if a data set's corpus is empty, has an invalid id, or lacks a gold (relevant) document.

    Lines that are no records are skipped: indexing reports them.

    Raises:
        ConfigurationError: the corpus is empty, an id is empty or occurs twice, or a gold document is missing; the
            message names file and line.
    """
    if dataset.documents is not None:  # the documents were checked when they were read
        return
    lines: dict[str, int] = {}
    for number, record in _read_corpus(dataset.corpus):
        id = _parse_id(dataset.corpus, number, "document", record["_id"] if "_id" in record else record["id"])
        require_unique_id(dataset.corpus, number, "document", id, lines)
    if not lines:
        raise ConfigurationError(f'{str(dataset.corpus)!r} holds no document {{"_id", "title", "text"}}')
    qrels = _get_qrels_path(dataset.corpus.parent)
    for number, query, document, is_gold in _read_judgements(qrels) if qrels.exists() else ():
        if is_gold and document not in lines:
            raise ConfigurationError(
                f"{str(qrels)!r}, line {number}: document {document!r} is judged to be evidence "
                f"for question {query!r} and is not in {str(dataset.corpus)!r}; add it, or take the line out"
            )


def get_document_ids(dataset: Dataset) -> set[str]:
    """Return the ids of all documents in a data set's corpus."""
    return {id for id, _ in _iterate_documents(dataset)}


def get_document_texts(dataset: Dataset, ids: Container[str]) -> dict[str, str]:
    """Return title and text, joined by a line break, of each document in ``ids``; missing documents are omitted."""
    return {
        id: "\n".join(str(record[key]) for key in ("title", "text") if record.get(key))
        for id, record in _iterate_documents(dataset)
        if id in ids
    }


def get_document_titles(dataset: Dataset, ids: Container[str]) -> dict[str, str]:
    """Return the title of each document in ``ids``, or the beginning of its text; missing documents are omitted."""
    return {
        id: str(record.get("title") or "") or shorten(str(record.get("text") or ""), 40) or id
        for id, record in _iterate_documents(dataset)
        if id in ids
    }


def _iterate_documents(dataset: Dataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the id and the record (a mapping with title and text) of each document in a data set's corpus."""
    if dataset.documents is not None:
        yield from ((document.id, {"title": document.title, "text": document.text}) for document in dataset.documents)
        return
    for _, record in _read_corpus(dataset.corpus):
        yield str(record["_id"] if "_id" in record else record["id"]), record


def _read_corpus(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line number, JSON object) for each line of a corpus file that is a JSON object with an id."""
    for number, line in read_lines(path):
        try:
            record = parse_json(path, line, number)
        except ConfigurationError:
            continue
        if isinstance(record, dict) and ("_id" in record or "id" in record):
            yield number, record


def require_unique_id(path: Path, number: int, kind: str, id: str, lines_by_id: dict[str, int]) -> None:
    """Add ``id`` with its line number to ``lines_by_id``; raise ConfigurationError if ``id`` is blank or a duplicate.

    ``kind`` is the kind of object in the message: document or question.
    """
    if not id.strip():
        raise ConfigurationError(f"{str(path)!r}, line {number}: the id of a {kind} is empty; expected one of its own")
    if id in lines_by_id:
        raise ConfigurationError(
            f"{str(path)!r}, line {number}: {kind} {id!r} stands in line {lines_by_id[id]} already; "
            "expected an id of its own"
        )
    lines_by_id[id] = number


def _parse_id(path: Path, number: int, kind: str, value: object) -> str:
    """Return an id from line ``number`` of a JSON file as a string; raise ConfigurationError for other types."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ConfigurationError(f"{str(path)!r}, line {number}: the id of a {kind} is {value!r}; expected a text")
    return str(value)


def _get_qrels_path(folder: Path) -> Path:
    return folder / "qrels" / "test.tsv"


def _read_judgements(path: Path) -> Iterator[tuple[int, str, str, bool]]:
    """Yield (line number, question id, document id, is relevant) for each line of a BEIR qrels file."""
    judgements: dict[tuple[str, str], tuple[int, bool]] = {}
    for number, line in read_lines(path):
        row = line.rstrip("\r\n").split("\t")
        if len(row) != 3:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {format_count(len(row), 'column')} in {line[:80]!r}; expected 3"
            )
        query, document, grade = row
        try:
            is_gold = _parse_grade(grade) > 0
        except ValueError as error:
            if number == 1:
                continue  # the header
            raise ConfigurationError(f"{str(path)!r}, line {number}: grade {grade!r}; expected a number") from error
        if not query.strip() or not document.strip():
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {line[:80]!r} has an empty id; expected question, document, grade"
            )
        first_line, first_judgement = judgements.setdefault((query, document), (number, is_gold))
        if first_judgement != is_gold:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {document!r} is judged otherwise for {query!r} than in line "
                f"{first_line}; take one of the lines out"
            )
        yield number, query, document, is_gold


def _parse_grade(text: str) -> float:
    grade = float(text)
    if not math.isfinite(grade):
        raise ValueError(text)
    return grade


def _read_questions(path: Path, gold: Mapping[str, Iterable[str]]) -> list[Question]:
    questions = []
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        record = parse_json(path, line, number)
        if not isinstance(record, dict) or "_id" not in record or not isinstance(record.get("text"), str):
            raise ConfigurationError(
                f'{str(path)!r}, line {number}: expected {{"_id": ..., "text": ...}}, found {line[:80]!r}'
            )
        id, text = record["_id"], record["text"]
        id = _parse_id(path, number, "question", id)
        require_unique_id(path, number, "question", id, lines)
        if not text.strip():
            raise ConfigurationError(f"{str(path)!r}, line {number}: question {id!r} is blank; expected some words")
        metadata = {**record, **(record["metadata"] if isinstance(record.get("metadata"), dict) else {})}
        answers, evidence = parse_texts(metadata.get("answers")), parse_texts(metadata.get("evidence"))
        question_type = str(metadata.get("type", ""))
        questions.append(Question(id, text, frozenset(gold.get(id, ())), answers, question_type, evidence))
    return questions


def parse_texts(value: object) -> tuple[str, ...]:
    """Return the non-blank texts in a JSON value: a string, a list of strings, or a list of objects with a ``text``.

    >>> parse_texts(["Anna", 1961, {"text": "Aldby"}]), parse_texts("Anna"), parse_texts(None)
    (('Anna', '1961', 'Aldby'), ('Anna',), ())
    """
    items = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    texts = (str(item.get("text", "")) if isinstance(item, dict) else str(item) for item in items)
    return tuple(text for text in texts if text.strip())


def group_by_type(queries: Iterable[Question]) -> dict[str, list[Question]]:
    """Return the questions of each type in a dictionary, keyed by type; empty if all questions have the same type."""
    groups: dict[str, list[Question]] = {}
    for query in queries:
        groups.setdefault(query.type or "other", []).append(query)
    return groups if len(groups) > 1 else {}
