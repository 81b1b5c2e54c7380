"""The page of the papers is that of the presets, and says why polyad does otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.presets import PRESETS
from polyad.text.prompts import PROMPT_NAMES
from polyad_bench.answers.averages import ANSWER_MEASURES
from polyad_bench.answers.judges import JUDGES, get_judges
from polyad_bench.answers.judging import A_REL, C_REC
from polyad_bench.commands.steps import JUDGED
from polyad_bench.measures.ranking import parse_measure
from tests.docs.papers_page import get_default, page, read_measures


def test_the_committed_page_is_that_of_the_presets() -> None:
    committed = (Path(__file__).parents[2] / "docs" / "papers" / "presets.md").read_text(encoding="utf-8")
    assert committed == page(), "run: python -m tests.docs.papers_page"


@pytest.mark.parametrize("name", PRESETS)
def test_each_line_that_is_not_polyads_default_says_why(name: str) -> None:
    for setting in PRESETS[name].settings:
        default = get_default(setting)
        differs = default not in (setting.value, None) or (default is None and setting.name != "k")
        assert bool(setting.why) == differs, setting


def test_every_measure_is_listed_with_its_source() -> None:
    measures = read_measures()
    names = [name for measure in measures for name in measure["names"]]
    assert len(set(names)) == len(names)
    judged = {judge.name for judge in get_judges([*JUDGES]) if judge.name.startswith("g_e.")}
    assert {*ANSWER_MEASURES, *JUDGED, *judged, C_REC, A_REL} <= {*names}
    for kind in ("recall", "all_recall", "hits", "mrr", "ndcg"):
        assert parse_measure(f"{kind}@5").kind + "@k" in names
    assert all(measure["what"] and measure["source"] for measure in measures)


@pytest.mark.parametrize("name", PRESETS)
def test_prompts_of_a_preset_are_polyads_and_name_the_place_in_the_paper(name: str) -> None:
    for prompt, place in PRESETS[name].prompts.items():
        assert prompt in PROMPT_NAMES
        assert "appendix" in place or "section" in place
