"""Rankings of other systems as runs: ``polyad bench import-run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_runs import Run, dataset, error_of, measure, run

__all__ = ["dataset", "run"]

pytestmark = pytest.mark.usefixtures("empty_figures", "dataset")

RANKINGS = {"q1": ["otter", "bell"], "q2": ["moreau", "isk"], "q3": ["isk", "bell"]}


def import_run(run: Run, file: str, *arguments: str) -> dict[str, float]:
    options = ("--source", "a paper's Table 2", "-k", "2", "--json", *arguments)
    result = run("bench", "import-run", file, "tarn", *options)
    assert result.exit_code == 0, result.output
    return {row["retriever"]: row["recall@2"] for row in json.loads(result.stdout)["results"]}


@pytest.mark.parametrize(
    "rankings",
    [
        RANKINGS,
        {id: {document: 1 / rank for rank, document in enumerate(ids, 1)} for id, ids in RANKINGS.items()},
        {"KGP": RANKINGS},
    ],
)
def test_rankings_of_json_are_measured_like_those_of_polyad(run: Run, tmp_path: Path, rankings: object) -> None:
    (tmp_path / "KGP.json").write_text(json.dumps(rankings), encoding="utf-8")
    assert import_run(run, "KGP.json", "--out", "imported") == {"KGP": pytest.approx(1.5 / 3)}


def test_a_report_shows_imported_rankings_beside_measured_ones_with_their_source(run: Run, tmp_path: Path) -> None:
    measured = measure(run, "tarn", "--retriever", "bm25,dense", "-k", "2", "--out", "runs/own")
    (tmp_path / "runs" / "own" / "run.trec").rename(tmp_path / "others.trec")
    recalls = import_run(run, "others.trec", "--out", "runs/others")
    assert recalls == {row["retriever"]: row["recall@2"] for row in measured["results"]}
    (tmp_path / "few.trec").write_text("q1 Q0 moreau 1 2.5 ToG2\nq1 Q0 bell 2 7 ToG2\n", encoding="utf-8")
    assert import_run(run, "few.trec", "--out", "runs/few") == {"ToG2": pytest.approx(1 / 3, abs=1e-3)}
    assert run("bench", "report", "runs").exit_code == 0
    tables = (tmp_path / "runs" / "report" / "tables.md").read_text(encoding="utf-8")
    assert tables.count("## tarn") == 1
    assert "| few: ToG2 | 33.3 |" in tables
    assert "| few: ToG2 | a paper's Table 2 |" in tables
    compared = run("bench", "compare", "runs/own:bm25", "runs/few:ToG2")
    assert compared.exit_code == 0
    assert "ToG2: *Bell of Tarn; *Ines Moreau\n" in compared.stdout
    assert "ToG2: not found: otter" in compared.stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.trec", "q1 Q0 bell 1\n", "line 1: 'q1 Q0 bell 1'; expected `query Q0 document rank score tag`"),
        ("a.trec", "q1 Q0 bell 1 high KGP\n", "line 1"),
        ("a.trec", "", "holds no ranking"),
        ("a.trec", "q9 Q0 bell 1 2 KGP\n", "no question of 'tarn', but q9; expected the ids of queries.jsonl"),
        ("a.trec", "q1 Q0 bells 1 2 KGP\n", "such as 'bells'; expected the ids of corpus.jsonl"),
        ("a.json", '{"q1": "bell"}', "the documents of 'q1' are bell; expected a list of ids"),
        ("a.trec", "q1 Q0 bell 1 2 A\nq1 Q0 bell 1 2 B\n", "has the systems A, B; leave out --name"),
    ],
)
def test_a_file_that_is_no_run_of_the_data_set_is_refused(
    run: Run, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    options = ("--source", "a paper", "--name", "KGP", "--out", "imported", "--json")
    assert message in error_of(run("bench", "import-run", name, "tarn", *options))
