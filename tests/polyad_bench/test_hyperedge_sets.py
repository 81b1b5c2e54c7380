"""The quality of hyperedges as a judge sees it, from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.language_models.scripted import Request
from tests.scripted_server import ScriptedServer

pytestmark = pytest.mark.usefixtures("empty_figures")

TEXT = "The Bell of Tarn was cast by Ines Moreau. It hangs in Corven Tower. Otters live below it."
GRADES = {"faithfulness": 5, "preservation": 4, "self-containedness": 3, "usefulness": 2}


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tarn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "bell", "text": TEXT}, {"_id": "bells", "text": "Who cast the bell of Tarn? is often asked."}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "Who cast the bell of Tarn?"}')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tbell\t1\n")
    return folder


def judge(request: Request) -> str:
    """Grade each quality; of two sets, prefer the one of more hyperedges."""
    question = str(request["messages"][-1]["content"])
    if "<first>" not in question:
        return json.dumps({"score": next(grade for name, grade in GRADES.items() if f"its {name}:" in question)})
    first, second = (question.split(f"<{name}>")[1].split("</")[0] for name in ("first", "second"))
    return json.dumps({"better": "first" if first.count("\n- ") > second.count("\n- ") else "second"})


def run(server: ScriptedServer, *command: str) -> Result:
    environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "scripted"}
    result = CliRunner().invoke(app, command, env=environment)
    assert result.exit_code == 0, result.output
    return result


def test_hyperedges_of_the_gold_passage_are_graded_and_two_constructions_compared(dataset: Path) -> None:
    sweep = ["bench", "sweep", "tarn", "segmentation.method=sentence,window", "--retriever", "bm25"]
    sweep += ["--embedder", "hashing:64", "--judge", "hyperedges", "--out", "runs", "--json"]
    with ScriptedServer(judge) as server:
        shape = json.loads(run(server, *sweep).stdout)
        prompts = [str(request.body["messages"][-1]["content"]) for request in server.requests]
        again = json.loads(run(server, *sweep).stdout)
        assert len(server.requests) == len(prompts) == 2 * len(GRADES)
        folders = [f"runs/tarn/segmentation.method={method}" for method in ("sentence", "window")]
        verdicts = ["--pairwise", "verdicts", "--pairwise-of", "hyperedges", "--json"]
        (pair,) = json.loads(run(server, "bench", "compare", *folders, *verdicts).stdout)["pairwise"]
    assert again == shape
    assert all(f"<text>\n{TEXT}\n</text>" in prompt for prompt in prompts), "the gold passage, not the most similar"
    counts = {len(re.findall("^- ", prompt, re.MULTILINE)) for prompt in prompts}
    assert counts == {3, 1}, "three sentences, or one window of three"
    assert re.search(r"^- The Bell of Tarn was cast by Ines Moreau. \(.*Ines Moreau.*\)$", prompts[0], re.MULTILINE)
    for each in shape["runs"]:
        values = {name: average["value"] for name, average in each["results"][0]["answers"].items()}
        assert values == {f"hyperedges.{name}": grade / 5 for name, grade in GRADES.items()} | {"hyperedges": 0.7}
    assert (pair["wins"], pair["losses"], pair["judged"]) == (1, 0, 1)


def test_a_run_without_hyperedges_says_how_to_store_them(dataset: Path) -> None:
    command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "run"]
    with ScriptedServer(judge) as server:
        run(server, *command)
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "scripted"}
        refused = CliRunner().invoke(app, [*command, "--judge", "hyperedges"], env=environment)
    assert refused.exit_code == 2
    assert "measure into another --out" in " ".join(refused.stderr.split())
