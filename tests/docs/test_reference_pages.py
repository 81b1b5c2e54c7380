"""The pages of the reference are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyad
from tests.docs.reference_pages import FOLDER, build_pages

ROOT = Path(__file__).parents[2]


def test_the_committed_pages_are_those_of_the_code() -> None:
    for package in ("polyad_baselines", "polyad_bench", "polyad_server"):
        pytest.importorskip(package)
    for file, text in build_pages().items():
        committed = (ROOT / FOLDER / file).read_text(encoding="utf-8")
        assert committed == text, "run: python -m tests.docs.reference_pages"


def test_the_pages_name_each_public_name_and_each_command() -> None:
    pages = build_pages()
    assert all(f"| `{name}` |" in pages["python.md"] for name in polyad.__all__)
    assert {"## index", "## search", "## ask"} <= {*pages["command-line.md"].splitlines()}
