"""How the store's rows become the words of the model, and back."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from types import NoneType
from typing import Any, TypeVar

import numpy as np

from polyad.errors import NotFoundError
from polyad.model import (
    Document,
    Entity,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    IntArray,
    Location,
    MetadataValue,
    Passage,
)
from polyad.protocols.store import EntityAggregate
from polyad.stores.sqlite.checksums import checksum, insert, sound
from polyad.stores.sqlite.given import insert_given, with_given

T = TypeVar("T")

_STATS = "`polyad stats` shows what it holds"
_WHERE_TO_LOOK = {
    "document": "`polyad list documents` shows what it holds",
    "entity": "`polyad list entities --like NAME` finds one like it",
}

_BATCH = 500  # values bound to one statement; SQLite's oldest limit is 999

_NUMBER = (int, float)
_MAYBE_INT = (int, NoneType)

_MOST_ROWS = 2**53
"""Row numbers stay below this in a sound file: they grow by one with every row written."""

DOCUMENT_COLUMNS = "id, title, text, source, url, metadata, places"

PASSAGE_COLUMNS = (
    'passage.id, document.id, passage.title, passage.text, passage."start", passage."end", '
    "passage.page, passage.heading, passage.sheet, passage.slide"
)

SELECT_HYPEREDGE = (
    "SELECT hyperedge.id, hyperedge.kind, COALESCE(hyperedge.text, "
    'SUBSTR(passage.text, hyperedge."start" + 1, hyperedge."end" - hyperedge."start")), passage.id, '
    'hyperedge."start", hyperedge."end", hyperedge.score, hyperedge.vector, hyperedge.number '
    "FROM hyperedge JOIN passage ON passage.number = hyperedge.passage"
)


SELECT_ENTITIES = (
    "SELECT entity.key, name, type, description, COUNT(*), MAX(score) FROM incidence "
    f"JOIN entity ON entity.number = incidence.entity WHERE {sound('entity')} AND {sound('incidence')} {{}} "
    "GROUP BY 1, 2, 3, 4"
)


SELECT_DUPLICATES = """
SELECT id, earlier FROM (
    SELECT document.id, (
        SELECT other.id FROM passage AS same JOIN document AS other ON other.number = same.document
        WHERE same.digest = last.digest AND same."end" = last."end" AND same.number < last.number
        AND other.number <> document.number AND other.title = document.title AND other.text = document.text
        ORDER BY same.number LIMIT 1
    ) AS earlier
    FROM document JOIN passage AS last
    ON last.number = (SELECT MAX(number) FROM passage WHERE passage.document = document.number)
    WHERE document.id IN ({}) AND last.digest <> ''
) WHERE earlier IS NOT NULL
"""
"""Looks at the last passage alone, by its digest and where it ends: documents that begin alike are many, those that end
alike, such as in one licence, are seldom of one length, and to compare whole texts is slow."""


def select_in(connection: sqlite3.Connection, query: str, values: Iterable[str]) -> list[tuple[Any, ...]]:
    """Run ``query``, whose ``{}`` takes the placeholders of ``IN (...)``, over the values in batches."""
    distinct = list(dict.fromkeys(values))
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        rows += connection.execute(query.format(",".join("?" * len(batch))), batch).fetchall()
    return rows


def as_written(rows: Iterable[tuple[Any, ...]], *types: type | tuple[type, ...]) -> list[tuple[Any, ...]]:
    """The rows, whose values are of these types.

    Raises:
        ValueError: one is not; SQLite hands out whatever a damaged file says.
    """
    found = list(rows)
    for column, expected in zip(zip(*found, strict=True), types, strict=bool(found)):
        for other in {kind for kind in set(map(type, column)) if not issubclass(kind, expected)}:
            raise ValueError(f"a value of type {other.__name__} where another was written")
    return found


def require_all(what: str, written: int, found: int) -> None:
    """Raise ValueError unless as many rows are found as were written: of a damaged file some get lost."""
    if written != found:
        raise ValueError(f"{found:,} {what} where {written:,} were written")


def require_known(what: str, wanted: Iterable[str], known: Container[str]) -> None:
    """Raise NotFoundError, with the first of them, if any id is unknown."""
    unknown = [id for id in wanted if id not in known]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise NotFoundError(f"no {what} {unknown[0]!r} in this index{more}; {_WHERE_TO_LOOK.get(what, _STATS)}")


def in_order(what: str, wanted: Sequence[str], found: Mapping[str, T]) -> list[T]:
    """What was found, in the order it was asked for. Raises NotFoundError."""
    require_known(what, wanted, found)
    return [found[id] for id in wanted]


def delete_documents(connection: sqlite3.Connection, document_ids: Sequence[str], version: int) -> None:
    """Remove documents with their passages, hyperedges, incidences and words, and entities nothing mentions now.

    Args:
        connection: In a transaction.
        document_ids: Those that are not there are passed over.
        version: That the transaction makes; the removal is logged under it.
    """
    for document_id in document_ids:
        row = connection.execute("SELECT number FROM document WHERE id = ?", [document_id]).fetchone()
        if row is None:
            continue
        (number,) = row
        touched = connection.execute(
            "SELECT DISTINCT incidence.entity FROM passage JOIN hyperedge ON hyperedge.passage = passage.number "
            "JOIN incidence ON incidence.hyperedge = hyperedge.number WHERE passage.document = ?",
            [number],
        ).fetchall()
        connection.execute(
            "INSERT INTO removal SELECT *, row_checksum(version, low, high) FROM (SELECT ? AS version, "
            "MIN(number) AS low, MAX(number) AS high FROM passage WHERE document = ? GROUP BY document)",
            [version, number],
        )
        connection.execute("DELETE FROM document WHERE number = ?", [number])
        connection.executemany(
            "DELETE FROM entity WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = ?1)", touched
        )


def insert_documents(connection: sqlite3.Connection, documents: Sequence[IndexedDocument], version: int) -> None:
    """Insert documents whose ids are free, with all that came from them, by the transaction that makes ``version``."""
    last = defaultdict(int, connection.execute("SELECT name, seq FROM sqlite_sequence"))
    numbered = list(enumerate(documents, last["document"] + 1))
    passages = list(
        enumerate(((number, item) for number, document in numbered for item in document.passages), last["passage"] + 1)
    )
    edges = list(
        enumerate(
            ((edge, number, item.passage) for number, (_, item) in passages for edge in item.hyperedges),
            last["hyperedge"] + 1,
        )
    )
    entities = _entity_numbers(connection, documents, last["entity"])
    insert(connection, "document", (_document_row(document, number, version) for number, document in numbered))
    insert(connection, "passage", (_passage_row(item, number, document) for number, (document, item) in passages))
    insert(
        connection, "hyperedge", (_hyperedge_row(edge, number, of, passage) for number, (edge, of, passage) in edges)
    )
    insert_given(connection, ((number, edge.hyperedge) for number, (edge, *_) in edges))
    insert(
        connection,
        "incidence",
        (
            (
                *(entities[part.entity_key], number, part.role, part.name, part.type, part.description),
                *(float(part.score), int(part.grounded), float(part.strength)),
            )
            for number, (edge, *_) in edges
            for part in edge.incidences
        ),
    )


def _entity_numbers(connection: sqlite3.Connection, documents: Sequence[IndexedDocument], last: int) -> dict[str, int]:
    """The number of each entity, by key; those that are new are inserted, in the order of documents, then of keys."""
    keys = [
        sorted({part.entity_key for item in document.passages for edge in item.hyperedges for part in edge.incidences})
        for document in documents
    ]
    wanted = dict.fromkeys(key for own in keys for key in own)
    known = dict(
        select_in(connection, f"SELECT key, number FROM entity WHERE key IN ({{}}) AND {sound('entity')}", wanted)
    )
    new = {key: number for number, key in enumerate((key for key in wanted if key not in known), last + 1)}
    insert(connection, "entity", ((number, key) for key, number in new.items()))
    return known | new


def _document_row(indexed: IndexedDocument, number: int, version: int) -> tuple[object, ...]:
    document = indexed.document
    return (
        *(number, version, document.id, document.title, document.source, document.url),
        json.dumps(dict(document.metadata)),
        json.dumps([(place.start, place.end, place.page, place.sheet, place.slide) for place in document.places]),
        *(indexed.digest, indexed.tokens, len(indexed.passages), checksum(document.text), document.text),
    )


def _passage_row(indexed: IndexedPassage, number: int, document: int) -> tuple[object, ...]:
    passage = indexed.passage
    return (
        *(number, document, passage.id, passage.title, passage.text, passage.start, passage.end, passage.page),
        *(passage.heading, passage.sheet, passage.slide, indexed.digest),
        *(len(indexed.hyperedges), blob_of(indexed.vector)),
    )


def _hyperedge_row(item: IndexedHyperedge, number: int, of: int, passage: Passage) -> tuple[object, ...]:
    edge, text = item.hyperedge, passage.text
    is_span = "\x00" not in text and edge.text == text[edge.start : edge.end]  # SUBSTR ends at a NUL
    return (
        *(number, of, edge.id, str(edge.kind), None if is_span else edge.text, edge.start, edge.end),
        *(float(edge.score), len(item.incidences), blob_of(item.vector)),
    )


def document_from(row: tuple[Any, ...]) -> Document:
    """A row of id, title, text, source, url, metadata and places."""
    [(id, title, text, source, url, metadata, places)] = as_written([row], *[str] * 7)
    return Document(
        id,
        title,
        text,
        source,
        url=url,
        metadata=metadata_from(metadata),
        places=tuple(Location(s, e, page, "", sheet, slide) for s, e, page, sheet, slide in json.loads(places)),
    )


def metadata_from(text: str) -> dict[str, MetadataValue]:
    """Stored metadata."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}


