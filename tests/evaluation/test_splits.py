"""The splits of a benchmark's questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import Dataset, Question
from polyad.evaluation.splits import Splits, queries_of, split, splits_of

QUERIES = tuple(Question(f"q{number}", f"What is {number}?", frozenset({"d"})) for number in range(50))
DATASET = Dataset("fifty", Path("corpus.jsonl"), QUERIES)
NAMES = ("train", "validation", "test")


def test_every_question_is_in_one_split() -> None:
    splits = splits_of(DATASET)
    assert [len(getattr(splits, name)) for name in NAMES] == [32, 8, 10]
    assert sorted([*splits.train, *splits.validation, *splits.test], key=QUERIES.index) == list(QUERIES)


@pytest.mark.parametrize("limit", [1, 7, 25, 49, 50, 99])
def test_the_split_of_a_question_is_the_same_whatever_the_limit(limit: int) -> None:
    whole, limited = splits_of(DATASET), splits_of(DATASET, limit)
    for name in NAMES:
        assert getattr(limited, name) == tuple(query for query in getattr(whole, name) if query in QUERIES[:limit])


@pytest.mark.parametrize("trained", [None, 10, 30])
@pytest.mark.parametrize("asked", [None, 1, 5])
def test_no_question_asked_for_test_is_one_that_training_saw(trained: int | None, asked: int | None) -> None:
    queries = queries_of(DATASET, "test", asked)
    assert len(queries) == (asked or 10)
    assert splits_of(DATASET, trained).seen(queries) == 0


def test_a_split_comes_in_the_order_of_the_file_and_is_then_limited() -> None:
    for name in NAMES:
        part = queries_of(DATASET, name)
        assert list(part) == sorted(part, key=QUERIES.index)
        assert set(part) == set(getattr(splits_of(DATASET), name))
        assert queries_of(DATASET, name, 3) == part[:3]
    assert queries_of(DATASET, "all", 3) == QUERIES[:3]


def test_seen_are_those_trained_on_and_those_that_training_stops_by() -> None:
    splits = splits_of(DATASET)
    assert splits.seen(QUERIES) == 40
    assert splits.seen(splits.validation) == 8


def test_a_split_without_questions_is_refused() -> None:
    one = QUERIES[:1]
    with pytest.raises(ConfigurationError, match="'x' are 1 for train, 0 for validation, 1 for test"):
        Splits(one, (), one).require_all("x")
    Splits(one, one, one).require_all("x")
    with pytest.raises(ConfigurationError, match="tiny has 1 question, and none of them in 'test'"):
        queries_of(Dataset("tiny", Path("corpus.jsonl"), one), "test")


def test_questions_are_split_by_their_ids_whatever_their_order() -> None:
    queries = [Question(f"q{number}", "?", frozenset({"d"})) for number in range(1000)]
    splits = split(queries)
    assert [len(part) for part in splits] == [640, 160, 200]
    assert split(queries[::-1]) == splits
    assert sorted(query.id for part in splits for query in part) == sorted(query.id for query in queries)
    assert split(queries, seed=1)[2] != splits[2]
