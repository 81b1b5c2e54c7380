"""The rows of this package in polyad's tables of retrievers and methods, named by its entry points.

Each function imports its retriever when it is used, since polyad reads the rows for their settings at every start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from polyad.config import LONG_PASSAGES
from polyad.engine.components import Components
from polyad.engine.registry import Method, RetrieverSpec, SpendingLimits
from polyad.protocols.components import HyperedgeBuilder, Retriever
from polyad_baselines.settings import (
    GraphRAGSettings,
    HippoRAG2Settings,
    LightRAGSettings,
    LinearRAGSettings,
    PathRAGSettings,
    RaptorSettings,
)

if TYPE_CHECKING:
    from polyad.retrieval.question import QuestionLinker
    from polyad.text.prompts import Prompts
    from polyad_baselines.questions import KeywordExtractor


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


def _make_hyper_rag(components: Components, limits: SpendingLimits) -> HyperedgeBuilder:
    from polyad.indexing.facts.budget import Budget
    from polyad.indexing.facts.builder import FactBuilder
    from polyad.language_models.no_language_model import NoLanguageModel
    from polyad_baselines.hyper_rag import CorrelationStyle

    language_model = components.language_model or NoLanguageModel("the method 'hyper-rag'")
    settings = replace(components.settings.facts, join_subject=False, style="compact", dates=False)
    style = CorrelationStyle(settings.language, _get_prompts(components), components.prompts)
    budget = Budget(language_model, max_cost=limits.max_cost, max_tokens=limits.max_tokens)
    return FactBuilder(components.splitter, language_model, style, settings, budget)


HIPPORAG2 = RetrieverSpec(_make_hipporag2, settings=HippoRAG2Settings, reads_entity_vectors=True, reads_names=False)
LINEARRAG = RetrieverSpec(_make_linearrag, settings=LinearRAGSettings, reads_entity_vectors=True)
LIGHTRAG = RetrieverSpec(_make_lightrag, settings=LightRAGSettings, reads_entity_vectors=True)
PATHRAG = RetrieverSpec(_make_pathrag, settings=PathRAGSettings, reads_entity_vectors=True)
RAPTOR = RetrieverSpec(_make_raptor, settings=RaptorSettings, needs_language_model=True, reads_names=False)
GRAPHRAG = RetrieverSpec(_make_graphrag, settings=GraphRAGSettings, needs_language_model=True, reads_names=False)

HYPER_RAG = Method(_make_hyper_rag, needs_language_model=True, default_passages=LONG_PASSAGES, describes_entities=True)

ROWS = {
    "hipporag2": HIPPORAG2,
    "linearrag": LINEARRAG,
    "lightrag": LIGHTRAG,
    "pathrag": PATHRAG,
    "raptor": RAPTOR,
    "graphrag": GRAPHRAG,
}
"""The retrievers of this package by name."""
