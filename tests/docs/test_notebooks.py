"""The notebooks run from the top, and their files show what their cells print."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

from polyad.protocols.components import Embedder
from tests.docs.notebooks import NOTEBOOKS, get_stored_output, list_code_cells, run_notebook


def mask_numbers(text: str) -> str:
    """Replace numbers: scores differ between processors in the last digits."""
    return re.sub(r"\d+\.\d+", "#", text)


def test_there_are_three() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["comparing-retrievers", "own-documents", "tuples"]


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "comparing-retrievers" else [])
        for path in NOTEBOOKS  # the site runs all of them
    ],
)
def test_a_notebook_runs_from_the_top_and_shows_what_it_prints(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: Embedder
) -> None:
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: embedder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    printed = run_notebook(notebook)
    stored = [get_stored_output(cell) for cell in list_code_cells(json.loads(notebook.read_text(encoding="utf-8")))]
    assert list(map(mask_numbers, stored)) == list(map(mask_numbers, printed)), "run: python -m tests.docs.notebooks"
    evidence = {
        "comparing-retrievers": "default    ['marrow-valley-trust.md*', 'saltby-weir.md*']",
        "tuples": "{'recipient': ('Marrow Valley Trust',)}",
        "own-documents": "[1] Lodewell Castings - lodewell.md",
    }
    assert evidence[notebook.stem] in "".join(printed)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_file_of_a_notebook_is_small_and_names_no_folder_of_its_author(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert tempfile.gettempdir() not in text
    assert str(Path.home()) not in text
