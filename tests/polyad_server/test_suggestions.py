"""Suggested questions, and follow-up questions without a language model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from polyad import Document, Engine, sample
from polyad.answering.conversation import add_names
from polyad.config import ServerSettings
from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad_server.app import create_app
from polyad_server.suggestions import suggest_questions
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

HISTORY = (
    {"role": "user", "content": "Who cast the bell of Tarn?"},
    {"role": "assistant", "content": "The bell was cast by Ines Moreau in 1921."},
)

FILLER = ". " + "It was so in the old days too, and nobody minded. " * 20


def test_suggested_questions_are_answered_by_their_first_hits(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index_documents(sample.documents())
        questions = suggest_questions(engine)
        assert len(questions) >= 3
        connections = [question for question in questions if question.startswith("How is ")]
        assert len(connections) >= 2
        for question in connections:
            hits = engine.search(question, 3).passages
            first, second = question.removeprefix("How is ").removesuffix("?").split(" connected with ")
            texts = " ".join(f"{hit.passage.title} {hit.passage.text}" for hit in hits).casefold()
            assert first.casefold() in texts
            assert second.casefold() in texts
            assert len({hit.passage.document_id for hit in hits}) > 1


def test_manuals_suggest_questions_about_their_subjects(tmp_path: Path) -> None:
    manuals = (
        Document(
            "a.md",
            "pump-seal(1)",
            "# NAME\n\npump-seal - seals\n\n# SEE ALSO\n\nThe worn\n\n# Worn seals\n\nReplace it.",
        ),
        Document("b.md", "Gates", "# How to open a gate\n\nTurn the wheel.\n\n# Version 2 b4\n\nNew."),
        Document(
            "c.md",
            "Weirs",
            "# What is a weir\n\nA low dam.\n\n# Files\n\nNone.\n\n# About weirs\n\n# gate.open(1)\n\nOpens.",
        ),
        Document("d.md", "set_flow()", "# Valid flows\n\nUp to 3.\n\n# gate_open()\n\nOpens."),
    )
    for each in manuals:
        (tmp_path / each.id).write_text(
            f"# {each.title}\n\n{each.text.replace('# ', '## ').replace('.', FILLER)}", encoding="utf-8"
        )
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index([tmp_path / each.id for each in manuals])
        assert sorted(suggest_questions(engine)) == [
            "How do I open a gate?",
            "What does pump-seal say about Worn seals?",
            "What is a weir?",
        ]


def test_an_index_without_linked_names_suggests_nothing(tmp_path: Path) -> None:
    documents = (Document("a.md", "", "rain fell on 12 May 1931."), Document("b.md", "B", ""))
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        assert suggest_questions(engine) == []
        engine.index_documents(documents)
        assert suggest_questions(engine) == []


def test_the_server_suggests_questions_until_the_index_changes(server: RunningServer) -> None:
    assert server.client.get("/api/v1/suggestions").json()["questions"]
    assert len(server.client.get("/api/v1/suggestions", params={"limit": 1}).json()["questions"]) == 1
    assert server.client.get("/api/v1/suggestions", params={"limit": 0}).status_code == 422


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where was she born?", "Where was she born? (Ines Moreau)"),
        ("Where does the bell of Tarn hang?", "Where does the bell of Tarn hang? (Ines Moreau)"),
        ("Who built Corven Tower?", "Who built Corven Tower?"),
    ],
)
def test_a_follow_up_question_gets_the_names_of_the_last_answer(question: str, expected: str) -> None:
    names = ("Ines Moreau", "bell of Tarn", "Corven Tower")
    assert add_names(question, HISTORY, lambda text: [name for name in names if name in text]) == expected
    assert add_names(question, (), lambda _: ["Ines Moreau"]) == question


@pytest.mark.parametrize("model", [None, ScriptedLanguageModel(lambda _: LanguageModelError("busy"))])
def test_a_follow_up_question_without_a_model_is_searched_with_names_of_the_index(
    tmp_path: Path, model: ScriptedLanguageModel | None
) -> None:
    with Engine.open(build_index(tmp_path / "kb"), language_model=model) as engine:
        question = engine.rewrite_question("When did she die?", HISTORY)
        assert question.startswith("When did she die? (")
        assert "Ines Moreau" in question
        assert engine.search(question, 1).passages[0].passage.document_id == "moreau.md"


def test_a_stream_begins_with_the_evidence_for_the_completed_question(server: RunningServer) -> None:
    history: list[Mapping[str, str]] = list(HISTORY)
    body = {"question": "When did she die?", "history": history, "stream": True, "min_relevance": 0}
    with server.client.stream("POST", "/api/v1/ask", json=body) as response:
        lines = list(response.iter_lines())
    assert lines[0] == "event: evidence"
    assert "Ines Moreau" in lines[1][:200]


def test_the_best_sentence_answers_the_follow_up_question_as_it_was_typed(tmp_path: Path) -> None:
    text = "Ines Moreau, the Ines Moreau of Tarn, was a founder. She learnt it in Aldby. She died in her house."
    index = build_index(tmp_path / "kb", (Document("life.md", "Life", text),))
    body = {"question": "Who was it that died?", "history": list(HISTORY), "min_relevance": 0}
    with run_app(create_app(Workspaces(open_index(), [index]), ServerSettings())) as server:
        evidence = server.client.post("/api/v1/ask", json=body).json()["evidence"]
    [hit] = evidence["hits"]
    best = hit["best_sentences"][0]
    assert hit["text"][best["start"] : best["end"]] == "She died in her house."
