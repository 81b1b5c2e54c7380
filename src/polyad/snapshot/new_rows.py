"""The rows of documents that were added since a snapshot, as one array for each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import numpy as np

from polyad.errors import StoreError
from polyad.model import IntArray
from polyad.protocols.store import StoredRows, build_intervals
from polyad.snapshot.columns import Column
from polyad.snapshot.term_index import Postings

_SEPARATE = ("texts", "entity_keys")
"""Columns of batches that are not concatenated."""


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """The rows of added documents, before they are appended to a snapshot.

    Attributes:
        rows: The rows of all documents, without texts, and the keys of new entities alone.
        documents: Unique document ids.
        document_of_passage: For each passage the position of its document in ``documents``.
        postings: The terms of passages.
        lengths: Number of words of each passage.
    """

    rows: StoredRows
    documents: list[str]
    document_of_passage: IntArray
    postings: list[Postings]
    lengths: IntArray

    @classmethod
    def from_batches(cls, batches: Iterable[StoredRows], first_row: int, last_entity: int, dimension: int) -> NewRows:
        """Concatenate batches of rows from the store, with counted terms instead of texts.

        Args:
            batches: In the order of their rows.
            first_row: Row of the first passage.
            last_entity: Primary key of the last entity that the snapshot has.
            dimension: Length of vectors.
        """
        columns: dict[str, list[Any]] = {name: [empty] for name, empty in _get_columns(_empty_rows(dimension))}
        keys: dict[int, str] = {}
        postings: list[Postings] = []
        lengths: list[IntArray] = [np.empty(0, dtype=np.int64)]
        for batch in batches:
            counted, word_counts = Postings.from_texts(batch.texts, first_row)
            postings.append(counted)
            lengths.append(word_counts)
            first_row += len(batch.passage_ids)
            for name, column in _get_columns(batch):
                columns[name].append(column)
            keys.update(pair for pair in batch.entity_keys.items() if pair[0] > last_entity)
        rows = StoredRows(texts=(), entity_keys=keys, **{name: _join(columns.pop(name)) for name in list(columns)})
        positions = {id: position for position, id in enumerate(dict.fromkeys(rows.document_ids))}
        document_of_passage = np.array([positions[id] for id in rows.document_ids], dtype=np.int64)
        return cls(rows, list(positions), document_of_passage, postings, np.concatenate(lengths))


def _empty_rows(dimension: int) -> StoredRows:
    integers, floats = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    vectors, times = np.empty((0, dimension), dtype=np.float32), build_intervals([])
    return StoredRows(
        *(integers, [], [], [], vectors, integers, [], integers, floats, vectors, times, times),
        *(integers, integers, floats, {}),
    )


def _get_columns(rows: StoredRows) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(rows, field.name)) for field in fields(rows) if field.name not in _SEPARATE)


def _join(parts: list[Any]) -> Any:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(chain.from_iterable(parts))


def find_rows(primary_keys: Column, references: IntArray) -> IntArray:
    """Look up ``references`` in the sorted ``primary_keys`` of rows, and return the row numbers.

    Raises:
        StoreError: A primary key has no row, as in a damaged database.
    """
    rows = primary_keys.count_below(references)
    if len(rows) and not (rows.max() < len(primary_keys) and (primary_keys.take(rows) == references).all()):
        raise StoreError(
            "the index is damaged: a stored reference points to a row that does not exist; restore the index from a "
            "copy, or index again into another --store"
        )
    return rows
