from __future__ import annotations

import math
import random

import ir_measures
import pytest

from polyad_bench.measures.ranking import all_recall, hits, ndcg, recall, reciprocal_rank

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


@pytest.mark.parametrize(("gold", "k", "expected"), [({"x"}, 1, 1.0), ({"a"}, 1, 0.0), ({"a"}, 5, 1 / math.log2(3))])
def test_ndcg_discounts_by_rank(gold: set[str], k: int, expected: float) -> None:
    assert ndcg(RANKED, gold, k) == pytest.approx(expected)


def test_ranking_measures_are_those_of_ir_measures_on_a_thousand_random_cases() -> None:
    """trec_eval's own numbers, behind ir_measures; documents are ranked by falling scores without ties."""
    chooser = random.Random(7)
    documents = [f"d{number}" for number in range(30)]
    for case in range(1000):
        ranked = chooser.sample(documents, chooser.randint(1, 25))
        gold = set(chooser.sample(documents, chooser.randint(1, 6)))
        k = chooser.choice((1, 3, 5, 10))
        qrels = {"q": dict.fromkeys(gold, 1)}
        results = {"q": {id: float(len(ranked) - place) for place, id in enumerate(ranked)}}
        expected = [ir_measures.R @ k, ir_measures.nDCG @ k, ir_measures.Success @ k, ir_measures.RR @ k]
        theirs = ir_measures.calc_aggregate(expected, qrels, results)
        ours = [measure(ranked, gold, k) for measure in (recall, ndcg, hits)] + [reciprocal_rank(ranked[:k], gold)]
        assert ours == pytest.approx([theirs[measure] for measure in expected], abs=1e-4), (case, ranked, gold, k)
