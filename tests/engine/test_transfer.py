"""Moving an index: what an exported file holds, what an import makes of it, and that nothing is lost."""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad import Document, Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError
from polyad.interchange.contents import IndexContents
from polyad.model import Evidence, Timings
from polyad.protocols.lookups import get_digests
from polyad.text.json_types import format_value
from tests.engine.test_corrections import (
    DOCUMENTS,
    EMBEDDER,
    QUESTIONS,
    RETRIEVERS,
    find_id,
    list_texts,
    open_engine,
    read_everything,
)

PLACES = (
    Document("a/again", "Tarn", DOCUMENTS[0].text),  # a copy, whose id sorts before that of the original
    Document("null", "Zero", "A zero \x00 and a line\u2028separator stand in Zero Hall, as does a \U0001f514."),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "kb") as opened:
        opened.index_documents([*DOCUMENTS, *PLACES])
        opened.corrections.retract(hyperedge=find_id(opened, "Corven Tower was"), reason="it was Ada")
        opened.corrections.add_aliases([("USA", "United States")])
        opened.corrections.disable("null", "under review")
        yield opened


def search(engine: Engine) -> list[Evidence]:
    """The evidence of all retrievers for some questions, without times."""
    return [
        replace(evidence, timings=Timings())
        for retriever in RETRIEVERS
        for evidence in engine.search_many([*QUESTIONS, "What stands in Zero Hall?"], retriever=retriever)
    ]


