"""Tests of documents and facts that hold for a time, from the file to the search."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document

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
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), language_model=model) as engine:
        document = Document("d", "Tarn", "Ines Moreau was mayor of Tarn from 2020. Jonas Stone was mayor.")
        report = engine.index_documents([document], method="facts")
        first, second = engine.catalogue.hyperedges()
    assert (first.valid_from, first.valid_to) == ("2020-01-01T00:00:00Z", "2023-07-01T00:00:00Z")
    assert (second.valid_from, second.valid_to) == ("", "")
    assert report.counts.notes["dates of facts that cannot be read left out"] == 1


def test_the_index_records_when_it_learnt_each_version_of_a_document(engine: Engine) -> None:
    later = datetime(2025, 1, 1, tzinfo=UTC)
    kept, changed = Document("kept", "", "Ines Moreau came."), Document("changed", "", "Jonas Stone came.")
    engine.index_documents([kept, changed], now=NOW)
    engine.index_documents([kept, Document("changed", "", "Jonas Stone left.")], now=later)
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
