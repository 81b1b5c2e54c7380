"""JSON of API keys."""

from __future__ import annotations

from typing_extensions import TypedDict


class KeyShape(TypedDict):
    """An API key without its secret; ``last_used`` and ``expires`` are empty for never."""

    id: str
    name: str
    scope: str
    created: str
    last_used: str
    expires: str


class KeysShape(TypedDict):
    """Output of ``polyad key list --json``."""

    keys: list[KeyShape]
