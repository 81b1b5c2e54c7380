"""Prompts in other languages than English: in which language a model answers, and how it writes names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document
from polyad.protocols.components import Prompt
from polyad.text.prompts import DEFAULT_PROMPTS

FACT = "Die Glockengießerin Ines Moreau goss die Glocke von Tarn im Jahr 1921."
TEXT = f"{FACT} Sie hängt im Turm von Corven."
QUESTION = "Glocke von Tarn 是谁铸造的?"
ANSWER = "Glocke von Tarn 由 Ines Moreau 铸造 [1]。"


def obey(prompt: Prompt) -> str:
    """Reply as a model that writes English unless the instructions name another language."""
    system = " ".join(prompt.system.split())
    if "<passage" not in prompt.user or "Question:" in prompt.user:
        is_chinese = "Answer in the language of the question" in system
        return (
            ANSWER if is_chinese and "Write names as the evidence writes them" in system else "Inès Moreau cast it [1]."
        )
    if "Write in the language of the passage, but copy names exactly as written" in system:
        return json.dumps(
            {
                "facts": [{"text": FACT, "score": 9, "entities": ["Ines Moreau", "Glocke von Tarn"]}],
                "entities": [
                    "Ines Moreau | Glockengießerin | goss die Glocke | 90",
                    "Glocke von Tarn | Glocke | 1921 | 80",
                ],
            }
        )
    return json.dumps({"facts": [{"text": "Agnes Moreau cast it.", "score": 9, "entities": ["Agnes Moreau"]}]})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder="hashing", language_model=ScriptedLanguageModel(obey)) as engine:
        engine.index_documents([Document("glocke", "Glocke von Tarn", TEXT)], method="facts")
        yield engine


def test_an_answer_is_in_the_language_of_the_question_with_the_names_of_the_evidence(engine: Engine) -> None:
    answer = engine.ask(QUESTION)
    assert answer.text == ANSWER
    assert [citation.document_id for citation in answer.citations] == ["glocke"]


def test_facts_and_names_stay_in_the_language_of_the_text(engine: Engine) -> None:
    evidence = engine.search("Wer goss die Glocke von Tarn?", retriever="hypergraphrag")
    assert [scored.hyperedge.text for scored in evidence.hyperedges] == [FACT]
    assert {member.name for member in evidence.hyperedges[0].members} == {"Ines Moreau", "Glocke von Tarn"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("answer_unaided_text", "Answer in the language of the question"),
        ("answer_entities", "Spell each name as you found it"),
        ("answer_entity", "Spell the name as you found it"),
        ("entity_summary", "in the language of the remarks"),
        ("facts_paper", "names are never translated"),
        ("hypersu_clues", "in the language of the question, and copy its names"),
        ("mentions", "never translate"),
        ("question", "in the language of the facts"),
        ("question_names", "exactly as it is written there"),
        ("question_rewrite", "in its language"),
    ],
)
def test_every_prompt_for_text_or_names_states_their_language(name: str, rule: str) -> None:
    assert rule in " ".join(DEFAULT_PROMPTS.get_text(name).split())
