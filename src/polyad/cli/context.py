"""The options that ``polyad`` itself takes, before the name of a command."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

FILE_NAME = "polyad.toml"
"""Name of the settings file in the working directory."""

TRUSTS_ENDPOINT = ContextVar("TRUSTS_ENDPOINT", default=False)
"""Whether the command line contains ``--trust-endpoint``."""

SETTINGS_FILE: ContextVar[Path | None] = ContextVar("SETTINGS_FILE", default=None)
"""The settings file that ``polyad --config`` names; None for the file in the working directory."""

SETTINGS: ContextVar[Sequence[str]] = ContextVar("SETTINGS", default=())
"""The values of the options ``polyad --set``, each as ``section.key=value``."""
