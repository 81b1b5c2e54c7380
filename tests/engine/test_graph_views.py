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


LABELS = (
    "# Pump\n\nContact: Karl Moen\n\nNOTE: The pump of Velm Works must be closed. WARNING: Never open the lid while "
    "NASA watches. Press OK to confirm, then press OK again. TIP: Use warm water. If the lamp says ERROR, call IBM.",
    "# Valve\n\nAuthor: Bo Larsen. Kontakt: Ada Holm\n\nIMPORTANT: NASA made the valve. The answer is OK. See the NOTE "
    "and the WARNING above, where WARNING: It is hot. HINWEIS: Das Ventil ist heiß. Click OK when the HTTP server of "
    "IBM replies; HTTP: a protocol. TODO: Wait.",
    "# Minutes\n\nPresent: Karl Moen and Ada Holm. Bo Larsen came later. The KARL MOEN BRIDGE is in use. They saw "
    "Dune: Part Two in Port Lisle.",
)


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine.open(tmp_path_factory.mktemp("labels") / "kb", embedder="hashing:64") as opened:
        opened.index_documents([Document(f"{number}.md", "", text) for number, text in enumerate(LABELS)])
        yield opened


def test_labels_and_common_words_in_capitals_are_no_names(labels: Engine) -> None:
    edges = [edge.id for edge in labels.catalogue.hyperedges()]
    names = {each.name for each in labels.graph_views.find_names(edges)[0]}
    assert names.isdisjoint({"Part Two", "BRIDGE"})
    assert {"Karl Moen", "Ada Holm", "Bo Larsen", "Velm Works", "NASA", "IBM", "HTTP"} <= names
    wrong = {"NOTE", "WARNING", "OK", "Press OK", "Click OK", "TIP", "ERROR", "IMPORTANT", "HINWEIS", "TODO", "Wait"}
    assert not {name for name in names if name in wrong or ":" in name}
    overview = [each.name for each in labels.graph_views.build_overview(100).entities]
    assert len(overview) == len(set(overview))
    assert not wrong & set(overview)


def test_a_name_behind_a_label_is_the_entity_that_other_sentences_name(labels: Engine) -> None:
    edges = [edge.id for edge in labels.catalogue.hyperedges()]
    entities, members = labels.graph_views.find_names(edges)
    assert [each.key for each in entities if each.name == "Karl Moen"] == ["karl moen"]
    pump = [edge.id for edge in labels.catalogue.hyperedges() if "Contact: Karl Moen" in edge.text]
    assert pump
    assert all("karl moen" in members[id] for id in pump)
    alone, _ = labels.graph_views.find_names(pump)
    key = next(each.key for each in alone if each.name == "Karl Moen")
    assert labels.catalogue.entity(key), "an entity of the index, whose page can be opened"
