"""The page of the papers is that of the presets, and says why polyad does otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.cli.papers_page import get_default, page
from polyad.presets import PRESETS
from polyad.text.prompts import FILES


def test_the_committed_page_is_that_of_the_presets() -> None:
    committed = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    assert committed == page(), "run: python -m polyad.cli.papers_page"


@pytest.mark.parametrize("name", PRESETS)
def test_each_line_that_is_not_polyads_default_says_why(name: str) -> None:
    for line in PRESETS[name].lines:
        is_other = get_default(line) not in (line.value, None) or (get_default(line) is None and line.setting != "k")
        assert bool(line.why) == is_other, line


@pytest.mark.parametrize("name", PRESETS)
def test_prompts_of_a_preset_are_polyads_and_name_the_place_in_the_paper(name: str) -> None:
    for prompt, place in PRESETS[name].prompts:
        assert prompt in FILES
        assert "appendix" in place or "section" in place
