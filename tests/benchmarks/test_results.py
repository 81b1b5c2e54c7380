"""The results that are shown are those that were measured: pages, pictures and the README's tables do not drift."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from polyad.text.json_types import format_value
from polyad_bench.datasets.beir import Question
from polyad_bench.runs.records import QuestionRecord, RankedPassage
from polyad_bench.runs.run_folder import load_run

ROOT = Path(__file__).parents[2]
SUMMARIES = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
PAGES = ROOT / "docs" / "papers" / "results"


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    return _script("tables")


def _script(name: str) -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return __import__(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def rows_by_table(tables: ModuleType) -> dict[str, Any]:
    return {path.stem: tables.read(path.stem) for path in SUMMARIES}


def test_every_experiment_has_its_page_and_none_is_made_up(tables: ModuleType, rows_by_table: dict[str, Any]) -> None:
    assert rows_by_table.keys() <= tables.PAGES.keys()
    assert tables.PAGES.keys() <= _script("results").EXPERIMENTS.keys()
    assert {page.stem for page in PAGES.glob("*.md")} == rows_by_table.keys()


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.stem)
def test_a_summary_says_what_was_measured_with_what(path: Path) -> None:
    summary = json.loads(path.read_text(encoding="utf-8"))
    assert summary["command"].endswith(path.stem)
    for measured in summary["measured"]:
        assert re.fullmatch(r"[0-9a-f]{40}\+?", measured["commit"])
        assert {"polyad", "numpy", "torch"} <= measured["versions"].keys()
        assert measured["machine"]["processor"]
    for group in summary["groups"]:
        assert re.fullmatch(r"[0-9a-f]{64}", summary["data"][group["name"]])
        estimates = [one for system in group["systems"].values() for one in system["measures"].values()]
        assert estimates
        assert all(0 <= one["low"] <= one["mean"] <= one["high"] <= 1 for one in estimates)


def test_no_summary_names_a_place_on_a_machine() -> None:
    assert not [path.name for path in SUMMARIES if re.search(r'"/|given:|[A-Z]:\\', path.read_text(encoding="utf-8"))]


def test_the_pages_say_what_the_summaries_say(tables: ModuleType, rows_by_table: dict[str, Any]) -> None:
    for name, results in rows_by_table.items():
        assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == tables.page(results), name
    in_order = [rows_by_table[name] for name in tables.PAGES if name in rows_by_table]
    assert tables.CONTENTS.read_text(encoding="utf-8") == tables.contents(in_order)


def test_the_tables_of_the_pages_equal_the_summaries(tables: ModuleType, rows_by_table: dict[str, Any]) -> None:
    expected = tables.summary_tables(rows_by_table.values())
    pages = [path.read_text(encoding="utf-8") for path in tables.PAGES_WITH_TABLES]
    assert {name for page in pages for name in re.findall("<!-- table: (.*) -->", page)} == expected.keys()
    assert [tables.insert_tables(page, expected) for page in pages] == pages
    name, table = "retrievers", expected["retrievers"]
    drifted = pages[0].replace(table, table.replace(".", ",", 1))
    assert drifted != pages[0]
    assert tables.insert_tables(drifted, {name: table}) == pages[0]


def test_a_page_shows_one_picture_at_most_and_every_picture_is_on_a_page() -> None:
    assert all(page.read_text("utf-8").count(".svg)") <= 1 for page in PAGES.glob("*.md"))
    outputs = {name for page in PAGES.glob("*.md") for name in re.findall(r"\]\((.*?\.svg)\)", page.read_text("utf-8"))}
    assert outputs == {picture.name for picture in PAGES.glob("*.svg")}


@pytest.mark.slow
def test_the_pictures_are_drawn_from_the_summaries(
    tables: ModuleType, rows_by_table: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    for results in rows_by_table.values():
        tables.draw(results, tmp_path, tables.shown_on_page)
    drawn = {picture.name: picture.read_text("utf-8") for picture in tmp_path.iterdir()}
    remaining = {picture.name: picture.read_text("utf-8") for picture in PAGES.glob("*.svg")}
    assert drawn.keys() == remaining.keys()
    assert {name: _words(text) for name, text in drawn.items()} == {
        name: _words(text) for name, text in remaining.items()
    }
    if f"Matplotlib v{metadata.version('matplotlib')}," in next(
        iter(remaining.values())
    ):  # others place lines otherwise
        assert drawn == remaining


def test_earlier_results_of_other_benchmarks_are_retained() -> None:
    def summary(commit: str, *data: str) -> dict[str, Any]:
        groups = [{"name": name, "systems": commit} for name in data]
        return {"measured": [{"commit": commit}], "data": dict.fromkeys(data, commit), "groups": groups}

    merge_summaries = _script("results").merge_summaries
    now = summary("new", "musique") | {"measured": [{"commit": "new", "data": ["musique"]}]}
    assert merge_summaries(None, now) == now
    both = merge_summaries(summary("old", "2wiki", "musique"), now)
    assert both["data"] == {"2wiki": "old", "musique": "new"}
    assert [group["systems"] for group in both["groups"]] == ["old", "new"]
    assert both["measured"] == [{"commit": "old", "data": ["2wiki"]}, {"commit": "new", "data": ["musique"]}]
    later = summary("later", "2wiki") | {"measured": [{"commit": "later", "data": ["2wiki"]}]}
    assert [one["commit"] for one in merge_summaries(both, later)["measured"]] == ["new", "later"]


def _words(picture: str) -> list[str]:
    return sorted(re.findall(r"<text[^>]*>(.*?)</text>", picture))


QUESTIONS = [Question(f"q{number}", f"Who {number}?", frozenset({"gold"})) for number in range(4)]


def kept_run(folder: Path, decay: float, good: int) -> None:
    """A run that finds the evidence of so many of the questions."""
    folder.mkdir(parents=True)
    manifest = {
        "format": 3,
        "dataset": {"name": "tarn", "digest": "0" * 64, "questions": [question.id for question in QUESTIONS]},
        "k": 5,
        "seed": 0,
        "retrievers": ["hypersu"],
        "settings": {"stages": {"hypersu": {"decay": decay, "forward_depth": 4}}},
        "mentions": "rules",
        "versions": {"polyad": "1"},
        "commit": "",
        "machine": {"processor": "some", "cores": 2},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "cost.json").write_text('{"index": {}}')
    (folder / "passages.jsonl").write_text("")
    lines = [
        format_value(
            QuestionRecord(
                "hypersu", question, (RankedPassage("p", "gold" if place < good else "other", 1.0, 60),), (), 1.0, 7.0
            )
        )
        for place, question in enumerate(QUESTIONS)
    ]
    (folder / "per_query.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_table_and_a_picture_are_made_again_of_run_folders_byte_for_byte(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring = _script("results")
    for name in ("SUMMARIES", "PAGES_FOLDER"):
        monkeypatch.setattr(tables, name, tmp_path)
    folders = [tmp_path / "runs" / f"decay={decay}" for decay in (0.1, 0.5)]
    for folder, good in zip(folders, (1, 3), strict=True):
        kept_run(folder, float(folder.name.partition("=")[2]), good)

    def made() -> dict[str, bytes]:
        runs = [load_run(folder) for folder in folders]
        name = "ablation-hypersu"
        measuring.write(tmp_path / f"{name}.json", measuring.summary(name, runs))
        results = tables.read(name)
        tables.draw(results, tmp_path, tables.shown_on_page)
        (tmp_path / "page.md").write_text(tables.page(results), encoding="utf-8")
        return {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    first = made()
    assert first.keys() == {"ablation-hypersu.json", "ablation-hypersu-tarn-recall.svg", "page.md"}
    assert "| decay=0.5 | 75.0 |" in first["page.md"].decode()
    assert "(ablation-hypersu-tarn-recall.svg)" in first["page.md"].decode()
    for name in first:
        (tmp_path / name).unlink()
    assert made() == first
