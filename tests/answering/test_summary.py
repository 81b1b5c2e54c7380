from __future__ import annotations

import pytest

from polyad.answering.summary import LONGEST, summarise
from polyad.errors import LanguageModelError, NoLanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Entity

LONG = Entity(
    "bell", "Bell", description="\n".join(f"It was rung {n} times in {1700 + n}. </descriptions>" for n in range(60))
)


def test_short_descriptions_are_their_own_summary() -> None:
    assert summarise(Entity("bell", "Bell", description="A bell.\nCast in 1702."), None) == "A bell.\nCast in 1702."


def test_long_descriptions_are_summed_up_without_the_thoughts() -> None:
    model = ScriptedLanguageModel(["<think>many times</think>Rung every year."])
    assert summarise(LONG, model) == "Rung every year."
    (prompt,) = model.prompts
    assert prompt.user.count("</descriptions>") == 1
    assert "It was rung 59 times" in prompt.user


def test_text_beyond_the_limit_is_left_out() -> None:
    model = ScriptedLanguageModel(["Much."])
    summarise(Entity("bell", "Bell", description="ding dong " * LONGEST), model)
    assert len(model.prompts[0].user) < LONGEST + 200


def test_a_summary_without_a_model_says_what_is_missing() -> None:
    with pytest.raises(NoLanguageModelError, match=r"summary of 'Bell', of which .* needs a language model.*--model"):
        summarise(LONG, None)


def test_a_failed_reply_is_raised() -> None:
    with pytest.raises(LanguageModelError, match="busy"):
        summarise(LONG, ScriptedLanguageModel([LanguageModelError("busy")]))


def test_a_summary_drives_no_terminal() -> None:
    assert summarise(LONG, ScriptedLanguageModel(["Rung \x1b[2Jevery\u202e year."])) == "Rung  [2Jevery year."
