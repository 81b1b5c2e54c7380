"""Rows of the tables that all relational stores have: columns, checks of types, and conversion to records.

A row stores how many other rows belong to it, so that missing rows are detected. A query that reads rows for an answer
contains :func:`format_check`, by which a database without checksums of its own detects a row that was changed.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import wraps
from types import NoneType
from typing import Any, TypeVar, cast

import numpy as np

from polyad.model import (
    Argument,
    Document,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    IntArray,
    Location,
    MetadataValue,
    Passage,
)
from polyad.protocols.store import Manifest, VectorType
from polyad.text.literals import TYPES

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "document": (
        *("number", "version", "id", "title", "source", "url", "metadata", "places", "digest", "tokens"),
        *("recorded", "passages", "text_checksum"),
    ),
    "removal": ("version", "first_passage", "last_passage"),
    "passage": (
        *("number", "document", "id", "title", "text", "start", "end", "page", "heading", "sheet", "slide", "digest"),
        *("hyperedges", "vector"),
    ),
    "hyperedge": (
        *("number", "passage", "id", "kind", "text", "start", "end", "score", "valid_from", "valid_to"),
        *("incidences", "vector"),
    ),
    "entity": ("number", "key"),
    "incidence": ("entity", "hyperedge", "role", "name", "type", "description", "score", "grounded", "strength"),
    "tuple": ("number", "relation", "arguments"),
    "argument": ("tuple", "place", "role", "value", "verbatim", "type", "unit", "names", "low", "end"),
    "value": ("namespace", "key", "value"),
}
"""The columns of each table that the checksum of a row covers, in this order; a blob is the last."""

EXTRA_COLUMNS: Mapping[str, tuple[str, ...]] = {"document": ("text",)}
"""Columns of each table with a checksum of their own: a long text is read only where it is needed."""

TEXT_CHECK = "is_sound(document.text_checksum, document.text)"
"""SQL condition that is true for a document whose text is undamaged; the query fails at a damaged text."""


def format_check(table: str) -> str:
    """Return an SQL condition that raises an error if a row of ``table`` does not match the row's checksum."""
    return f"is_sound({format_checksum_columns(table)})"


def format_checksum_columns(table: str) -> str:
    """Return the column names of a table as arguments of the SQL function that verifies a row's checksum."""
    return f"{table}.checksum, {_qualify_columns(table)}"


def _qualify_columns(table: str) -> str:
    return ", ".join(f'{table}."{name}"' for name in COLUMNS[table])


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

NUMBER = (int, float)
_OPTIONAL_INT = (int, NoneType)

_VECTOR_FORMATS: Mapping[VectorType, tuple[str, int]] = {
    "float32": ("<f4", 0),
    "float16": ("<f2", 0),
    "vector": (">f4", 4),
    "halfvec": (">f2", 4),
}
"""The numbers of a stored vector as numpy's type, and the bytes of the header before them. The formats of pgvector are
those of its functions ``vector_send`` and ``halfvec_send``: two 16-bit numbers, dimension and 0, come first."""

_MAX_PRIMARY_KEY = 2**53
"""Primary keys of an undamaged file are lower: they grow by one with every row."""

DOCUMENT_COLUMNS = "id, title, text, source, url, metadata, places"

PASSAGE_COLUMNS = (
    'passage.id, document.id, passage.title, passage.text, passage."start", passage."end", '
    "passage.page, passage.heading, passage.sheet, passage.slide"
)

HYPEREDGE_COLUMNS = (
    "hyperedge.number, hyperedge.incidences, hyperedge.vector, hyperedge.id, hyperedge.kind, "
    'COALESCE(hyperedge.text, SUBSTR(passage.text, CAST(hyperedge."start" + 1 AS INTEGER), '
    'CAST(hyperedge."end" - hyperedge."start" AS INTEGER))), '
    'passage.id, hyperedge."start", hyperedge."end", hyperedge.score, hyperedge.valid_from, hyperedge.valid_to'
)


SELECT_TUPLES = (
    "SELECT tuple.number, tuple.relation, tuple.arguments, role, COALESCE(verbatim, value), type, unit, names "
    "FROM tuple LEFT JOIN argument ON argument.tuple = tuple.number "
    f"WHERE tuple.number IN ({{}}) AND {format_check('tuple')} AND (role IS NULL OR {format_check('argument')}) "
    "ORDER BY 1, place"
)


class DamageError(ValueError):
    """Raised if the rows of a database are not those that were written: another value, type or number of rows."""


def report_unparsable(parse: F) -> F:
    """Decorate a function that parses database rows, so that it raises DamageError for rows that it cannot parse."""

    @wraps(parse)
    def report(*args: Any, **keywords: Any) -> Any:
        try:
            return parse(*args, **keywords)
        except DamageError:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise DamageError(f"{type(error).__name__}: {error}") from error

    return cast(F, report)


def iterate_batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield consecutive slices of ``values`` with at most ``size`` items each."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def check_types(rows: Iterable[tuple[Any, ...]], *types: type | tuple[type, ...]) -> list[tuple[Any, ...]]:
    """Return rows as a list, after checking that the values of each column have the type in ``types``.

    Raises:
        DamageError: a value has another type; SQLite returns any value it finds in a damaged file.
    """
    checked = list(rows)
    for column, expected in zip(zip(*checked, strict=True), types, strict=bool(checked)):
        for wrong in {kind for kind in set(map(type, column)) if not issubclass(kind, expected)}:
            raise DamageError(f"a value of type {wrong.__name__} where another was written")
    return checked


