from __future__ import annotations

import pytest

from polyad.evaluation.measures import all_recall, recall, reciprocal_rank

RANKED = ["x", "a", "y", "b", "z"]


@pytest.mark.parametrize(
    ("gold", "k", "expected"),
    [
        ({"a", "b"}, 1, 0.0),
        ({"a", "b"}, 2, 0.5),
        ({"a", "b"}, 3, 0.5),
        ({"a", "b"}, 4, 1.0),
        ({"a", "b", "c"}, 5, 2 / 3),
        ({"c"}, 5, 0.0),
        ({"a"}, 100, 1.0),
    ],
)
def test_recall_is_the_share_of_the_gold_documents_found(gold: set[str], k: int, expected: float) -> None:
    assert recall(RANKED, gold, k) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gold", "k", "expected"), [({"a", "b"}, 3, 0.0), ({"a", "b"}, 4, 1.0), ({"a", "c"}, 5, 0.0), ({"x"}, 1, 1.0)]
)
def test_all_recall_needs_every_gold_document(gold: set[str], k: int, expected: float) -> None:
    assert all_recall(RANKED, gold, k) == expected


@pytest.mark.parametrize(("gold", "expected"), [({"x"}, 1.0), ({"b", "a"}, 0.5), ({"z"}, 0.2), ({"c"}, 0.0)])
def test_reciprocal_rank_is_that_of_the_first_gold_document(gold: set[str], expected: float) -> None:
    assert reciprocal_rank(RANKED, gold) == expected


def test_an_empty_ranking_scores_nothing() -> None:
    assert (recall([], {"a"}, 5), all_recall([], {"a"}, 5), reciprocal_rank([], {"a"})) == (0, 0, 0)
