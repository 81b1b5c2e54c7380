"""Parquet files: the tables of an index, with the same values as the index."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from polyad import Engine
from polyad.errors import MissingExtraError
from polyad.interchange import parquet
from polyad.model import IndexedDocument
from polyad.protocols.lookups import get_all
from tests.engine.test_corrections import DOCUMENTS, EMBEDDER, find_id, open_engine


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = open_engine(tmp_path / "kb")
    engine.index_documents(DOCUMENTS)
    engine.corrections.retract(hyperedge=find_id(engine, "Corven Tower was"), reason="it was Ada")
    engine.corrections.disable("town")
    return engine


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    from pyarrow.parquet import read_table

    return {file.stem: read_table(file).to_pylist() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("rows_per_group", [1, 10_000])
def test_tables_have_the_values_of_the_index(
    rows_per_group: int, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(parquet, "_ROWS_PER_GROUP", rows_per_group)
    report = engine.export(tmp_path / "tables", "parquet")
    assert {file.stem for file in report.files} == {"documents", "passages", "hyperedges", "incidences", "entities"}
    tables = read(tmp_path / "tables")
    documents = [item for item in get_all(engine._store, IndexedDocument) if item.passages]
    assert [(row["id"], row["text"], row["tokens"]) for row in tables["documents"]] == [
        (item.document.id, item.document.text, item.tokens) for item in documents
    ]
    years: list[dict[str, object]] = [{}, {"year": 2020, "language": "en"}, {"year": 2021, "language": "en"}]
    assert [json.loads(row["metadata"]) for row in tables["documents"]] == years
    passages = [passage for item in documents for passage in item.passages]
    assert [(row["id"], row["start"], row["page"], row["vector"]) for row in tables["passages"]] == [
        (item.passage.id, item.passage.start, None, item.vector.tolist()) for item in passages
    ]
    edges = [edge for passage in passages for edge in passage.hyperedges]
    assert [(row["id"], row["text"], row["score"], row["vector"]) for row in tables["hyperedges"]] == [
        (edge.hyperedge.id, edge.hyperedge.text, edge.hyperedge.score, edge.vector.tolist()) for edge in edges
    ]
    assert [argument["value"] for row in tables["hyperedges"] for argument in row["arguments"]] == [
        "Ada Lee",
        "USA",
        "1990",
    ]
    assert [(row["hyperedge_id"], row["entity_key"], row["role"]) for row in tables["incidences"]] == [
        (edge.hyperedge.id, part.entity_key, part.role) for edge in edges for part in edge.incidences
    ]
    assert sorted(row["key"] for row in tables["entities"]) == [one.key for one in engine.catalogue.entities()]


def test_vectors_can_be_left_out_and_have_the_length_of_the_index(engine: Engine, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow.parquet import read_schema

    engine.export(tmp_path / "tables", "parquet")
    column = read_schema(tmp_path / "tables" / "passages.parquet").field("vector")
    assert column.type.list_size == EMBEDDER.dimension
    engine.export(tmp_path / "tables", "parquet", vectors=False, overwrite=True)
    assert "vector" not in read_schema(tmp_path / "tables" / "passages.parquet").names


def test_a_missing_package_is_named(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"polyad\[parquet\]"):
        engine.export(tmp_path / "tables", "parquet")
    assert not (tmp_path / "tables").exists()