def check_count(row_name: str, expected: int, actual: int) -> None:
    """Raise DamageError if ``actual`` rows were read where ``expected`` were written, as from a damaged file.

    ``row_name`` names the rows in the message.
    """
    if expected != actual:
        raise DamageError(f"{actual:,} {row_name} where {expected:,} were written")


def get_only_row(rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the only row of a query result; raise DamageError if there is none, or another one."""
    all_rows = list(rows)
    check_count("rows", 1, len(all_rows))
    return all_rows[0]


@report_unparsable
def parse_document(row: tuple[Any, ...]) -> Document:
    """Build a document from a database row with the columns :data:`DOCUMENT_COLUMNS`."""
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


@report_unparsable
def parse_places(text: str) -> tuple[Location, ...]:
    """Parse the page, sheet or slide locations of a document from JSON."""
    return tuple(Location(s, e, page, "", sheet, slide) for s, e, page, sheet, slide in json.loads(text))


@report_unparsable
def parse_metadata(text: str) -> dict[str, MetadataValue]:
    """Parse the metadata of a document from JSON."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}


@report_unparsable
def parse_passages(rows: Iterable[tuple[Any, ...]]) -> list[Passage]:
    """Build passages from database rows with the columns :data:`PASSAGE_COLUMNS`."""
    return [Passage(*row) for row in check_types(rows, *[str] * 4, int, int, _OPTIONAL_INT, str, str, _OPTIONAL_INT)]


@report_unparsable
def parse_hyperedges(rows: Iterable[tuple[Any, ...]]) -> dict[int, Hyperedge]:
    """Build hyperedges, keyed by primary key, from database rows with the columns :data:`HYPEREDGE_COLUMNS`.

    Relation and arguments are in other tables; see :func:`add_arguments`.
    """
    checked = check_types(rows, int, int, bytes, str, str, str, str, int, int, NUMBER, str, str)
    return {
        number: Hyperedge(id, HyperedgeKind(kind), text, passage, start, end, score, valid_from=since, valid_to=until)
        for number, _, _, id, kind, text, passage, start, end, score, since, until in checked
    }


@report_unparsable
def add_arguments(
    hyperedges: Mapping[int, Hyperedge], argument_rows: Iterable[tuple[Any, ...]]
) -> dict[int, Hyperedge]:
    """Return ``hyperedges`` by primary key with the relations and arguments in ``argument_rows`` of the database.

    ``argument_rows`` is the result of the query :data:`SELECT_TUPLES`.

    Raises:
        DamageError: rows of a tuple are missing.
    """
    arguments: defaultdict[int, list[Argument]] = defaultdict(list)
    relations: dict[int, tuple[str, int]] = {}
    for number, relation, count, *argument in argument_rows:
        relations[number] = str(relation), int(count)
        if argument[0] is not None:
            arguments[number].append(parse_argument(argument))
    if any(edge.kind is HyperedgeKind.TUPLE and number not in relations for number, edge in hyperedges.items()):
        raise DamageError("a tuple without its relation")
    for number, (_, count) in relations.items():
        check_count("arguments", count, len(arguments[number]))
    return {
        number: replace(edge, relation=relations[number][0], arguments=tuple(arguments[number]))
        if number in relations
        else edge
        for number, edge in hyperedges.items()
    }


def parse_argument(row: Sequence[Any]) -> Argument:
    """Build an argument from the values (role, value, type, unit, names) of a database row."""
    role, value, type, unit, names = row
    if type not in TYPES:
        raise DamageError(f"an argument of type {type!r}")
    return Argument(role, value, type, unit, tuple(json.loads(names)) if names != "[]" else ())


def format_vector(vector: FloatArray, vector_type: VectorType) -> bytes:
    """Convert a vector to the bytes of a database column: its numbers, after a header in columns of pgvector."""
    number_type, header_bytes = _VECTOR_FORMATS[vector_type]
    header = struct.pack(">HH", len(vector), 0) if header_bytes else b""
    return header + vector.astype(number_type, copy=False).tobytes()


def format_number(value: Decimal) -> float:
    """Convert a decimal number to the nearest float; -0.0 becomes 0.0."""
    return float(value) + 0.0


@report_unparsable
def parse_vectors(blobs: Sequence[bytes], manifest: Manifest) -> FloatArray:
    """Convert the bytes of a database column to vectors, float32 ``[len(blobs), dimension]``.

    Raises:
        DamageError: a vector has another length, or is not finite.
    """
    number_type, header_bytes = _VECTOR_FORMATS[manifest.vector_type]
    stored = np.frombuffer(b"".join(blob[header_bytes:] for blob in blobs), dtype=number_type)
    return _check_finite(stored.reshape(len(blobs), manifest.dimension).astype(np.float32, copy=False))


@report_unparsable
def parse_floats(values: Sequence[float]) -> FloatArray:
    """Convert numbers to a float32 array; raise DamageError if a number is infinite or NaN."""
    with np.errstate(over="ignore"):
        return _check_finite(np.array(values, dtype=np.float32))


@report_unparsable
def parse_primary_keys(numbers: Sequence[Any]) -> IntArray:
    """Convert primary keys to an int64 array; raise DamageError for a key out of range.

    A key that is too high would allocate huge arrays later.
    """
    array = np.array(numbers, dtype=np.int64)
    if array.min(initial=0) < 0 or array.max(initial=0) >= _MAX_PRIMARY_KEY:
        raise DamageError("a primary key out of range")
    return array


def _check_finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise DamageError("a number that is not finite")
    return values
