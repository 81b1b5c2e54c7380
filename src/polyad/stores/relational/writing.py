"""Changes of documents, within a transaction: insertion, replacement, deletion and new vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from polyad.errors import VersionConflictError
from polyad.model import Argument, Hyperedge, HyperedgeKind, IndexedDocument, IndexedHyperedge, IndexedPassage, Passage
from polyad.protocols.lookups import require_ids
from polyad.protocols.store import VECTOR_NAMESPACES, Manifest, ReadTransaction, Values, VectorType
from polyad.stores.relational.connection import Connection, WritingConnection
from polyad.stores.relational.rows import format_check, format_number, format_vector, iterate_batches
from polyad.text.literals import get_extent
from polyad.text.words import normalize_value

_DOCUMENTS_PER_BATCH = 100
"""Documents in memory while vectors are replaced."""


def check_expectations(
    connection: WritingConnection, version: int, expected_version: int | None, expected_values: Values
) -> None:
    """Raise VersionConflictError if a writer's data come from another state of the index than the present one.

    Args:
        connection: The connection.
        version: The present version.
        expected_version: The version that the writer has read; None for any.
        expected_values: All values that the writer has read of some namespaces.
    """
    if expected_version not in (None, version):
        raise VersionConflictError(f"version {version} of the index where {expected_version} was expected")
    for namespace, expected in expected_values.items():
        if connection.select_values(namespace, None) != expected:
            raise VersionConflictError(f"the values {namespace!r} of the index were changed meanwhile")


def put(
    connection: WritingConnection, documents: Sequence[IndexedDocument], values: Values, new_version: int
) -> set[str]:
    """Store documents and the key-value pairs ``values``, and return the ids of the documents that were replaced.

    Args:
        connection: The connection.
        documents: The documents.
        values: Values by namespace and key; None deletes a key.
        new_version: Version of the transaction.
    """
    replaced = _find_existing(connection, [item.document.id for item in documents])
    existing, pending = set(replaced), list[IndexedDocument]()
    for item in documents:
        if item.document.id in existing:
            # Insert the pending documents first: an entity that they share with the replaced document must survive.
            insert_documents(connection, pending, new_version)
            pending = []
            connection.delete_documents([item.document.id], new_version)
        existing.add(item.document.id)
        pending.append(item)
    insert_documents(connection, pending, new_version)
    _put_values(connection, values)
    return replaced


def remove(connection: WritingConnection, document_ids: Sequence[str], values: Values, new_version: int) -> None:
    """Delete documents with all their rows, and store the key-value pairs ``values``, in the same transaction.

    Raises:
        NotFoundError: A document does not exist; no document is deleted.
    """
    existing = _find_existing(connection, document_ids)
    require_ids("document", document_ids, existing)
    connection.delete_documents(sorted(existing), new_version)
    _put_values(connection, values)


def replace_vectors(
    connection: WritingConnection,
    transaction: ReadTransaction,
    manifest: Manifest,
    embed: Callable[[Sequence[IndexedDocument]], tuple[Sequence[IndexedDocument], Values]],
    new_version: int,
) -> None:
    """Recompute the vectors of all documents with ``embed``, and store the new embedder's name in the manifest.

    Args:
        connection: The connection.
        transaction: Reads in the transaction of the connection.
        manifest: The new manifest.
        embed: Returns documents with new vectors, and values to store.
        new_version: Version of the transaction.
    """
    ids = [id for (id,) in connection.execute("SELECT id FROM document ORDER BY number")]
    for batch in iterate_batches(ids, _DOCUMENTS_PER_BATCH):
        documents, values = embed(list(transaction.get(IndexedDocument, batch).values()))
        connection.delete_documents(batch, new_version)
        insert_documents(connection, documents, new_version)
        _put_values(connection, values)
    for namespace in VECTOR_NAMESPACES:
        connection.execute("DELETE FROM value WHERE namespace = ?", [namespace])
    for key, value in (("embedder", manifest.embedder), ("dimension", manifest.dimension)):
        connection.execute("UPDATE manifest SET value = ? WHERE key = ?", [str(value), key])


def _find_existing(connection: Connection, document_ids: Sequence[str]) -> set[str]:
    """Return the ids among ``document_ids`` that the index contains."""
    return {id for (id,) in connection.select_in("SELECT id FROM document WHERE id IN ({})", document_ids)}


def _put_values(connection: WritingConnection, values: Values) -> None:
    """Store key-value pairs of several namespaces; a value of None deletes its key."""
    for namespace in values:
        connection.replace_values(namespace, values[namespace])


def insert_documents(connection: Connection, documents: Sequence[IndexedDocument], new_version: int) -> None:
    """Insert documents with their passages, hyperedges and entities; no id may exist in the index yet."""
    if not documents:
        return
    last = connection.get_last_keys()
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
    connection.insert_rows("document", (_document_row(item, number, new_version) for number, item in numbered))
    vector_type = connection.vector_type
    connection.insert_rows(
        "passage", (_passage_row(item, number, document, vector_type) for number, (document, item) in passages)
    )
    connection.insert_rows(
        "hyperedge",
        (_hyperedge_row(edge, number, key, passage, vector_type) for number, (edge, key, passage) in edges),
    )
    _insert_tuples(connection, ((number, edge.hyperedge) for number, (edge, *_) in edges))
    connection.insert_rows(
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


def _insert_tuples(connection: Connection, numbered_hyperedges: Iterable[tuple[int, Hyperedge]]) -> None:
    """Insert the relation and the arguments of each hyperedge that has a relation into the database.

    ``numbered_hyperedges`` are pairs (primary key, hyperedge).
    """
    tuples = [
        (number, edge) for number, edge in numbered_hyperedges if edge.kind is HyperedgeKind.TUPLE or edge.relation
    ]
    connection.insert_rows("tuple", ((number, edge.relation, len(edge.arguments)) for number, edge in tuples))
    arguments = (
        (number, place, *_argument_row(argument))
        for number, edge in tuples
        for place, argument in enumerate(edge.arguments)
    )
    connection.insert_rows("argument", arguments)


def _insert_entities(connection: Connection, documents: Sequence[IndexedDocument], last_key: int) -> dict[str, int]:
    """Insert new entities, with primary keys above ``last_key``, and return the primary keys of all by entity key.

    New keys follow the order of documents, then of entity keys.
    """
    groups = [
        sorted({part.entity_key for item in document.passages for edge in item.hyperedges for part in edge.incidences})
        for document in documents
    ]
    keys = dict.fromkeys(key for group in groups for key in group)
    existing: dict[str, int] = dict(
        connection.select_in(f"SELECT key, number FROM entity WHERE key IN ({{}}) AND {format_check('entity')}", keys)
    )
    new = {key: number for number, key in enumerate((key for key in keys if key not in existing), last_key + 1)}
    connection.insert_rows("entity", ((number, key) for key, number in new.items()))
    return existing | new


def _document_row(item: IndexedDocument, primary_key: int, version: int) -> tuple[object, ...]:
    """Return the column values of a document for the table ``document``, written at store ``version``."""
    document = item.document
    return (
        *(primary_key, version, document.id, document.title, document.source, document.url),
        json.dumps(dict(document.metadata)),
        json.dumps([(place.start, place.end, place.page, place.sheet, place.slide) for place in document.places]),
        *(item.digest, item.tokens, item.recorded, len(item.passages)),
        document.text,
    )


def _passage_row(
    item: IndexedPassage, primary_key: int, document_key: int, vector_type: VectorType
) -> tuple[object, ...]:
    """Return the column values of a passage for the table ``passage``; ``document_key`` is a foreign key."""
    passage = item.passage
    return (
        *(primary_key, document_key, passage.id, passage.title, passage.text, passage.start, passage.end, passage.page),
        *(passage.heading, passage.sheet, passage.slide, item.digest),
        *(len(item.hyperedges), format_vector(item.vector, vector_type)),
    )


def _hyperedge_row(
    item: IndexedHyperedge, primary_key: int, passage_key: int, passage: Passage, vector_type: VectorType
) -> tuple[object, ...]:
    """Return the column values of a hyperedge for the table ``hyperedge``; ``passage_key`` is a foreign key."""
    edge, text = item.hyperedge, passage.text
    is_plain = "\x00" not in text and "\x01" not in text  # SQLite's SUBSTR ends at a NUL, PostgreSQL escapes both
    is_span = is_plain and edge.text == text[edge.start : edge.end]
    return (
        *(primary_key, passage_key, edge.id, str(edge.kind), None if is_span else edge.text, edge.start, edge.end),
        *(
            float(edge.score),
            edge.valid_from,
            edge.valid_to,
            len(item.incidences),
            format_vector(item.vector, vector_type),
        ),
    )


def _argument_row(argument: Argument) -> tuple[object, ...]:
    """Return the values of a fact's argument for the columns ``role`` to ``end`` of the table ``argument``."""
    value, extent = normalize_value(argument.value), get_extent(argument)
    return (
        *(argument.role, value, None if value == argument.value else argument.value, argument.type, argument.unit),
        json.dumps(list(map(normalize_value, argument.names))),
        *((format_number(extent.low), format_number(extent.end)) if extent else (None, None)),
    )
