"""Texts that come with polyad, such as prompts: files beside the code that uses them."""

from __future__ import annotations

import importlib.resources


def packaged(package: str, name: str) -> str:
    """The text of the file ``name`` in ``package``, without white space at its ends."""
    return importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8").strip()
