"""Invariants of an index in PostgreSQL; the server itself checks its pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from polyad.protocols.store import Damage, Manifest, Remedy
from polyad.stores.relational.connection import Connection

_COUNTS: Mapping[tuple[str, str], str] = {
    ("document", "passages"): "document.id",
    ("passage", "hyperedges"): "(SELECT id FROM document WHERE number = passage.document)",
    ("hyperedge", "incidences"): (
        "(SELECT document.id FROM document JOIN passage ON passage.document = document.number "
        "WHERE passage.number = hyperedge.passage)"
    ),
}
"""Column of a table that counts the rows of another table, and the document of a row in SQL."""

_MISCOUNTED = """
SELECT {table}.id, {column}, COUNT({child}.{table}), COALESCE({document}, '') FROM {table}
LEFT JOIN {child} ON {child}.{table} = {table}.number
GROUP BY {table}.number HAVING {column} <> COUNT({child}.{table})
"""

_ORPHANS: Mapping[str, str] = {
    "passage": "SELECT id FROM passage WHERE NOT EXISTS (SELECT FROM document WHERE number = document)",
    "hyperedge": "SELECT id FROM hyperedge WHERE NOT EXISTS (SELECT FROM passage WHERE number = passage)",
    "entity": "SELECT key FROM entity WHERE NOT EXISTS (SELECT FROM incidence WHERE entity = number)",
    "incidence": (
        "SELECT DISTINCT hyperedge::text FROM incidence "
        "WHERE NOT EXISTS (SELECT FROM hyperedge AS edge WHERE edge.number = incidence.hyperedge) "
        "OR NOT EXISTS (SELECT FROM entity AS item WHERE item.number = incidence.entity)"
    ),
}
"""Queries for rows without the row that they belong to."""

_VECTORS = "SELECT id FROM {table} WHERE LENGTH(vector) <> ?"


def find_damage(connection: Connection, manifest: Manifest) -> Iterator[Damage]:
    """Yield a Damage for each wrong row count, each row without its parent, and each vector of the wrong length."""
    for (table, column), document in _COUNTS.items():
        query = _MISCOUNTED.format(table=table, column=column, child=column[:-1], document=document)
        for id, expected, count, document_id in connection.execute(query):
            problem = f"has {count:,} {column}, {expected:,} were written"
            yield Damage("row counts", table, id, problem, document_id, "index")
    for table, query in _ORPHANS.items():
        for (id,) in connection.execute(query):
            remedy: Remedy = "repair" if table == "entity" else "restore"
            yield Damage("references", table, id, "belongs to no other row", remedy=remedy)
    vector_bytes = manifest.dimension * manifest.number_type.itemsize
    is_bytes = manifest.vector_type in ("float32", "float16")  # pgvector checks its columns
    for table in ("passage", "hyperedge") if is_bytes else ():
        for (id,) in connection.execute(_VECTORS.format(table=table), [vector_bytes]):
            yield Damage("vectors", table, id, f"is not {manifest.dimension} numbers")
