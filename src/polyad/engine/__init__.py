"""The engine, and what it is wired from: the one place where adapters meet pipelines."""

from polyad.engine.aio import AsyncEngine
from polyad.engine.changes import preset_settings
from polyad.engine.engine import DEFAULT_METHOD, Engine
from polyad.engine.registry import METHODS, NEED_LANGUAGE_MODEL, RETRIEVERS

__all__ = ["DEFAULT_METHOD", "METHODS", "NEED_LANGUAGE_MODEL", "RETRIEVERS", "AsyncEngine", "Engine", "preset_settings"]
