"""The recipe of a memory for agents: statements that supersede each other, with the function of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from polyad import Engine

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "agent-memory.md"
PEOPLE = ("Ines Moreau", "Bo Larsen", "Ada Quill", "Otto Brandt", "Lena Fisk")
PROJECTS = ("Tarn", "Corven", "Lisle", "Aldby", "Velm", "Orra", "Isk", "Grey Plover", "Sule", "Harrow")
YEARS = range(2015, 2025, 2)


@pytest.fixture
def remember() -> Any:
    block = re.search(r"```python\n(.*?)\n\nwith Engine", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names["remember"]


def test_fifty_statements_that_supersede_each_other(tmp_path: Path, remember: Any) -> None:
    with Engine.open(tmp_path / "memory", embedder="hashing:64") as engine:
        leads = {}
        for place, year in enumerate(YEARS):
            for number, project in enumerate(PROJECTS):
                leads[project, year] = person = PEOPLE[(place + number) % len(PEOPLE)]
                remember(engine, f"lead of {project}", f"{person} leads the project {project}.", f"{year}-06-01")
        assert engine.catalogue.statistics().documents == len(leads) == 50
        for (project, year), person in leads.items():
            as_of = f"{year + 1}-06-01"
            [hit] = engine.search(f"Who leads the project {project}?", k=1, as_of=as_of).passages
            assert hit.passage.text == f"{person} leads the project {project}."
            held = engine.find_text(f"leads the project {project}.", phrase=True, as_of=as_of)
            assert [match.text for match in held.matches] == [hit.passage.text]
        now = engine.find_text("leads the project")
        assert {match.text for match in now.matches} == {
            f"{leads[project, YEARS[-1]]} leads the project {project}." for project in PROJECTS
        }
        id = f"memory/lead of Tarn/{YEARS[-1]}-06-01"
        engine.corrections.retract(hyperedge=f"{id}#0000/000", reason="nobody leads Tarn")
        [hit] = engine.search("Who leads the project Tarn?", k=1).passages
        assert [fact.reason for fact in hit.retracted] == ["nobody leads Tarn"]
        assert not engine.catalogue.hyperedges_of_passage(f"{id}#0000")
