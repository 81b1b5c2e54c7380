"""Runs the notebooks of the documentation; run as a module, it stores their outputs in their files.

Stored outputs show on code hosts. Cells print all their results, so plain Python runs them as Jupyter does.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def list_code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_notebook(path: Path) -> list[str]:
    """Run a notebook from the top and return what each code cell prints."""
    names: dict[str, object] = {"__name__": "notebook"}
    outputs = []
    for number, cell in enumerate(list_code_cells(json.loads(path.read_text(encoding="utf-8"))), start=1):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
        outputs.append(output.getvalue())
    return outputs


def get_stored_output(cell: dict[str, Any]) -> str:
    """Return the text that a cell of a notebook file shows below its code."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def store_outputs(path: Path) -> None:
    """Run a notebook and write what its cells print into its file."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = zip(list_code_cells(notebook), run_notebook(path), strict=True)
    for number, (cell, text) in enumerate(outputs, start=1):
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell.update(execution_count=number, outputs=[stream] if text else [])
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        store_outputs(each)
