"""The baselines as plug-ins: polyad finds them by entry points alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from polyad.engine import Engine
from polyad.engine.registry import methods, retrievers
from polyad.errors import NoLanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.plugin_tables import Table
from polyad.protocols.components import Embedder, Prompt
from polyad_baselines.registration import ROWS
from tests.conftest import SIX_DOCUMENTS

ROOT = Path(__file__).parents[2]
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
QUESTION = "Who cast the Bell of Tarn, and where was she born?"


def reply(prompt: Prompt) -> str:
    """As a model would: a rating, keywords, numbers of facts, or a summary."""
    properties = dict((prompt.json_schema or {}).get("properties", {}))  # type: ignore[call-overload]  # a schema has any values
    replies = {"score": 60, "high_level": ["birth"], "low_level": ["Bell of Tarn"], "facts": [1, 2]}
    return json.dumps({key: replies[key] for key in properties}) if properties else "Bells, towers and their makers."


def test_every_row_has_an_entry_point_and_polyad_no_line_for_it() -> None:
    variables = {name: name.upper().replace("-", "_") for name in ROWS} | {"hyper-rag": "HYPER_RAG_RETRIEVER"}
    expected = {name: f"polyad_baselines.registration:{variable}" for name, variable in variables.items()}
    assert POINTS["polyad.retrievers"] == expected
    assert POINTS["polyad.methods"] == {
        "hyper-rag": "polyad_baselines.registration:HYPER_RAG",
        "triples": "polyad_baselines.registration:TRIPLES",
    }
    for file in (ROOT / "src" / "polyad").rglob("*.py"):
        assert "polyad_baselines" not in file.read_text(encoding="utf-8"), file


@pytest.mark.parametrize("name", ROWS)
def test_a_baseline_finds_the_evidence_of_a_question(small_index_dir: Path, embedder: Embedder, name: str) -> None:
    model = ScriptedLanguageModel(reply)
    with Engine.open(small_index_dir, embedder=embedder, language_model=model, create=False) as engine:
        evidence = engine.search(QUESTION, k=3, retriever=ROWS[name])
        assert evidence.retriever == name
        assert {"Bell of Tarn", "Ines Moreau"} & {hit.passage.title for hit in evidence.passages}
        assert engine.search(QUESTION, k=3, retriever=ROWS[name]).passages == evidence.passages
        filtered = engine.search(QUESTION, k=3, retriever=ROWS[name], where='id != "bell"')
        assert "Bell of Tarn" not in [hit.passage.title for hit in filtered.passages]
    needs_model = ROWS[name].needs_language_model
    with Engine.open(small_index_dir, embedder=embedder, create=False) as engine:
        if needs_model:
            with pytest.raises(NoLanguageModelError):
                engine.search(QUESTION, retriever=ROWS[name])
        else:
            assert engine.search(QUESTION, k=3, retriever=ROWS[name]).passages


@pytest.mark.parametrize("name", ROWS)
def test_a_baseline_follows_the_changes_of_an_index(tmp_path: Path, embedder: Embedder, name: str) -> None:
    model = ScriptedLanguageModel(reply)
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model) as engine:
        assert not engine.search(QUESTION, retriever=ROWS[name]).passages
        engine.index_documents(SIX_DOCUMENTS[:3])
        engine.search(QUESTION, retriever=ROWS[name])
        engine.remove("bell")
        titles = {hit.passage.title for hit in engine.search(QUESTION, retriever=ROWS[name]).passages}
        assert titles <= {"Ines Moreau", "Corven Tower"}
        engine.index_documents(SIX_DOCUMENTS[:1])
        titles = {hit.passage.title for hit in engine.search(QUESTION, retriever=ROWS[name]).passages}
        assert "Bell of Tarn" in titles


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the entry points are installed."""
    folders = [str(ROOT / "src")]
    tables: dict[str, Table[Any]] = {"polyad.retrievers": retrievers, "polyad.methods": methods}
    missing = {
        group: [f"{name} = {value}\n" for name, value in POINTS[group].items() if name not in table]
        for group, table in tables.items()
    }
    if any(missing.values()):  # the installed distribution is older
        about = tmp_path / "site" / "baselines-0.dist-info"
        about.mkdir(parents=True)
        text = "".join(f"[{group}]\n{''.join(rows)}" for group, rows in missing.items())
        (about / "entry_points.txt").write_text(text, encoding="utf-8")
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: baselines\nVersion: 0\n", encoding="utf-8")
        folders.insert(0, str(tmp_path / "site"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def test_an_experiment_takes_baselines_and_their_settings(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "tarn" / "qrels").mkdir(parents=True)
    texts = {"bell": "The Bell of Tarn was cast by Ines Moreau.", "moreau": "Ines Moreau was born in Aldby."}
    records = [json.dumps({"_id": id, "title": id.title(), "text": text}) for id, text in texts.items()]
    (tmp_path / "tarn" / "corpus.jsonl").write_text("\n".join(records), encoding="utf-8")
    (tmp_path / "tarn" / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": QUESTION}), encoding="utf-8")
    (tmp_path / "tarn" / "qrels" / "test.tsv").write_text("q\tbell\t1\nq\tmoreau\t1\n", encoding="utf-8")
    plan = 'benchmarks = ["tarn"]\nretrievers = ["dense", "hipporag2", "linearrag", "lightrag", "pathrag"]\n'
    plan += 'embedder = "hashing:64"\nk = 2\nout = "runs"\n[sweep]\n"linearrag.threshold" = [0.1, 0.4]\n'
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    command = [sys.executable, "-m", "polyad", "bench", "experiment", "plan.toml", "--json"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    runs = json.loads(ran.stdout)["runs"]
    assert len(runs) == 2
    for run in runs:
        assert {row["retriever"]: row["recall@2"] for row in run["results"]} == dict.fromkeys(
            ["dense", "hipporag2", "linearrag", "lightrag", "pathrag"], 1.0
        )


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        *(("hipporag2", "recognition_memory"), ("lightrag", "keywords"), ("pathrag", "keywords")),
        *(("graphrag", "community_report"), ("graphrag", "report_rating")),
    ],
)
def test_a_prompt_of_the_user_replaces_that_of_a_baseline(
    small_index_dir: Path, embedder: Embedder, tmp_path: Path, name: str, prompt: str
) -> None:
    (tmp_path / "polyad_baselines").mkdir()
    (tmp_path / "polyad_baselines" / f"{prompt}.md").write_text(f"My own instructions for {name}.", encoding="utf-8")
    model = ScriptedLanguageModel(reply)
    with Engine.open(
        small_index_dir, embedder=embedder, language_model=model, create=False, prompts=tmp_path
    ) as engine:
        engine.search(QUESTION, retriever=ROWS[name])
    assert f"My own instructions for {name}." in {prompt.system for prompt in model.prompts}
