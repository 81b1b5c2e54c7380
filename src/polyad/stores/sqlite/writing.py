"""Insertion and deletion of documents, within a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from polyad.model import IndexedDocument, IndexedHyperedge, IndexedPassage, Passage
from polyad.protocols.store import DOCUMENT_NAMESPACES, ENTITY_VECTORS
from polyad.stores.sqlite.rows import (
    compute_checksum,
    delete_values,
    format_check,
    format_vector,
    insert_rows,
    select_in,
)
from polyad.stores.sqlite.tuples import insert_tuples


def insert_documents(connection: sqlite3.Connection, documents: Sequence[IndexedDocument], new_version: int) -> None:
    """Insert documents with their passages, hyperedges and incidences. The ids must not exist yet."""
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
    entities = _insert_entities(connection, documents, last["entity"])
    insert_rows(connection, "document", (_document_row(item, number, new_version) for number, item in numbered))
    insert_rows(connection, "passage", (_passage_row(item, number, document) for number, (document, item) in passages))
    insert_rows(
        connection,
        "hyperedge",
        (_hyperedge_row(edge, number, passage_number, passage) for number, (edge, passage_number, passage) in edges),
    )
    insert_tuples(connection, ((number, edge.hyperedge) for number, (edge, *_) in edges))
    insert_rows(
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


def delete_documents(connection: sqlite3.Connection, document_ids: Sequence[str], new_version: int) -> None:
    """Delete documents with their passages, hyperedges and incidences, and delete entities without incidences.

    The removed passages are logged under ``new_version``. Ids that do not exist are ignored.
    """
    for document_id in document_ids:
        row = connection.execute("SELECT number FROM document WHERE id = ?", [document_id]).fetchone()
        if row is None:
            continue
        (number,) = row
        entities = connection.execute(
            "SELECT DISTINCT incidence.entity FROM passage JOIN hyperedge ON hyperedge.passage = passage.number "
            "JOIN incidence ON incidence.hyperedge = hyperedge.number WHERE passage.document = ?",
            [number],
        ).fetchall()
        connection.execute(
            "INSERT INTO removal SELECT *, row_checksum(version, low, high) FROM (SELECT ? AS version, "
            "MIN(number) AS low, MAX(number) AS high FROM passage WHERE document = ? GROUP BY document)",
            [new_version, number],
        )
        connection.execute("DELETE FROM document WHERE number = ?", [number])
        for namespace in DOCUMENT_NAMESPACES:
            delete_values(connection, namespace, [document_id])
        unused = "FROM entity WHERE number IN ({}) AND NOT EXISTS (SELECT 1 FROM incidence WHERE entity = number)"
        keys = [key for (key,) in select_in(connection, f"SELECT key {unused}", (number for (number,) in entities))]
        connection.executemany("DELETE FROM entity WHERE key = ?", ((key,) for key in keys))
        delete_values(connection, ENTITY_VECTORS, keys)


def _insert_entities(connection: sqlite3.Connection, documents: Sequence[IndexedDocument], last: int) -> dict[str, int]:
    """Return the primary key of each entity by key; insert new entities in the order of documents, then of keys."""
    groups = [
        sorted({part.entity_key for item in document.passages for edge in item.hyperedges for part in edge.incidences})
        for document in documents
    ]
    keys = dict.fromkeys(key for group in groups for key in group)
    existing: dict[str, int] = dict(
        select_in(connection, f"SELECT key, number FROM entity WHERE key IN ({{}}) AND {format_check('entity')}", keys)
    )
    new = {key: number for number, key in enumerate((key for key in keys if key not in existing), last + 1)}
    insert_rows(connection, "entity", ((number, key) for key, number in new.items()))
    return existing | new


def _document_row(item: IndexedDocument, number: int, version: int) -> tuple[object, ...]:
    document = item.document
    return (
        *(number, version, document.id, document.title, document.source, document.url),
        json.dumps(dict(document.metadata)),
        json.dumps([(place.start, place.end, place.page, place.sheet, place.slide) for place in document.places]),
        *(item.digest, item.tokens, item.recorded, len(item.passages)),
        *(compute_checksum(document.text), document.text),
    )


def _passage_row(item: IndexedPassage, number: int, document_number: int) -> tuple[object, ...]:
    passage = item.passage
    return (
        *(number, document_number, passage.id, passage.title, passage.text, passage.start, passage.end, passage.page),
        *(passage.heading, passage.sheet, passage.slide, item.digest),
        *(len(item.hyperedges), format_vector(item.vector)),
    )


def _hyperedge_row(item: IndexedHyperedge, number: int, passage_number: int, passage: Passage) -> tuple[object, ...]:
    edge, text = item.hyperedge, passage.text
    is_span = "\x00" not in text and edge.text == text[edge.start : edge.end]  # SUBSTR ends at a NUL
    return (
        *(number, passage_number, edge.id, str(edge.kind), None if is_span else edge.text, edge.start, edge.end),
        *(float(edge.score), edge.valid_from, edge.valid_to, len(item.incidences), format_vector(item.vector)),
    )
