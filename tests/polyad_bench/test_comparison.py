from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from polyad.errors import ConfigurationError
from polyad.text.json_types import format_value
from polyad_bench.datasets.beir import Question
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.runs.comparison import (
    compare_systems,
    comparisons_to_json,
    find_failures,
    load_systems,
    pair_systems,
    parse_min_differences,
)
from polyad_bench.runs.records import QuestionRecord, RankedPassage

QUERIES = [Question(f"q{number}", f"Question {number}?", frozenset({"gold"})) for number in range(6)]


def write_run(folder: Path, results: Mapping[str, Sequence[str]], digest: str = "d", k: int = 5) -> str:
    """A run in which each retriever found one document a question, in the order of the questions."""
    folder.mkdir()
    dataset = {"name": "tarn", "digest": digest, "questions": [query.id for query in QUERIES]}
    manifest = {"format": 3, "dataset": dataset, "k": k, "seed": 0, "retrievers": list(results)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "cost.json").write_text('{"index": {}}')
    lines = [
        format_value(QuestionRecord(name, query, (RankedPassage(f"{id}#0", id, 1.0, 60),)))
        for name, ids in results.items()
        for query, id in zip(QUERIES, ids, strict=True)
    ]
    (folder / "per_query.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder)


WELL, BADLY, MIXED = ["gold"] * 6, ["other"] * 6, ["gold", "other", "gold", "gold", "other", "gold"]


def test_the_second_run_is_compared_with_the_first(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", {"bm25": MIXED}), write_run(tmp_path / "b", {"bm25": WELL})]
    (comparison,) = compare_systems(pair_systems(load_systems(runs)), ["recall@5", "recall@50w"], seed=0)
    recall, in_words = comparison.differences
    assert (recall.first, recall.second, recall.difference) == pytest.approx((4 / 6, 1.0, 2 / 6))
    assert recall.low <= 2 / 6 <= recall.high
    assert recall.p == pytest.approx(0.5, abs=0.02), "two of four signs are as extreme"
    assert (in_words.difference, in_words.p) == (0.0, 1.0), "no passage fits into 50 words"
    assert recall.p_holm == min(1.0, 2 * recall.p)
    assert [(by, one.query.id) for by, one, _ in comparison.rank_questions(parse_measure("recall@5"))] == [
        (1, "q1"),
        (1, "q4"),
    ]
    shape: Any = comparisons_to_json([comparison])
    assert shape["comparisons"][0]["questions"][0] == {
        "query_id": "q1",
        "question": "Question 1?",
        "gold": ["gold"],
        "difference": 1.0,
        "first": ["other#0"],
        "second": ["gold#0"],
    }


def test_the_first_system_is_compared_with_the_others(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", {"bm25": MIXED, "default": WELL, "dense": BADLY})
    two = write_run(tmp_path / "b", {"default": MIXED, "bm25": WELL})

    def names(*runs: str) -> list[tuple[str, str]]:
        return [tuple(system.name.rpartition("/")[2] for system in pair) for pair in pair_systems(load_systems(runs))]  # type: ignore[misc]

    assert names(one) == [("a:bm25", "a:default"), ("a:bm25", "a:dense")]
    assert names(one, two) == [("a:default", "b:default"), ("a:bm25", "b:bm25")]
    assert names(f"{one}:dense", two) == [("a:dense", "b:default"), ("a:dense", "b:bm25")]
    assert names(f"{one}:bm25", f"{one}:default") == [("a:bm25", "a:default")]
    with pytest.raises(ConfigurationError):
        names(f"{one}:bm25")
    with pytest.raises(ConfigurationError, match="has no retriever 'hypersu'; it has bm25, default, dense"):
        names(f"{one}:hypersu")
    with pytest.raises(ConfigurationError, match=r"manifest.json' is missing"):
        names(str(tmp_path / "nowhere"))


def test_runs_of_other_questions_are_not_compared(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", {"bm25": MIXED}), write_run(tmp_path / "b", {"bm25": WELL}, digest="other")]
    with pytest.raises(ConfigurationError):
        pair_systems(load_systems(runs))


@pytest.mark.parametrize(
    ("bound", "fails"), [("recall@5=-33.3", True), ("recall@5=-33.4", False), ("recall@5=0", True)]
)
def test_a_bound_fails_below_it(tmp_path: Path, bound: str, fails: bool) -> None:
    runs = [write_run(tmp_path / "a", {"bm25": WELL}), write_run(tmp_path / "b", {"bm25": MIXED})]
    bounds = parse_min_differences([bound])
    comparisons = compare_systems(pair_systems(load_systems(runs)), list(bounds), seed=0)
    assert bool(find_failures(comparisons, bounds)) is fails


def test_the_same_run_stays_within_a_bound_of_nothing(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", {"bm25": MIXED}), write_run(tmp_path / "b", {"bm25": MIXED})]
    assert (
        find_failures(compare_systems(pair_systems(load_systems(runs)), ["recall@5"], seed=0), {"recall@5": 0.0}) == []
    )


@pytest.mark.parametrize("text", ["recall@5", "recall@5=much", "=1"])
def test_a_bound_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expected (MEASURE=POINTS|one of recall)"):
        parse_min_differences([text])


@pytest.mark.parametrize("name", ["recall", "recall@0", "precision@5", "recall@5x", "mrr@"])
def test_a_measure_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no measure '{name}'"):
        parse_measure(name)
