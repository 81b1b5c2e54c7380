from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from polyad.errors import ConfigurationError
from polyad.text.json_types import format_value
from polyad_bench.answers.averages import Average
from polyad_bench.datasets.beir import Question
from polyad_bench.reports.report import find_run_folders, write_report
from polyad_bench.reports.summary import find_varied_settings
from polyad_bench.reports.tables import format_answer_rows
from polyad_bench.runs.records import QuestionRecord, RankedPassage
from polyad_bench.runs.run_folder import load_run

QUERIES = [Question(f"q{number}", f"Who <b>{number}</b>?", frozenset({"gold"})) for number in range(4)]


def write_run(
    folder: Path,
    *,
    decay: float = 0.5,
    width: int = 30,
    good: int = 2,
    tokens: int = 0,
    name: str = "a$b",
    seed: int = 0,
) -> Path:
    """A run of two retrievers, one of which finds the evidence of so many questions."""
    folder.mkdir(parents=True)
    manifest = {
        "format": 3,
        "dataset": {"name": name, "digest": name, "questions": [query.id for query in QUERIES]},
        "k": 5,
        "seed": 0,
        "retrievers": ["_bm25", "x<y>"],
        "settings": {
            "stages": {"hypersu": {"decay": decay, "width": width, "use_remainder": True}},
            "language_model": {"seed": seed},
        },
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
                retriever,
                query,
                (RankedPassage("p", "gold" if place < result else "other", 1.0, 60),),
                (),
                1.0,
                7.0,
                tokens,
            )
        )
        for retriever, result in (("_bm25", good), ("x<y>", 4))
        for place, query in enumerate(QUERIES)
    ]
    (folder / "per_query.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_report_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tokens=30)
    files = write_report([run], tmp_path / "report")
    assert {path.suffix for path in files} == {".md", ".png", ".svg", ".html"}
    assert {"a_b-recall-by-tokens.svg", "a_b-recall-by-time.png", "a_b-recall-by-words.svg"} <= {
        path.name for path in files
    }
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    assert {path: path.read_bytes() for path in write_report([run], tmp_path / "report")} == before


@pytest.mark.usefixtures("empty_figures")
def test_the_tables_hold_the_measures_in_per_cent(tmp_path: Path) -> None:
    write_report([write_run(tmp_path / "run")], tmp_path / "report")
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert "## a$b, 4 questions, k = 5" in tables
    row = next(line for line in tables.splitlines() if line.startswith("| _bm25"))
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["50.0", "0.0 - 100.0", "50.0", "50.0"]
    assert "| _bm25 | 8.0 | 8.0 | 1.0 | 60 | 0 | - |" in tables


def test_the_page_needs_no_other_file_and_shows_what_is_written(tmp_path: Path) -> None:
    write_report([write_run(tmp_path / "run")], tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("<svg") == 6
    assert not re.search(r"<(script|link|img|iframe)|(?:src|href)=[\"'](?!#)", page)
    assert "Who &lt;b&gt;0&lt;/b&gt;?" in page
    assert "x&lt;y&gt;" in page
    assert "<b>0" not in page


@pytest.mark.usefixtures("empty_figures")
@pytest.mark.parametrize(
    ("second", "varied", "pictures"),
    [
        ({"decay": 0.7}, ["hypersu.decay"], ["sensitivity.svg"]),
        (
            {"decay": 0.7, "width": 10},
            ["hypersu.decay", "hypersu.width"],
            ["sensitivity-_bm25.svg", "sensitivity-x_y_.svg"],
        ),
        ({}, [], []),
    ],
)
def test_settings_that_differ_are_drawn(
    tmp_path: Path, second: dict[str, Any], varied: list[str], pictures: list[str]
) -> None:
    runs = [write_run(tmp_path / "runs" / "one"), write_run(tmp_path / "runs" / "two", good=3, **second)]
    assert find_run_folders([tmp_path / "runs"]) == runs
    assert find_varied_settings([load_run(run) for run in runs]) == varied
    drawn = [path.name.removeprefix("a_b-") for path in write_report(runs, tmp_path / "report")]
    assert [name for name in drawn if name.startswith("sensitivity") and name.endswith("svg")] == pictures
    assert "| one: _bm25 |" in (tmp_path / "report" / "tables.md").read_text()


def test_statistics_of_the_index_are_drawn_and_tabulated(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    construction = {
        "arity": {"2": 3},
        "degree": {"3": 2},
        "sentences": {"1": 1, "2": 2},
        "words": 30,
        "neighbourhood": {"entity": "$Tarn", "hyperedges": [["$Tarn", "Aldby"]] * 3},
    }
    (run / "hypergraph.json").write_text(json.dumps(construction))
    index = {"seconds": 2.0, "encode_seconds": 1.5, "tokens": 4000, "written": 3, "passages": 3}
    (run / "cost.json").write_text(json.dumps({"index": index}))
    drawn = [path.name for path in write_report([run], tmp_path / "report")]
    assert {f"a_b-{name}.svg" for name in ("cost", "construction", "neighbourhood")} <= set(drawn)
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert "| run | 3 | 2 | 2.00 | 3.00 | 1.67 | 10.0 |" in tables
    assert re.search(r"^\| _bm25 \| 8.0 .*\| 500.0 \| 0 \|$", tables, re.MULTILINE)


def test_a_damaged_construction_is_refused_by_name(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for damage in ('{"arity": {}}', '{"arity": 3, "degree": {}, "sentences": {}, "words": 1, "neighbourhood": null}'):
        (run / "hypergraph.json").write_text(damage)
        with pytest.raises(ConfigurationError, match=r"hypergraph.json'.*line 1: .*expected an object"):
            load_run(run)


def test_more_systems_than_can_be_told_apart_are_bars_alone(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "runs" / f"{number}", name="tarn") for number in range(6)]
    drawn = {path.name for path in write_report(runs, tmp_path / "report")}
    assert drawn == {"tables.md", "report.html", "tarn-recall.png", "tarn-recall.svg"}


@pytest.mark.usefixtures("empty_figures")
def test_other_data_sets_have_tables_of_their_own(tmp_path: Path) -> None:
    write_report([write_run(tmp_path / "one"), write_run(tmp_path / "two", name="other")], tmp_path / "report")
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert re.findall("^## (.*), 4", tables, re.MULTILINE) == ["a$b", "other"]


@pytest.mark.usefixtures("empty_figures")
def test_runs_that_differ_in_the_seed_are_averaged_and_compared_by_welchs_test(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"{number}", name="tarn", good=number, seed=number) for number in (1, 2, 4)]
    answered = [{"retriever": "x<y>", "query_id": query.id, "text": "Ada"} for query in QUERIES]
    (runs[0] / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answered))
    write_report(runs, tmp_path / "report")
    rows = [line for line in (tmp_path / "report" / "tables.md").read_text().splitlines() if " | recall | " in line]
    # Recall is 25, 50 and 100 per cent against 100 three times: t = 41.667 / (38.188 / sqrt(3)) = 1.8898 with two
    # degrees of freedom, whose two-sided p is 1 - t / sqrt(2 + t^2) = 0.1994.
    assert rows[0] == "| _bm25 | 1: _bm25 | 3 | recall | 58.33 | 38.19 |  |  |"
    assert rows[1] == "| x<y> | 1: x<y> | 3 | recall | 100.00 | 0.00 | +41.67 | 0.1994 |"
    write_report([write_run(tmp_path / f"same{number}", name="tarn") for number in (1, 2)], tmp_path / "same")
    assert "Welch" not in (tmp_path / "same" / "tables.md").read_text(), "no seed differs"


def test_the_run_with_unchanged_settings_is_the_baseline_of_an_ablation(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "musique" / name) for name in ("answers without entities", "as set", "one hop")]
    assert find_run_folders([tmp_path]) == [runs[1], runs[0], runs[2]]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        find_run_folders([tmp_path])


def test_the_best_average_is_bold_and_never_one_of_too_few() -> None:
    def rows(first: Average, second: Average) -> list[str]:
        systems = {"one": {"gpt_acc": first}, "other": {"gpt_acc": second}}
        return [row["gpt_acc"] for row in format_answer_rows(systems)]

    assert rows(Average(0.5, 100, 100), Average(0.4, 95, 100)) == ["**50.0**", "40.0"]
    assert rows(Average(0.5, 94, 100), Average(0.4, 100, 100)) == ["50.0* (94 / 100)", "40.0"], "there is one to trust"
    assert rows(Average(0.5, 94, 100), Average(None, 0, 100)) == ["50.0* (94 / 100)", "-* (0 / 100)"]
    assert rows(Average(0.5, 9, 9), Average(0.5, 9, 9)) == ["**50.0**", "**50.0**"]
