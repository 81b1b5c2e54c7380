"""A search with a filter reads and shows nothing of other documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.config import QuestionSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.search import SELECTED_PASSAGES
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.model import (
    SUBJECT,
    Argument,
    Document,
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    MetadataValue,
    Passage,
    Timings,
)
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import SqliteStore
from polyad.text.filters import (
    HYPEREDGE_FIELDS,
    Filter,
    collect_fields,
    format_filter,
    is_selected,
    list_hyperedge_fields,
    parse_filter,
)
from tests.examples import count_examples

EMBEDDER = HashingEmbedder(32)
RETRIEVERS = ("default", "dense", "bm25", "hypersu", "hypergraphrag")
NAMES = ("ada lee", "bo ray", "isk", "tarn", "corven tower", "aldby")
QUESTIONS = ("Who repaired the pump of Tarn?", "Where did Ada Lee meet Bo Ray?", "the Isk at Aldby")
AUTHORS = ("Ada", "Bo", "Cleo")

_COMPARISONS = (
    *(f"year {operator} {year}" for operator in ("=", "<", ">=") for year in (2019, 2021, 2023)),
    *(f"author = {author}" for author in AUTHORS),
    "tags = pump",
    "not tags exists",
    'id like "d1*"',
    "hyperedge.kind = fact",
    "hyperedge.role = subject",
)
filters = st.recursive(
    st.sampled_from(_COMPARISONS),
    lambda parts: st.one_of(
        parts.map(lambda part: f"not ({part})"),
        st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(lambda three: "({}) {} ({})".format(*three)),
    ),
    max_leaves=4,
).map(parse_filter)


def make_document(number: int) -> IndexedDocument:
    """A document of two passages; the types and descriptions of entities name the passage."""
    id = f"d{number}"
    metadata: dict[str, MetadataValue] = {"year": 2018 + number % 7, "author": AUTHORS[number % 3]}
    if number % 4 == 0:
        metadata["tags"] = ("pump", "valve")
    passages = []
    for place in range(2):
        members = [NAMES[(number + place + step) % len(NAMES)] for step in range(1 + number % 3)]
        text = f"Note {number}: {' met '.join(members)} and repaired the pump."
        passage = Passage(f"{id}#{place:04}", id, members[0].title(), text, 0, len(text))
        kind = HyperedgeKind.FACT if (number + place) % 3 == 0 else HyperedgeKind.SEMANTIC_UNIT
        edge = Hyperedge(f"{passage.id}/000", kind, text, passage.id, 0, len(text))
        subject = members[0] if number % 5 else ""
        incidences = tuple(
            Incidence(key, edge.id, key.title(), SUBJECT if key == subject else "", passage.id, f"said by {passage.id}")
            for key in sorted(set(members))
        )
        vector = EMBEDDER.encode([text], "passage")[0]
        passages.append(IndexedPassage(passage, "", vector, (IndexedHyperedge(edge, incidences, vector),)))
    return IndexedDocument(Document(id, id, "text", metadata=metadata), "digest", 1, tuple(passages))


DOCUMENTS = {document.document.id: document for document in map(make_document, range(40))}


def build_index(folder: Path, ids: list[str]) -> None:
    store = SqliteStore.open(folder, Manifest(EMBEDDER.name, EMBEDDER.dimension, "rules"))
    for id in ids:
        store.put(DOCUMENTS[id])
    store.close()


BRIDGING = Settings(question=QuestionSettings(bridge_outside=True))
"""Excluded documents connect others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filtered") / "kb"
    build_index(folder, list(DOCUMENTS))
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with Engine.open(folder, embedder=EMBEDDER, create=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def bridging_engine(folder: Path) -> Iterator[Engine]:
    with Engine.open(folder, embedder=EMBEDDER, create=False, settings=BRIDGING) as opened:
        yield opened


def select_passages(where: Filter) -> list[str]:
    """Return the ids of the passages whose hyperedge has the fields that a filter selects; each passage has one."""
    return [
        item.passage.id
        for id, stored in DOCUMENTS.items()
        for item in stored.passages
        for edge in item.hyperedges
        for roles in [tuple(filter(None, (part.role for part in edge.incidences)))]
        if is_selected(
            where, {**stored.document.metadata, "id": id, **list_hyperedge_fields(edge.hyperedge.kind, roles)}
        )
    ]


def select_ids(where: Filter) -> list[str]:
    return [id for id, stored in DOCUMENTS.items() if is_selected(where, {**stored.document.metadata, "id": id})]


def list_passages_shown(evidence: Evidence) -> set[str]:
    """Return the ids of all passages that anything in the evidence comes from."""
    entities = [scored.entity for scored in evidence.entities]
    outputs = {scored.passage.id for scored in evidence.passages}
    outputs |= {scored.hyperedge.passage_id for scored in evidence.hyperedges}
    for entity in [*entities, *(member for scored in evidence.hyperedges for member in scored.members)]:
        outputs |= {line.removeprefix("said by ") for line in entity.description.splitlines()}
        outputs |= {entity.type} - {""}
    return outputs


@settings(max_examples=count_examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=filters, question=st.sampled_from(QUESTIONS), retriever=st.sampled_from(RETRIEVERS), k=st.integers(1, 60))
def test_nothing_of_other_passages_is_shown(
    engine: Engine, bridging_engine: Engine, where: Filter, question: str, retriever: str, k: int
) -> None:
    selected = select_passages(where)
    evidence = engine.search(question, k, retriever=retriever, where=where, merge=False)
    assert list_passages_shown(evidence) <= set(selected)
    assert evidence.notes[SELECTED_PASSAGES] == len(selected)
    bridged = bridging_engine.search(question, k, retriever=retriever, where=where, merge=False)
    assert list_passages_shown(bridged) <= set(selected)
    assert not any(hit.reason for hit in bridged.passages)
    assert len(bridged.passages) >= len(evidence.passages)
    if retriever == "dense":
        assert len(evidence.passages) == min(k, len(selected))


@settings(max_examples=count_examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=filters.filter(lambda where: not collect_fields(where) & HYPEREDGE_FIELDS))
def test_evidence_is_that_of_an_index_of_the_selected_documents(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, where: Filter
) -> None:
    folder = tmp_path_factory.mktemp("alone") / "kb"
    build_index(folder, select_ids(where))
    with Engine.open(folder, embedder=EMBEDDER, create=False) as alone:
        for retriever in ("dense", "bm25", "hypersu", "default"):
            for question in QUESTIONS:
                expected = alone.search(question, 5, retriever=retriever)
                filtered = engine.search(question, 5, retriever=retriever, where=format_filter(where))
                assert replace(filtered, timings=Timings(), notes={}) == replace(expected, timings=Timings(), notes={})


def test_a_document_added_later_is_selected_and_a_removed_one_is_not(tmp_path: Path) -> None:
    build_index(tmp_path / "kb", ["d0", "d1"])
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER, create=False) as engine:
        assert {hit.passage.document_id for hit in engine.search("pump", where="author = Ada").passages} == {"d0"}
        added = Document("d3", "Pump", "Ada repaired the pump in the tower.", metadata={"author": "Ada"})
        engine.index_documents([added])
        assert {hit.passage.document_id for hit in engine.search("pump", where="author = Ada").passages} == {"d0", "d3"}
        engine.remove(["d0"])
        assert {hit.passage.document_id for hit in engine.search("pump", where="author = Ada").passages} == {"d3"}
        engine.index_documents([replace(added, metadata={"author": "Bo"})])
        assert {hit.passage.document_id for hit in engine.search("pump", where="author = Bo").passages} == {"d1", "d3"}


