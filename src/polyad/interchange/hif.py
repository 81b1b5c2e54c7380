"""The Hypergraph Interchange Format (HIF): one JSON object of nodes, edges and incidences.

Entities are nodes, hyperedges are edges, and each membership is an incidence; what else polyad knows of them is in
``attrs``. Texts of passages, metadata of documents and vectors have no place in this format. What a user retracted or
disabled is left out.

Coll et al., "HIF: The hypergraph interchange format for higher-order networks", Network Science, 2025.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BufferedWriter
from pathlib import Path
from typing import Any

from polyad.interchange.contents import IndexContents, select_fields
from polyad.model import Entity, Incidence, IndexedHyperedge, Passage
from polyad.text.files import open_atomically
from polyad.text.json_types import format_value


def write_hif(contents: IndexContents, path: Path) -> list[Path]:
    """Write an index in the Hypergraph Interchange Format and return the path of the file.

    Documents are read twice, once for edges and once for incidences, so that memory does not grow with the index.
    """
    metadata = {"software": "polyad", "mention_extractor": contents.manifest.mentions, **contents.count_records()}
    with open_atomically(path) as file:
        file.write(b'{"network-type":"undirected","metadata":' + _format(metadata))
        _write_array(file, "nodes", map(_format_node, contents.iterate_entities()))
        _write_array(file, "edges", (_format_edge(edge, passage) for passage, edge in contents.iterate_hyperedges()))
        _write_array(file, "incidences", _iterate_incidences(contents))
        file.write(b"}\n")
    return [path]


def _write_array(file: BufferedWriter, name: str, records: Iterable[dict[str, Any]]) -> None:
    """Write a JSON key and an array with one record per line to a file."""
    file.write(b',\n"' + name.encode() + b'":[')
    separator = b"\n"
    for record in records:
        file.write(separator + _format(record))
        separator = b",\n"
    file.write(b"]")


def _format(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()


def _format_node(entity: Entity) -> dict[str, Any]:
    return {"node": entity.key, "attrs": select_fields(entity, "name", "type", "description", "score")}


def _format_edge(item: IndexedHyperedge, passage: Passage) -> dict[str, Any]:
    edge = item.hyperedge
    attributes = {
        **select_fields(edge, "kind", "text", "relation"),
        "arguments": format_value(edge.arguments),
        "score": edge.score,
        "document_id": passage.document_id,
        "passage_id": passage.id,
        "title": passage.title,
        "start": passage.start + edge.start,
        "end": passage.start + edge.end,
    }
    return {"edge": edge.id, "weight": edge.score, "attrs": attributes}


def _iterate_incidences(contents: IndexContents) -> Iterator[dict[str, Any]]:
    for _, edge in contents.iterate_hyperedges():
        yield from map(_format_incidence, edge.incidences)


def _format_incidence(part: Incidence) -> dict[str, Any]:
    attributes = select_fields(part, "role", "name", "type", "description", "grounded", "strength")
    return {"edge": part.hyperedge_id, "node": part.entity_key, "weight": part.score, "attrs": attributes}
