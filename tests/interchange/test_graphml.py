"""GraphML files: XML that any parser reads, and the same memberships as the index."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from polyad import Document
from polyad.model import IndexedHyperedge
from polyad.protocols.lookups import get_all
from tests.engine.test_corrections import DOCUMENTS, find_id, open_engine

NAMESPACE = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Path, list[IndexedHyperedge]]:
    with open_engine(tmp_path / "kb") as engine:
        text = "Zero \x00 & Co <b> of Aldby ]]> owns \ufffe a \U0001f514 bell."
        engine.index_documents([*DOCUMENTS, Document("xml", "Zero & Co", text)])
        engine.corrections.retract(hyperedge=find_id(engine, "Corven Tower was"), reason="it was Ada")
        engine.export(tmp_path / "kb.graphml", "graphml")
        return tmp_path / "kb.graphml", get_all(engine._store, IndexedHyperedge)


def test_nodes_are_entities_and_hyperedges_and_edges_are_memberships(
    exported: tuple[Path, list[IndexedHyperedge]],
) -> None:
    path, edges = exported
    root = ElementTree.parse(path).getroot()
    names = {key.attrib["id"]: key.attrib["attr.name"] for key in root.iter(f"{NAMESPACE}key")}

    def read(element: ElementTree.Element) -> dict[str, str]:
        return {names[data.attrib["key"]]: data.text or "" for data in element}

    nodes = {node.attrib["id"]: read(node) for node in root.iter(f"{NAMESPACE}node")}
    memberships = {
        (nodes[edge.attrib["source"]]["key"], nodes[edge.attrib["target"]]["key"], read(edge).get("role", ""))
        for edge in root.iter(f"{NAMESPACE}edge")
    }
    assert memberships == {
        (part.entity_key, edge.hyperedge.id, part.role) for edge in edges for part in edge.incidences
    }
    texts = {node["key"]: node["text"] for node in nodes.values() if node["kind"] != "entity"}
    assert texts == {
        edge.hyperedge.id: edge.hyperedge.text.replace("\x00", "\ufffd").replace("\ufffe", "\ufffd") for edge in edges
    }
    assert "Bo Ray" not in {node.get("name") for node in nodes.values()}


def test_networkx_reads_the_file(exported: tuple[Path, list[IndexedHyperedge]]) -> None:
    networkx = pytest.importorskip("networkx")
    path, edges = exported
    graph = networkx.read_graphml(path)
    assert graph.number_of_edges() == sum(len(edge.incidences) for edge in edges)
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert kinds.count("tuple") == 1
    assert kinds.count("semantic-unit") == len(edges) - 1
    assert all(isinstance(data["grounded"], bool) and data["score"] > 0 for *_, data in graph.edges(data=True))
