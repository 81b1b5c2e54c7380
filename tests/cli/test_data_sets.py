"""``polyad eval`` on data sets of other layouts, with what they are measured by."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.language_models.scripted import Request
from tests.cli.forked import kill_after_answers, run_forked
from tests.scripted_server import ScriptedServer

pytestmark = pytest.mark.usefixtures("empty_figures")

QUESTIONS = [
    {
        "id": "m1",
        "source": "Medical",
        "question": "Who cast the bell of Tarn?",
        "answer": "Ines Moreau",
        "question_type": "Fact Retrieval",
        "evidence": "The Bell of Tarn was cast by Ines Moreau.; It is of bronze.",
    },
    {
        "id": "m2",
        "source": "Medical",
        "question": "What do otters eat, and when?",
        "answer": "Fish, at dusk",
        "question_type": "Complex Reasoning",
        "evidence": "Otters eat fish.",
    },
]
CONTEXT = "The Bell of Tarn was cast by Ines Moreau. It hangs in a tower. Otters eat fish and crabs. They hunt at dusk."
JUDGES = "coverage,faithfulness,context_recall,context_relevance,evidence_recall"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "medical_questions.json").write_text(json.dumps(QUESTIONS, indent=1))
    (folder / "medical.json").write_text(json.dumps({"corpus_name": "Medical", "context": CONTEXT}))
    return folder


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    folder = tmp_path / "art"
    folder.mkdir()
    kind = "('e', ('r', 'r', 'r'))"
    (folder / "test_queries.json").write_text(json.dumps({kind: ["Who knows Berta?", "Where does Anna live?"]}))
    easy, hard = {"Who knows Berta?": ["Anna"]}, {"Who knows Berta?": ["Carl"], "Where does Anna live?": ["Tarn"]}
    (folder / "test_answers_easy.json").write_text(json.dumps({kind: easy}))
    (folder / "test_answers_hard.json").write_text(json.dumps({kind: hard}))
    (folder / "test_sentences.txt").write_text("Anna knows Berta and Carl.\nAnna lives in Tarn.\n")
    return folder


def answer_and_judge(request: Request) -> str:
    question = str(request["messages"][-1]["content"])
    if '"statements"' in question:
        return '{"statements": ["v", "w", "x", "y"]}'
    if "<text>" not in question and "<given_answer>" not in question:
        return "Ines Moreau [1]." if "bell of Tarn" in question else "Fish [1]."
    replies = {
        "[1, ...]": '{"supported": [4, 1, 2]}' if "<text>" in question else '{"supported": [3, 2]}',
        '"grade"': '{"grade": 2}' if "bell of Tarn" in question else '{"grade": 1}',
        "[1, 2]": '{"supported": [1]}',
        '"unsupported"': '{"supported": ["x", "y", "z"], "unsupported": ["w"]}',
    }
    return next(reply for key, reply in replies.items() if key in question)


def process(killed_after: int, folder: Path, server: ScriptedServer, *command: str) -> CompletedProcess[str]:
    environment = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "none",
        "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1",
    }
    return run_forked(command, partial(kill_after_answers, killed_after), folder=folder, environment=environment)


def test_graphrag_bench_is_measured_and_judged_by_type_and_taken_up_where_it_was_killed(
    bench: Path, tmp_path: Path
) -> None:
    command = ["eval", "bench", "--retriever", "bm25", "--embedder", "hashing:64", "--store", "kb", "--out", "kept"]
    command += ["--model", "scripted", "--replies", "replies.sqlite", "--answers", "--judge", JUDGES, "--json"]
    with ScriptedServer(answer_and_judge) as server:
        assert process(1, tmp_path, server, *command).returncode == -signal.SIGKILL
        assert process(4, tmp_path, server, *command).returncode == -signal.SIGKILL
        last = process(99, tmp_path, server, *command)
        assert last.returncode == 0, last.stderr
        prompts = [str(recorded.body["messages"][-1]["content"]) for recorded in server.requests]
        # Coverage and faithfulness take two requests; the second one of faithfulness is the same for both questions.
        assert len(set(prompts)) == 2 + 2 * (len(JUDGES.split(",")) + 2) - 1
        assert len(prompts) <= len(set(prompts)) + 2, "but the one under way when it was killed"
        assert process(99, tmp_path, server, *command).stdout == last.stdout
        assert len(server.requests) == len(prompts)
    (result,) = json.loads(last.stdout)["results"]
    assert (result["recall@5"], result["mrr"]) == (None, None), "one document is nothing to rank"
    assert result["evidence_recall"] == {"at_words": {"500": 0.75, "1000": 0.75, "2000": 0.75}, "ceiling": 0.75}
    judged = {name: result["answers"][name]["value"] for name in JUDGES.split(",")}
    assert judged == {
        "coverage": 0.5,
        "faithfulness": 0.75,
        "context_recall": 0.75,
        "context_relevance": 0.75,
        "evidence_recall": 0.75,
    }
    by_type = result["answers_by_type"]
    assert by_type["Fact Retrieval"]["context_relevance"]["value"] == 1.0
    assert by_type["Complex Reasoning"]["context_relevance"] == {"value": 0.5, "counted": 1, "asked": 1, "enough": True}
    actual = CliRunner().invoke(app, ["bench", "report", str(tmp_path / "kept"), "--out", str(tmp_path / "report")])
    assert actual.exit_code == 0, actual.output
    tables = (tmp_path / "report" / "tables.md").read_text()
    for measure in ("coverage", "faithfulness"):
        assert f"| {measure} | 2 requests for each answer | bm25 |" in tables
    assert "| bm25 | Fact Retrieval | 1 | 50.0 |" in tables
    assert "| Complex Reasoning | bm25 |" in tables
    assert "| recall@5 |" not in tables, "nobody knows of gold documents"


def test_answers_in_names_are_ranked_over_easy_and_hard_answers(
    topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def names(request: Request) -> str:
        question = str(request["messages"][-1]["content"])
        return '["Carl", "Anna"]' if "knows Berta" in question.rsplit("Question:", 1)[1] else '["Isk"]'

    with ScriptedServer(names) as server:
        command = ["eval", "art", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--json"]
        command += ["--model", "scripted", "--answers", "--form", "entities"]
        actual = CliRunner().invoke(app, command, env={"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"})
    assert actual.exit_code == 0, actual.output
    (result,) = json.loads(actual.stdout)["results"]
    values: dict[str, Any] = {name: one["value"] for name, one in result["answers"].items()}
    assert (values["mrr"], values["hits@10"]) == (0.5, 0.5)
    assert (values["mrr, easy"], values["mrr, hard"]) == (0.5, 0.5)
    assert result["answers"]["mrr, easy"]["asked"] == 1
    assert (values["em, easy"], values["em, hard"]) == (0.0, 0.5)
    lines = [json.loads(line) for line in (tmp_path / "kept" / "answers.jsonl").read_text().splitlines()]
    assert sorted((line["query_id"], line["names"]) for line in lines) == [
        ("q00001", ["Carl", "Anna"]),
        ("q00002", ["Isk"]),
    ]


def test_questions_without_judgements_have_no_ranking_to_be_compared(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    command = ["eval", "bench/medical_questions.json", "--retriever", "bm25,none", "--embedder", "hashing:64"]
    people = runner.invoke(app, [*command, "--out", "kept"])
    assert people.exit_code == 0, people.output
    assert "medical: 2 questions" in people.stdout
    assert "in the index" in people.stdout
    compared = runner.invoke(app, ["bench", "compare", "kept"])
    assert compared.exit_code == 0, compared.output
    assert "evidence_recall@500w is worse on" in compared.stdout, "what can be told is told"
    refused = runner.invoke(app, ["bench", "compare", "kept", "--measures", "recall@5"])
    assert refused.exit_code == 2
    assert "nobody has judged which documents hold its evidence" in " ".join(refused.stderr.split())
    (tmp_path / "bench" / "medical.json").unlink()
    missing = runner.invoke(app, command)
    assert (missing.exit_code, "has no corpus; expected" in " ".join(missing.stderr.split())) == (2, True)
