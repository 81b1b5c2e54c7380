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
from tests.baselines.test_registration import ROOT, environment
from tests.presets.test_tables import reply, write_beir, write_graphrag_bench, write_topic
from tests.scripted_server import ScriptedServer

__all__ = ["environment"]

TABLES: list[dict[str, Any]] = tomllib.loads(read_package_file("polyad_baselines", "tables.toml"))["tables"]
SELECTED = "HyperGraphRAG, second version, Table 2"


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
    outputs = []
    for command in table["command"].split(" && "):
        small = re.sub(r"( \w+/)( \w+/)+", r"\1", command)  # copies of one data set
        small = re.sub(r"(segmentation.method=\w+),[\w,-]+", r"\1", re.sub(r" --plots \S+", "", small))
        words = [sys.executable, "-m", "polyad", *shlex.split(small)[1:], "--json"]
        ran = subprocess.run(
            words, cwd=tmp_path, env={**environment, **variables}, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        outputs.append(json.loads(ran.stdout))
    (names,) = set(re.findall(r"--retriever (\S+)", table["command"]))
    for run in outputs[0]["runs"]:
        assert [row["retriever"] for row in run["results"]] == names.split(",")
        assert all(row["answers"] for row in run["results"])
    reports = "".join(file.read_text(encoding="utf-8") for file in tmp_path.rglob("report/tables.md"))
    (swept,) = re.findall(r"method=(facts,\S+)", table["command"]) or [""]
    rows = [f"method={method}" for method in swept.split(",")] if swept else [f"{name} |" for name in names.split(",")]
    assert all(row in reports for row in rows)


def test_the_page_of_baselines_lists_every_command() -> None:
    page = (ROOT / "docs" / "papers" / "baselines.md").read_text(encoding="utf-8").replace(" \\\n", " ")
    words = " ".join(page.split())
    for table in TABLES:
        assert f"**{table['name']}**: {table['what']}. ```sh {table['command']} ```" in words
