"""Data sets: questions on a corpus, in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

Other layouts are read by modules of their own: see :mod:`polyad.evaluation.datasets.layouts`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.text.counting import counted


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what is known of it.

    Attributes:
        id: Of its own in the data set.
        text: As it is asked.
        gold: Ids of the documents that hold its evidence; empty where nobody has judged that.
        answers: Accepted ones: each is right.
        type: Of question, as the data set has them.
        evidence: Statements that its answer rests on.
        easy, hard: The answers by how they are found, where that is told apart: easy ones are stated, hard ones follow
            (HyperRAG, WikiTopics). Each is among ``answers``.
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
    """A corpus and questions on it, in the order of the file; where some are judged, those that have gold documents.

    Attributes:
        name: The folder's.
        corpus: The file of documents.
        queries: The questions.
        unknown: Ids of questions that are judged and are not there, sorted.
        documents: What is in the corpus, where it is no file that polyad reads by itself; else None.
        others: The files beside the corpus that it is read from; None for those of a BEIR folder.
    """

    name: str
    corpus: Path
    queries: tuple[Question, ...]
    unknown: tuple[str, ...] = ()
    documents: tuple[Document, ...] | None = None
    others: tuple[Path, ...] | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All that it is read from."""
        beside = (self.corpus.parent / "queries.jsonl", _qrels(self.corpus.parent))
        return (self.corpus, *([path for path in beside if path.exists()] if self.others is None else self.others))

    @property
    def is_judged(self) -> bool:
        """Whether it is known which documents hold the evidence."""
        return any(query.gold for query in self.queries)

    def lost(self, documents: Container[str]) -> list[str]:
        """Ids of gold documents that are none of ``documents``, sorted: no retriever can find them."""
        return sorted({id for query in self.queries for id in query.gold if id not in documents})


def load_beir(folder: Path, limit: int | None = None) -> Dataset:
    """Read a BEIR folder.

    Args:
        folder: Holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``; without a folder ``qrels`` nothing is
            known of the evidence, and all questions are taken.
        limit: Take only the first so many questions; 1 or more.

    Raises:
        ConfigurationError: a file is missing or not in the format.
    """
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}; expected 1 or more")
    corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", _qrels(folder)
    is_judged = qrels.parent.exists()
    for path in (corpus, queries, *([qrels] if is_judged else [])):
        if not path.is_file():
            raise ConfigurationError(
                f"{str(path)!r} is missing; expected a BEIR folder with corpus.jsonl, queries.jsonl and qrels/test.tsv"
            )
    gold = _gold(qrels) if is_judged else {}
    asked = _queries(queries, gold)
    if not asked:
        raise ConfigurationError(f'{str(queries)!r} holds no question {{"_id", "text"}}')
    found = [query for query in asked if query.gold] if is_judged else asked
    if not found:
        raise ConfigurationError(f"no question of {str(queries)!r} has a gold document in {str(qrels)!r}")
    unknown = sorted(gold.keys() - {query.id for query in asked})
    return Dataset(folder.resolve().name, corpus, tuple(found[:limit]), tuple(unknown))


