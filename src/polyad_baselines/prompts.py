"""The prompts of this package, one file each in its folder ``prompt_texts``."""

from __future__ import annotations

from polyad.text.files import read_package_file


def read_prompt(name: str) -> str:
    """Return the prompt with this name."""
    return read_package_file("polyad_baselines", f"prompt_texts/{name}.md")
