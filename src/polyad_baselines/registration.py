"""The rows of this package in polyad's table of retrievers, named by its entry points.

Each function imports its retriever when it is used, since polyad reads the rows for their settings at every start.
"""

from __future__ import annotations

from polyad.engine.components import Components
from polyad.engine.registry import RetrieverSpec
from polyad.protocols.components import Retriever
from polyad_baselines.settings import HippoRAG2Settings, LinearRAGSettings


def _make_hipporag2(components: Components) -> Retriever:
    from polyad_baselines.hipporag2 import HippoRAG2Retriever

    settings = components.get_settings("hipporag2", HippoRAG2Settings)
    return HippoRAG2Retriever(components.embedder, settings, components.language_model)


def _make_linearrag(components: Components) -> Retriever:
    from polyad.retrieval.question import QuestionLinker
    from polyad_baselines.linearrag import LinearRAGRetriever

    settings = components.get_settings("linearrag", LinearRAGSettings)
    linker = QuestionLinker(components.extractor, components.settings.question.names)
    return LinearRAGRetriever(components.embedder, linker, settings)


HIPPORAG2 = RetrieverSpec(_make_hipporag2, settings=HippoRAG2Settings, reads_entity_vectors=True, reads_names=False)
LINEARRAG = RetrieverSpec(_make_linearrag, settings=LinearRAGSettings, reads_entity_vectors=True)

ROWS = {"hipporag2": HIPPORAG2, "linearrag": LINEARRAG}
"""The retrievers of this package by name."""
