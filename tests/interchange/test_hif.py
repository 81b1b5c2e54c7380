"""Files in the Hypergraph Interchange Format: they follow the standard, and XGI reads the same hypergraph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from polyad import Engine
from polyad.model import IndexedHyperedge
from polyad.protocols.lookups import get_all
from tests.engine.test_corrections import DOCUMENTS, find_id, open_engine

Id = str | int
Number = Annotated[float, Field(strict=True)]
Attributes = dict[str, Any]
_STRICT = with_config(ConfigDict(extra="forbid", strict=True))


# The fields that the HIF standard lists (Coll et al., 2025, doi:10.1017/nws.2025.10018); no others are allowed.


@_STRICT
class HifNode(TypedDict):
    node: Id
    weight: NotRequired[Number]
    attrs: NotRequired[Attributes]


@_STRICT
class HifEdge(TypedDict):
    edge: Id
    weight: NotRequired[Number]
    attrs: NotRequired[Attributes]


@_STRICT
class HifIncidence(TypedDict):
    edge: Id
    node: Id
    weight: NotRequired[Number]
    direction: NotRequired[Literal["head", "tail"]]
    attrs: NotRequired[Attributes]


HifFile = TypedDict(
    "HifFile",
    {
        "network-type": NotRequired[Literal["undirected", "directed", "asc"]],
        "metadata": NotRequired[Attributes],
        "incidences": list[HifIncidence],
        "nodes": NotRequired[list[HifNode]],
        "edges": NotRequired[list[HifEdge]],
    },
)


def read(path: Path) -> Any:
    return TypeAdapter(_STRICT(HifFile)).validate_json(path.read_bytes())


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Engine, Path]:
    engine = open_engine(tmp_path / "kb")
    engine.index_documents(DOCUMENTS)
    engine.corrections.retract(hyperedge=find_id(engine, "Corven Tower was"), reason="it was Ada")
    engine.corrections.disable("town")
    engine.export(tmp_path / "kb.hif.json", "hif")
    return engine, tmp_path / "kb.hif.json"


def test_a_file_has_the_fields_of_the_standard_and_every_visible_membership(exported: tuple[Engine, Path]) -> None:
    engine, path = exported
    tree = read(path)
    edges = {edge.hyperedge.id: edge for edge in get_all(engine._store, IndexedHyperedge)}
    assert {edge["edge"]: edge["attrs"]["text"] for edge in tree["edges"]} == {
        id: edge.hyperedge.text for id, edge in edges.items()
    }
    memberships = {(part.entity_key, id, part.role) for id, edge in edges.items() for part in edge.incidences}
    assert {(part["node"], part["edge"], part["attrs"]["role"]) for part in tree["incidences"]} == memberships
    assert {node["node"]: node["attrs"]["name"] for node in tree["nodes"]} == {
        entity.key: entity.name for entity in engine.catalogue.entities()
    }
    [award] = [edge["attrs"] for edge in tree["edges"] if edge["attrs"]["relation"]]
    assert [argument["value"] for argument in award["arguments"]] == ["Ada Lee", "USA", "1990"]
    assert "Bo Ray" not in path.read_text(encoding="utf-8")
    assert "Aldby is a town" not in path.read_text(encoding="utf-8")


def test_an_index_without_documents_is_a_file_without_records(tmp_path: Path) -> None:
    with open_engine(tmp_path / "kb") as engine:
        engine.export(tmp_path / "kb.hif.json", "hif")
    tree = read(tmp_path / "kb.hif.json")
    assert (tree["nodes"], tree["edges"], tree["incidences"]) == ([], [], [])


def test_xgi_reads_the_same_hypergraph_and_drops_what_the_page_says(exported: tuple[Engine, Path]) -> None:
    xgi = pytest.importorskip("xgi")
    engine, path = exported
    hypergraph = xgi.read_hif(path)
    edges = {edge.hyperedge.id: edge for edge in get_all(engine._store, IndexedHyperedge)}
    assert {id: set(hypergraph.edges.members(id)) for id in hypergraph.edges} == {
        id: {part.entity_key for part in edge.incidences} for id, edge in edges.items()
    }
    assert {id: hypergraph.edges[id]["text"] for id in hypergraph.edges} == {
        id: edge.hyperedge.text for id, edge in edges.items()
    }
    assert hypergraph.nodes["ada lee"]["name"] == "Ada Lee"
    assert hypergraph["mention_extractor"] == "rules"
    written = xgi.to_hif_dict(hypergraph)
    assert not any(part.keys() & {"weight", "attrs"} for part in written["incidences"])
    assert not any("weight" in edge for edge in written["edges"])
