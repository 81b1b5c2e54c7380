"""Names in a run folder or a data set that lead out of the folder of a report, a run or a store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.text.files import make_file_name
from tests.attacks.run_files import measure_run, write_dataset

pytestmark = pytest.mark.attacks

NAMES = ("../../x", "/tmp/x", "..", ".", "", "a\\b", "a/b", "a:b", "a\nb", "x" * 400, "水" * 300, "-rf", "~", "$x$")
LINKS = ("run/run.trec", "run/results.json", "run/cost.json", "run/report", "out/tables.md", "out/report.html")
DERIVED = ("cost.json", "run.trec", "results.json")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory far below ``tmp_path``, so that a name with ``..`` stays in it."""
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def invoke(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def list_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_name_is_one_part_of_a_path(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{make_file_name(name)}.{os.getpid()}.part"
    path.write_text("x")
    assert [result.name for result in tmp_path.iterdir()] == [path.name]
    assert make_file_name(make_file_name(name)) == make_file_name(name)


def test_names_keep_their_difference_when_cut() -> None:
    assert make_file_name("x" * 400) != make_file_name("x" * 401)
    assert [make_file_name(name) for name in ("hypersu.decay=0.3", "Ωμέγα 2")] == ["hypersu.decay=0.3", "Ωμέγα 2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_report_writes_into_its_folder_only(name: str, place: Path, tmp_path: Path) -> None:
    for number in range(4):  # the runs differ by two settings whose names are hostile, too
        run = measure_run(place / f"runs/{number}")

        def change(manifest: Any, number: int = number) -> None:
            manifest["dataset"]["name"] = name
            manifest["settings"]["stages"] = {"s": {name: number % 2, "x": number // 2}}

        change_json(run / "manifest.json", change)
    before = list_files(tmp_path)
    assert invoke("bench", "report", "runs", "--out", "out/report").exit_code in (0, 2)
    changed = {file for file, contents in list_files(tmp_path).items() if before.get(file) != contents}
    derived = {f"a/b/c/runs/{number}/{file}" for number in range(4) for file in DERIVED}
    assert {file for file in changed - derived if not file.startswith("a/b/c/out/report/")} == set()


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_no_report_elsewhere(link: str, place: Path, tmp_path: Path) -> None:
    measure_run(place / "run")
    (place / "out").mkdir()
    target = tmp_path / "outside"
    if link == "run/report":
        target.mkdir()
        (place / link).symlink_to(target)
        assert invoke("bench", "report", "run").exit_code == 2
        assert list(target.iterdir()) == []
        return
    target.write_text("mine")
    (place / link).unlink(missing_ok=True)
    (place / link).symlink_to(target)
    assert invoke("bench", "report", "run", "--out", "out").exit_code == 2
    assert target.read_text() == "mine"


def test_the_report_folder_of_several_runs_is_no_link(place: Path, tmp_path: Path) -> None:
    measure_run(place / "runs/1")
    (tmp_path / "outside").mkdir()
    (place / "runs/report").symlink_to(tmp_path / "outside")
    assert invoke("bench", "report", "runs").exit_code == 2
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_run_is_not_written_through_links(place: Path, tmp_path: Path) -> None:
    write_dataset(place / "tarn")
    (tmp_path / "mine").write_text("one line\nand another")
    (place / "run").mkdir()
    (place / "run" / "per_query.jsonl").symlink_to(tmp_path / "mine")
    result = invoke("bench", "run", "tarn", "--retriever", "bm25", "--embedder", "hashing:16", "--out", "run")
    assert (result.exit_code, (tmp_path / "mine").read_text()) == (2, "one line\nand another")


def test_a_data_set_whose_name_leads_elsewhere_stays_in_the_folder_of_runs(place: Path, tmp_path: Path) -> None:
    (place / ".._questions.json").write_text(
        json.dumps([{"id": "1", "question": "Who?", "answer": "x", "evidence": []}])
    )
    (place / "...json").write_text(json.dumps({"corpus_name": "c", "context": "An otter eats fish."}))
    before = list_files(tmp_path)
    result = invoke(
        *("bench", "sweep", ".._questions.json", "hypersu.decay=0.3", "--embedder", "hashing:16"),
        *("--retriever", "bm25", "--out", "out/runs"),
    )
    assert result.exit_code == 0, result.output
    assert {
        file for file in list_files(tmp_path).keys() - before.keys() if not file.startswith("a/b/c/out/runs/")
    } == set()
