"""The splits of a benchmark's questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.errors import ConfigurationError
from polyad.text.digests import hash_questions
from polyad_bench.datasets.beir import Dataset, Question
from polyad_bench.datasets.selection import (
    Splits,
    TrainingQuestions,
    select_questions,
    split_dataset,
    split_questions,
)

QUERIES = tuple(Question(f"q{number}", f"What is {number}?", frozenset({"d"})) for number in range(50))
DATASET = Dataset("fifty", Path("corpus.jsonl"), QUERIES)
NAMES = ("train", "validation", "test")


def test_every_question_is_in_one_split() -> None:
    splits = split_dataset(DATASET)
    assert all(getattr(splits, name) for name in NAMES)
    assert sorted([*splits.train, *splits.validation, *splits.test], key=QUERIES.index) == list(QUERIES)


@pytest.mark.parametrize("limit", [1, 7, 25, 49, 50, 99])
def test_the_split_of_a_question_is_the_same_whatever_the_limit(limit: int) -> None:
    whole, limited = split_dataset(DATASET), split_dataset(DATASET, limit)
    for name in NAMES:
        assert getattr(limited, name) == tuple(query for query in getattr(whole, name) if query in QUERIES[:limit])


@pytest.mark.parametrize("trained", [None, 10, 30])
@pytest.mark.parametrize("request_count", [None, 1, 5])
def test_no_question_asked_for_test_is_one_that_training_saw(trained: int | None, request_count: int | None) -> None:
    queries = select_questions(DATASET, "test", request_count)
    assert len(queries) == (request_count or len(split_dataset(DATASET).test))
    splits = split_dataset(DATASET, trained)
    assert {*splits.train, *splits.validation}.isdisjoint(queries)


def test_a_split_comes_in_the_order_of_the_file_and_is_then_limited() -> None:
    for name in NAMES:
        part = select_questions(DATASET, name)
        assert list(part) == sorted(part, key=QUERIES.index)
        assert set(part) == set(getattr(split_dataset(DATASET), name))
        assert select_questions(DATASET, name, 3) == part[:3]
    assert select_questions(DATASET, "all", 3) == QUERIES[:3]


def test_unseen_are_those_that_no_weights_were_trained_on() -> None:
    first, second = (
        TrainingQuestions(name, ("any name",), hash_questions(query.text for query in QUERIES[part]))
        for name, part in (("default", slice(20)), ("hyperretriever", slice(15, 40)))
    )
    assert select_questions(DATASET, "unseen") == QUERIES
    assert select_questions(DATASET, "unseen", training_questions=[first]) == QUERIES[20:]
    assert select_questions(DATASET, "unseen", 3, [first, second]) == QUERIES[40:43]
    everything = TrainingQuestions("default", ("any name",), hash_questions(query.text for query in QUERIES))
    with pytest.raises(ConfigurationError, match="fifty has 50 questions, and none of them in 'unseen'"):
        select_questions(DATASET, "unseen", training_questions=[everything])
    untold = TrainingQuestions("hyperretriever", ("2wiki",), ())
    with pytest.raises(ConfigurationError):
        select_questions(DATASET, "unseen", training_questions=[untold])
    assert (
        select_questions(DATASET, "unseen", training_questions=[TrainingQuestions("hyperretriever", (), ())]) == QUERIES
    )


def test_a_split_without_questions_is_refused() -> None:
    one = QUERIES[:1]
    with pytest.raises(ConfigurationError, match="'x' are 1 for train, 0 for validation, 1 for test"):
        Splits(one, (), one).require_nonempty("x")
    Splits(one, one, one).require_nonempty("x")
    with pytest.raises(ConfigurationError, match="tiny has 1 question, and none of them in 'test'"):
        select_questions(Dataset("tiny", Path("corpus.jsonl"), one), "test")


def test_a_question_that_is_added_moves_no_other() -> None:
    before = {query: place for place, part in enumerate(split_questions(QUERIES)) for query in part}
    for added in range(50, 250):
        more = (*QUERIES[:25], Question(f"q{added}", f"And what is {added}?", frozenset({"d"})), *QUERIES[25:])
        after = {query: place for place, part in enumerate(split_questions(more)) for query in part}
        assert after.items() >= before.items()


def test_questions_are_split_by_their_texts_whatever_their_ids_case_and_order() -> None:
    queries = [Question(f"q{number}", f"Who was the {number}th?", frozenset({"d"})) for number in range(2000)]
    splits = split_questions(queries)
    assert [len(part) / 2000 for part in splits] == pytest.approx([0.64, 0.16, 0.2], abs=0.02)
    assert [part[::-1] for part in split_questions(queries[::-1])] == list(splits)
    others = [Question(f"other {query.id}", query.text.upper().replace(" ", "\n"), query.gold) for query in queries]
    assert [[f"other {query.id}" for query in part] for part in splits] == [
        [query.id for query in part] for part in split_questions(others)
    ]
