"""What the pages of the documentation say can be run, runs, and prints what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.engine.loaders import load_embedder
from polyad.language_models.scripted import ScriptedServer, cite_first_passage
from tests.docs.pages import DOCS, run

PAGES = ["tutorial.md", *sorted(f"how-to/{page.name}" for page in (DOCS / "how-to").glob("*.md"))]


def masked(output: str) -> list[str]:
    """The words of an output, without numbers (times, scores, sizes) and the widths of columns."""
    return re.sub("─+", "─", re.sub(r"\d[\d,.]*", "#", output)).split()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_the_top_and_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: SentenceTransformerEmbedder
) -> None:
    def loaded(name: str, *settings: object) -> object:
        return embedder if name == embedder.name else load_embedder(name)

    monkeypatch.setattr("polyad.engine.loaders.load_embedder", loaded)
    with ScriptedServer(cite_first_passage) as server:
        steps = list(run(page, tmp_path, server, monkeypatch))
    assert steps
    for step in steps:
        assert step.code == 0, f"{page}: {step.command}\n{step.printed}"
        if step.shown:
            assert masked(step.printed) == masked(step.shown), f"{page}: {step.command}\n{step.printed}"
