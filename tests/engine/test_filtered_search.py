"""A search with a filter reads and shows nothing of other documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.search import SELECTED_PASSAGES
from polyad.errors import ConfigurationError
from polyad.model import (
    SUBJECT,
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
from polyad.text.filters import Filter, format_filter, is_selected, parse_filter

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
    """A document of two passages; the descriptions of its entities name it."""
    id = f"d{number}"
    metadata: dict[str, MetadataValue] = {"year": 2018 + number % 7, "author": AUTHORS[number % 3]}
    if number % 4 == 0:
        metadata["tags"] = ("pump", "valve")
    passages = []
    for place in range(2):
        members = [NAMES[(number + place + step) % len(NAMES)] for step in range(1 + number % 3)]
        text = f"Note {number}: {' met '.join(members)} and repaired the pump."
        passage = Passage(f"{id}#{place:04}", id, members[0].title(), text, 0, len(text))
        edge = Hyperedge(f"{passage.id}/000", HyperedgeKind.SEMANTIC_UNIT, text, passage.id, 0, len(text))
        incidences = tuple(
            Incidence(
                key, edge.id, key.title(), "" if key != members[0] else SUBJECT, type=id, description=f"said by {id}"
            )
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


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("filtered") / "kb"
    build_index(folder, list(DOCUMENTS))
    with Engine.open(folder, embedder=EMBEDDER, create=False) as opened:
        yield opened


def select_ids(where: Filter) -> list[str]:
    return [id for id, stored in DOCUMENTS.items() if is_selected(where, {**stored.document.metadata, "id": id})]


def list_documents_shown(evidence: Evidence) -> set[str]:
    """Return the ids of all documents that anything in the evidence comes from."""
    entities = [scored.entity for scored in evidence.entities]
    shown = {scored.passage.document_id for scored in evidence.passages}
    shown |= {scored.hyperedge.passage_id.partition("#")[0] for scored in evidence.hyperedges}
    for entity in [*entities, *(member for scored in evidence.hyperedges for member in scored.members)]:
        shown |= {line.removeprefix("said by ") for line in entity.description.splitlines()}
        shown |= {entity.type} - {""}
    return shown


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=filters, question=st.sampled_from(QUESTIONS), retriever=st.sampled_from(RETRIEVERS), k=st.integers(1, 60))
def test_nothing_of_other_documents_is_shown(
    engine: Engine, where: Filter, question: str, retriever: str, k: int
) -> None:
    selected = select_ids(where)
    evidence = engine.search(question, k, retriever=retriever, where=where, merge=False)
    assert list_documents_shown(evidence) <= set(selected)
    assert evidence.notes[SELECTED_PASSAGES] == 2 * len(selected)
    if retriever == "dense":
        assert len(evidence.passages) == min(k, 2 * len(selected))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=filters)
def test_evidence_is_that_of_an_index_of_the_selected_documents(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, where: Filter
) -> None:
    folder = tmp_path_factory.mktemp("alone") / "kb"
    build_index(folder, select_ids(where))
    with Engine.open(folder, embedder=EMBEDDER, create=False) as alone:
        for retriever in ("dense", "bm25"):
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
    with pytest.raises(ConfigurationError, match=r"compares 'yaer'.*one of author, id, tags, title, year"):
        engine.search(QUESTIONS[0], where="yaer > 2020")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefer=filters, retriever=st.sampled_from(RETRIEVERS), question=st.sampled_from(QUESTIONS))
def test_a_preference_hides_nothing_and_lets_no_selected_passage_fall(
    engine: Engine, prefer: Filter, retriever: str, question: str
) -> None:
    plain, preferring = (
        [hit.passage.id for hit in engine.search(question, 200, retriever=retriever, merge=False, prefer=one).passages]
        for one in (None, prefer)
    )
    assert sorted(plain) == sorted(preferring)
    selected = set(select_ids(prefer))
    for place, id in enumerate(plain):
        assert id.partition("#")[0] not in selected or preferring.index(id) <= place


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
