from __future__ import annotations

import os
from pathlib import Path

import pytest

from polyad.text.files import make_folder, write_atomically


def test_a_file_is_written_in_place_of_the_earlier_one(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "früher")
    write_atomically(tmp_path / "a", b"now")
    assert (tmp_path / "a").read_bytes() == b"now"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_an_interrupted_write_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "a", "earlier")

    def stopped(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", "later")
    assert (tmp_path / "a").read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("earlier")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", "later")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "later"


def test_names_of_new_files_and_folders_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, list[str]]] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        sync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, sorted(path.name for path in tmp_path.rglob("*"))))

    monkeypatch.setattr(os, "fsync", record)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert synced == [(tmp_path.stat().st_ino, ["a"]), ((tmp_path / "a").stat().st_ino, ["a", "b"])]
    write_atomically(tmp_path / "c", "text")
    assert synced[-1] == (tmp_path.stat().st_ino, ["a", "b", "c"])