def require_valid_corpus(dataset: Dataset) -> None:
    """Refuse a corpus that no measure on it could be trusted of.

    Lines that are no record at all are left to whoever indexes the corpus, who reports them.

    Raises:
        ConfigurationError: it is empty, an id in it is empty or given twice, or a document is judged to be evidence
            that is not in it: says file and line.
    """
    if dataset.documents is not None:  # which has been found out where they were read
        return
    lines: dict[str, int] = {}
    for number, line in _lines(dataset.corpus):
        try:
            record = json.loads(line)
            id = record["_id"] if "_id" in record else record["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        id = _id(dataset.corpus, number, "document", id)
        require_unique_id(dataset.corpus, number, "document", id, lines)
    if not lines:
        raise ConfigurationError(f'{str(dataset.corpus)!r} holds no document {{"_id", "title", "text"}}')
    qrels = _qrels(dataset.corpus.parent)
    for number, query, document, is_gold in _judgements(qrels) if qrels.exists() else ():
        if is_gold and document not in lines:
            raise ConfigurationError(
                f"{str(qrels)!r}, line {number}: document {document!r} is judged to be evidence "
                f"for question {query!r} and is not in {str(dataset.corpus)!r}; add it, or take the line out"
            )


def get_document_ids(dataset: Dataset) -> set[str]:
    """Ids of the documents of a corpus."""
    return {id for id, _ in _records_of(dataset)}


def get_document_texts(dataset: Dataset, ids: Container[str]) -> dict[str, str]:
    """Title and text of some documents of a corpus, by id; those that are not there are left out."""
    return {
        id: "\n".join(str(record[key]) for key in ("title", "text") if record.get(key))
        for id, record in _records_of(dataset)
        if id in ids
    }


def _records_of(dataset: Dataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The documents of a corpus by id, as far as they are records."""
    if dataset.documents is not None:
        yield from ((one.id, {"title": one.title, "text": one.text}) for one in dataset.documents)
        return
    for _, line in _lines(dataset.corpus):
        try:
            record = json.loads(line)
            yield str(record["_id"] if "_id" in record else record["id"]), record
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def require_unique_id(path: Path, number: int, what: str, id: str, lines: dict[str, int]) -> None:
    """Note in which line an id stands; refuse one that is empty or was noted before."""
    if not id.strip():
        raise ConfigurationError(f"{str(path)!r}, line {number}: the id of a {what} is empty; expected one of its own")
    if id in lines:
        raise ConfigurationError(
            f"{str(path)!r}, line {number}: {what} {id!r} stands in line {lines[id]} already; expected an id of its own"
        )
    lines[id] = number


def _id(path: Path, number: int, what: str, id: object) -> str:
    """An id as text; refuse what is neither a text nor a whole number."""
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise ConfigurationError(f"{str(path)!r}, line {number}: the id of a {what} is {id!r}; expected a text")
    return str(id)


def _qrels(folder: Path) -> Path:
    return folder / "qrels" / "test.tsv"


def _gold(path: Path) -> dict[str, set[str]]:
    gold: dict[str, set[str]] = {}
    for _, query, document, is_gold in _judgements(path):
        if is_gold:
            gold.setdefault(query, set()).add(document)
    return gold


def _judgements(path: Path) -> Iterator[tuple[int, str, str, bool]]:
    """Each judgement with its line: question, document, and whether the one is evidence for the other."""
    known: dict[tuple[str, str], tuple[int, bool]] = {}
    for number, line in _lines(path):
        row = line.split("\t")
        if len(row) != 3:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {counted(len(row), 'column')} in {line[:80]!r}; expected 3"
            )
        query, document, grade = row
        try:
            is_gold = _grade(grade) > 0
        except ValueError as error:
            if number == 1:
                continue  # the header
            raise ConfigurationError(f"{str(path)!r}, line {number}: grade {grade!r}; expected a number") from error
        if not query.strip() or not document.strip():
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {line[:80]!r} has an empty id; expected question, document, grade"
            )
        earlier, before = known.setdefault((query, document), (number, is_gold))
        if before != is_gold:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {document!r} is judged otherwise for {query!r} than in line {earlier}; "
                "take one of the lines out"
            )
        yield number, query, document, is_gold


def _grade(text: str) -> float:
    """A grade. Raises ValueError for what is no number, or none that can be compared."""
    grade = float(text)
    if not math.isfinite(grade):
        raise ValueError(text)
    return grade


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1, without their ends."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from ((number, line.rstrip("\n")) for number, line in enumerate(file, 1) if line.strip())
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 ({error.reason} at byte {error.start})") from error


def _queries(path: Path, gold: dict[str, set[str]]) -> list[Question]:
    queries = []
    lines: dict[str, int] = {}
    for number, line in _lines(path):
        try:
            record = json.loads(line)
            id, text = record["_id"], str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f'{str(path)!r}, line {number}: expected {{"_id": ..., "text": ...}}, found {line[:80]!r}'
            ) from error
        id = _id(path, number, "question", id)
        require_unique_id(path, number, "question", id, lines)
        if not text.strip():
            raise ConfigurationError(f"{str(path)!r}, line {number}: question {id!r} is blank; expected some words")
        about = {**record, **(record["metadata"] if isinstance(record.get("metadata"), dict) else {})}
        queries.append(
            Question(
                id,
                text,
                frozenset(gold.get(id, ())),
                parse_texts(about.get("answers")),
                str(about.get("type", "")),
                parse_texts(about.get("evidence")),
            )
        )
    return queries


def parse_texts(value: object) -> tuple[str, ...]:
    """The texts of a list, or one text by itself, blank ones left out; of objects, what they have under ``text``.

    >>> parse_texts(["Anna", 1961, {"text": "Aldby"}]), parse_texts("Anna"), parse_texts(None)
    (('Anna', '1961', 'Aldby'), ('Anna',), ())
    """
    items = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    texts = (str(item.get("text", "")) if isinstance(item, dict) else str(item) for item in items)
    return tuple(text for text in texts if text.strip())


def group_by_type(queries: Iterable[Question]) -> dict[str, list[Question]]:
    """Questions by their type, in the order in which types come first; empty where there is only one."""
    found: dict[str, list[Question]] = {}
    for query in queries:
        found.setdefault(query.type or "other", []).append(query)
    return found if len(found) > 1 else {}
