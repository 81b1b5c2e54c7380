"""The retriever for LangChain, by LangChain's own tests and against the engine."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.text.filters import parse_filter
from tests.integrations.conftest import BELL, COVER, MAYOR, QUESTION, import_names

if TYPE_CHECKING:
    from langchain_core.runnables import ConfigurableField
    from langchain_tests.integration_tests import RetrieversIntegrationTests
    from pydantic import ValidationError

    from polyad.integrations.langchain import PolyadRetriever

NAMES = {
    "langchain_core.runnables": "ConfigurableField",
    "langchain_tests.integration_tests": "RetrieversIntegrationTests",
    "pydantic": "ValidationError",
    "polyad.integrations.langchain": "PolyadRetriever",
}


@pytest.fixture(scope="module", autouse=True)
def _langchain() -> None:
    import_names(globals(), NAMES)


def test_the_tests_that_langchain_has_for_every_retriever_pass(tarn_engine: Engine) -> None:
    class Tests(RetrieversIntegrationTests):
        retriever_constructor = PolyadRetriever
        retriever_constructor_params = {"engine": tarn_engine}  # noqa: RUF012  # the name of a property
        retriever_query_example = "What is in Tarn?"

    names = [name for name in dir(Tests) if name.startswith("test_")]
    assert len(names) >= 4
    for name in names:
        test = getattr(Tests(), name)
        takes_retriever = "retriever" in inspect.signature(test).parameters
        result = test(PolyadRetriever(engine=tarn_engine)) if takes_retriever else test()
        if inspect.iscoroutine(result):
            asyncio.run(result)


def test_a_document_says_where_its_text_stands(tarn_engine: Engine) -> None:
    (document,) = PolyadRetriever(engine=tarn_engine, k=1).invoke(QUESTION)
    (hit,) = tarn_engine.search(QUESTION, 1).passages
    assert BELL in document.page_content
    assert document.id == hit.passage.id
    metadata = document.metadata
    assert (metadata["source"], metadata["url"]) == ("/notes/bell.pdf", "https://tarn.example/bell")
    assert (metadata["page"], metadata["start"], metadata["end"]) == (2, 0, len(COVER + BELL))
    assert metadata["citation"] == "Bell of Tarn, p. 2"
    assert (metadata["score"], metadata["relevance"]) == (hit.score, hit.relevance)
    assert (metadata["year"], metadata["author"]) == (1702, ["Ada", "Bo"])


def test_a_heading_is_part_of_the_citation(tarn_engine: Engine) -> None:
    (document,) = PolyadRetriever(engine=tarn_engine, k=1).invoke("Who made the clock?")
    assert document.metadata["heading"] == "Makers"
    assert document.metadata["citation"] == 'Clock of Tarn, "Makers"'


def test_a_document_cannot_change_its_citation(tarn_engine: Engine) -> None:
    (document,) = PolyadRetriever(engine=tarn_engine, k=1).invoke(QUESTION)
    assert "Another Source" not in document.metadata["citation"]
    assert document.metadata["score"] != 9000


@pytest.mark.parametrize(
    "where", ["year = 1811", parse_filter("year = 1811"), {"field": "year", "operator": "=", "values": [1811]}]
)
def test_a_filter_selects_in_the_constructor_and_in_a_call(tarn_engine: Engine, where: Any) -> None:
    for documents in (
        PolyadRetriever(engine=tarn_engine, where=where).invoke(QUESTION),
        PolyadRetriever(engine=tarn_engine).invoke(QUESTION, where=where),
        PolyadRetriever(engine=tarn_engine, where="year = 1702").invoke(QUESTION, where=where),
    ):
        assert [document.metadata["document_id"] for document in documents] == ["clock"]


def test_a_time_selects_what_held_then(tarn_engine: Engine) -> None:
    retriever = PolyadRetriever(engine=tarn_engine, k=1)
    assert "Ada King" in retriever.invoke(MAYOR, as_of="1995")[0].page_content
    assert "Bo Ray" in retriever.invoke(MAYOR)[0].page_content


def test_an_asynchronous_call_takes_the_same_options_and_returns_the_same(tarn_engine: Engine) -> None:
    retriever = PolyadRetriever(engine=tarn_engine, where="year > 1")
    documents = asyncio.run(retriever.ainvoke(MAYOR, k=2, as_of="1995"))
    assert documents == retriever.invoke(MAYOR, k=2, as_of="1995")
    assert len(documents) == 2


def test_fields_are_configurable_as_those_of_other_runnables(tarn_engine: Engine) -> None:
    retriever = PolyadRetriever(engine=tarn_engine).configurable_fields(where=ConfigurableField(id="where"))
    documents = retriever.with_config(configurable={"where": "year = 1811"}).invoke(QUESTION)
    assert [document.metadata["document_id"] for document in documents] == ["clock"]


def test_any_retriever_of_the_engine_can_be_chosen(tarn_engine: Engine) -> None:
    documents = PolyadRetriever(engine=tarn_engine, retriever="bm25", k=1).invoke("clock")
    assert documents[0].metadata["document_id"] == "clock"


def test_a_misspelt_option_is_an_error(tarn_engine: Engine) -> None:
    with pytest.raises(ValidationError):
        PolyadRetriever(engine=tarn_engine, wheer="year = 1")
    with pytest.raises(TypeError):
        PolyadRetriever(engine=tarn_engine).invoke(QUESTION, wheer="year = 1")
    with pytest.raises(ConfigurationError):
        PolyadRetriever(engine=tarn_engine, k=0).invoke(QUESTION)