def test_a_field_that_no_document_has_is_an_error_that_names_the_fields(engine: Engine) -> None:
    with pytest.raises(ConfigurationError, match=r"compares 'yaer'.*one of author, hyperedge.kind, hyperedge.role, id"):
        engine.search(QUESTIONS[0], where="yaer > 2020")


@settings(max_examples=count_examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefer=filters, retriever=st.sampled_from(RETRIEVERS), question=st.sampled_from(QUESTIONS))
def test_a_preference_hides_nothing_and_lets_no_selected_passage_fall(
    engine: Engine, prefer: Filter, retriever: str, question: str
) -> None:
    plain, preferring = (
        [hit.passage.id for hit in engine.search(question, 200, retriever=retriever, merge=False, prefer=one).passages]
        for one in (None, prefer)
    )
    assert sorted(plain) == sorted(preferring)
    selected = set(select_passages(prefer))
    for place, id in enumerate(plain):
        assert id not in selected or preferring.index(id) <= place


def test_a_passage_is_selected_with_those_of_its_facts_that_a_filter_selects(tmp_path: Path) -> None:
    led = Document("led", "", "Ada led Tarn.", arguments=(Argument("leader", "Ada"), Argument("town", "Tarn")))
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents([led, Document("prose", "", "Ada Lee met Bo Ray. Bo Ray left Ada Lee.")])

        def find(where: str) -> set[str]:
            return {hit.passage.document_id for hit in engine.search("Ada", where=where).passages}

        assert find("hyperedge.kind = tuple") == find("hyperedge.role in (leader, follower)") == {"led"}
        assert find("hyperedge.role != leader") == find("not hyperedge.kind = tuple") == {"prose"}
        assert find("hyperedge.role = town or hyperedge.kind = fact") == {"led"}
        assert find("hyperedge.role exists") == {"led", "prose"}  # the role "subject" of "Ada Lee"
        assert find("hyperedge.kind = fact") == set()
        engine.index_documents([replace(led, id="later"), replace(led, id="led", text="Ada left.", arguments=())])
        assert find("hyperedge.kind = tuple") == {"later"}