def passages_from(rows: Iterable[tuple[Any, ...]]) -> list[Passage]:
    """Rows of :data:`PASSAGE_COLUMNS`."""
    sound = as_written(rows, str, str, str, str, int, int, _MAYBE_INT, str, str, _MAYBE_INT)
    return [Passage(*row) for row in sound]


def hyperedges_from(rows: Iterable[tuple[Any, ...]]) -> dict[int, Hyperedge]:
    """Rows of :data:`SELECT_HYPEREDGE`, by their numbers, without what a tuple was given."""
    sound = as_written(rows, str, str, str, str, int, int, _NUMBER, bytes, int)
    return {row[8]: Hyperedge(row[0], HyperedgeKind(row[1]), *row[2:7]) for row in sound}


def select_hyperedges(connection: sqlite3.Connection, where: str, ids: Sequence[str]) -> dict[str, Hyperedge]:
    """The hyperedges of which ``where`` is true, whose ``{}`` takes placeholders for some ids, by id."""
    rows = select_in(connection, f"{SELECT_HYPEREDGE} WHERE {where}", ids)
    return {edge.id: edge for edge in with_given(connection, hyperedges_from(rows)).values()}


def select_incidences(connection: sqlite3.Connection, hyperedge_ids: Iterable[str]) -> dict[str, list[Incidence]]:
    """The incidences of each hyperedge, sorted by entity key, then role."""
    found: dict[str, list[Incidence]] = {id: [] for id in hyperedge_ids}
    rows = select_in(
        connection,
        "SELECT entity.key, hyperedge.id, name, role, type, description, incidence.score, grounded, strength, "
        "hyperedge.incidences FROM hyperedge "
        "JOIN incidence ON incidence.hyperedge = hyperedge.number JOIN entity ON entity.number = incidence.entity "
        f"WHERE hyperedge.id IN ({{}}) AND {sound('entity')} AND {sound('incidence')} ORDER BY entity.key, role",
        found,
    )
    for row in as_written(rows, str, str, str, str, str, str, _NUMBER, _MAYBE_INT, _NUMBER, int):
        key, hyperedge_id, name, role, type, description, score, grounded, strength, _ = row
        found[hyperedge_id].append(
            Incidence(key, hyperedge_id, name, role, type, description, score, bool(grounded), strength)
        )
    for hyperedge_id, count in {row[1]: row[-1] for row in rows}.items():
        require_all("incidences", count, len(found[hyperedge_id]))
    return found


