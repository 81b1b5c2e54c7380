"""What the README says can be run, runs; what it lists is all there is."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import polyad
from polyad.cli import app
from polyad.cli.settings import CommandSettings, load
from polyad.config import LanguageModelSettings, SplitSettings
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.engine import RETRIEVERS
from polyad.engine.registry import sections
from polyad.language_models.scripted import ScriptedServer, cite_first_passage

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ polyad")]


def essence(output: str) -> list[str]:
    """What does not depend on the learned weights: the titles of hits; of other output, its first words."""
    titles = re.findall(r"^\d+\. (.*?)  ", output, re.MULTILINE)
    return sorted(titles) or output.split()[:4]


def test_the_python_examples_run_find_both_passages_and_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embedder: SentenceTransformerEmbedder,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyad.engine.registry.load_embedder", lambda *_: embedder)
    searching, asking = blocks("python")
    exec(compile(searching, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 1)[1].split(":")[0] for line in lines] == ["Bell of Tarn", "Ines Moreau"]
    with ScriptedServer(cite_first_passage) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        exec(compile(asking, "README.md", "exec"), {"polyad": polyad})
    assert re.search(r"\[1\]\. \['\w+#0000'\]", capsys.readouterr().out)


def test_the_commands_on_the_sample_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: SentenceTransformerEmbedder
) -> None:
    (tmp_path / "src").symlink_to(ROOT / "src")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyad.engine.registry.load_embedder", lambda *_: embedder)
    on_the_sample = [command for command in commands() if "musique" not in command]
    assert len(on_the_sample) == 7
    for command in on_the_sample:
        found = CliRunner().invoke(app, command.removeprefix("polyad "))
        assert found.exit_code == 0, (command, found.output)
        head = f"$ {command}\n"
        if f"{head}```" in README:  # no output is shown
            continue
        printed = README.split(head)[1].split("```")[0].split("\n$ ")[0]
        assert essence(found.stdout) == essence(printed), command
        if command.startswith("polyad show"):  # nothing in it depends on the machine or on weights
            assert [line.rstrip() for line in found.stdout.splitlines()] == printed.rstrip().splitlines()


def test_the_settings_file_is_valid(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    (tmp_path / "polyad.toml").write_text(example, encoding="utf-8")
    found = load({}, {}, tmp_path / "polyad.toml")
    assert (found.command.k, found.stages.of(SplitSettings).passage_tokens) == (8, 600)
    assert found.language_model is not None


def test_the_settings_in_the_table_are_there_with_these_defaults() -> None:
    kinds = {"(top)": CommandSettings, "language_model": LanguageModelSettings, **sections()}
    table = README.split("## Settings")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `?([\w()]+)`? \| (.*`.*) \|$", table, re.MULTILINE)
    assert len(rows) > 5
    for section, row in rows:
        defaults = {field.name: field.default for field in dataclasses.fields(kinds[section])}
        for key, shown in re.findall(r"`([a-z_]+)(?: = ([^`]*))?`", row):
            if key in defaults and isinstance(defaults[key], int | float) and shown:
                assert shown == str(defaults[key]).lower().removesuffix(".0"), (section, key)
            assert key in defaults or not shown, (section, key)


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "adr").glob("*.md")}
    numbers = [name[:4] for name in pages]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(pages) + 1)]
    assert all(page.startswith(f"# {int(name[:4])}. ") for name, page in pages.items())


def test_every_retriever_is_in_the_table() -> None:
    assert all(f"| `{name}` |" in README for name in RETRIEVERS)


def test_the_test_command_is_marked_for_continuous_integration() -> None:
    marked = re.search(r"<!-- tests -->\n```sh\n(.*?)\n```", README)
    assert marked is not None
    assert marked[1] == 'pip install -c constraints.txt -e ".[dev]" && make check'
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.slow
def test_the_set_up_command_installs_polyad_and_runs_the_demo(tmp_path: Path) -> None:
    set_up = next(block.strip() for block in blocks("sh") if "polyad demo" in block)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    environment = {**os.environ, "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "-c", set_up], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "6 of 6 questions have all their evidence" in ran.stdout