def test_an_imported_index_has_the_same_content_and_evidence(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "kb.jsonl"
    report = engine.export(path)
    assert (report.documents, report.files, report.size) == (6, (path,), path.stat().st_size)
    assert not list(tmp_path.glob("*.part"))
    with Engine.open_like(path, tmp_path / "copy", embedder=EMBEDDER) as copy:
        imported = copy.import_file(path)
        assert (imported.added, imported.updated, imported.unchanged, imported.failures) == (6, 0, 0, ())
        assert (imported.embedded, imported.statements) == (0, 3)
        assert read_everything(copy._store) == read_everything(engine._store)
        assert copy.catalogue.statements() == engine.catalogue.statements()
        assert search(copy) == search(engine)
        copy.corrections.restore(hyperedge="tower#0000/000")
        engine.corrections.restore(hyperedge="tower#0000/000")
        assert read_everything(copy._store) == read_everything(engine._store)


@pytest.mark.parametrize("format", ["jsonl", "hif", "graphml", "parquet"])
def test_an_export_replaces_files_and_follows_links_only_if_allowed(
    engine: Engine, tmp_path: Path, format: str
) -> None:
    path, link, dangling = tmp_path / "export", tmp_path / "link", tmp_path / "dangling"
    engine.export(path, format)
    link.symlink_to(path)
    dangling.symlink_to(tmp_path / "absent")
    before = read_tree(path)
    for target in (path, link, dangling):
        with pytest.raises(ConfigurationError):
            engine.export(target, format, vectors=False)
    assert read_tree(path) == before
    assert not (tmp_path / "absent").exists()
    engine.corrections.restore(hyperedge="tower#0000/000")
    engine.export(path, format, overwrite=True)
    assert read_tree(path) != before


def test_tables_are_exported_to_an_empty_folder_and_to_no_other(engine: Engine, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    engine.export(tables, "parquet")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").touch()
    with pytest.raises(ConfigurationError):
        engine.export(other, "parquet")
    assert [file.name for file in other.iterdir()] == ["notes.txt"]


def read_tree(path: Path) -> dict[str, bytes]:
    """The contents of a file, or of the files in a folder."""
    return {file.name: file.read_bytes() for file in (path.iterdir() if path.is_dir() else [path])}


def test_a_copy_of_a_copy_is_the_same_file_also_later(engine: Engine, tmp_path: Path) -> None:
    path, second = tmp_path / "kb.jsonl", tmp_path / "second.jsonl"
    engine.export(path)
    trees = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[1:-1]]
    times = {tree["recorded"] for tree in trees}
    lines = path.read_text(encoding="utf-8")
    for time in times:  # when the index learnt the documents
        lines = lines.replace(time, "2020-02-29T12:00:00+00:00")
    path.write_text(lines, encoding="utf-8")
    with Engine.open_like(path, tmp_path / "copy", embedder=EMBEDDER) as copy:
        copy.import_file(path)
        copy.export(second)
    assert second.read_bytes() == path.read_bytes()


def test_an_import_is_continued_where_it_stopped(engine: Engine, tmp_path: Path) -> None:
    path, half = tmp_path / "kb.jsonl", tmp_path / "half.jsonl"
    engine.export(path)
    lines = path.read_bytes().splitlines(keepends=True)
    half.write_bytes(b"".join(lines[:4]) + lines[4][:100])
    with Engine.open_like(half, tmp_path / "copy", embedder=EMBEDDER) as copy:
        report = copy.import_file(half)
        assert report.added == 3
        assert [failure.id for failure in report.failures] == [f"{half}:5", str(half)]
        report = copy.import_file(path)
        assert (report.added, report.unchanged, report.statements, report.failures) == (3, 3, 0, ())
        assert read_everything(copy._store) == read_everything(engine._store)
        assert copy.import_file(path).unchanged == 6


def test_texts_are_embedded_again_without_vectors_or_with_another_embedder(engine: Engine, tmp_path: Path) -> None:
    path, bare = tmp_path / "kb.jsonl", tmp_path / "bare.jsonl"
    engine.export(path)
    engine.export(bare, vectors=False)
    assert bare.stat().st_size < path.stat().st_size
    with Engine.open_like(bare, tmp_path / "copy", embedder=EMBEDDER) as copy:
        assert copy.import_file(bare).embedded == 6
        assert read_everything(copy._store) == read_everything(engine._store)
    other = HashingEmbedder(48)
    with (
        Engine.open_like(path, tmp_path / "other", embedder=other) as copy,
        Engine.open(tmp_path / "fresh", embedder=other) as fresh,
    ):
        assert copy.import_file(path).embedded == 6
        fresh.index_documents([*DOCUMENTS, *PLACES])
        assert read_contents(copy) == read_contents(fresh)
        assert copy.catalogue.statistics().settings["embedder"] == other.name


def read_contents(engine: Engine) -> object:
    """All documents as they were built, with vectors, without digests and times of recording."""
    with engine._store.read_transaction() as transaction:
        documents = list(IndexContents(engine._store, transaction).iterate_documents(as_built=True))
    return [
        format_value(
            replace(item, digest="", recorded="", passages=tuple(replace(part, digest="") for part in item.passages))
        )
        for item in documents
    ]


def test_corrections_of_the_index_take_precedence(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "kb.jsonl"
    engine.export(path)
    with open_engine(tmp_path / "other") as other:
        other.index_documents(DOCUMENTS)
        other.corrections.add_aliases([("United States", "USA")])
        report = other.import_file(path)
        assert (report.added, report.unchanged, report.statements) == (2, 4, 2)
        assert [failure.id for failure in report.failures] == [f"{path}:1"]
        statements = other.catalogue.statements()
        assert [alias.name for alias in statements.aliases.values()] == ["United States"]
        assert set(statements.disabled) == {"null"}
        assert not any("Bo Ray" in text for text in list_texts(other))


Tree = Any


def damage_title(tree: Tree) -> None:
    tree["document"]["title"] = 5


def damage_text(tree: Tree) -> None:
    tree["document"]["text"] = "Other words."


def damage_passage(tree: Tree) -> None:
    tree["passages"][0]["passage"]["id"] = "tower#0000"


def damage_vector(tree: Tree) -> None:
    tree["passages"][0]["vector"] = "AACAPw=="


def damage_one_vector(tree: Tree) -> None:
    tree["passages"][0]["vector"] = ""


def enlarge_vectors(tree: Tree) -> None:
    for item in (tree["passages"][0], *tree["passages"][0]["hyperedges"]):
        vector = np.frombuffer(b64decode(item["vector"]), dtype="<f4")
        item["vector"] = b64encode(np.full_like(vector, 3e38).tobytes()).decode()


def damage_member(tree: Tree) -> None:
    incidences = tree["passages"][0]["hyperedges"][0]["incidences"]
    incidences.append(incidences[0])


def damage_score(tree: Tree) -> None:
    tree["passages"][0]["hyperedges"][0]["hyperedge"]["score"] = float("nan")


def damage_span(tree: Tree) -> None:
    tree["passages"][0]["hyperedges"][0]["hyperedge"]["end"] = 10**6


def damage_name(tree: Tree) -> None:
    tree["passages"][0]["hyperedges"][0]["incidences"][0]["name"] = "half a character: \ud800"


def damage_number(tree: Tree) -> None:
    tree["document"]["metadata"]["year"] = math.nan


def enlarge_number(tree: Tree) -> None:
    tree["document"]["metadata"]["year"] = 2**64


def damage_date(tree: Tree) -> None:
    tree["document"]["metadata"]["valid_to"] = "soon"


def damage_date_of_fact(tree: Tree) -> None:
    tree["passages"][0]["hyperedges"][0]["hyperedge"]["valid_from"] = "2024-13"


def remove_passages(tree: Tree) -> None:
    tree["passages"] = []


@pytest.mark.parametrize(
    "damage",
    [
        damage_title,
        damage_text,
        damage_passage,
        damage_vector,
        damage_one_vector,
        enlarge_vectors,
        damage_member,
        damage_score,
        damage_span,
        damage_name,
        damage_number,
        enlarge_number,
        damage_date,
        damage_date_of_fact,
        remove_passages,
    ],
)
def test_a_damaged_line_is_reported_with_its_number(
    damage: Callable[[Tree], None], engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "kb.jsonl"
    engine.export(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    tree = json.loads(lines[3])
    assert tree["document"]["id"] == "bell"
    damage(tree)
    lines[3] = json.dumps(tree)
    path.write_text("\n".join(lines), encoding="utf-8")
    with Engine.open_like(path, tmp_path / "copy", embedder=EMBEDDER) as copy:
        report = copy.import_file(path)
        assert [failure.id for failure in report.failures] == [f"{path}:4"]
        assert list(get_digests(copy._store)) == ["a/again", "award", "null", "tower", "town"]


@pytest.mark.parametrize("first", ["", "{", "[]", '{"_id": "a", "text": "b"}', '{"polyad_export": 2}', "\x00"])
def test_a_file_that_is_no_export_is_refused(first: str, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(f"{first}\n{{}}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="polyad export"):
        engine.import_file(path)
    with pytest.raises(ConfigurationError, match="polyad export"):
        Engine.open_like(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_unknown_format_or_place_is_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="jsonl"):
        engine.export(tmp_path / "kb", "csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError):
        engine.export(tmp_path / "folder")
    with pytest.raises(ConfigurationError):
        engine.import_file(tmp_path / "missing")
