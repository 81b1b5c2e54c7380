"""The engine: joins stores, models, indexing, retrieval and answering."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyad.engine.aio import AsyncEngine
    from polyad.engine.changes import build_preset_settings
    from polyad.engine.engine import Engine
    from polyad.engine.registry import DEFAULT_METHOD, METHODS, NEED_LANGUAGE_MODEL, RETRIEVERS, RetrieverSpec

_HOMES = {
    "AsyncEngine": "aio",
    "build_preset_settings": "changes",
    "Engine": "engine",
    **dict.fromkeys(("DEFAULT_METHOD", "METHODS", "NEED_LANGUAGE_MODEL", "RETRIEVERS", "RetrieverSpec"), "registry"),
}

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "NEED_LANGUAGE_MODEL",
    "RETRIEVERS",
    "AsyncEngine",
    "Engine",
    "RetrieverSpec",
    "build_preset_settings",
]


if not TYPE_CHECKING:  # a type checker sees the imports above

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: a search from the command line needs few of these modules."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
