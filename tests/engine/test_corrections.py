"""Corrections by users: what they change, what survives, and that they can be undone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from polyad import Document, Engine
from polyad.answering.prompt import build_context, build_instructions
from polyad.config import AnswerSettings
from polyad.curation.corrections import load_effects
from polyad.curation.curator import Curator, HistoryRecorder
from polyad.curation.statements import STATEMENT_KINDS, Statements, normalize_fact
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine.corrections import Corrections
from polyad.errors import ConfigurationError, NotFoundError
from polyad.model import Argument, Evidence, IndexedDocument, Timings
from polyad.protocols.lookups import get_all
from polyad.protocols.store import ORIGINALS, Store, Values
from polyad.stores.memory import MemoryStore
from polyad.stores.sqlite import SqliteStore
from polyad.text.json_types import format_value
from polyad.text.words import count_tokens
from tests.examples import count_examples
from tests.postgres_server import open_workspace

EMBEDDER = HashingEmbedder(32)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BELL = "Ines Moreau cast the bell of Tarn in 1702."
TOWER = "The bell hangs in Corven Tower."
DOCUMENTS = (
    Document("bell", "Tarn", f"{BELL} {TOWER}", metadata={"year": 2020}),
    Document(
        "tower",
        "Corven Tower",
        "Corven Tower was built by Bo Ray. It stands in Aldby in the USA.",
        metadata={"year": 2021},
    ),
    Document("town", "Aldby", "Aldby is a town of the United States. Ada Lee was born there.", metadata={"year": 2021}),
    Document(
        "award",
        "",
        "awarded: winner Ada Lee, country USA",
        arguments=(Argument("winner", "Ada Lee"), Argument("country", "USA"), Argument("year", "1990", "number")),
        relation="awarded",
    ),
)
NUMBERS = count()
QUESTIONS = ("Who cast the bell of Tarn?", "What stands in the USA?", "Where was Ada Lee born?")
RETRIEVERS = ("default", "dense", "bm25", "hypersu")


def open_engine(place: str | Path, store: Callable[..., Store] = SqliteStore.open) -> Engine:
    return Engine.open(place, store=store, embedder=EMBEDDER)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "kb") as opened:
        opened.index_documents(DOCUMENTS)
        yield opened


def read_everything(store: Store) -> dict[str, Any]:
    """All documents as they are stored, and what corrections changed in them."""
    with store.read_transaction() as transaction:
        documents = {
            id: format_value(replace(item, recorded="")) for id, item in transaction.get(IndexedDocument).items()
        }
    effects = {id: (each.withdrawals, each.retractions) for id, each in load_effects(store).items()}
    return {"documents": documents, "originals": store.get_values(ORIGINALS), "effects": effects}


def list_texts(engine: Engine) -> list[str]:
    return sorted(edge.text for edge in engine.catalogue.hyperedges())


def find_id(engine: Engine, start: str) -> str:
    return next(edge.id for edge in engine.catalogue.hyperedges() if edge.text.startswith(start))


def test_a_retracted_fact_is_nowhere_and_comes_back(engine: Engine) -> None:
    id, before = find_id(engine, "Corven Tower was"), engine.catalogue.statistics()
    trial = engine.corrections.retract(hyperedge=id, reason="it was Ada", now=NOW, is_trial=True)
    assert engine.catalogue.statistics() == before
    report = engine.corrections.retract(hyperedge=id, reason="it was Ada", now=NOW)
    assert trial == report
    assert [(one.hyperedge_id, one.reason, one.entities) for one in report.withdrawn] == [(id, "it was Ada", ())]
    assert report.passages == ("tower#0000",)
    assert id not in {edge.id for edge in engine.catalogue.hyperedges()}
    with pytest.raises(NotFoundError):
        engine.catalogue.entity("Bo Ray")
    evidence = engine.search("Who built Corven Tower?", retriever="hypersu")
    assert id not in {scored.hyperedge.id for scored in evidence.hyperedges}
    assert "bo ray" not in {scored.entity.key for scored in evidence.entities}
    restored = engine.corrections.restore(hyperedge=id)
    assert (restored.restored, restored.withdrawn) == (report.withdrawn, ())
    assert replace(engine.catalogue.statistics(), disk_bytes=0, files={}) == replace(before, disk_bytes=0, files={})


def test_a_withdrawn_entity_is_marked_where_the_prompt_states_the_fact(engine: Engine) -> None:
    id = find_id(engine, "Ines Moreau cast")
    report = engine.corrections.retract(hyperedge=id, entity="Ines Moreau", reason="it was Ada", now=NOW)
    assert [one.entities for one in report.withdrawn] == [("Ines Moreau",)]
    evidence = engine.search("Who cast the bell of Tarn?", retriever="hypersu")
    (scored,) = [scored for scored in evidence.hyperedges if scored.hyperedge.id == id]
    assert [(fact.entities, fact.reason) for fact in scored.retracted] == [(("Ines Moreau",), "it was Ada")]
    settings = AnswerSettings(hyperedge_share=0.7, entity_share=0.3)
    context = build_context(evidence, settings, count_tokens)
    (line,) = [line for line in context.text.splitlines() if "cast the bell" in line]
    assert line.endswith("(retracted: Ines Moreau (it was Ada))")
    assert "Ines Moreau" not in line.partition("(members: ")[2].partition("(retracted")[0]
    assert "`retracted`" in build_instructions(settings, context)
    engine.corrections.restore(hyperedge=id, entity="Ines Moreau")
    context = build_context(engine.search("Who cast the bell of Tarn?", retriever="hypersu"), settings, count_tokens)
    assert "retracted" not in context.text
    assert "retracted" not in build_instructions(settings, context)


def test_a_retraction_survives_indexing_the_document_again(engine: Engine) -> None:
    engine.corrections.retract(hyperedge=find_id(engine, "Corven Tower was"), reason="wrong")
    moved = replace(DOCUMENTS[1], text=f"Herons live on the Isk.\n\n\n\n{DOCUMENTS[1].text}")
    engine.index_documents([moved])
    assert not any("Bo Ray" in edge.text and edge.text.startswith("Corven") for edge in engine.catalogue.hyperedges())
    engine.remove("tower")
    engine.index_documents([DOCUMENTS[1]])
    assert not any("Bo Ray" in text for text in list_texts(engine))


def test_a_retraction_by_another_process_while_a_document_is_stored_applies_at_once(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, attempts = engine._store.put, count()

    def put_after_retraction(*documents: IndexedDocument, **keywords: Any) -> None:
        if next(attempts) == 0:
            with open_engine(tmp_path / "kb") as other:
                other.corrections.retract(entity="Ada Lee", reason="privacy")
        put(*documents, **keywords)
        raise KeyboardInterrupt  # the process ends before another look at the corrections

    monkeypatch.setattr(engine._store, "put", put_after_retraction)
    with pytest.raises(KeyboardInterrupt):
        engine.index_documents([replace(DOCUMENTS[1], text=f"{DOCUMENTS[1].text} The mayor of Aldby is Ada Lee.")])
    with open_engine(tmp_path / "kb") as other:
        assert "mayor" in other.catalogue.document("tower").text
        with pytest.raises(NotFoundError):
            other.catalogue.entity("Ada Lee")


def test_another_extraction_of_the_same_sentence_stays_retracted(engine: Engine) -> None:
    engine.corrections.retract(hyperedge=find_id(engine, "Ines Moreau"), reason="wrong")
    [stored] = get_all(engine._store, IndexedDocument, ["bell"])
    with open_engine("memory://built", MemoryStore.open) as fresh:
        fresh.index_documents([DOCUMENTS[0]])
        [built] = get_all(fresh._store, IndexedDocument, ["bell"])
    [passage] = built.passages
    reworded = tuple(
        replace(fact, hyperedge=replace(fact.hyperedge, text=f"It is said that {fact.hyperedge.text}"))
        for fact in passage.hyperedges
    )
    recorder = HistoryRecorder("index", NOW)
    Curator(engine._store).put(replace(built, passages=(replace(passage, hyperedges=reworded),)), recorder=recorder)
    [again] = get_all(engine._store, IndexedDocument, ["bell"])
    assert [len(item.hyperedges) for item in again.passages] == [len(item.hyperedges) for item in stored.passages]


def test_an_entity_is_withdrawn_from_one_fact_or_from_all(engine: Engine) -> None:
    id = find_id(engine, "Corven Tower was")
    report = engine.corrections.retract(hyperedge=id, entity="USA", reason="another country")
    assert [one.entities for one in report.withdrawn] == [("USA",)]
    assert {part.entity_key for part in engine.catalogue.hyperedge(id)[1]} == {"corven tower", "bo ray", "aldby"}
    report = engine.corrections.retract(entity="Ada Lee", reason="privacy")
    assert {one.document_id for one in report.withdrawn} == {"town", "award"}
    with pytest.raises(NotFoundError):
        engine.catalogue.entity("Ada Lee")
    [award] = [edge for edge in engine.catalogue.hyperedges() if edge.relation]
    assert [argument.role for argument in award.arguments] == ["country", "year"]
    engine.corrections.restore(entity="ada lee")
    assert engine.catalogue.entity("Ada Lee")[0].name == "Ada Lee"
    engine.corrections.restore(hyperedge=id, entity="USA")
    assert "usa" in {part.entity_key for part in engine.catalogue.hyperedge(id)[1]}


def test_a_role_limits_the_retraction_of_an_entity(engine: Engine) -> None:
    report = engine.corrections.retract(entity="USA", role="country", reason="another country")
    assert {one.document_id for one in report.withdrawn} == {"award"}
    assert engine.catalogue.entity("USA")[1] == [find_id(engine, "Corven Tower was")]


def test_a_filter_withdraws_the_facts_of_documents_now_and_later(engine: Engine) -> None:
    report = engine.corrections.retract(where="year >= 2021", reason="outdated")
    assert {one.document_id for one in report.withdrawn} == {"tower", "town"}
    engine.index_documents([Document("new", "", "Ada Lee met Bo Ray.", metadata={"year": 2022})])
    assert not any("met" in text for text in list_texts(engine))
    assert len(engine.corrections.restore(where="year>=2021").restored) == len(report.withdrawn) + 1
    assert any("met" in text for text in list_texts(engine))


def test_an_alias_joins_the_facts_of_two_names_and_links_questions(engine: Engine) -> None:
    separate = {name: engine.catalogue.entity(name)[1] for name in ("USA", "United States")}
    report = engine.corrections.add_aliases([("USA", "United States")], now=NOW)
    assert set(report.documents) == {"tower", "award"}
    assert engine.catalogue.entity("United States")[1] == sorted(id for ids in separate.values() for id in ids)
    evidence = engine.search("What stands in the U.S.A.?", retriever="hypersu")
    assert "united states" in {scored.entity.key for scored in evidence.entities}
    engine.corrections.remove_alias("usa")
    assert {name: engine.catalogue.entity(name)[1] for name in separate} == separate


def test_aliases_close_no_cycle_and_stand_for_one_entity(engine: Engine) -> None:
    engine.corrections.add_aliases([("USA", "United States")])
    kind = STATEMENT_KINDS["aliases"]
    with pytest.raises(ConfigurationError):
        engine.corrections._curator.change(
            lambda now: now.add([(kind, "united states", replace(now.aliases["usa"], target="usa"))]),
            lambda _: (),
            HistoryRecorder("alias", NOW),
        )
    with pytest.raises(ConfigurationError, match="is an alias of 'United States' already; remove it first"):
        engine.corrections.add_aliases([("USA", "Aldby")])
    with pytest.raises(ConfigurationError, match="both have the key 'aldby'"):
        engine.corrections.add_aliases([("the Aldby", "Aldby")])
    with pytest.raises(NotFoundError):
        engine.corrections.remove_alias("Aldby")


def test_to_enable_no_document_changes_nothing(engine: Engine) -> None:
    assert engine.corrections.enable([]).documents == ()


def test_a_disabled_document_is_hidden_and_costs_nothing_to_enable(engine: Engine) -> None:
    before, texts = read_everything(engine._store), list_texts(engine)
    engine.corrections.disable(["tower", "award"], "under review")
    assert {hit.passage.document_id for hit in engine.search(QUESTIONS[1]).passages} <= {"bell", "town"}
    assert engine.catalogue.statistics().hyperedges < len(texts)
    assert engine.index_documents(DOCUMENTS).counts.unchanged == len(DOCUMENTS)
    embedded = EMBEDDER
    engine.corrections.enable(["tower", "award"])
    assert read_everything(engine._store) == before
    assert embedded is EMBEDDER
    with pytest.raises(NotFoundError):
        engine.corrections.enable("tower")


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        ({}, "expected a hyperedge, an entity or a filter"),
        ({"entity": "USA", "where": "year = 2020"}, "expected a hyperedge, an entity or a filter"),
        ({"hyperedge": "bell#0000/000", "role": "country"}, "the role is 'country' without an entity"),
    ],
)
def test_selectors_that_do_not_fit_are_explained(engine: Engine, selectors: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        engine.corrections.retract(**selectors, reason="wrong")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=message):
        engine.corrections.restore(**selectors)  # type: ignore[arg-type]


def test_correcting_missing_records_is_an_error(engine: Engine) -> None:
    corrections = engine.corrections
    attempts: list[Callable[[], object]] = [
        lambda: corrections.retract(hyperedge="bell#0000/999", reason="wrong"),
        lambda: corrections.retract(entity="Nobody", reason="wrong"),
        lambda: corrections.retract(hyperedge=find_id(engine, "Ines"), entity="USA", reason="wrong"),
        lambda: corrections.retract(where="year = 1900", reason="wrong"),
        lambda: corrections.restore(entity="USA"),
        lambda: corrections.restore(hyperedge="bell#0000/000"),
        lambda: corrections.disable("nothing"),
        lambda: corrections.add_aliases([("X Y", "Nobody")]),
    ]
    before = read_everything(engine._store)
    for attempt in attempts:
        with pytest.raises(NotFoundError):
            attempt()
    with pytest.raises(ConfigurationError):
        corrections.retract(entity="USA", reason=" ")
    assert read_everything(engine._store) == before
    assert engine.catalogue.statements() == Statements()


def test_facts_are_compared_by_their_words() -> None:
    assert normalize_fact("The  Bell (1702), cast.") == normalize_fact("the bell: 1702 CAST")


def compare(evidence: Evidence) -> Evidence:
    return replace(evidence, timings=Timings())


class CorrectedIndex(RuleBasedStateMachine):
    """After any sequence of changes the index equals a fresh one of the same documents and statements."""

    SENTENCES = (
        BELL,
        TOWER,
        "Ada Lee met Bo Ray in the USA.",
        "Bo Ray left the United States.",
        "Otters live in Aldby.",
    )
    NAMES = ("USA", "United States", "Ada Lee", "Bo Ray", "Corven Tower", "Aldby", "Tarn")
    IDS = ("one", "two", "three")

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, Document] = {}
        self.name = f"memory://corrected-{next(NUMBERS)}"
        self.engine = self.open_engine(self.name)

    def open_engine(self, place: str) -> Engine:
        return open_engine(place, MemoryStore.open)

    def teardown(self) -> None:
        self.engine.close()

    @property
    def corrections(self) -> Corrections:
        return self.engine.corrections

    def attempt(self, change: Callable[[], object]) -> None:
        try:
            change()
        except (NotFoundError, ConfigurationError):
            return

    @rule(id=st.sampled_from(IDS), picked=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3, unique=True))
    def put(self, id: str, picked: list[str]) -> None:
        text = "\n\n".join(picked)
        self.documents[id] = Document(id, "", text, metadata={"year": 2019 + len(picked)})
        self.engine.index_documents([self.documents[id]])

    @precondition(lambda self: self.documents)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.documents)))
        self.engine.remove(id)
        del self.documents[id]

    @precondition(lambda self: self.documents)
    @rule(data=st.data(), with_entity=st.booleans())
    def retract_fact(self, data: st.DataObject, with_entity: bool) -> None:
        if edges := self.engine.catalogue.hyperedges():
            id = data.draw(st.sampled_from([edge.id for edge in edges]))
            members = [part.name for part in self.engine.catalogue.hyperedge(id)[1]]
            entity = data.draw(st.sampled_from(members)) if with_entity and members else ""
            self.attempt(lambda: self.corrections.retract(hyperedge=id, entity=entity, reason="wrong", now=NOW))

    @rule(name=st.sampled_from(NAMES))
    def retract_entity(self, name: str) -> None:
        self.attempt(lambda: self.corrections.retract(entity=name, reason="privacy", now=NOW))

    @rule(year=st.sampled_from((2020, 2021)))
    def retract_filter(self, year: int) -> None:
        self.attempt(lambda: self.corrections.retract(where=f"year = {year}", reason="outdated", now=NOW))

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        if not (retractions := sorted(self.engine.catalogue.statements().retractions.items())):
            return
        retraction = data.draw(st.sampled_from(retractions))[1]
        if not retraction.document_id:
            where = retraction.where or None
            self.attempt(lambda: self.corrections.restore(entity=retraction.entity, where=where))

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True))
    def add_alias(self, names: list[str]) -> None:
        self.attempt(lambda: self.corrections.add_aliases([(names[0], names[1])], now=NOW))

    @rule(name=st.sampled_from(NAMES))
    def remove_alias(self, name: str) -> None:
        self.attempt(lambda: self.corrections.remove_alias(name))

    @rule(id=st.sampled_from(IDS), is_disabled=st.booleans())
    def disable_or_enable(self, id: str, is_disabled: bool) -> None:
        self.attempt(lambda: self.corrections.disable(id) if is_disabled else self.corrections.enable(id))

    @invariant()
    def equals_a_fresh_index(self) -> None:
        statements = self.engine.catalogue.statements()
        with self.open_engine(f"{self.name}-fresh") as fresh:
            fresh.remove(list(fresh.catalogue.sources()))
            for namespace in ("retractions", "aliases", "disabled"):
                fresh._store.put_values(namespace, None)
            fresh._store.put(values=statements.format())
            fresh.index_documents(self.documents.values())
            assert read_everything(self.engine._store) == read_everything(fresh._store)
            assert self.engine.catalogue.entities() == fresh.catalogue.entities()
            for retriever in RETRIEVERS:
                for question in QUESTIONS:
                    ours, others = (one.search(question, retriever=retriever) for one in (self.engine, fresh))
                    assert compare(ours) == compare(others)


CorrectedIndex.TestCase.settings = settings(max_examples=count_examples(10), stateful_step_count=12, deadline=None)
TestCorrectedIndex = CorrectedIndex.TestCase


class CorrectedSharedIndex(CorrectedIndex):
    """The same in PostgreSQL."""

    def open_engine(self, place: str) -> Engine:
        return open_engine(f"{place}-{os.getpid()}", open_workspace)


TestCorrectedSharedIndex = pytest.mark.slow(CorrectedSharedIndex.TestCase)
TestCorrectedSharedIndex.settings = settings(max_examples=count_examples(3), stateful_step_count=10, deadline=None)


def test_writes_read_and_parse_corrections_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, parsed = Statements.parse, list[Values]()

    def record(values: Values) -> Statements:
        parsed.append(values)
        return parse(values)

    monkeypatch.setattr(Statements, "parse", record)
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(DOCUMENTS)
        engine.corrections.add_aliases([("Ines", "Ines Moreau")], NOW)
        parsed.clear()
        for number in range(5):
            engine.index_documents([Document(f"new{number}", "", f"Ines rang bell {number}.")])
        assert len(parsed) <= 1
        with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as other:  # as another process would
            other.corrections.disable("new0", now=NOW)
            other.corrections.retract(entity="Corven Tower", reason="wrong", now=NOW)
            other.corrections.add_aliases([("Ray", "Bo Ray")], NOW)
        engine.index_documents([Document("new0", "", "Ray saw Corven Tower."), Document("last", "", "Ray met Ines.")])
        assert engine.catalogue.passages_of_document("new0") == []
        for name in ("Bo Ray", "Ines Moreau"):
            facts = engine.catalogue.neighbourhood(name, 50).hyperedges
            assert "last#0000" in {edge.passage_id for edge, _ in facts}
