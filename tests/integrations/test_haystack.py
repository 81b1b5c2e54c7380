"""The component for Haystack, in Haystack's own pipelines and against the engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.engine import Engine
from polyad.errors import ConfigurationError, StoreNotFoundError
from polyad.protocols.components import Embedder
from polyad.retrieval.baselines import LexicalRetriever
from polyad.text.filters import FilterError, is_selected, parse_filter
from tests.integrations.conftest import BELL, COVER, MAYOR, QUESTION, import_names

if TYPE_CHECKING:
    from haystack import Document, Pipeline
    from haystack.components.builders import PromptBuilder
    from haystack.utils.filters import document_matches_filter

    from polyad.integrations.haystack import PolyadRetriever, parse_filters

NAMES = {
    "haystack": "Document Pipeline",
    "haystack.components.builders": "PromptBuilder",
    "haystack.utils.filters": "document_matches_filter",
    "polyad.integrations.haystack": "PolyadRetriever parse_filters",
}


@pytest.fixture(scope="module", autouse=True)
def _haystack() -> None:
    import_names(globals(), NAMES)


def get_ids(result: dict[str, list[Document]]) -> list[str]:
    return [document.meta["document_id"] for document in result["documents"]]


def test_a_document_says_where_its_text_stands(tarn_engine: Engine) -> None:
    (document,) = PolyadRetriever(tarn_engine, top_k=1).run(QUESTION)["documents"]
    (hit,) = tarn_engine.search(QUESTION, 1).passages
    assert (document.id, document.content, document.score) == (hit.passage.id, COVER + BELL, hit.score)
    meta = document.meta
    assert (meta["source"], meta["page"], meta["relevance"]) == ("/notes/bell.pdf", 2, hit.relevance)
    assert meta["citation"] == "Bell of Tarn, p. 2"
    assert Document.from_dict(document.to_dict()) == document


def test_filters_narrow_what_the_filter_of_the_component_selects(tarn_engine: Engine) -> None:
    later = {"field": "meta.year", "operator": ">", "value": 1750}
    assert get_ids(PolyadRetriever(tarn_engine).run(QUESTION, filters=later, as_of="1995"))[0] == "clock"
    assert get_ids(PolyadRetriever(tarn_engine, where="year < 1900").run(QUESTION, filters=later)) == ["clock"]
    assert get_ids(PolyadRetriever(tarn_engine, where="year = 1").run(QUESTION, where="year = 1702")) == ["bell.pdf"]
    ids = {"field": "meta.document_id", "operator": "in", "value": ["clock", "bell.pdf"]}
    assert set(get_ids(PolyadRetriever(tarn_engine).run(QUESTION, filters=ids))) == {"clock", "bell.pdf"}


def test_a_time_selects_what_held_then(tarn_engine: Engine) -> None:
    component = PolyadRetriever(tarn_engine, top_k=1)
    assert get_ids(component.run(MAYOR, as_of="1995")) == ["old"]
    assert get_ids(component.run(MAYOR)) == ["new"]


def test_an_asynchronous_call_returns_the_same(tarn_engine: Engine) -> None:
    component = PolyadRetriever(tarn_engine)
    assert asyncio.run(component.run_async(QUESTION, top_k=2)) == component.run(QUESTION, top_k=2)


def open_with(monkeypatch: pytest.MonkeyPatch, embedder: Embedder) -> None:
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: embedder)


def build_pipeline(directory: Path) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component(
        "retriever",
        PolyadRetriever(
            directory,
            engine_options={"reply_cache": False},
            top_k=1,
            where=parse_filter("year > 1900"),
            as_of=datetime(1995, 5, 17, tzinfo=UTC),
        ),
    )
    template = "{% for document in documents %}[{{ document.meta.citation }}] {{ document.content }}{% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(template=template, required_variables=["documents"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    return pipeline


def test_a_pipeline_survives_being_saved(
    tarn_directory: Path, monkeypatch: pytest.MonkeyPatch, embedder: Embedder
) -> None:
    open_with(monkeypatch, embedder)
    saved = build_pipeline(tarn_directory).dumps()
    loaded = Pipeline.loads(saved, allowed_modules=["polyad.integrations.haystack"])
    assert loaded.dumps() == saved
    for pipeline in (build_pipeline(tarn_directory), loaded):
        result = pipeline.run({"retriever": {"query": MAYOR}})
        assert result["prompt"]["prompt"] == "[Mayor] The mayor of Tarn is Ada King."


def test_a_pipeline_runs_asynchronously(
    tarn_directory: Path, monkeypatch: pytest.MonkeyPatch, embedder: Embedder
) -> None:
    open_with(monkeypatch, embedder)
    result = asyncio.run(build_pipeline(tarn_directory).run_async({"retriever": {"query": MAYOR}}))
    assert "Ada King" in result["prompt"]["prompt"]


def test_an_index_is_opened_when_the_component_is_warmed_up(tmp_path: Path) -> None:
    component = PolyadRetriever(tmp_path / "missing")
    with pytest.raises(StoreNotFoundError):
        component.warm_up()
    assert not (tmp_path / "missing").exists()


def test_components_that_cannot_be_serialised_are_errors(tarn_engine: Engine) -> None:
    with pytest.raises(ConfigurationError):
        PolyadRetriever(tarn_engine).to_dict()
    with pytest.raises(ConfigurationError):
        PolyadRetriever("kb", retriever=LexicalRetriever()).to_dict()


@pytest.mark.parametrize(
    "filters",
    [
        {"field": "meta.year"},
        {"field": "meta.year", "operator": "~", "value": 1},
        {"field": "meta.year", "operator": ">", "value": None},
        {"operator": "XOR", "conditions": [{"field": "year", "operator": "==", "value": 1}]},
        {"operator": "AND", "conditions": []},
    ],
)
def test_an_invalid_filter_is_an_error(filters: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        parse_filters(filters)


FIELDS = st.sampled_from(["year", "size"])
NUMBERS = st.integers(0, 3)
COMPARISONS = st.one_of(
    st.builds(
        lambda field, operator, value: {"field": f"meta.{field}", "operator": operator, "value": value},
        FIELDS,
        st.sampled_from(["==", "!=", ">", ">=", "<", "<="]),
        NUMBERS,
    ),
    st.builds(
        lambda field, operator, values: {"field": f"meta.{field}", "operator": operator, "value": values},
        FIELDS,
        st.sampled_from(["in", "not in"]),
        st.lists(NUMBERS, min_size=1),
    ),
    st.builds(
        lambda field, operator: {"field": f"meta.{field}", "operator": operator, "value": None},
        FIELDS,
        st.sampled_from(["==", "!="]),
    ),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda parts: st.builds(
        lambda operator, conditions: {"operator": operator, "conditions": conditions},
        st.sampled_from(["AND", "OR", "NOT"]),
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@given(filters=FILTERS, meta=st.dictionaries(FIELDS, NUMBERS))
def test_a_filter_selects_what_haystack_selects(filters: dict[str, Any], meta: dict[str, int]) -> None:
    assert is_selected(parse_filters(filters), meta) == document_matches_filter(filters, Document(meta=meta))
