"""The retriever for LlamaIndex, in LlamaIndex's own query engine and against the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from polyad.engine import Engine
from tests.integrations.conftest import BELL, COVER, MAYOR, QUESTION, import_names

if TYPE_CHECKING:
    from llama_index.core.base.response.schema import Response
    from llama_index.core.llms import MockLLM
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
    from llama_index.core.schema import MetadataMode, QueryBundle, TextNode

    from polyad.integrations.llama_index import PolyadRetriever

NAMES = {
    "llama_index.core.base.response.schema": "Response",
    "llama_index.core.llms": "MockLLM",
    "llama_index.core.postprocessor": "SimilarityPostprocessor",
    "llama_index.core.query_engine": "RetrieverQueryEngine",
    "llama_index.core.retrievers": "QueryFusionRetriever",
    "llama_index.core.retrievers.fusion_retriever": "FUSION_MODES",
    "llama_index.core.schema": "MetadataMode QueryBundle TextNode",
    "polyad.integrations.llama_index": "PolyadRetriever",
}


@pytest.fixture(scope="module", autouse=True)
def _llama_index() -> None:
    import_names(globals(), NAMES)


def test_a_node_says_where_its_text_stands(tarn_engine: Engine) -> None:
    (node,) = PolyadRetriever(tarn_engine, k=1).retrieve(QUESTION)
    (hit,) = tarn_engine.search(QUESTION, 1).passages
    assert node.score == hit.score
    assert (node.node_id, node.text) == (hit.passage.id, COVER + BELL)
    assert isinstance(node.node, TextNode)
    assert node.node.ref_doc_id == "bell.pdf"
    assert (node.node.start_char_idx, node.node.end_char_idx) == (0, len(COVER + BELL))
    metadata = node.metadata
    assert (metadata["source"], metadata["page"], metadata["relevance"]) == ("/notes/bell.pdf", 2, hit.relevance)


def test_a_language_model_reads_the_citation_and_the_text(tarn_engine: Engine) -> None:
    (node,) = PolyadRetriever(tarn_engine, k=1).retrieve(QUESTION)
    content = node.node.get_content(MetadataMode.LLM)
    assert content == f"citation: Bell of Tarn, p. 2\n\n{COVER}{BELL}"


def test_the_options_of_a_search_are_those_of_the_retriever(tarn_engine: Engine) -> None:
    nodes = PolyadRetriever(tarn_engine, where="year = 1811", retriever="bm25").retrieve(QueryBundle(QUESTION))
    assert [node.metadata["document_id"] for node in nodes] == ["clock"]
    (past,) = PolyadRetriever(tarn_engine, k=1, as_of="1995").retrieve(MAYOR)
    (present,) = PolyadRetriever(tarn_engine, k=1).retrieve(MAYOR)
    assert ("Ada King" in past.text, "Bo Ray" in present.text) == (True, True)


def test_an_asynchronous_call_returns_the_same(tarn_engine: Engine) -> None:
    retriever = PolyadRetriever(tarn_engine, k=2)
    assert asyncio.run(retriever.aretrieve(QUESTION)) == retriever.retrieve(QUESTION)


def test_a_query_engine_answers_from_the_nodes(tarn_engine: Engine) -> None:
    queries = RetrieverQueryEngine.from_args(
        PolyadRetriever(tarn_engine, k=1),
        llm=MockLLM(),  # replies with its prompt
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)],
    )
    response = queries.query(QUESTION)
    assert isinstance(response, Response)
    assert BELL in str(response)
    assert [node.metadata["citation"] for node in response.source_nodes] == ["Bell of Tarn, p. 2"]


def test_a_passage_that_several_retrievers_return_is_fused(tarn_engine: Engine) -> None:
    retrievers = [PolyadRetriever(tarn_engine, retriever=name, k=1) for name in ("bm25", "dense", "default")]
    fusion = QueryFusionRetriever(
        list(retrievers), llm=MockLLM(), mode=FUSION_MODES.RECIPROCAL_RANK, num_queries=1, use_async=False
    )
    (node,) = fusion.retrieve("Who made the clock of Tarn?")
    assert node.metadata["document_id"] == "clock"
    assert node.score == pytest.approx(3 / 60)  # the first of three retrievers; LlamaIndex counts from rank 0


def test_a_misspelt_option_is_an_error(tarn_engine: Engine) -> None:
    with pytest.raises(TypeError):
        PolyadRetriever(tarn_engine, wheer="year = 1").retrieve(QUESTION)  # type: ignore[call-arg]
