"""The rows of this package in polyad's tables of retrievers and methods, named by its entry points.

Each function imports its retriever when it is used, since polyad reads the rows for their settings at every start.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from polyad.config import LONG_PASSAGES
from polyad.engine.components import Components
from polyad.engine.registry import Method, RetrieverSpec, SpendingLimits
from polyad.protocols.components import HyperedgeBuilder, Retriever
from polyad_baselines.settings import (
    GraphRAGLocalSettings,
    GraphRAGSettings,
    HippoRAG2Settings,
    HyperRAGSettings,
    LightRAGSettings,
    LinearRAGSettings,
    PathRAGSettings,
    RaptorSettings,
)

if TYPE_CHECKING:
    from polyad.retrieval.question import QuestionLinker
    from polyad.text.prompts import Prompts
    from polyad_baselines.questions import KeywordExtractor


Construction = dict[str, str | int | float | bool]
"""The method and the settings, by ``section.key``, that build the index of a paper."""


def _make_linker(components: Components) -> QuestionLinker:
    from polyad.retrieval.question import QuestionLinker

    return QuestionLinker(components.extractor, components.settings.question.names)


def _get_prompts(components: Components) -> Prompts:
    return components.prompts.for_package("polyad_baselines")


def _make_keyword_extractor(components: Components) -> KeywordExtractor:
    from polyad_baselines.questions import KeywordExtractor

    return KeywordExtractor(_make_linker(components), components.language_model, _get_prompts(components))


def _make_hipporag2(components: Components) -> Retriever:
    from polyad_baselines.hipporag2 import HippoRAG2Retriever

    settings = components.get_settings("hipporag2", HippoRAG2Settings)
    return HippoRAG2Retriever(components.embedder, settings, components.language_model, _get_prompts(components))


def _make_linearrag(components: Components) -> Retriever:
    from polyad_baselines.linearrag import LinearRAGRetriever

    settings = components.get_settings("linearrag", LinearRAGSettings)
    return LinearRAGRetriever(components.embedder, _make_linker(components), settings)


def _make_lightrag(components: Components) -> Retriever:
    from polyad_baselines.lightrag import LightRAGRetriever

    settings = components.get_settings("lightrag", LightRAGSettings)
    return LightRAGRetriever(components.embedder, _make_keyword_extractor(components), settings)


def _make_hyper_rag(components: Components) -> Retriever:
    from polyad_baselines.lightrag import HyperRAGRetriever

    settings = components.get_settings("hyper-rag", HyperRAGSettings)
    return HyperRAGRetriever(components.embedder, _make_keyword_extractor(components), settings)


def _make_pathrag(components: Components) -> Retriever:
    from polyad_baselines.pathrag import PathRAGRetriever

    settings = components.get_settings("pathrag", PathRAGSettings)
    return PathRAGRetriever(components.embedder, _make_keyword_extractor(components), settings)


def _make_raptor(components: Components) -> Retriever:
    from polyad_baselines.raptor import RaptorRetriever

    language_model = components.require_language_model("the retriever 'raptor'")
    settings = components.get_settings("raptor", RaptorSettings)
    return RaptorRetriever(components.embedder, language_model, settings, _get_prompts(components))


def _make_graphrag(components: Components) -> Retriever:
    from polyad_baselines.graphrag import GraphRAGRetriever

    language_model = components.require_language_model("the retriever 'graphrag'")
    settings = components.get_settings("graphrag", GraphRAGSettings)
    return GraphRAGRetriever(components.embedder, language_model, settings, _get_prompts(components))


def _make_graphrag_local(components: Components) -> Retriever:
    from polyad_baselines.graphrag_local import GraphRAGLocalRetriever

    settings = components.get_settings("graphrag-local", GraphRAGLocalSettings)
    return GraphRAGLocalRetriever(components.embedder, _make_keyword_extractor(components), settings)


def _make_builder(method: str, prompt: str, components: Components, limits: SpendingLimits) -> HyperedgeBuilder:
    from polyad.indexing.facts.budget import Budget
    from polyad.indexing.facts.builder import FactBuilder
    from polyad.language_models.no_language_model import NoLanguageModel
    from polyad_baselines.hyper_rag import CorrelationStyle

    language_model = components.language_model or NoLanguageModel(f"the method {method!r}")
    settings = replace(components.settings.facts, join_subject=False, style="compact", dates=False)
    style = CorrelationStyle(settings.language, _get_prompts(components), components.prompts, prompt)
    budget = Budget(language_model, max_cost=limits.max_cost, max_tokens=limits.max_tokens)
    return FactBuilder(components.splitter, language_model, style, settings, budget)


def _build_method(name: str, prompt: str) -> Method:
    build = partial(_make_builder, name, prompt)
    return Method(build, needs_language_model=True, default_passages=LONG_PASSAGES, describes_entities=True)


HYPER_RAG, TRIPLES = _build_method("hyper-rag", "correlations"), _build_method("triples", "triples")

_OPEN_IE: Construction = {"method": "triples", "facts.gleaning": 0, "embedding.hyperedge_titles": False}
"""Construction of HippoRAG 2: triples, one request for each passage."""

_GRAPH: Construction = {**_OPEN_IE, "facts.gleaning": 1}
"""Construction of GraphRAG, LightRAG and PathRAG: entities and relations, with one further request for each passage."""

_SENTENCES: Construction = {
    "method": "semantic-units",
    "segmentation.method": "sentence",
    "segmentation.join_subject": False,
    "embedding.hyperedge_titles": False,
}
"""Construction of LinearRAG: names and sentences."""

ROWS = {
    "hipporag2": RetrieverSpec(
        _make_hipporag2,
        settings=HippoRAG2Settings,
        reads_entity_vectors=True,
        reads_names=False,
        construction={**_OPEN_IE, "hipporag2.synonyms_replace_facts": True},
    ),
    "linearrag": RetrieverSpec(
        _make_linearrag, settings=LinearRAGSettings, reads_entity_vectors=True, construction=_SENTENCES
    ),
    "lightrag": RetrieverSpec(
        _make_lightrag, settings=LightRAGSettings, reads_entity_vectors=True, construction=_GRAPH
    ),
    "pathrag": RetrieverSpec(_make_pathrag, settings=PathRAGSettings, reads_entity_vectors=True, construction=_GRAPH),
    "raptor": RetrieverSpec(
        _make_raptor,
        settings=RaptorSettings,
        needs_language_model=True,
        reads_names=False,
        reads_hyperedges=False,
        construction={"method": "semantic-units", "split.passage_tokens": 100, "split.overlap_tokens": 0},
    ),
    "graphrag": RetrieverSpec(
        _make_graphrag,
        settings=GraphRAGSettings,
        needs_language_model=True,
        reads_names=False,
        construction=_GRAPH,
    ),
    "graphrag-local": RetrieverSpec(
        _make_graphrag_local,
        settings=GraphRAGLocalSettings,
        reads_entity_vectors=True,
        reads_names=False,
        construction=_GRAPH,
    ),
    "hyper-rag": RetrieverSpec(
        _make_hyper_rag,
        settings=HyperRAGSettings,
        reads_entity_vectors=True,
        construction={"method": "hyper-rag", "facts.gleaning": 1, "embedding.hyperedge_titles": False},
    ),
}
"""The retrievers of this package by name, each with the construction of its paper."""

HIPPORAG2, LINEARRAG, LIGHTRAG, PATHRAG, RAPTOR, GRAPHRAG, GRAPHRAG_LOCAL, HYPER_RAG_RETRIEVER = ROWS.values()
