"""The one or two sentences of a hit that answer the question."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad import Document, Engine
from polyad.model import Span
from polyad.retrieval.answer_sentences import find_answer_sentences
from polyad.schemas.evidence import evidence_json
from polyad.text.json_types import format_value

FAQ = """Can several servers share one repository?

Several servers can share one repository, but that is slow. This is a matter of locks.

How do I change the port of the server?

Edit server.toml and start the daemon again. The clients look for it by themselves.

The server watches itself. Logs of the server are kept on disk. Logs are kept for 30 days.
The server writes its logs to /var/log.
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    engine = Engine.open(tmp_path_factory.mktemp("kb"), embedder="hashing:64")
    engine.index_documents([Document("faq", "Questions", FAQ), Document("song", "Song", "Sing in quick time.")])
    return engine


def test_a_derivation_of_a_word_of_the_question_counts(tmp_path: Path) -> None:
    text = "She kept bees. At fifteen she was apprenticed to a clockmaker. She kept a notebook of her mistakes too."
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index_documents([Document("varga", "Ilse Varga", text), Document("song", "Song", "Sing in quick time.")])
        assert find_best(engine, "Where did Ilse Varga serve her apprenticeship?") == [
            "At fifteen she was apprenticed to a clockmaker."
        ]


def find_best(engine: Engine, question: str) -> list[str]:
    hit = engine.search(question, 1).passages[0]
    return [span.of(hit.passage.text) for span in hit.best_sentences]


def test_the_answer_is_chosen_rather_than_the_question_before_it(engine: Engine) -> None:
    assert "Edit server.toml" in find_best(engine, "How do I change the port of the server?")[0]


def test_a_number_is_chosen_for_a_question_about_a_duration(engine: Engine) -> None:
    assert find_best(engine, "How long are logs kept?")[0] == "Logs are kept for 30 days."


@pytest.mark.parametrize(
    ("question", "sentences", "best"),
    [
        ("Why is the pump loud?", ["The pump is loud at night.", "The pump is loud because its seal leaks."], 1),
        ("How do I stop the pump?", ["The pump can stop.", "To stop the pump, press the red key."], 1),
        ("Which option stops the pump?", ["The pump stops here.", "The pump stops with --halt."], 1),
        ("May I open the pump?", ["The pump can be opened.", "Never open the pump."], 1),
        ("Who built the pump?", ["Ada built the pump.", "The pump is loud."], 0),
    ],
)
def test_of_sentences_that_fit_equally_the_expected_kind_of_answer_is_best(
    question: str, sentences: list[str], best: int
) -> None:
    text = " ".join(sentences)
    spans = [Span(text.index(each), text.index(each) + len(each)) for each in sentences]
    values = [0.5, 0.5] if best else [0.5, 0.4]
    assert find_answer_sentences(question, text, spans, values)[0] == spans[best]


@pytest.mark.parametrize(
    ("sentences", "values", "expected"),
    [
        (["The pump has a seal.", "It is made of rubber.", "The pump is red."], [0.2, 0.9, 0.6], [1, 0]),
        (["The pump is red.", "To stop the pump:", "Press the key."], [0.6, 0.9, 0.1], [1, 2]),
        (["Pump seals", "The seals of a pump wear."], [0.9, 0.6], [1, 0]),
    ],
)
def test_a_sentence_that_says_little_alone_comes_with_its_neighbour(
    sentences: list[str], values: list[float], expected: list[int]
) -> None:
    text = "\n".join(sentences)
    spans = [Span(text.index(each), text.index(each) + len(each)) for each in sentences]
    assert find_answer_sentences("Of what is it?", text, spans, values) == [spans[place] for place in expected]


@given(st.lists(st.tuples(st.text("ab 1?.", min_size=1, max_size=9), st.floats(0, 1)), min_size=1, max_size=20))
def test_one_or_two_different_sentences_are_returned(sentences: list[tuple[str, float]]) -> None:
    spans, text = [], ""
    for sentence, _ in sentences:
        spans.append(Span(len(text), len(text) + len(sentence)))
        text += sentence + " "
    best = find_answer_sentences("How long?", text, spans, [value for _, value in sentences])
    assert 1 <= len(best) <= 2
    assert len(set(best)) == len(best)
    assert set(best) <= set(spans)


def test_json_has_the_best_sentences_as_ranges_of_the_text(engine: Engine) -> None:
    evidence = engine.search("How long are logs kept?", 1)
    (hit,) = format_value(evidence_json(evidence, explain=False))["hits"]
    best = hit["best_sentences"][0]
    assert hit["text"][best["start"] : best["end"]] == "Logs are kept for 30 days."


def test_hits_without_excerpts_have_no_best_sentences(engine: Engine) -> None:
    evidence = engine.search("How long are logs kept?", 1, merge=False)
    assert evidence_json(evidence, explain=False).hits[0].best_sentences == ()


def test_best_sentences_lie_in_a_hit_that_is_cut(tmp_path: Path) -> None:
    dull = "Nothing of note happens on the parade ground at noon. " * 12
    text = f"{dull}The full step in quick time is thirty inches. {dull}"
    with Engine.open(tmp_path / "kb", embedder="hashing:64") as engine:
        engine.index_documents([Document("drill", "Drill", text)])
        hit = engine.search("How long is the full step in quick time?", max_words=30).passages[0]
    assert hit.best_sentences[0].of(hit.passage.text) == "The full step in quick time is thirty inches."
