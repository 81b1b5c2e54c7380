from __future__ import annotations

import os
from pathlib import Path

import pytest

from polyad.text.files import write_atomically


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
