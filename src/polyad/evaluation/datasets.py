"""Benchmark folders in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.text.counting import counted


@dataclass(frozen=True, slots=True)
class Query:
    """A question, the ids of the documents that hold its evidence, and its accepted answers where given."""

    id: str
    text: str
    gold: frozenset[str]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and the questions on it that have at least one gold document, in the order of the file.

    Attributes:
        name: The folder's.
        corpus: The file of documents.
        queries: The questions.
        unknown: Ids of questions that are judged and are not there, sorted.
    """

    name: str
    corpus: Path
    queries: tuple[Query, ...]
    unknown: tuple[str, ...] = ()

    def lost(self, documents: Container[str]) -> list[str]:
        """Ids of gold documents that are none of ``documents``, sorted: no retriever can find them."""
        return sorted({id for query in self.queries for id in query.gold if id not in documents})


def load(folder: Path, limit: int | None = None) -> Dataset:
    """Read a BEIR folder.

    Args:
        folder: Holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``.
        limit: Take only the first so many questions; 1 or more. None where they are to be divided into splits, which
            takes all of them (:mod:`polyad.evaluation.splits`).

    Raises:
        ConfigurationError: a file is missing or not in the format.
    """
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}; expected 1 or more")
    corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"
    for path in (corpus, queries, qrels):
        if not path.is_file():
            raise ConfigurationError(
                f"{str(path)!r} is missing; expected a BEIR folder with corpus.jsonl, queries.jsonl and qrels/test.tsv"
            )
    gold = _gold(qrels)
    asked = _queries(queries, gold)
    found = [query for query in asked if query.gold]
    if not found:
        raise ConfigurationError(f"no question of {str(queries)!r} has a gold document in {str(qrels)!r}")
    unknown = sorted(gold.keys() - {query.id for query in asked})
    return Dataset(folder.resolve().name, corpus, tuple(found[:limit]), tuple(unknown))


def _gold(path: Path) -> dict[str, set[str]]:
    gold: dict[str, set[str]] = {}
    for number, line in _lines(path):
        row = line.split("\t")
        if len(row) != 3:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {counted(len(row), 'column')} in {line[:80]!r}; expected 3"
            )
        query, document, grade = row
        try:
            is_gold = float(grade) > 0
        except ValueError as error:
            if not gold and number == 1:
                continue  # the header
            raise ConfigurationError(f"{str(path)!r}, line {number}: grade {grade!r}; expected a number") from error
        if is_gold:
            gold.setdefault(query, set()).add(document)
    return gold


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1, without their ends."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from ((number, line.rstrip("\n")) for number, line in enumerate(file, 1) if line.strip())
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 ({error.reason} at byte {error.start})") from error


def _queries(path: Path, gold: dict[str, set[str]]) -> list[Query]:
    queries = []
    for number, line in _lines(path):
        try:
            record = json.loads(line)
            id, text = str(record["_id"]), str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f'{str(path)!r}, line {number}: expected {{"_id": ..., "text": ...}}, found {line[:80]!r}'
            ) from error
        queries.append(Query(id, text, frozenset(gold.get(id, ())), _answers(record.get("metadata"))))
    return queries


def _answers(metadata: object) -> tuple[str, ...]:
    """``metadata["answers"]``, or its one answer; none where there are none."""
    answers = metadata.get("answers") if isinstance(metadata, dict) else None
    return tuple(map(str, answers)) if isinstance(answers, list) else (answers,) if isinstance(answers, str) else ()
