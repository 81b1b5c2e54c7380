"""The engine: joins stores, models, indexing, retrieval and answering."""

from polyad.engine.aio import AsyncEngine
from polyad.engine.changes import preset_settings
from polyad.engine.engine import DEFAULT_METHOD, Engine
from polyad.engine.registry import METHODS, NEED_LANGUAGE_MODEL, RETRIEVERS, RetrieverSpec

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "NEED_LANGUAGE_MODEL",
    "RETRIEVERS",
    "AsyncEngine",
    "Engine",
    "RetrieverSpec",
    "preset_settings",
]
