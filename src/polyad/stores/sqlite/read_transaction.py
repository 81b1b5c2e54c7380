"""Everything in the file as it was at one moment: what a snapshot is made of, moved on by, and shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeVar

from polyad.model import SUBJECT, Hyperedge, HyperedgeKind, Origin, Passage
from polyad.protocols.store import IN_COMMON_WORDS, Changes, EntityAggregate, StoredRows
from polyad.stores.sqlite.checksums import checked_columns, is_sound, sound
from polyad.stores.sqlite.given import find_names, with_given
from polyad.stores.sqlite.rows import (
    PASSAGE_COLUMNS,
    SELECT_HYPEREDGE,
    as_written,
    hyperedges_from,
    matrix_from,
    metadata_from,
    numbers_from,
    passages_from,
    require_all,
    require_numbers,
    tally_of_incidences,
)
from polyad.text.counting import is_written_as_name

_BATCH = 256
"""Values, or pairs of them, bound to one statement: a power of two (:func:`_padded`); SQLite's oldest limit is 999."""

T = TypeVar("T")

_PASSAGES = f"""
SELECT passage.number, passage.id, document.id, passage.title, passage.text, passage.vector, passage.hyperedges
FROM document JOIN passage ON passage.document = document.number
WHERE document.number IN ({{}}) AND {sound("passage")} ORDER BY passage.number
"""

_HYPEREDGES = f"""
SELECT hyperedge.number, hyperedge.id, hyperedge.passage, hyperedge.score, hyperedge.vector,
    hyperedge.incidences
FROM document JOIN passage ON passage.document = document.number JOIN hyperedge ON hyperedge.passage = passage.number
WHERE document.number IN ({{}}) AND {sound("hyperedge")} ORDER BY hyperedge.number
"""

_INCIDENCES = f"""
SELECT incidence.entity, incidence.hyperedge, CASE WHEN role = ? OR kind = ? THEN strength ELSE 0 END, name
FROM document JOIN passage ON passage.document = document.number JOIN hyperedge ON hyperedge.passage = passage.number
JOIN incidence ON incidence.hyperedge = hyperedge.number
WHERE document.number IN ({{}}) AND {sound("incidence")}
"""

_WRITTEN = f"SELECT COALESCE(SUM(passages), 0) FROM document WHERE number IN ({{}}) AND {sound('document')}"

_INCIDENCES_OF = f"""
WITH asked(place, number, after, last) AS (VALUES {{}})
SELECT asked.place, {checked_columns("incidence")}
FROM asked CROSS JOIN incidence ON incidence.entity = asked.number AND hyperedge > after AND hyperedge <= last
"""
"""One of what is asked after the other, those of each by hyperedge: CROSS JOIN keeps the order of its sides."""

_OF_INCIDENCE = (int, int, int, int, str, str, str, str, (int, float), int, (int, float))
"""The types of what :data:`_INCIDENCES_OF` selects."""


