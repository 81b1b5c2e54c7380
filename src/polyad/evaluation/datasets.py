"""Benchmark folders in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Query:
    """A question, the ids of the documents that hold its evidence, and its accepted answers where given."""

    id: str
    text: str
    gold: frozenset[str]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and the questions on it that have at least one gold document, in the order of the file."""

    name: str
    corpus: Path
    queries: tuple[Query, ...]


def load(folder: Path, limit: int | None = None) -> Dataset:
    """Read a BEIR folder.

    Args:
        folder: Holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``.
        limit: Take only the first so many questions.

    Raises:
        ConfigurationError: a file is missing or not in the format.
    """
    corpus, queries, qrels = folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"
    for path in (corpus, queries, qrels):
        if not path.is_file():
            raise ConfigurationError(
                f"{str(path)!r} is missing; expected a BEIR folder with corpus.jsonl, queries.jsonl and qrels/test.tsv"
            )
    gold = _gold(qrels)
    found = [query for query in _queries(queries, gold) if query.gold]
    if not found:
        raise ConfigurationError(f"no question of {str(queries)!r} has a gold document in {str(qrels)!r}")
    return Dataset(folder.resolve().name, corpus, tuple(found[:limit]))


def _gold(path: Path) -> dict[str, set[str]]:
    gold: dict[str, set[str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t"):
            if len(row) != 3:
                raise ConfigurationError(f"{str(path)!r}: the row {row!r} has {len(row)} columns; expected 3")
            query, document, grade = row
            if grade.lstrip("-").isdigit() and int(grade) > 0:
                gold.setdefault(query, set()).add(document)
    return gold


def _queries(path: Path, gold: dict[str, set[str]]) -> list[Query]:
    queries = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
                id, text = str(record["_id"]), str(record["text"])
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigurationError(
                    f'{str(path)!r}, line {number}: expected {{"_id": ..., "text": ...}}, found {line[:80]!r}'
                ) from error
            answers = (record.get("metadata") or {}).get("answers") or []
            queries.append(Query(id, text, frozenset(gold.get(id, ())), tuple(map(str, answers))))
    return queries
