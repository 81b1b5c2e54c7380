"""Review of questions: the sheet, the verdicts, and the data set without rejected questions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad_bench.datasets.beir import load_beir

QUESTIONS = {"q1": "Who cast the bell?", "q2": "=1+1 is what?", "q3": "What do otters eat?"}
GOLD = {"q1": ["bell", "moreau"], "q2": ["bell"], "q3": ["otter"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tarn"
    (folder / "qrels").mkdir(parents=True)
    texts = {"bell": "The bell was cast by Ines Moreau.", "moreau": "She was born in Aldby.", "otter": "It eats fish."}
    corpus = [json.dumps({"_id": id, "title": id, "text": text}) for id, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus), encoding="utf-8")
    queries = [json.dumps({"_id": id, "text": text, "metadata": {"answers": ["x"]}}) for id, text in QUESTIONS.items()]
    (folder / "queries.jsonl").write_text("\n".join(queries), encoding="utf-8")
    judged = "".join(f"{id}\t{document}\t1\n" for id, documents in GOLD.items() for document in documents)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder


def review(folder: Path) -> Result:
    sheet = folder.parent / "sheet.csv"
    return CliRunner().invoke(app, ["bench", "questions", "--out", str(folder), "--review", str(sheet), "--json"])


def fill_in(folder: Path, **verdicts: str) -> None:
    path = folder.parent / "sheet.csv"
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "verdict": verdicts.get(row["id"], "")} for row in rows)


def test_rejected_questions_leave_the_data_set_and_are_kept_aside(folder: Path) -> None:
    assert json.loads(review(folder).stdout)["questions"] == 3
    rows = list(csv.DictReader((folder.parent / "sheet.csv").open(encoding="utf-8", newline="")))
    assert rows[0]["documents"] == "bell\nThe bell was cast by Ines Moreau.\n\nmoreau\nShe was born in Aldby."
    assert rows[1]["question"] == "'=1+1 is what?", "no spreadsheet runs it"
    fill_in(folder, q1="accept", q2=" Reject")
    shape = json.loads(review(folder).stdout)
    assert (shape["accepted"], shape["rejected"], shape["undecided"]) == (1, 1, 1)
    remaining = {query.id: (query.text, sorted(query.gold)) for query in load_beir(folder).queries}
    assert remaining == {id: (QUESTIONS[id], GOLD[id]) for id in ("q1", "q3")}
    (moved,) = (folder / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(moved)["_id"], json.loads(moved)["gold"]) == ("q2", ["bell"])


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [({"q1": "perhaps"}, "verdict 'perhaps'; expected accept"), (dict.fromkeys(QUESTIONS, "reject"), "every question")],
)
def test_a_sheet_with_a_mistake_changes_nothing(folder: Path, verdicts: dict[str, str], message: str) -> None:
    review(folder)
    fill_in(folder, **verdicts)
    refused = review(folder)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
    assert len(load_beir(folder).queries) == 3
    assert not (folder / "rejected.jsonl").exists()


def test_a_sheet_of_other_questions_is_refused(folder: Path) -> None:
    (folder.parent / "sheet.csv").write_text("verdict,id\nreject,q9\n", encoding="utf-8")
    assert "no question 'q9'" in " ".join(review(folder).stderr.split())
