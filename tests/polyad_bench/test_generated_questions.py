from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.text.words import normalize_words
from polyad_bench.datasets.beir import load_beir
from polyad_bench.generated_questions import KNOWN_ITEM, TWO_HOP, generate_questions, write_question_set

DOCUMENTS = [
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by the founder Ines Moreau in the spring of 1702."),
    Document("moreau", "Ines Moreau", "She learned to cast bronze from her uncle in the village of Aldby near Tarn."),
    Document("aldby", "Aldby", "This village on the river Isk is known all over for its old walnut orchards."),
    Document("copy", "A copy", "The otter closes both of its small round ears whenever it dives for fish."),
    Document("again", "Another copy", "The otter closes both of its small round ears whenever it dives for fish."),
    Document("short", "Short", "Otters eat fish."),
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16)) as opened:
        opened.index_documents(DOCUMENTS)
        yield opened


def test_known_items_leave_words_of_a_sentence_out_and_name_its_passage(engine: Engine) -> None:
    made = generate_questions(engine, 10)
    names = {question.gold: question.text for question in made.questions if question.kind == KNOWN_ITEM}
    assert names.keys() == {("bell#0000",), ("moreau#0000",), ("aldby#0000",)}, "no copies, and nothing short"
    replies = normalize_words(names["bell#0000",].partition('"')[2].replace("_", " "))
    sentence = normalize_words(DOCUMENTS[0].text)
    assert len(sentence) / 3 <= len(replies) < len(sentence)
    left = iter(sentence)
    assert all(word in left for word in replies), "what is left is in its order"


def test_two_hops_lead_from_a_sentence_to_the_passage_about_the_name_left_out(engine: Engine) -> None:
    made = generate_questions(engine, 10)
    two_hop = {question.gold: question for question in made.questions if question.kind == TWO_HOP}
    assert two_hop.keys() == {("bell#0000", "moreau#0000"), ("moreau#0000", "aldby#0000")}
    bell = two_hop["bell#0000", "moreau#0000"]
    assert bell.answers == ("Ines Moreau",)
    assert '"The Bell of Tarn was cast by the founder ___ in the spring of 1702."' in bell.text


def test_a_seed_gives_the_same_questions_and_another_one_others(engine: Engine) -> None:
    first = generate_questions(engine, 2, seed=1)
    assert generate_questions(engine, 2, seed=1) == first
    assert any(generate_questions(engine, 2, seed=seed) != first for seed in range(2, 6))
    assert [question.kind for question in first.questions] == [KNOWN_ITEM, KNOWN_ITEM, TWO_HOP, TWO_HOP]


def test_a_written_question_set_is_a_benchmark(engine: Engine, tmp_path: Path) -> None:
    made = generate_questions(engine, 10)
    write_question_set(made, tmp_path / "own")
    dataset = load_beir(tmp_path / "own")
    assert [query.text for query in dataset.queries] == [question.text for question in made.questions]
    assert [query.gold for query in dataset.queries] == [frozenset(question.gold) for question in made.questions]
    assert dataset.unknown == ()
    assert dataset.find_missing_gold({passage.id for passage in made.passages}) == []
    with pytest.raises(ConfigurationError, match="holds a data set already"):
        write_question_set(made, tmp_path / "own")


def test_documents_without_a_sentence_to_ask_for_are_refused(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "other", embedder=HashingEmbedder(16)) as opened:
        opened.index_documents([DOCUMENTS[-1]])
        with pytest.raises(ConfigurationError, match="no question can be made of 1 passages"):
            generate_questions(opened, 10)
