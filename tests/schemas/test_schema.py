"""The shapes that programs rely on: their schema is committed, and what is printed fits it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from polyad.engine import Engine
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Document
from polyad.schemas import SCHEMA, versioned
from polyad.schemas.catalogue import Kind, bind_names, facts_json, look_up, statistics_json
from polyad.schemas.evidence import answer_json, evidence_json
from polyad.schemas.reports import index_json
from tests.conftest import SIX_DOCUMENTS
from tests.docs.output_schema import COMMANDS, format_schema

ROOT = Path(__file__).parents[2]
QUESTION = "Where was the maker of the Bell of Tarn born?"


def test_the_committed_schema_is_that_of_the_types() -> None:
    committed = (ROOT / "docs" / "output.schema.json").read_text(encoding="utf-8")
    assert committed == format_schema(), "run: python -m tests.docs.output_schema"


def test_no_key_was_lost_since_the_schema_was_first_given_out() -> None:
    given_out = json.loads((Path(__file__).parent / "schema_1.json").read_text(encoding="utf-8"))
    now = json.loads(format_schema())
    for command, shape in given_out["properties"].items():
        check_keys(given_out, shape["allOf"][0], now, now["properties"][command]["allOf"][0], command)


def check_keys(given_out: Any, earlier: Any, now: Any, later: Any, place: str) -> None:
    """Assert that ``later`` has the keys of ``earlier`` with the same types; names of definitions are no output."""
    if "$ref" in earlier:
        earlier, later = (
            schema["$defs"][shape["$ref"].rpartition("/")[2]] for schema, shape in ((given_out, earlier), (now, later))
        )
    assert set(earlier.get("required", ())) <= set(later.get("required", ())), place
    for key, shape in earlier.get("properties", {}).items():
        check_keys(given_out, shape, now, later["properties"][key], f"{place}.{key}")
    for part in ("items", "additionalProperties"):
        if earlier.get(part):  # one without a type may have one now
            check_keys(given_out, earlier[part], now, later[part], f"{place}.{part}")
    for one, other in zip(earlier.get("anyOf", ()), later.get("anyOf", ()), strict=True):
        check_keys(given_out, one, now, other, place)
    for keyword in ("type", "enum"):
        assert later.get(keyword) == earlier.get(keyword), place


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    model = ScriptedLanguageModel(["<think>The bell.</think>Ines Moreau cast it [1].", "No."])
    with Engine.open(tmp_path / "kb", embedder="hashing:32", language_model=model) as opened:
        yield opened


def fits(command: str, shape: object) -> None:
    """What a command prints is of its shape, key by key."""
    again: Any = json.loads(json.dumps(versioned(shape)))
    assert again.pop("schema") == SCHEMA
    TypeAdapter(COMMANDS[command]).validate_json(json.dumps(again), strict=True)
    assert set(again) <= {field.name for field in fields(COMMANDS[command])}


def test_printed_json_fits_the_schema(engine: Engine) -> None:
    report = engine.index_documents(SIX_DOCUMENTS)
    fits("index", index_json(report))
    fits("index --dry-run", {"estimate": report.usage})
    answer = engine.ask("Who cast the Bell of Tarn?", retriever="bm25")
    assert answer.citations
    fits("ask", answer_json(answer, explain=False))
    explained = answer_json(answer, explain=True)
    fits("ask", explained)
    assert explained.thoughts == "The bell."
    assert explained.context
    assert explained.context.passages[0].passage_id == answer.citations[0].passage_id
    assert {"context", "thoughts"}.isdisjoint(versioned(answer_json(answer, explain=False)))
    for retriever in ("default", "bm25", "hypersu"):
        fits("search", evidence_json(engine.search(QUESTION, retriever=retriever), explain=True))
    fits("stats", statistics_json(engine.catalogue.statistics()))
    edge = engine.catalogue.hyperedges()[0]
    fits("show document", look_up(engine.catalogue, Kind.DOCUMENT, "bell"))
    fits("show passage", look_up(engine.catalogue, Kind.PASSAGE, edge.passage_id))
    fits("show hyperedge", look_up(engine.catalogue, Kind.HYPEREDGE, edge.id))
    fits("show entity", look_up(engine.catalogue, Kind.ENTITY, "Aldby"))
    fits("facts", {"facts": facts_json(engine.catalogue, [bind_names(engine.catalogue, edge)])})


def test_facts_given_as_data_fit_the_schema(engine: Engine) -> None:
    arguments = (Argument("author", "Q42", names=("Douglas Adams",)), Argument("weight", "5", "number", "kg"))
    engine.index_documents([Document("d", "", "A fact.", arguments=arguments, relation="wrote")], method="tuples")
    (edge,) = engine.catalogue.hyperedges()
    fits("facts", {"facts": facts_json(engine.catalogue, [bind_names(engine.catalogue, edge)])})
    fits("show hyperedge", look_up(engine.catalogue, Kind.HYPEREDGE, edge.id))
    fits("search", evidence_json(engine.search("Who?", retriever="hypersu"), explain=True))


def test_another_type_does_not_fit(engine: Engine) -> None:
    with pytest.raises(ValidationError):
        fits("index --dry-run", {"estimate": {"calls": "none"}})


def test_a_search_result_lists_the_first_members_of_a_fact_and_counts_all(engine: Engine) -> None:
    authors = tuple(Argument("author", f"Author {place}") for place in range(3000))
    engine.index_documents([Document("article", "", "Otters of the Isk", arguments=authors, relation="wrote")])
    shape = evidence_json(engine.search("What did Author 0 write about otters?"), explain=True)
    assert shape.hyperedges
    for edge in (*shape.hits[0].hyperedges, *shape.hyperedges):
        assert (len(edge.entities), len(edge.arguments or ()), edge.member_count) == (100, 100, 3000)
        assert edge.entities[0] == "Author 0"
    fits("search", shape)
