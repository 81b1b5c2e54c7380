"""What the pages of the documentation say can be run, runs, and prints what they show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from polyad.engine.loaders import load_embedder
from polyad.language_models.scripted import Request, cite_first_passage, extract_passage
from polyad.protocols.components import Embedder
from tests.docs.pages import DOCS, run
from tests.scripted_server import ScriptedServer

TESTED_ELSEWHERE = {"how-to/index-with-workers.md", "how-to/web-page.md"}
"""Pages whose commands need PostgreSQL or a Ray cluster, which the suites of workers and of Ray run, and the page on
the web page, whose steps the tests of the page take."""

PAGES = [
    "tutorial.md",
    *sorted({f"how-to/{page.name}" for page in (DOCS / "how-to").glob("*.md")} - TESTED_ELSEWHERE),
]


EXTRACTED = {
    "Ines Moreau directs": [
        ("directed_by", "Ines Moreau directs Tarn Glass in Aldby.", ["Tarn Glass", "Ines Moreau", "Aldby"]),
        ("rained in", "It rained in Bree.", ["Bree"]),
    ],
    "Ada King directs": [("directed_by", "Ada King directs Hexley Paper.", ["Hexley Paper", "Ada King"])],
    "Jonas Stone": [("directed by", "Tarn Glass is now directed by Jonas Stone.", ["Tarn Glass", "Jonas Stone"])],
}
"""Relation, text and entities of the facts of each passage, by words of the passage."""

TYPES = {"Tarn Glass": "Company", "Hexley Paper": "Company", "Aldby": "Town", "Bree": "Town"}


def answer(request: Request) -> str:
    """Extract the facts of a passage with relations, or answer a question."""
    instructions, message = (str(one["content"]) for one in request["messages"])
    if "Relations: " not in instructions:
        return cite_first_passage(request)
    passage = extract_passage(message)
    facts = next(facts for words, facts in EXTRACTED.items() if words in passage)
    names = {name: TYPES.get(name, "Person") for _, _, members in facts for name in members}
    reply = {
        "facts": [
            {"text": text, "relation": relation, "score": 9, "entities": members} for relation, text, members in facts
        ],
        "entities": [f"{name} | {type} | | 80" for name, type in names.items()],
    }
    return json.dumps(reply)


def masked(output: str) -> list[str]:
    """The words of an output, without numbers (times, scores, sizes) and the widths of columns."""
    return re.sub("─+", "─", re.sub(r"\d[\d,.]*", "#", output)).split()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_the_top_and_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: Embedder
) -> None:
    def loaded(name: str, *settings: object) -> object:
        return embedder if name == embedder.name else load_embedder(name)

    monkeypatch.setattr("polyad.engine.loaders.load_embedder", loaded)
    with ScriptedServer(answer) as server:
        steps = list(run(page, tmp_path, server, monkeypatch))
    assert steps
    for step in steps:
        assert step.code == 0, f"{page}: {step.command}\n{step.printed}"
        if step.output:
            assert masked(step.printed) == masked(step.output), f"{page}: {step.command}\n{step.printed}"