class SqliteReadTransaction:
    """One moment of the file; implements :class:`polyad.protocols.store.ReadTransaction`.

    Args:
        connection: In a transaction that lasts as long as the moment is used.
        version: Of the file then.
        remembered: Versions that the log of removals goes back.
        dimension: Length of the vectors.
    """

    def __init__(self, connection: sqlite3.Connection, version: int, remembered: int, dimension: int) -> None:
        self._connection = connection
        self._version = version
        self._remembered = remembered
        self._dimension = dimension

    @property
    def version(self) -> int:
        """Of the file."""
        return self._version

    @property
    def is_under_way(self) -> bool:
        """Whether the transaction has not ended; SQLite itself ends it where the disk fails."""
        return self._connection.in_transaction

    def state(self, version: int) -> str:
        """What tells the file at a version from any other that had as many changes; empty where it is not known."""
        row = self._connection.execute("SELECT token FROM state WHERE version = ?", [version]).fetchone()
        return str(row[0]) if row else ""

    def changes(self, since: int) -> Changes | None:
        """What was removed and written after the version ``since``; None where that is no longer, or not yet, known."""
        if not self._version - self._remembered <= since <= self._version:
            return None
        removed = self._connection.execute(
            "SELECT first_passage, last_passage FROM removal "
            f"WHERE version > ? AND {sound('removal')} ORDER BY version, first_passage",
            [since],
        )
        written = self._connection.execute("SELECT number FROM document WHERE version > ? ORDER BY +number", [since])
        return Changes(
            self._version,
            removed=tuple(as_written(removed, int, int)),
            documents=tuple(number for (number,) in as_written(written, int)),
        )

    def documents(self) -> list[int]:
        """The numbers of all documents, ascending."""
        rows = self._connection.execute(
            f"SELECT number, passages FROM document WHERE {sound('document')} ORDER BY number"
        )
        numbers = as_written(rows, int, int)
        [(passages,)] = self._connection.execute("SELECT COUNT(*) FROM passage")
        require_all("passages", sum(row[1] for row in numbers), passages)
        return [number for number, _ in numbers]

    def entity_keys(self) -> Iterator[tuple[int, str]]:
        """The number and the key of every entity, by number."""
        rows = self._connection.execute(f"SELECT number, key FROM entity WHERE {sound('entity')} ORDER BY number")
        while some := as_written(rows.fetchmany(_BATCH), int, str):
            yield from some

    def rows(self, documents: Sequence[int], known: int = 0) -> Iterator[StoredRows]:
        """The rows of some documents, some hundred at a time.

        Args:
            documents: Their numbers, ascending.
            known: The number of the last entity whose key is not wanted.
        """
        sent: set[int] = set()
        for numbers in _batched(documents):
            passages = self._select(_PASSAGES, numbers, int, str, str, str, str, bytes, int)
            hyperedges = self._select(_HYPEREDGES, numbers, int, str, int, float, bytes, int)
            incidences = self._connection.execute(
                _INCIDENCES.format(_places(_padded(numbers))), [SUBJECT, HyperedgeKind.TUPLE, *_padded(numbers)]
            ).fetchall()
            [(written,)] = self._connection.execute(_WRITTEN.format(_places(_padded(numbers))), _padded(numbers))
            require_all("passages", written, len(passages))
            require_all("hyperedges", sum(row[-1] for row in passages), len(hyperedges))
            require_all("incidences", sum(row[-1] for row in hyperedges), len(incidences))
            pairs = require_numbers([row[:2] for row in incidences]).reshape(-1, 2)
            entities = pairs[:, 0]
            new = sorted(set(entities[entities > known].tolist()) - sent)
            sent.update(new)
            yield StoredRows(
                passage_numbers=require_numbers([row[0] for row in passages]),
                passage_ids=[row[1] for row in passages],
                document_ids=[row[2] for row in passages],
                texts=[f"{row[3]}\n{row[4]}" for row in passages],
                passage_vectors=matrix_from([row[5] for row in passages], self._dimension),
                hyperedge_numbers=require_numbers([row[0] for row in hyperedges]),
                hyperedge_ids=[row[1] for row in hyperedges],
                passage_of_hyperedge=require_numbers([row[2] for row in hyperedges]),
                hyperedge_scores=numbers_from([row[3] for row in hyperedges]),
                hyperedge_vectors=matrix_from([row[4] for row in hyperedges], self._dimension),
                incidence_entity=entities,
                incidence_hyperedge=pairs[:, 1],
                incidence_strength=numbers_from(_strengths(incidences)),
                entity_keys=dict(
                    self._in_batches(
                        f"SELECT number, key FROM entity WHERE number IN ({{}}) AND {sound('entity')}", new, int, str
                    )
                ),
            )

    def passages(self, numbers: Sequence[int]) -> dict[int, Passage]:
        """Passages by their numbers, of those that are there."""
        query = (
            f"SELECT passage.number, {PASSAGE_COLUMNS} FROM passage "
            f"JOIN document ON document.number = passage.document WHERE passage.number IN ({{}}) AND {sound('passage')}"
        )
        rows = list(self._in_batches(query, numbers))
        return dict(zip((row[0] for row in rows), passages_from(row[1:] for row in rows), strict=True))

    def hyperedges(self, numbers: Sequence[int]) -> dict[int, Hyperedge]:
        """Hyperedges by their numbers, of those that are there."""
        query = f"{SELECT_HYPEREDGE} WHERE hyperedge.number IN ({{}}) AND {sound('hyperedge')} AND {sound('passage')}"
        return with_given(self._connection, hyperedges_from(self._in_batches(query, numbers)))

    def entities(self, asked: Sequence[tuple[int, int, int]]) -> list[EntityAggregate | None]:
        """What some hyperedges say of some entities: by number, those after one up to another; in the order asked."""
        found: list[EntityAggregate | None] = [None] * len(asked)
        for some in _batched([(place, *own) for place, own in enumerate(asked)], _BATCH // 4):
            padded = [own or (None,) * 4 for own in _padded(some)]
            rows = self._connection.execute(
                _INCIDENCES_OF.format(",".join(["(?, ?, ?, ?)"] * len(padded))), [*chain.from_iterable(padded)]
            )
            for place, incidences in groupby(_sound_incidences(rows), key=itemgetter(0)):
                found[place] = tally_of_incidences(incidences)
        return found

    def origins(self, document_ids: Sequence[str]) -> dict[str, Origin]:
        """What is known of documents beside their texts, of those that are there."""
        query = f"SELECT id, title, source, url, metadata FROM document WHERE id IN ({{}}) AND {sound('document')}"
        return {
            id: Origin(title, source, url, metadata_from(data))
            for id, title, source, url, data in self._in_batches(query, document_ids, *[str] * 5)
        }

    def given_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """What entities are known by and called, in the tuples after one up to the last."""
        return find_names(self._connection, after, last)

    def _in_batches(self, query: str, values: Iterable[int] | Iterable[str], *types: type) -> Iterator[tuple[Any, ...]]:
        for some in _batched(list(dict.fromkeys(values))):
            yield from self._select(query, some, *types)

    def _select(self, query: str, values: Sequence[Any], *types: type | tuple[type, ...]) -> list[tuple[Any, ...]]:
        bound = _padded(values)
        rows = self._connection.execute(query.format(_places(bound)), bound).fetchall()
        return as_written(rows, *types) if types else rows


def _sound_incidences(rows: sqlite3.Cursor) -> Iterator[tuple[int, int, str, str, str, float]]:
    """Place, hyperedge, name, type, description and score of each of some :data:`_INCIDENCES_OF`."""
    while some := as_written(rows.fetchmany(_BATCH), *_OF_INCIDENCE):
        for place, *checked in some:
            is_sound(*checked)
            _, _, hyperedge, _, name, type, description, score, *_ = checked
            yield place, hyperedge, name, type, description, score


def _strengths(incidences: Sequence[tuple[Any, ...]]) -> list[float]:
    """The strength of each incidence, which its last column names: below 0 for a mention in common words."""
    is_name = cache(is_written_as_name)
    return [row[2] if row[2] or is_name(row[3]) else IN_COMMON_WORDS for row in incidences]


def _places(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _padded(values: Sequence[T]) -> list[T | None]:
    """Some values, and NULL, which no row has, up to a power of two: SQLite keeps statements prepared by their text."""
    return [*values, *[None] * ((1 << (len(values) - 1).bit_length()) - len(values))]


def _batched(values: Sequence[Any], many: int = _BATCH) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), many):
        yield values[start : start + many]
