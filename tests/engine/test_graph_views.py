"""What drawings of the hypergraph show: named entities, communities, and the path between two entities."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polyad import Document, Engine
from polyad.errors import NotFoundError

MANUAL = """OPTIONS
    The flag {flag} calls git worktree prune on {place} in 1931. Why it rains: Rain is common, and rain falls.

    Use the {name} Server, which Ines Moreau wrote for {name} Server users. You MUST NOT stop it."""


def manual(number: int, flag: str, name: str) -> Document:
    return Document(f"{number}.md", f"Manual {number}", MANUAL.format(flag=flag, place="Port Lisle", name=name))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    documents = [
        manual(1, "-a", "Corven"),
        manual(2, "-b", "Velm"),
        Document(
            "bell.md", "Bell of Tarn", "The bell of Tarn was cast by Ines Moreau in 1921. It hangs in Corven Tower."
        ),
        Document("tower.md", "Corven Tower", "Corven Tower stands in Aldby. Its architect was Bo Larsen."),
        Document("lake.md", "Lake Orra", "Lake Orra is fed by the river Saltby. Bo Larsen drew a map of it in 1921."),
        Document("far.md", "Moon", "The crater Daguerre lies beside the crater Madler."),
    ]
    with Engine.open(tmp_path_factory.mktemp("views") / "kb", embedder="hashing:64") as opened:
        opened.index_documents(documents)
        yield opened


def test_only_what_a_person_would_call_an_entity_is_a_name(engine: Engine) -> None:
    edges = [edge.id for edge in engine.catalogue.hyperedges()]
    entities, members = engine.graph_views.find_names([*edges, "unknown#0000/000"])
    names = {each.name for each in entities}
    assert {"Ines Moreau", "Port Lisle", "Corven Tower", "Bo Larsen"} <= names
    assert names.isdisjoint({"OPTIONS", "Rain", "Why", "MUST NOT", "1931", "1921", "calls git worktree prune"})
    assert entities[0].name == "Ines Moreau", "in the most documents"
    assert entities[0].documents == 3
    assert {key for keys in members.values() for key in keys} == {each.key for each in entities}


def test_an_overview_has_communities_of_entities_that_occur_together(engine: Engine) -> None:
    overview = engine.graph_views.build_overview(50)
    by_name = {each.name: each for each in overview.entities}
    assert by_name["Daguerre"].community == by_name["Madler"].community >= 0
    assert by_name["Daguerre"].community != by_name["Corven Tower"].community
    assert {link.weight <= 1 for link in overview.links} == {True}
    assert len(overview.communities) >= 2
    assert len(engine.graph_views.build_overview(2).entities) == 2
    assert engine.graph_views.build_overview(50) == overview


def test_a_path_joins_two_entities_through_names_not_through_a_year(engine: Engine) -> None:
    steps = engine.graph_views.find_path("Ines Moreau", "Saltby")
    assert [(step.from_name, step.to_name) for step in steps] == [
        ("Ines Moreau", "Corven Tower"),
        ("Corven Tower", "Bo Larsen"),
        ("Bo Larsen", "Saltby"),
    ]
    assert "Bo Larsen drew" in steps[-1].text or "Saltby" in steps[-1].text
    assert engine.graph_views.find_path("Ines Moreau", "Daguerre") == []
    assert engine.graph_views.find_path("Ines Moreau", "ines moreau") == []
    with pytest.raises(NotFoundError, match="nobody"):
        engine.graph_views.find_path("Ines Moreau", "Nobody")
