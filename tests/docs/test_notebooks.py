"""The notebooks run from the top, and are kept without what they print."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_are_three() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["comparing-retrievers", "given-facts", "own-documents"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_the_top(
    notebook: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embedder: SentenceTransformerEmbedder,
) -> None:
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: embedder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells(notebook), start=1):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    printed = capsys.readouterr().out
    told = {
        "comparing-retrievers": "['marrow-valley-trust.md*', 'saltby-weir.md*']",
        "given-facts": "{'recipient': ('Marrow Valley Trust',)}",
        "own-documents": "[1] Lodewell Castings - lodewell.md",
    }
    assert told[notebook.stem] in printed, printed


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_prints(notebook: Path) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(notebook))
    assert notebook.stat().st_size < 20_000
