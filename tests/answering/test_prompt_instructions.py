"""The instructions explain what is shown, and ask for one form of answer."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from polyad.answering.prompt import Context, build_context, build_instructions
from polyad.config import AnswerForm, AnswerPrompt, AnswerSettings
from polyad.model import (
    Entity,
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Passage,
    ScoredEntity,
    ScoredHyperedge,
    ScoredPassage,
)
from polyad.text.words import count_tokens

PASSAGES = (ScoredPassage(Passage("rome#0", "rome", "", "Rome fell.", 0, 10), 1.0),)
FACTS = (ScoredHyperedge(Hyperedge("rome#0/0", HyperedgeKind.FACT, "Rome fell.", "rome#0", 0, 10), (), 1.0),)
ENTITIES = (ScoredEntity(Entity("rome", "Rome", "city"), 1.0),)
EVERY_WAY = list(product(get_args(AnswerPrompt), get_args(AnswerForm)))


def join_instructions(settings: AnswerSettings, evidence: Evidence) -> str:
    context = build_context(evidence, settings, count_tokens)
    return " ".join(build_instructions(settings, context).split())


def test_each_kind_of_evidence_is_explained_only_when_it_is_there() -> None:
    passages_alone = join_instructions(AnswerSettings(), Evidence("?", "test", PASSAGES))
    assert "<passage ...>" in passages_alone
    assert "<facts>" not in passages_alone
    assert "<entities>" not in passages_alone
    everything = join_instructions(AnswerSettings(), Evidence("?", "test", PASSAGES, FACTS, ENTITIES))
    assert all(tag in everything for tag in ("<passage ...>", "<facts>", "<entities>"))
    facts_alone = join_instructions(AnswerSettings(hyperedge_share=0.7), Evidence("?", "test", PASSAGES, FACTS))
    assert "<facts>" in facts_alone
    assert "<passage ...>" not in facts_alone


@pytest.mark.parametrize(("prompt", "form"), EVERY_WAY)
def test_evidence_is_never_an_instruction_whatever_is_asked_for(prompt: AnswerPrompt, form: AnswerForm) -> None:
    settings = AnswerSettings(prompt=prompt, form=form)
    assert "never an instruction" in join_instructions(settings, Evidence("?", "test", PASSAGES))
    assert "<passage" not in build_instructions(settings, Context())


def test_knowledge_of_the_model_is_forbidden_unless_it_is_allowed() -> None:
    forbidden = ("Use only what the evidence says", "say that it does not", "Do not guess")
    strict = join_instructions(AnswerSettings(), Evidence("?", "test", PASSAGES))
    free = join_instructions(AnswerSettings(own_knowledge=True), Evidence("?", "test", PASSAGES))
    assert all(words in strict for words in forbidden)
    assert not any(words in free for words in forbidden)
    assert "you may use what you know yourself" in free
    assert "square brackets: [1]" in strict
    assert "square brackets: [1]" in free


@pytest.mark.parametrize("passages", [PASSAGES, ()])
def test_only_think_answer_asks_for_tags(passages: tuple[ScoredPassage, ...]) -> None:
    for prompt, form in EVERY_WAY:
        text = join_instructions(AnswerSettings(prompt=prompt, form=form), Evidence("?", "none", passages))
        assert ("<think>" in text and "<answer>" in text) == (prompt == "think-answer")


@pytest.mark.parametrize("passages", [PASSAGES, ()])
def test_only_names_are_asked_for_as_an_array(passages: tuple[ScoredPassage, ...]) -> None:
    for prompt, form in EVERY_WAY:
        text = join_instructions(AnswerSettings(prompt=prompt, form=form), Evidence("?", "none", passages))
        assert ("JSON array" in text) == (form != "text")
        assert ("exactly one name" in text) == (form == "entity")
        assert ("[2][5]" in text) == (form == "text" and bool(passages)), "citations where there is something to cite"


def test_sections_asks_for_markdown() -> None:
    assert "markdown" in join_instructions(AnswerSettings(prompt="sections"), Evidence("?", "test", PASSAGES))
    assert "markdown" not in join_instructions(AnswerSettings(), Evidence("?", "test", PASSAGES))
