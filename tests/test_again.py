"""Indexing again: what is gone, and by what method."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.adapters.scripted import ScriptedLanguageModel
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.model import Document, HyperedgeKind
from polyad.protocols import LanguageModel, Prompt


def reply(prompt: Prompt) -> str:
    return json.dumps({"facts": [{"text": "Ada met Bo.", "score": 8, "entities": ["Ada", "Bo"]}], "entities": []})


def open_engine(directory: Path, language_model: LanguageModel | None = None) -> Engine:
    return Engine.open(directory, embedder=HashingEmbedder(16), language_model=language_model)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "kb") as engine:
        yield engine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    (folder / "law").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "law/c.txt"):
        (folder / name).write_text(f"The text of {name} is here.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def ids(engine: Engine) -> list[str]:
    return [id for id in ("docs/a.txt", "docs/b.txt", "docs/law/c.txt", "note") if id in engine.catalogue.sources()]


def test_a_file_that_is_gone_is_named_and_stays_until_it_is_pruned(engine: Engine, folder: Path) -> None:
    engine.index("docs")
    (folder / "a.txt").unlink()
    report = engine.index("docs")
    assert (report.gone, report.pruned) == (("docs/a.txt",), False)
    assert len(ids(engine)) == 3
    report = engine.index("docs", prune=True)
    assert (report.gone, report.pruned, report.is_complete) == (("docs/a.txt",), True, True)
    assert ids(engine) == ["docs/b.txt", "docs/law/c.txt"]


def test_only_what_came_from_the_paths_given_can_be_gone(engine: Engine, folder: Path) -> None:
    engine.index_documents([Document("note", "", "Not from a file.")])
    engine.index("docs")
    (folder / "a.txt").unlink()
    (folder / "law" / "c.txt").unlink()
    assert engine.index([folder.relative_to(folder.parent) / "law"]).gone == ("docs/law/c.txt",)
    assert engine.index("docs/b.txt").gone == ()
    assert engine.index(".").gone == ("docs/a.txt", "docs/law/c.txt")


def test_pruning_nothing_writes_nothing(engine: Engine, folder: Path) -> None:
    engine.index("docs")
    version = engine._store.version()
    engine.index("docs", prune=True)
    assert engine._store.version() == version


def test_a_folder_that_is_suddenly_empty_is_not_pruned_beside_one_that_is_not(engine: Engine, folder: Path) -> None:
    engine.index(["docs", "docs/law"])
    (folder / "law" / "c.txt").unlink()
    report = engine.index(["docs/law", "docs/b.txt"], prune=True)
    assert (report.gone, report.spared) == (("docs/law/c.txt",), ("docs/law/c.txt",))
    assert ids(engine) == ["docs/a.txt", "docs/b.txt", "docs/law/c.txt"]
    report = engine.index(["docs", "docs/law"], prune=True)
    assert (report.gone, report.spared) == (("docs/law/c.txt",), ()), "the folder around it holds something"
    assert ids(engine) == ["docs/a.txt", "docs/b.txt"]


def test_a_record_that_is_gone_is_named_but_not_while_its_file_cannot_be_read_whole(
    engine: Engine, folder: Path
) -> None:
    lines = [json.dumps({"_id": name, "title": "", "text": f"About {name}."}) for name in ("x", "y", "z")]
    file = folder / "records.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    engine.index(file)
    file.write_text("\n".join([lines[0], "{broken", lines[2]]), encoding="utf-8")
    report = engine.index(file, prune=True)
    assert (report.gone, len(report.failures)) == ((), 1)
    file.write_text("\n".join([lines[0], lines[2]]), encoding="utf-8")
    assert engine.index(file).gone == ("y",)


def test_an_index_of_facts_stays_one(tmp_path: Path, folder: Path) -> None:
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        assert engine.index("docs", method="facts").counts.added == 3
        assert engine.index("docs").counts.unchanged == 3
        assert engine.catalogue.statistics().kinds == {HyperedgeKind.FACT: 3}
        assert engine.index("docs", method="semantic-units").counts.updated == 3
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        assert engine.index("docs").counts.unchanged == 3, "units, as the last time"


def test_an_index_of_facts_needs_a_model_for_what_is_new_alone(tmp_path: Path, folder: Path) -> None:
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        engine.index("docs", method="facts")
    with open_engine(tmp_path / "kb") as engine:
        assert engine.index("docs").counts.unchanged == 3
        (folder / "d.txt").write_text("The text of d is here.", encoding="utf-8")
        with pytest.raises(ConfigurationError, match="the method 'facts' needs a language model; name one with"):
            engine.index("docs")
        assert engine.catalogue.statistics().documents == 3
