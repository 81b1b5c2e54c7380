"""Tests of documents and facts that hold for a time, from the file to the search."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import SettingError
from polyad.indexing.facts.settings import FactSettings
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Document, Evidence, Timings
from polyad.snapshot import provider
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from tests.examples import count_examples

NOW = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as opened:
        yield opened


def test_a_document_with_an_unreadable_date_fails_alone(engine: Engine) -> None:
    documents = [
        Document("good", "Tarn", "Ines Moreau was mayor of Tarn.", metadata={"valid_from": 2020, "valid_to": "2023"}),
        Document("bad", "Orla", "Jonas Stone was mayor of Orla.", metadata={"valid_from": "spring"}),
        Document("empty", "Orla", "Jonas Stone was mayor of Orla.", metadata={"valid_from": "2021", "valid_to": 2020}),
    ]
    report = engine.index_documents(documents)
    assert report.counts.added == 1
    reasons = {failure.id: failure.reason for failure in report.failures}
    assert reasons.keys() == {"bad", "empty"}
    assert "valid_from" in reasons["bad"]
    assert "'spring'" in reasons["bad"]
    assert "valid_to" in reasons["empty"]


def test_columns_of_a_tuple_state_when_it_holds(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "mayors.csv"
    file.write_text("mayor,town,valid_from,valid_to\nInes Moreau,Tarn,2020,2023-06\nJonas Stone,Orla,,\n")
    line = {"relation": "mayor", "arguments": {"mayor": "Ada King", "town": "Bree"}, "valid_from": "2001-05"}
    (tmp_path / "more.jsonl").write_text(json.dumps(line))
    assert engine.index([file, tmp_path / "more.jsonl"], method="tuples").counts.added == 3
    edges = engine.catalogue.hyperedges()
    assert {tuple(one.role for one in edge.arguments) for edge in edges} == {("mayor", "town")}
    dates = {
        edge.arguments[0].value: {key: value for key, value in origin.metadata.items() if key.startswith("valid")}
        for edge in edges
        for origin in [engine.catalogue.origin(edge.passage_id.rpartition("#")[0])]
    }
    assert dates == {
        "Ines Moreau": {"valid_from": "2020", "valid_to": "2023-06"},
        "Jonas Stone": {},
        "Ada King": {"valid_from": "2001-05"},
    }


def test_a_language_model_may_state_when_a_fact_holds(tmp_path: Path) -> None:
    facts = [
        {"text": "Ines Moreau was mayor.", "entities": ["Ines Moreau"], "valid_from": "2020", "valid_to": "2023-06"},
        {"text": "Jonas Stone was mayor.", "entities": ["Jonas Stone"], "validFrom": "last spring"},
    ]
    model = ScriptedLanguageModel([json.dumps({"facts": facts, "entities": []})])
    stages = Settings(facts=FactSettings(dates=True))
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), language_model=model, settings=stages) as engine:
        document = Document("d", "Tarn", "Ines Moreau was mayor of Tarn from 2020. Jonas Stone was mayor.")
        report = engine.index_documents([document], method="facts")
        first, second = engine.catalogue.hyperedges()
    assert '"valid_from"' in model.prompts[0].system
    assert '"valid_from"' in json.dumps(model.prompts[0].json_schema)
    assert (first.valid_from, first.valid_to) == ("2020-01-01T00:00:00Z", "2023-07-01T00:00:00Z")
    assert (second.valid_from, second.valid_to) == ("", "")
    assert report.counts.notes["dates of facts that cannot be read left out"] == 1


def test_the_index_records_when_it_learnt_each_version_of_a_document(engine: Engine) -> None:
    later = datetime(2025, 1, 1, tzinfo=UTC)
    remaining, changed = Document("kept", "", "Ines Moreau came."), Document("changed", "", "Jonas Stone came.")
    engine.index_documents([remaining, changed], now=NOW)
    engine.index_documents([remaining, Document("changed", "", "Jonas Stone left.")], now=later)
    recorded = {id: engine.catalogue.origin(id).recorded for id in ("kept", "changed")}
    assert recorded == {"kept": "2024-05-17T12:30:00+00:00", "changed": "2025-01-01T00:00:00+00:00"}
    engine.corrections.retract(entity="Ines Moreau", reason="wrong", now=later)
    assert engine.catalogue.origin("kept").recorded == "2024-05-17T12:30:00+00:00", "a correction is no new version"


def test_changed_dates_need_no_new_vectors(engine: Engine) -> None:
    document = Document("d", "Tarn", "Ines Moreau was mayor of Tarn.", metadata={"valid_from": "2020"})
    engine.index_documents([document])
    changed = Document(document.id, document.title, document.text, metadata={"valid_from": "2020", "valid_to": "2023"})
    report = engine.index_documents([changed])
    assert (report.counts.updated, report.embedded_texts) == (1, 0)
    assert engine.catalogue.origin("d").metadata["valid_to"] == "2023"


# Searching


EMBEDDER = HashingEmbedder(32)
NAMES = ("Ada Lee", "Bo Ray", "Ines Moreau", "Jonas Stone", "Corven Tower", "Aldby")
QUESTIONS = ("Who led Ada Lee in Tarn?", "Where did Bo Ray meet Ines Moreau?", "the tower at Aldby")
RETRIEVERS = ("default", "dense", "bm25", "hypersu", "hypergraphrag")
LAST_DAY = 12
spans = st.tuples(st.integers(0, LAST_DAY), st.integers(1, LAST_DAY + 1)).filter(lambda span: span[0] <= span[1])
"""First and last day in May 2024; day 0 and the day after the last are not stated."""


def make_fact(number: int, span: tuple[int, int]) -> Document:
    leader, member = (NAMES[(number * step + number // 5) % len(NAMES)] for step in (1, 2))
    first, last = span
    metadata = {"valid_from": f"2024-05-{first:02}"} if first else {}
    metadata |= {"valid_to": f"2024-05-{last:02}"} if last <= LAST_DAY else {}
    arguments = (Argument("leader", leader), Argument("member", member), Argument("town", f"Tarn {number}"))
    text = f"{leader} led {member} in Tarn {number}."
    return Document(f"t{number:02}", "", text, arguments=arguments, relation="led", metadata=metadata)


def noon(day: int) -> datetime:
    return datetime(2024, 5, day, 12, tzinfo=UTC)


def open_index(folder: Path, documents: Sequence[Document]) -> Engine:
    engine = Engine.open(folder, embedder=EMBEDDER)
    engine.index_documents(documents)
    return engine


def list_ids(evidence: Evidence) -> list[str]:
    return [scored.passage.document_id for scored in evidence.passages]


@settings(max_examples=count_examples(15), deadline=None)
@given(all_spans=st.lists(spans, min_size=1, max_size=30), day=st.integers(1, LAST_DAY))
@example(all_spans=[(0, 13), (0, 13), (2, 13), (0, 13)], day=1)
def test_a_search_as_of_a_day_equals_one_in_an_index_of_what_held_then(
    tmp_path_factory: pytest.TempPathFactory, all_spans: list[tuple[int, int]], day: int
) -> None:
    folder = tmp_path_factory.mktemp("dated")
    facts = [make_fact(number, span) for number, span in enumerate(all_spans)]
    held = [fact for fact, (first, last) in zip(facts, all_spans, strict=True) if first <= day <= last]
    with open_index(folder / "all", facts) as whole, open_index(folder / "then", held) as alone:
        for retriever in RETRIEVERS:
            for question in QUESTIONS:
                evidence = whole.search(question, 5, retriever=retriever, as_of=noon(day))
                expected = alone.search(question, 5, retriever=retriever, as_of=noon(day))
                assert replace(evidence, timings=Timings(), notes={}) == replace(expected, timings=Timings(), notes={})


def test_an_expired_document_is_not_searched_unless_its_time_is_named(engine: Engine) -> None:
    engine.index_documents([make_fact(1, (1, 5)), make_fact(2, (6, LAST_DAY + 1))])
    assert list_ids(engine.search("Who led in Tarn?")) == ["t02"], "the current time is later"
    for _ in range(2):  # the second time from the cache
        assert list_ids(engine.search("Who led in Tarn?", as_of="2024-05-05T23:59:59Z")) == ["t01"]
        assert list_ids(engine.search("Who led in Tarn?", as_of="2024-05-06")) == ["t02"]
        assert list_ids(engine.search("Who led in Tarn?", as_of="2024")) == [], "the first moment of the year"
        assert list_ids(engine.search("Who led in Tarn?", as_of="2024-05", where='id = "t01"')) == ["t01"]
    assert engine.search_many(["Who led?"], as_of=noon(3))[0].passages[0].passage.document_id == "t01"
    assert list_ids(engine.ask("Who led in Tarn?", as_of=noon(3)).evidence) == ["t01"]
    engine.index_documents([make_fact(3, (2, 4))])
    assert set(list_ids(engine.search("Who led in Tarn?", as_of=noon(3)))) == {"t01", "t03"}


def test_a_fact_that_does_not_hold_is_hidden_while_its_passage_is_found(tmp_path: Path) -> None:
    facts = [
        {"text": "Ines Moreau was mayor of Tarn.", "entities": ["Ines Moreau", "Tarn"], "valid_to": "2023"},
        {"text": "Jonas Stone is mayor of Tarn.", "entities": ["Jonas Stone", "Tarn"], "valid_from": "2024"},
    ]
    model = ScriptedLanguageModel([json.dumps({"facts": facts, "entities": []})])
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER, language_model=model) as engine:
        text = "Ines Moreau was mayor of Tarn until 2023. Jonas Stone is mayor of Tarn."
        engine.index_documents([Document("d", "", text)], method="facts")
        for as_of, expected in (("2022", "Ines Moreau was"), ("2025", "Jonas Stone is")):
            evidence = engine.search("Who is mayor of Tarn?", as_of=as_of)
            assert [scored.hyperedge.text for scored in evidence.hyperedges] == [f"{expected} mayor of Tarn."]
            assert list_ids(evidence) == ["d"]


def test_a_search_finds_only_what_the_index_knew_at_a_time(engine: Engine) -> None:
    engine.index_documents([make_fact(1, (0, LAST_DAY + 1))], now=noon(3))
    engine.index_documents([make_fact(2, (0, LAST_DAY + 1))], now=noon(5))
    question = "Who led in Tarn?"
    assert set(list_ids(engine.search(question))) == {"t01", "t02"}
    assert list_ids(engine.search(question, known_at="2024-05-04")) == ["t01"]
    assert list_ids(engine.search(question, known_at="2024-05-03")) == ["t01"], "learnt on that day"
    assert list_ids(engine.search(question, known_at="2024-05-03T11:59:59Z")) == []
    assert list_ids(engine.search(question, known_at=noon(3))) == ["t01"]
    assert list_ids(engine.search(question, known_at=noon(5), where='id = "t02"')) == ["t02"]


def test_an_unreadable_time_of_a_search_is_named(engine: Engine) -> None:
    with pytest.raises(SettingError, match="as_of is 'soon'"):
        engine.search("Who led?", as_of="soon")
    with pytest.raises(SettingError, match="known_at is '2024-13'"):
        engine.search("Who led?", known_at="2024-13")


def test_an_index_without_dates_is_searched_as_it_is(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.index_documents([make_fact(number, (0, LAST_DAY + 1)) for number in range(5)])
    monkeypatch.setattr("polyad.snapshot.parts.restrict", None)
    assert len(engine.search("Who led in Tarn?", as_of=noon(1)).passages) == 5
    snapshot = engine.snapshot()
    assert isinstance(snapshot, MappedSnapshot)
    assert not snapshot.is_dated
    assert len(snapshot.passages.intervals.bounds) == len(snapshot.hyperedges.intervals.bounds) == 0


def test_saved_intervals_are_read_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "MIN_SAVED", 1)
    with open_index(
        tmp_path / "kb", [make_fact(number, (number % 5, 6 + number % 7)) for number in range(20)]
    ) as first:
        expected = {day: list_ids(first.search(QUESTIONS[0], 20, as_of=noon(day))) for day in range(1, LAST_DAY)}
    monkeypatch.setattr(MappedSnapshot, "empty", None)  # so that nothing can be built from the store
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER, create=False) as second:
        results = {day: list_ids(second.search(QUESTIONS[0], 20, as_of=noon(day))) for day in range(1, LAST_DAY)}
    assert results == expected


def test_dates_and_recorded_times_survive_an_export(engine: Engine, tmp_path: Path) -> None:
    engine.index_documents([make_fact(1, (1, 5)), make_fact(2, (0, LAST_DAY + 1))], now=NOW)
    engine.export(tmp_path / "kb.jsonl")
    with Engine.open_like(tmp_path / "kb.jsonl", tmp_path / "copy", embedder=HashingEmbedder(16)) as copy:
        copy.import_file(tmp_path / "kb.jsonl")
        assert list_ids(copy.search("Who led in Tarn?")) == ["t02"]
        assert set(list_ids(copy.search("Who led in Tarn?", as_of=noon(2)))) == {"t01", "t02"}
        assert copy.catalogue.origin("t01").recorded == "2024-05-17T12:30:00+00:00"
