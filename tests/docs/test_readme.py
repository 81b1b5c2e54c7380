"""The README runs as written and names everything that users choose from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import typer.main
from typer.core import TyperGroup

from polyad.cli import app
from polyad.engine import METHODS, RETRIEVERS
from polyad.protocols.components import Embedder

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


def test_the_python_example_prints_the_output_below_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embedder: Embedder,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: embedder)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == blocks("text")[0]


def test_its_commands_and_flags_exist() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("polyad ")]
    assert len(lines) >= 5
    for line in lines:
        _, command, _ = group.resolve_command(typer.Context(group), [line.split()[1]])
        assert command is not None
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert set(re.findall(r" (--[a-z-]+)", line)) <= flags, line


def test_the_readme_names_every_retriever_and_method() -> None:
    assert all(f"| `{name}` |" in README for name in RETRIEVERS)
    assert all(f"`{name}`" in README or f"--method {name}" in README for name in METHODS)


def test_its_links_lead_to_files() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_test_command_is_marked_for_continuous_integration() -> None:
    marked = re.search(r"<!-- tests -->\n```sh\n(.*?)\n```", README)
    assert marked is not None
    assert marked[1] == "make install check"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "adr").glob("*.md")}
    assert len({name[:4] for name in pages}) == len(pages)
    assert all(page.startswith(f"# {int(name[:4])}. ") for name, page in pages.items())


@pytest.mark.slow
def test_the_install_command_installs_polyad_and_runs_the_demo(tmp_path: Path) -> None:
    command = next(block.strip() for block in blocks("sh") if "polyad demo" in block)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    environment = {**os.environ, "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}
    result = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "6 of 6 questions have all their evidence" in result.stdout
