"""The commands for the papers' tables with the rows of baselines, on small data sets and a scripted server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyad.language_models.scripted import Request
from polyad.text.files import read_package_file
from tests.polyad_baselines.test_registration import ROOT, environment
from tests.presets.test_tables import MODELS, reply, write_beir, write_graphrag_bench, write_topic, write_weights
from tests.scripted_server import ScriptedServer

__all__ = ["environment"]

TABLES: list[dict[str, Any]] = tomllib.loads(read_package_file("polyad_baselines", "tables.toml"))["tables"]
SELECTED = "HyperGraphRAG, second version, Table 5"


def reply_with_ratings(body: Request) -> str:
    """Also rate a report, give keywords and select facts."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    properties = schema.get("properties") or {}
    if {*properties} == {"score"}:
        return '{"score": 50}'
    if "low_level" in properties:
        return '{"high_level": ["birth"], "low_level": ["Bell of Tarn"]}'
    if "facts" in properties and properties["facts"]["items"]["type"] == "integer":
        return '{"facts": [1]}'
    return reply(body)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    for name in ("medicine", "agriculture", "hotpotqa", "2wiki", "musique"):
        write_beir(tmp_path / name)
    for name in ("medical", "novel"):
        write_graphrag_bench(tmp_path / name, name)
    for name in ("art", "award"):
        write_topic(tmp_path / name)
    with ScriptedServer(reply_with_ratings) as served:
        yield served


@pytest.mark.parametrize(
    "table",
    [pytest.param(one, id=one["name"], marks=[] if one["name"] == SELECTED else [pytest.mark.slow]) for one in TABLES],
)
def test_the_command_of_a_table_has_a_row_for_each_system(
    table: dict[str, str], server: ScriptedServer, tmp_path: Path, environment: dict[str, str]
) -> None:
    variables = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "none",
        "POLYAD_MODEL": "scripted",
        "POLYAD_EMBEDDER": "hashing:64",
        "POLYAD_MENTION_EXTRACTOR": "rules",
    }
    if "hyperretriever" in table["command"]:
        pytest.importorskip("torch")
        write_weights(tmp_path)
    outputs = []
    for command in table["command"].split(" && "):
        small = shorten(command)
        words = shlex.split(small)
        while "=" in words[0]:
            variables |= dict([words.pop(0).split("=", 1)])
        if "compare" in words and not all((tmp_path / folder).exists() for folder in words[3:5]):
            continue  # sweeps have two values here
        ran = subprocess.run(
            [sys.executable, "-m", "polyad", *words[1:], "--json"],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        outputs.append(json.loads(ran.stdout))
    (systems,) = set(re.findall(r"system=(\S+)", table["command"])) or [""]
    measured = [row["retriever"] for run in outputs[0]["runs"] for row in run["results"]]
    assert set(systems.split(",")) <= {*measured} if systems else {*measured} == {"hypersu"}
    assert all(row["answers"] for run in outputs[0]["runs"] for row in run["results"])
    reports = "".join(file.read_text(encoding="utf-8") for file in tmp_path.rglob("report/tables.md"))
    rows = [f"system={name}" for name in systems.split(",")] if systems else ["method=facts", "method=hyper-rag"]
    assert all(row in reports for row in rows)
    spent = {row["retriever"]: run["index"] for run in outputs[0]["runs"] for row in run["results"]}
    for name, index in spent.items():
        needs_model = name not in ("none", "dense", "linearrag", "raptor", "hypersu")
        assert bool(index["llm"]["calls"]) == needs_model, "the construction of its own paper"
        assert ("preparation" in index) == (name == "graphrag"), "reports; two passages need no summaries of raptor"


def shorten(command: str) -> str:
    """Return the command with one data set, and two values of each parameter but the system; embedders are local."""
    command = re.sub(r"( \w+/)( \w+/)+", r"\1", re.sub(r" --plots \S+", "", command))
    command = re.sub(r"( (?!system=)[\w.]+=[^ ,]+,[^ ,]+),[^ ]+", r"\1", command)
    for name, local in MODELS.items():
        command = command.replace(name, local)
    return command


def test_the_page_of_baselines_lists_every_command() -> None:
    page = (ROOT / "docs" / "papers" / "baselines.md").read_text(encoding="utf-8").replace(" \\\n", " ")
    words = " ".join(page.split())
    for table in TABLES:
        assert f"**{table['name']}**: {table['what']}. ```sh {table['command']} ```" in words