def test_an_excluded_document_connects_others_only_if_the_setting_says_so(tmp_path: Path) -> None:
    texts = {
        "bell": ("Bell of Tarn", "The bell of Tarn was cast by Ines Moreau."),
        "moreau": ("Ines Moreau", "Ines Moreau worked in the Corven Foundry."),
        "foundry": ("Corven Foundry", "The Corven Foundry lies in Aldby."),
        **{f"note {number}": (f"Note {number}", "The harbour of Isk freezes.") for number in range(30)},
    }
    documents = [Document(id, title, text, metadata={"group": id}) for id, (title, text) in texts.items()]
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(documents)

    def find(settings: Settings, where: str | None) -> dict[str, float]:
        with Engine.open(tmp_path / "kb", embedder=EMBEDDER, create=False, settings=settings) as engine:
            evidence = engine.search("Who cast the bell of Tarn?", 40, where=where, merge=False)
        return {hit.passage.document_id: hit.score for hit in evidence.passages}

    where = "group != moreau"
    apart, bridged, whole = find(Settings(), where), find(BRIDGING, where), find(Settings(), None)
    assert "moreau" in whole
    assert "moreau" not in apart.keys() | bridged.keys()
    assert apart.get("foundry", -math.inf) < bridged["foundry"]
    assert find(BRIDGING, f"{where} and recorded >= 2000") == find(Settings(), f"{where} and recorded >= 2000")


def test_a_variant_of_a_name_that_only_other_documents_use_joins_nothing(tmp_path: Path) -> None:
    texts = {
        "painter": "Wim Zander Tolk (born 1901) was a painter of Tarn.",
        "prize": "Wim Zander Tolk (died 1970) won the Aldby Prize.",
        "letter": "The letter from Tarn names Wim Tolk.",
    }
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents([Document(id, "", text, metadata={"kind": id}) for id, text in texts.items()])
        for retriever in RETRIEVERS:
            evidence = engine.search("Which painter won the Aldby Prize?", retriever=retriever, where="kind != letter")
            assert {hit.passage.document_id for hit in evidence.passages} == {"painter", "prize"}
            assert "Wim Tolk" not in str(evidence)
