"""The rows of this package in polyad's table of retrievers, named by its entry points.

Each function imports its retriever when it is used, since polyad reads the rows for their settings at every start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyad.engine.components import Components
from polyad.engine.registry import RetrieverSpec
from polyad.protocols.components import Retriever
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
    from polyad_baselines.questions import KeywordExtractor


def _make_linker(components: Components) -> QuestionLinker:
    from polyad.retrieval.question import QuestionLinker

    return QuestionLinker(components.extractor, components.settings.question.names)


def _make_keyword_extractor(components: Components) -> KeywordExtractor:
    from polyad_baselines.questions import KeywordExtractor

    return KeywordExtractor(_make_linker(components), components.language_model)


def _make_hipporag2(components: Components) -> Retriever:
    from polyad_baselines.hipporag2 import HippoRAG2Retriever

    settings = components.get_settings("hipporag2", HippoRAG2Settings)
    return HippoRAG2Retriever(components.embedder, settings, components.language_model)


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
    return RaptorRetriever(components.embedder, language_model, components.get_settings("raptor", RaptorSettings))


def _make_graphrag(components: Components) -> Retriever:
    from polyad_baselines.graphrag import GraphRAGRetriever

    language_model = components.require_language_model("the retriever 'graphrag'")
    return GraphRAGRetriever(components.embedder, language_model, components.get_settings("graphrag", GraphRAGSettings))


HIPPORAG2 = RetrieverSpec(_make_hipporag2, settings=HippoRAG2Settings, reads_entity_vectors=True, reads_names=False)
LINEARRAG = RetrieverSpec(_make_linearrag, settings=LinearRAGSettings, reads_entity_vectors=True)
LIGHTRAG = RetrieverSpec(_make_lightrag, settings=LightRAGSettings, reads_entity_vectors=True)
PATHRAG = RetrieverSpec(_make_pathrag, settings=PathRAGSettings, reads_entity_vectors=True)
RAPTOR = RetrieverSpec(_make_raptor, settings=RaptorSettings, needs_language_model=True, reads_names=False)
GRAPHRAG = RetrieverSpec(_make_graphrag, settings=GraphRAGSettings, needs_language_model=True, reads_names=False)

ROWS = {
    "hipporag2": HIPPORAG2,
    "linearrag": LINEARRAG,
    "lightrag": LIGHTRAG,
    "pathrag": PATHRAG,
    "raptor": RAPTOR,
    "graphrag": GRAPHRAG,
}
"""The retrievers of this package by name."""