def select_indexed_passages(connection: sqlite3.Connection, column: str, values: Sequence[str]) -> list[IndexedPassage]:
    """The passages whose ``column`` has one of some values, with hyperedges and vectors, by id."""
    rows = select_in(
        connection,
        f"SELECT {PASSAGE_COLUMNS}, passage.digest, passage.vector "
        "FROM passage JOIN document ON document.number = passage.document "
        f"WHERE {column} IN ({{}}) AND {sound('passage')} ORDER BY passage.id",
        values,
    )
    edges = _select_indexed_hyperedges(connection, [row[0] for row in rows])
    return [
        IndexedPassage(passage, digest, vector_from(vector), tuple(edges.get(passage.id, ())))
        for passage, (digest, vector) in zip(
            passages_from(row[:-2] for row in rows), (row[-2:] for row in rows), strict=True
        )
    ]


def _select_indexed_hyperedges(
    connection: sqlite3.Connection, passage_ids: Sequence[str]
) -> dict[str, list[IndexedHyperedge]]:
    """The hyperedges of each passage with incidences and vectors, in order of their position."""
    rows = select_in(
        connection,
        f"{SELECT_HYPEREDGE} WHERE passage.id IN ({{}}) AND {sound('hyperedge')} ORDER BY hyperedge.number",
        passage_ids,
    )
    incidences = select_incidences(connection, [row[0] for row in rows])
    edges = with_given(connection, hyperedges_from(rows))
    found = defaultdict(list)
    for row in rows:
        edge = edges[row[8]]
        found[edge.passage_id].append(IndexedHyperedge(edge, tuple(incidences[edge.id]), vector_from(row[7])))
    return found


