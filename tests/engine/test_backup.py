"""A backup is one version of the index, taken while it is used, and is restored by copying."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError, StoreError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Timings
from polyad.protocols.lookups import get_digests
from polyad.stores.memory import MemoryStore
from polyad.stores.sqlite import FILE_NAME

QUESTION = "Who cast bell 3?"


def write_document(number: int) -> Document:
    return Document(f"d{number:03}", f"Bell {number}", f"Bell {number} was cast by Ines Moreau {number} in Tarn.")


def open_engine(directory: Path, **options: object) -> Engine:
    return Engine.open(directory, embedder=HashingEmbedder(32), **options)  # type: ignore[arg-type]


def restore(backup: Path, directory: Path) -> Engine:
    directory.mkdir()
    shutil.copyfile(backup, directory / FILE_NAME)
    return open_engine(directory, create=False)


def test_a_restored_backup_gives_the_same_evidence(tmp_path: Path) -> None:
    with open_engine(tmp_path / "kb") as engine:
        engine.index_documents(map(write_document, range(20)))
        engine.corrections.disable("d007")
        report = engine.back_up(tmp_path / "new" / "kb.sqlite")
        assert report.files == (str(tmp_path / "new" / "kb.sqlite"),)
        assert report.bytes == (tmp_path / "new" / "kb.sqlite").stat().st_size
        engine.corrections.disable("d003")
        engine.corrections.enable("d003")
        with restore(tmp_path / "new" / "kb.sqlite", tmp_path / "restored") as restored:
            for retriever in ("default", "bm25", "hypersu"):
                ours, theirs = (one.search(QUESTION, retriever=retriever) for one in (engine, restored))
                assert replace(ours, timings=Timings()) == replace(theirs, timings=Timings())
            assert restored.index_documents(map(write_document, range(20))).counts.unchanged == 20
            assert restored.catalogue.statements() == engine.catalogue.statements()
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["kb.sqlite"]


def test_backups_beside_a_writer_are_whole_versions(tmp_path: Path) -> None:
    with open_engine(tmp_path / "kb") as engine:
        engine.index_documents([write_document(0)])
        last = 120

        def write() -> None:
            for number in range(1, last):
                engine.index_documents([write_document(number)])

        writer = threading.Thread(target=write)
        writer.start()
        sizes: list[int] = []
        while writer.is_alive():
            with open_engine(tmp_path / "kb") as reader:  # as another process does
                reader.back_up(tmp_path / "backup", overwrite=True)
            with restore(tmp_path / "backup", tmp_path / f"restored{len(sizes)}") as restored:
                ids = list(get_digests(restored._store))
                assert ids == [f"d{number:03}" for number in range(len(ids))], "one version: no document is skipped"
                assert not restored.check().damage
                assert len(restored.catalogue.history()) == len(ids), "one entry for each run"
            sizes.append(len(ids))
        writer.join()
        assert sizes == sorted(sizes)
        assert len(set(sizes)) > 1, "backups were taken while documents were added"
        assert len(get_digests(engine._store)) == last, "the writer was not disturbed"


def test_replies_that_were_paid_for_are_copied_too(tmp_path: Path) -> None:
    model = ScriptedLanguageModel(["Ines Moreau [1]."])
    with open_engine(tmp_path / "kb", language_model=model) as engine:
        engine.index_documents([write_document(3)])
        engine.ask(QUESTION)
        request_count = len(model.prompts)
        files = engine.back_up(tmp_path / "backup").files
    assert files == (str(tmp_path / "backup"), str(tmp_path / "backup.replies"))
    (tmp_path / "restored").mkdir()
    shutil.copyfile(files[0], tmp_path / "restored" / FILE_NAME)
    shutil.copyfile(files[1], tmp_path / "restored" / "replies.sqlite")
    with open_engine(tmp_path / "restored", language_model=model) as engine:
        assert engine.ask(QUESTION).text == "Ines Moreau [1]."
    assert len(model.prompts) == request_count, "the reply was stored"


def test_nothing_is_overwritten_without_force_and_never_the_index_itself(tmp_path: Path) -> None:
    directory, backup = tmp_path / "kb", tmp_path / "backup"
    backup.write_text("precious")
    with open_engine(directory) as engine:
        engine.index_documents([write_document(3)])
        with pytest.raises(ConfigurationError, match="--force"):
            engine.back_up(backup)
        assert backup.read_text() == "precious"
        with pytest.raises(ConfigurationError):
            engine.back_up(tmp_path, overwrite=True)
        (tmp_path / "link").symlink_to(directory)
        for name in (FILE_NAME, f"{FILE_NAME}-wal", "replies.sqlite", "snapshot/snapshot.json", "../link/index.sqlite"):
            for write in (engine.back_up, engine.export):
                with pytest.raises(ConfigurationError):
                    write(directory / name, overwrite=True)
        engine.export(directory / "index.jsonl")
        with pytest.raises(StoreError):
            engine.back_up(backup / "kb.sqlite")
        assert engine.search(QUESTION).passages
    memory = Engine.open("memory://backup", store=MemoryStore.open, embedder=HashingEmbedder(32))
    with memory, pytest.raises(StoreError):
        memory.back_up(tmp_path / "other")


def test_the_command_backs_up_and_refuses(tmp_path: Path) -> None:
    with open_engine(tmp_path / "kb") as engine:
        engine.index_documents([write_document(3)])
    runner, arguments = CliRunner(), ["backup", str(tmp_path / "file"), "--store", str(tmp_path / "kb"), "--json"]
    assert json.loads(runner.invoke(app, arguments).stdout)["files"] == [str(tmp_path / "file")]
    refused = runner.invoke(app, arguments)
    assert refused.exit_code == 2
    assert "exists; expected a new name" in json.loads(refused.stdout)["error"]["message"]
    assert runner.invoke(app, [*arguments, "--force"]).exit_code == 0
