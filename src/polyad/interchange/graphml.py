"""GraphML: an undirected graph in which entities and hyperedges are nodes, and memberships are edges.

GraphML has hyperedges of its own, which hardly any program reads; a bipartite graph is read by all. Texts of passages,
metadata of documents and vectors have no place in this format. What a user retracted or disabled is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from polyad.interchange.contents import IndexContents, select_fields
from polyad.model import Entity, IndexedHyperedge, Passage
from polyad.text.files import open_atomically

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"

_NODE_KEYS = {
    "kind": "string",  # "entity", or the kind of the hyperedge
    "key": "string",  # the key of the entity, or the id of the hyperedge
    "name": "string",
    "type": "string",
    "description": "string",
    "text": "string",
    "relation": "string",
    "document_id": "string",
    "passage_id": "string",
    "title": "string",
    "score": "double",
}
_EDGE_KEYS = {
    "role": "string",
    "name": "string",
    "type": "string",
    "description": "string",
    "score": "double",
    "grounded": "boolean",
    "strength": "double",
}

_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


def write_graphml(contents: IndexContents, path: Path) -> list[Path]:
    """Write an index as GraphML and return the path of the file."""
    with open_atomically(path) as file:
        xml = XMLGenerator(file, "utf-8", short_empty_elements=True)
        xml.startDocument()
        xml.startElement("graphml", AttributesImpl({"xmlns": _NAMESPACE}))
        for target, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
            for name, type in keys.items():
                attributes = {"id": f"{target}_{name}", "for": target, "attr.name": name, "attr.type": type}
                _write_element(xml, "key", attributes)
        xml.startElement("graph", AttributesImpl({"id": "polyad", "edgedefault": "undirected"}))
        _write_graph(xml, contents)
        xml.endElement("graph")
        xml.endElement("graphml")
        xml.endDocument()
    return [path]


def _write_graph(xml: XMLGenerator, contents: IndexContents) -> None:
    """Write all nodes and edges of the graph; each edge follows its two nodes."""
    ids: dict[str, str] = {}
    for number, entity in enumerate(contents.iterate_entities()):
        ids[entity.key] = f"e{number}"
        _write_element(xml, "node", {"id": f"e{number}"}, _format_entity(entity))
    for number, (passage, edge) in enumerate(contents.iterate_hyperedges()):
        id = f"h{number}"
        _write_element(xml, "node", {"id": id}, _format_hyperedge(edge, passage))
        for part in edge.incidences:
            ends = {"source": ids[part.entity_key], "target": id}
            _write_element(xml, "edge", ends, select_fields(part, *_EDGE_KEYS))


def _format_entity(entity: Entity) -> dict[str, object]:
    return {"kind": "entity", **select_fields(entity, "key", "name", "type", "description", "score")}


def _format_hyperedge(item: IndexedHyperedge, passage: Passage) -> dict[str, object]:
    edge = item.hyperedge
    place = {"document_id": passage.document_id, "passage_id": passage.id, "title": passage.title, "score": edge.score}
    return {"kind": edge.kind, "key": edge.id, **select_fields(edge, "text", "relation"), **place}


def _write_element(
    xml: XMLGenerator, name: str, attributes: dict[str, str], values: Mapping[str, object] | None = None
) -> None:
    """Write an XML element on its own line, with a ``data`` element for each value that is not empty."""
    xml.ignorableWhitespace("\n")
    xml.startElement(name, AttributesImpl(attributes))
    for key, value in (values or {}).items():
        if value != "":
            xml.startElement("data", AttributesImpl({"key": f"{name}_{key}"}))
            xml.characters(_format_value(value))
            xml.endElement("data")
    xml.endElement(name)


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _NO_XML.sub("\ufffd", str(value))
