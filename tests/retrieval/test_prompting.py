from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedOutcome
from polyad.protocols.components import Prompt
from polyad.retrieval.prompting import PAUSE, BestEffortPrompter
from polyad.stores.sqlite import SqliteValueFile


def number(reply: str) -> int | None:
    return int(reply) if reply.isdecimal() else None


def asking(*script: ScriptedOutcome) -> tuple[Callable[[], int | None], ScriptedLanguageModel]:
    model = ScriptedLanguageModel(script)
    prompter = BestEffortPrompter(model, "zero is taken")
    return lambda: prompter.ask(Prompt(user="How many?"), number, "a number"), model


def test_the_reply_of_the_model_is_returned(caplog: pytest.LogCaptureFixture) -> None:
    assert asking("42")[0]() == 42
    assert asking("0")[0]() == 0
    assert not caplog.records


def test_without_a_reply_there_is_no_advice_but_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ask, _ = asking(LanguageModelError("busy"), "7")
    assert ask() is None
    assert caplog.messages == ["zero is taken: busy"]
    assert ask() == 7, "a single failure is no reason to stop asking"


def test_a_reply_that_cannot_be_read_is_asked_for_again_the_next_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replies = SqliteValueFile(tmp_path / "replies.sqlite")
    model = CachedLanguageModel(ScriptedLanguageModel(["Gladly!", "7"]), replies, lambda _: None)
    prompter = BestEffortPrompter(model, "zero is taken")
    prompt = Prompt(user="How many?")
    assert prompter.ask(prompt, number, "a number") is None
    assert "zero is taken: expected a number" in caplog.messages[0]
    assert prompter.ask(prompt, number, "a number") == 7


def test_after_a_failure_that_concerns_all_nothing_is_asked_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("polyad.retrieval.prompting.time.monotonic", lambda: now)
    ask, model = asking(NoMoreRepliesError("nobody there"), "7")
    assert (ask(), ask()) == (None, None)
    assert len(model.prompts) == 1
    now += PAUSE
    assert ask() == 7
