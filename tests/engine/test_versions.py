"""Tests of versions of documents, from the files to the hits, the prompt, the catalogue and the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.answering.layout import TokenBudget, lay_out_passages
from polyad.cli import app
from polyad.config import QuestionSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.settings import Settings
from polyad.model import Evidence
from polyad.stores.memory import MemoryStore
from tests.examples import count_examples

AS_OF = "2026-11-28"
QUESTION = "How much may a hotel cost?"
VERSIONS = {
    "travel-v1.md": (
        "---\nversion: 1\nstatus: superseded\ndate: 2021-03-01\n---\n# Travel\n\nA hotel may cost 90 EUR. How much "
        "it may cost is checked.\n"
    ),
    "travel-v2.md": "# Travel\n\nVersion 2, in force from 2023-05-01. Superseded.\n\nA hotel may cost 120 EUR.\n",
    "travel-v3.md": "# Travel\n\nVersion 3, in force from 2026-01-01.\n\nA hotel may cost 145 EUR per night.\n",
    "parking.md": "# Parking\n\nA place costs 32 EUR a month.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    for name, text in VERSIONS.items():
        (tmp_path / "rules" / name).write_text(text)
    return tmp_path


def open_engine(*, versions: bool = True) -> Engine:
    return Engine.open(
        "kb", embedder=HashingEmbedder(64), settings=Settings(question=QuestionSettings(versions=versions))
    )


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with open_engine() as opened:
        opened.index(["rules"])
        yield opened


def list_names(evidence: Evidence) -> list[str]:
    return [Path(hit.passage.document_id).name for hit in evidence.passages]


@pytest.mark.parametrize("retriever", ["default", "bm25", "dense"])
def test_the_version_in_force_is_first_and_marked(engine: Engine, retriever: str) -> None:
    evidence = engine.search(QUESTION, retriever=retriever, as_of=AS_OF)
    assert list_names(evidence)[0] == "travel-v3.md"
    versions = {Path(hit.passage.document_id).name: hit.version for hit in evidence.passages}
    assert versions.get("parking.md") is None
    current, first = versions["travel-v3.md"], versions["travel-v1.md"]
    assert current is not None
    assert (current.status, current.number, current.valid_from) == ("in force", "3", "2026-01-01")
    assert first is not None
    assert (first.status, Path(first.superseded_by).name) == ("superseded", "travel-v3.md")


def test_the_question_or_the_date_chooses_another_version(engine: Engine) -> None:
    assert list_names(engine.search("How much might a hotel cost in 2022?", as_of=AS_OF))[0] == "travel-v1.md"
    assert list_names(engine.search("What may a hotel cost in version 2?", as_of=AS_OF))[0] == "travel-v2.md"
    assert list_names(engine.search(QUESTION, as_of="2024-05-01"))[0] == "travel-v2.md"


def test_a_filter_hides_the_version_in_force(engine: Engine) -> None:
    evidence = engine.search(QUESTION, where="status exists", as_of=AS_OF)
    assert list_names(evidence) == ["travel-v1.md"]
    assert evidence.passages[0].version is None


def test_the_setting_switches_versions_off(folder: Path) -> None:
    with open_engine(versions=False) as engine:
        engine.index(["rules"])
        evidence = engine.search(QUESTION, as_of=AS_OF)
    assert list_names(evidence)[0] == "travel-v1.md"
    assert all(hit.version is None for hit in evidence.passages)


def test_the_prompt_says_which_passage_is_superseded(engine: Engine) -> None:
    text, passages = lay_out_passages(engine.search(QUESTION, as_of=AS_OF).passages, TokenBudget("", 10_000, len))
    assert 'version="version 3 of 2026-01-01, in force"' in text
    assert "superseded by" in text
    assert [passage.has_versions for passage in passages].count(True) == 3


def test_an_update_changes_the_version_in_force(engine: Engine, folder: Path) -> None:
    engine.search(QUESTION, as_of=AS_OF)
    (folder / "rules" / "travel-v4.md").write_text(
        "# Travel\n\nVersion 4, in force from 2026-06-01.\n\nA hotel may cost 150 EUR per night."
    )
    engine.index(["rules"])
    assert list_names(engine.search(QUESTION, as_of=AS_OF))[0] == "travel-v4.md"
    engine.remove([id for id in engine.catalogue.sources() if id.endswith(("v4.md", "v3.md"))])
    versions = [hit.version for hit in engine.search(QUESTION, as_of=AS_OF).passages if hit.version]
    assert [(version.status, version.superseded_by) for version in versions] == [("superseded", "")] * 2


def test_the_commands_show_versions_and_their_conflicts(engine: Engine, folder: Path) -> None:
    (folder / "rules" / "travel-v3.txt").write_text(
        "Travel\n\nVersion 3, in force from 2026-01-01.\n\nA hotel: 155 EUR."
    )
    engine.index(["rules"])
    id = next(id for id in engine.catalogue.sources() if id.endswith("v2.md"))
    versions = engine.catalogue.versions(id, AS_OF)
    assert [version.number for version in versions.values()] == ["1", "2", "3", "3"]
    (conflict,) = engine.catalogue.version_conflicts(as_of=AS_OF)
    assert "155" in conflict.reason
    assert [Path(document).name for document in conflict.documents] == ["travel-v3.md", "travel-v3.txt"]
    printed = json.loads(CliRunner().invoke(app, ["show", "document", id, "--store", "kb", "--json"]).stdout)
    assert [version["status"] for version in printed["versions"]] == [
        "superseded",
        "superseded",
        "in force",
        "in force",
    ]
    listed = json.loads(CliRunner().invoke(app, ["conflicts", "--store", "kb", "--json"]).stdout)
    assert [item["family"] for item in listed["versions"]] == ["travel"]
    assert "155" in CliRunner().invoke(app, ["conflicts", "--store", "kb"]).stdout


def open_memory() -> Engine:
    return Engine.open(f"memory://{uuid4()}", store=MemoryStore.open, embedder=HashingEmbedder(16))


_NAMES = st.sampled_from(["a/travel", "a/parking", "b/travel", "a/board-2026-0{}-10", "a/old/parking"])
_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), _NAMES, st.integers(1, 4), st.sampled_from(["", "superseded"])),
    min_size=1,
    max_size=8,
)


def _build(name: str, number: int, status: str) -> Document:
    path = f"{name.format(number)}.md" if "{}" in name else f"{name}-v{number}.md"
    metadata = {"path": path, **({"status": status} if status else {})}
    return Document(path, f"Text {number}", f"A hotel may cost {number} EUR. {status}", source=path, metadata=metadata)


@settings(max_examples=count_examples(8), deadline=None)
@given(_STEPS)
def test_families_are_those_of_a_new_index_after_any_changes(steps: list[tuple[str, str, int, str]]) -> None:
    documents: dict[str, Document] = {}
    with open_memory() as changed:
        for action, name, number, status in steps:
            document = _build(name, number, status)
            if action == "put":
                documents[document.id] = document
                changed.index_documents([document])
            elif documents.pop(document.id, None):
                changed.remove(document.id)
            changed.search("hotel", retriever="bm25", as_of=AS_OF)
        with open_memory() as new:
            new.index_documents([documents[id] for id in sorted(documents)])
            for id in documents:
                assert changed.catalogue.versions(id, AS_OF) == new.catalogue.versions(id, AS_OF)


def test_a_search_reads_only_the_documents_of_the_families_of_its_hits() -> None:
    with open_memory() as engine:
        others = [Document(f"b/part-{n:03}.md", f"Part {n}", f"Part {n} is steel.") for n in range(100, 160)]
        engine.index_documents([*others, *(_build("a/travel", number, "") for number in (1, 2, 3))])
        engine.search("hotel EUR", k=1, retriever="bm25", as_of=AS_OF)
        table = engine._searcher.get_snapshot(engine._searcher.get_spec("bm25")).versions
        assert {marks.unit for marks in table._marks.values()} == {f"a/travel-v{number}.md" for number in (1, 2, 3)}