def build_entities(rows: Sequence[tuple[Any, ...]]) -> list[Entity]:
    """The entities in rows of :data:`SELECT_ENTITIES`, sorted by key."""
    sound = as_written(rows, str, str, str, str, int, _NUMBER)
    return [tally_of(list(group)).entity(key) for key, group in groupby(sorted(sound), key=lambda row: str(row[0]))]


def tally_of(rows: Sequence[tuple[Any, ...]]) -> EntityAggregate:
    """What is said of one entity by its distinct (key, name, type, description, count, highest score)."""
    names: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for _, name, type, _, count, _ in rows:
        names[name] += count
        types[type] += count if type else 0
    descriptions = frozenset(row[3] for row in rows if row[3])
    return EntityAggregate(names, types, descriptions, max(row[5] for row in rows))


def tally_of_incidences(rows: Iterable[tuple[int, int, str, str, str, float]]) -> EntityAggregate:
    """What is said of one entity by (place, hyperedge, name, type, description, score), by hyperedge.

    Most entities have one or two incidences, and a search shows fifty entities: no more is made than is counted.
    """
    names: dict[str, int] = {}
    types: dict[str, int] = {}
    descriptions: set[str] = set()
    highest, hyperedges, before = 0.0, 0, 0
    for _, hyperedge, name, type, description, score in rows:
        names[name] = names.get(name, 0) + 1
        types[type] = types.get(type, 0) + bool(type)
        if description:
            descriptions.add(description)
        highest = max(highest, score)
        hyperedges += hyperedge != before
        before = hyperedge
    return EntityAggregate(names, types, frozenset(descriptions), highest, hyperedges)


def blob_of(vector: FloatArray) -> bytes:
    """A vector as it is stored."""
    return vector.astype("<f4", copy=False).tobytes()


def vector_from(blob: bytes) -> FloatArray:
    """A stored vector, of shape ``[dimension]``."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def matrix_from(blobs: Sequence[bytes], dimension: int) -> FloatArray:
    """Vectors in one contiguous array of shape ``[len(blobs), dimension]``.

    Raises:
        ValueError: they are of another length, or not finite.
    """
    matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension).astype(np.float32, copy=False)
    return _finite(matrix)


def numbers_from(values: Sequence[float]) -> FloatArray:
    """Stored scores or strengths, of shape ``[len(values)]``. Raises ValueError if one is not finite."""
    with np.errstate(over="ignore"):
        return _finite(np.array(values, dtype=np.float32))


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise ValueError("a number that is not finite")
    return values


def require_numbers(numbers: Sequence[int] | IntArray) -> IntArray:
    """Row numbers as an array. Raises ValueError for what is none, and would take memory without end as one."""
    array = np.array(numbers, dtype=np.int64)
    if array.min(initial=0) < 0 or array.max(initial=0) >= _MOST_ROWS:
        raise ValueError("a row number out of bounds")
    return array
