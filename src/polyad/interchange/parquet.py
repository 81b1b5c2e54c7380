"""Parquet: a folder with one file for each table, for data frames and databases. Needs the extra ``parquet``.

What a user retracted or disabled is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from polyad.errors import MissingExtraError
from polyad.interchange.contents import IndexContents
from polyad.model import IndexedDocument, IndexedHyperedge, IndexedPassage
from polyad.text.files import make_folder, open_atomically
from polyad.text.json_types import format_value

_ROWS_PER_GROUP = 10_000
"""Rows of a table that are written together, in one row group."""

_TABLES: Mapping[str, Mapping[str, str]] = {
    "documents": {
        **dict.fromkeys(("id", "title", "source", "url", "metadata"), "string"),
        "tokens": "int64",
        "text": "large_string",
    },
    "passages": {
        **dict.fromkeys(("id", "document_id", "title", "text"), "string"),
        **dict.fromkeys(("start", "end", "page"), "int64"),
        **dict.fromkeys(("heading", "sheet"), "string"),
        "slide": "int64",
        "vector": "vector",
    },
    "hyperedges": {
        **dict.fromkeys(("id", "passage_id", "kind", "text"), "string"),
        **dict.fromkeys(("start", "end"), "int64"),
        "score": "float64",
        "relation": "string",
        "arguments": "arguments",
        "vector": "vector",
    },
    "incidences": {
        **dict.fromkeys(("hyperedge_id", "entity_key", "role", "name", "type", "description"), "string"),
        "score": "float64",
        "grounded": "bool",
        "strength": "float64",
    },
    "entities": {**dict.fromkeys(("key", "name", "type", "description"), "string"), "score": "float64"},
}
"""Type of each column by table: a type of Arrow, ``vector`` or ``arguments``. Metadata is a JSON object."""

Rows = dict[str, list[dict[str, Any]]]


def write_parquet(contents: IndexContents, path: Path) -> list[Path]:
    """Write an index as Parquet, one file for each table, and return the paths of the files.

    Args:
        contents: The index.
        path: Folder of the files, which are replaced together when all are complete.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    make_folder(path)
    files = {table: path / f"{table}.parquet" for table in _TABLES}
    schemas = {table: _build_schema(table, contents) for table in _TABLES}
    with ExitStack() as stack:
        writers = {
            table: stack.enter_context(ParquetWriter(stack.enter_context(open_atomically(file)), schemas[table]))
            for table, file in files.items()
        }
        for rows in _iterate_groups(contents):
            for table, group in rows.items():
                _write_rows(writers[table], schemas[table], group)
    return list(files.values())


def _build_schema(table: str, contents: IndexContents) -> Any:
    """Return the Arrow schema of a table: names and types of its columns."""
    import pyarrow

    argument = [(name, pyarrow.string()) for name in ("role", "value", "type", "unit")]
    types = {
        "vector": pyarrow.list_(pyarrow.float32(), contents.manifest.dimension),
        "arguments": pyarrow.list_(pyarrow.struct([*argument, ("names", pyarrow.list_(pyarrow.string()))])),
    }
    columns = {name: type for name, type in _TABLES[table].items() if type != "vector" or contents.has_vectors}
    return pyarrow.schema([(name, types.get(type) or pyarrow.type_for_alias(type)) for name, type in columns.items()])


def _write_rows(writer: Any, schema: Any, rows: Sequence[dict[str, Any]]) -> None:
    import pyarrow

    if rows:
        writer.write_table(pyarrow.Table.from_pylist(rows, schema))


def _iterate_groups(contents: IndexContents) -> Iterator[Rows]:
    """Yield table rows in groups of limited size, as dictionaries keyed by table name."""
    rows: Rows = {table: [] for table in _TABLES}
    for document in contents.iterate_documents():
        if document.passages:  # otherwise it is disabled
            _add_document(rows, document)
        if max(map(len, rows.values())) >= _ROWS_PER_GROUP:
            yield rows
            rows = {table: [] for table in _TABLES}
    for entity in contents.iterate_entities():
        rows["entities"].append(format_value(entity))
        if len(rows["entities"]) >= _ROWS_PER_GROUP:
            yield rows
            rows = {table: [] for table in _TABLES}
    yield rows


def _add_document(rows: Rows, item: IndexedDocument) -> None:
    document = item.document
    metadata = json.dumps(format_value(document.metadata), ensure_ascii=False)
    rows["documents"].append(_select("documents", document) | {"metadata": metadata, "tokens": item.tokens})
    for passage in item.passages:
        _add_passage(rows, passage)


def _add_passage(rows: Rows, item: IndexedPassage) -> None:
    rows["passages"].append(_select("passages", item.passage) | {"vector": item.vector})
    for edge in item.hyperedges:
        _add_hyperedge(rows, edge)


def _add_hyperedge(rows: Rows, item: IndexedHyperedge) -> None:
    values = {"arguments": format_value(item.hyperedge.arguments), "vector": item.vector}
    rows["hyperedges"].append(_select("hyperedges", item.hyperedge) | values)
    rows["incidences"] += [_select("incidences", part) for part in item.incidences]


def _select(table: str, record: object) -> dict[str, object]:
    """Return the attributes of a record that are columns of a Parquet table."""
    return {name: getattr(record, name) for name in _TABLES[table] if hasattr(record, name)}
