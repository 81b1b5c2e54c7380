"""Parse rows of the database: checks that every value has the type that was written, and conversion to records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType
from typing import Any, TypeVar

import numpy as np

from polyad.model import Document, FloatArray, Hyperedge, HyperedgeKind, IntArray, Location, MetadataValue, Passage

T = TypeVar("T")

BATCH = 256
"""Values bound to one statement: a power of two, see :func:`pad_values`. SQLite's lowest limit is 999."""

NUMBER = (int, float)
_OPTIONAL_INT = (int, NoneType)

_MAX_PRIMARY_KEY = 2**53
"""Primary keys of an undamaged file are lower: they grow by one with every row."""

DOCUMENT_COLUMNS = "id, title, text, source, url, metadata, places"

PASSAGE_COLUMNS = (
    'passage.id, document.id, passage.title, passage.text, passage."start", passage."end", '
    "passage.page, passage.heading, passage.sheet, passage.slide"
)

SELECT_HYPEREDGE = (
    "SELECT hyperedge.number, hyperedge.incidences, hyperedge.vector, hyperedge.id, hyperedge.kind, "
    'COALESCE(hyperedge.text, SUBSTR(passage.text, hyperedge."start" + 1, hyperedge."end" - hyperedge."start")), '
    'passage.id, hyperedge."start", hyperedge."end", hyperedge.score, hyperedge.valid_from, hyperedge.valid_to '
    "FROM hyperedge JOIN passage ON passage.number = hyperedge.passage"
)


def select_in(
    connection: sqlite3.Connection, query: str, values: Iterable[str] | Iterable[int], *parameters: object
) -> list[tuple[Any, ...]]:
    """Run an SQL query for each batch of values; ``{}`` in the query is replaced by placeholders, as in ``IN ({})``.

    ``parameters`` are bound before the values. ORDER BY sorts the rows of one batch only.
    """
    rows: list[tuple[Any, ...]] = []
    for batch in iterate_batches(list(dict.fromkeys(values))):
        bound = pad_values(batch)
        rows += connection.execute(query.format(format_placeholders(bound)), [*parameters, *bound]).fetchall()
    return rows


def iterate_batches(values: Sequence[T], size: int = BATCH) -> Iterator[Sequence[T]]:
    """Yield slices of at most ``size`` values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def pad_values(values: Sequence[Any]) -> list[Any]:
    """Append NULL values up to a power of two, so that SQLite can reuse prepared statements, cached by their text."""
    return [*values, *[None] * ((1 << (len(values) - 1).bit_length()) - len(values))]


def format_placeholders(values: Sequence[object]) -> str:
    """Return one SQL placeholder for each value."""
    return ",".join("?" * len(values))


def check_types(rows: Iterable[tuple[Any, ...]], *types: type | tuple[type, ...]) -> list[tuple[Any, ...]]:
    """Return the rows as a list if the values in each column have the given types.

    Raises:
        ValueError: a value has another type; SQLite returns any value it finds in a damaged file.
    """
    checked = list(rows)
    for column, expected in zip(zip(*checked, strict=True), types, strict=bool(checked)):
        for wrong in {kind for kind in set(map(type, column)) if not issubclass(kind, expected)}:
            raise ValueError(f"a value of type {wrong.__name__} where another was written")
    return checked


def check_count(row_name: str, expected: int, actual: int) -> None:
    """Raise ValueError if the number of rows differs from the number that was written: a damaged file loses rows."""
    if expected != actual:
        raise ValueError(f"{actual:,} {row_name} where {expected:,} were written")


def parse_document(row: tuple[Any, ...]) -> Document:
    """Parse a row of :data:`DOCUMENT_COLUMNS`."""
    [(id, title, text, source, url, metadata, places)] = check_types([row], *[str] * 7)
    return Document(
        id,
        title,
        text,
        source,
        url=url,
        metadata=parse_metadata(metadata),
        places=parse_places(places),
    )


def parse_places(text: str) -> tuple[Location, ...]:
    """Parse the pages, sheets or slides of a document from JSON."""
    return tuple(Location(s, e, page, "", sheet, slide) for s, e, page, sheet, slide in json.loads(text))


def parse_metadata(text: str) -> dict[str, MetadataValue]:
    """Parse metadata from JSON."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}


def parse_passages(rows: Iterable[tuple[Any, ...]]) -> list[Passage]:
    """Parse rows of :data:`PASSAGE_COLUMNS`."""
    return [Passage(*row) for row in check_types(rows, *[str] * 4, int, int, _OPTIONAL_INT, str, str, _OPTIONAL_INT)]


def parse_hyperedges(rows: Iterable[tuple[Any, ...]]) -> dict[int, Hyperedge]:
    """Parse rows of :data:`SELECT_HYPEREDGE` by primary key, without the relation and arguments of tuples."""
    checked = check_types(rows, int, int, bytes, str, str, str, str, int, int, NUMBER, str, str)
    return {
        number: Hyperedge(id, HyperedgeKind(kind), text, passage, start, end, score, valid_from=since, valid_to=until)
        for number, _, _, id, kind, text, passage, start, end, score, since, until in checked
    }


def format_vector(vector: FloatArray) -> bytes:
    """Return a vector as little-endian float32 bytes."""
    return vector.astype("<f4", copy=False).tobytes()


def parse_vector(blob: bytes) -> FloatArray:
    """Parse one vector, shape ``[dimension]``."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def parse_vectors(blobs: Sequence[bytes], dimension: int) -> FloatArray:
    """Parse vectors into one contiguous array, shape ``[len(blobs), dimension]``.

    Raises:
        ValueError: a vector has another length, or is not finite.
    """
    matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension).astype(np.float32, copy=False)
    return _check_finite(matrix)


def parse_floats(values: Sequence[float]) -> FloatArray:
    """Return scores or strengths as float32 ``[len(values)]``. Raises ValueError if a value is not finite."""
    with np.errstate(over="ignore"):
        return _check_finite(np.array(values, dtype=np.float32))


def parse_primary_keys(numbers: Sequence[Any]) -> IntArray:
    """Return primary keys as int64. Raises ValueError for keys out of range, which would allocate huge arrays later."""
    array = np.array(numbers, dtype=np.int64)
    if array.min(initial=0) < 0 or array.max(initial=0) >= _MAX_PRIMARY_KEY:
        raise ValueError("a primary key out of range")
    return array


def _check_finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise ValueError("a number that is not finite")
    return values
