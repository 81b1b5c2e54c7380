"""The core without the baselines: their package cannot be imported, and their entry points do not exist."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polyad_baselines.test_registration import ROOT
from tests.presets.test_tables import write_beir

REMOVE_BASELINES = '''
"""Hides the package polyad_baselines from the interpreter that starts with this file on its path."""
import importlib.metadata, sys
from importlib.metadata import EntryPoints

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "polyad_baselines":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
list_all = importlib.metadata.entry_points

def entry_points(**selection):
    if not selection:  # groups by name in Python 3.11; polyad selects its groups
        return list_all()
    return EntryPoints(point for point in list_all(**selection) if "polyad_baselines" not in point.value)

importlib.metadata.entry_points = entry_points
'''


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process without the package."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REMOVE_BASELINES, encoding="utf-8")
    write_beir(tmp_path / "tarn")
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT / "src")])
    return {**os.environ, "PYTHONPATH": path, "POLYAD_EMBEDDER": "hashing:64", "COLUMNS": "200"}


def run(folder: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polyad", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_commands_of_the_core_work_without_the_baselines(tmp_path: Path, environment: dict[str, str]) -> None:
    code = "import polyad_baselines"
    missing = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "No module named 'polyad_baselines'" in missing.stderr
    commands = (
        ["--help"],
        ["demo", "--json"],
        ["plugins"],
        ["eval", "tarn", "--retriever", "dense,bm25,default,hypersu", "--out", "runs/tarn", "--json"],
        ["bench", "report", "runs"],
    )
    outputs = [run(tmp_path, environment, *words) for words in commands]
    for words, ran in zip(commands, outputs, strict=True):
        assert ran.returncode == 0, (words, ran.stderr)
        assert "baselines" not in ran.stderr
    assert "polyad_baselines" not in outputs[2].stdout
    assert "hipporag2" not in outputs[2].stdout
    measured = [row["retriever"] for row in json.loads(outputs[3].stdout)["results"]]
    assert measured == ["dense", "bm25", "default", "hypersu"]


def test_a_baseline_is_then_an_unknown_name(tmp_path: Path, environment: dict[str, str]) -> None:
    for words in (["--retriever", "hipporag2"], ["--retriever", "bm25", "--method", "hyper-rag"]):
        ran = run(tmp_path, environment, "eval", "tarn", *words)
        assert ran.returncode != 0
        assert repr(words[-1]) in ran.stderr
        assert "expected one of" in ran.stderr
