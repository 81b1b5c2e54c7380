"""polyad: hypergraph retrieval-augmented generation.

>>> import polyad
>>> engine = polyad.Engine.open("kb")                                       # doctest: +SKIP
>>> engine.index(["handbook/", "trials.pdf"])                               # doctest: +SKIP
>>> engine.search("Who funded the trial?").passages[0].passage.title        # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from polyad.display_loader import DisplayLoader

if TYPE_CHECKING:
    __version__: str
    from polyad.config import LanguageModelSettings, SplitSettings
    from polyad.engine import METHODS, RETRIEVERS, AsyncEngine, Engine, RetrieverSpec
    from polyad.engine.settings import Settings
    from polyad.errors import PolyadError
    from polyad.indexing.run import IndexReport
    from polyad.language_models.openai.language_model import OpenAILanguageModel
    from polyad.model import (
        Answer,
        Citation,
        Document,
        Entity,
        Evidence,
        Failure,
        Hyperedge,
        Incidence,
        Passage,
        Query,
        ScoredPassage,
        Statistics,
        Usage,
    )
    from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Retriever
    from polyad.protocols.snapshot import Snapshot
    from polyad.retrieval.options import SearchOptions


__all__ = [
    "METHODS",
    "RETRIEVERS",
    "Answer",
    "AsyncEngine",
    "Citation",
    "Document",
    "Embedder",
    "Engine",
    "Entity",
    "Evidence",
    "Failure",
    "Hyperedge",
    "Incidence",
    "IndexReport",
    "LanguageModel",
    "LanguageModelSettings",
    "MentionExtractor",
    "OpenAILanguageModel",
    "Passage",
    "PolyadError",
    "Query",
    "Retriever",
    "RetrieverSpec",
    "ScoredPassage",
    "SearchOptions",
    "Settings",
    "Snapshot",
    "SplitSettings",
    "Statistics",
    "Usage",
    "__version__",
]

_HOMES = {
    "polyad.language_models.openai.language_model": ("OpenAILanguageModel",),
    "polyad.config": ("LanguageModelSettings", "SplitSettings"),
    "polyad.engine.settings": ("Settings",),
    "polyad.engine": ("METHODS", "RETRIEVERS", "AsyncEngine", "Engine", "RetrieverSpec"),
    "polyad.errors": ("PolyadError",),
    "polyad.indexing.run": ("IndexReport",),
    "polyad.model": (
        "Answer",
        "Citation",
        "Document",
        "Entity",
        "Evidence",
        "Failure",
        "Hyperedge",
        "Incidence",
        "Passage",
        "Query",
        "ScoredPassage",
        "Statistics",
        "Usage",
    ),
    "polyad.protocols.components": ("Embedder", "LanguageModel", "MentionExtractor", "Retriever"),
    "polyad.protocols.snapshot": ("Snapshot",),
    "polyad.retrieval.options": ("SearchOptions",),
}
DisplayLoader.load = lambda: import_module("polyad.schemas.displays")

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and that there is nothing else

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used, so that ``import polyad`` costs next to nothing."""
        value: object
        if name == "__version__":
            value = import_module("importlib.metadata").version("polyad")
        elif name in _HOME_OF:
            value = getattr(import_module(_HOME_OF[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return sorted(__all__)
