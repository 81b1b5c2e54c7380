"""Training the linear scorer."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.retrieval.default.signals import SIGNAL_NAMES, UNLINKABLE, Candidates, list_weight_names
from polyad_bench.datasets.beir import Question
from polyad_bench.training.linear_scorer import (
    TrainingExample,
    build_examples,
    compute_candidate_recall,
    compute_recall,
    train_and_save,
    train_linear_scorer,
    train_with_report,
)

NAMES = ["telling", "noise", "misleading"]


def examples(seed: int, count: int = 40, linkability: float = 1.0) -> list[TrainingExample]:
    """Questions whose one gold candidate has the first signal high, the second by chance and the third low."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        signals = random.random((20, 3)).astype(np.float32)
        is_gold = np.zeros(20, dtype=bool)
        is_gold[random.integers(20)] = True
        signals[is_gold, 0] += 0.8
        signals[is_gold, 2] -= 0.8
        made.append(TrainingExample(signals, is_gold[:, None], linkability))
    return made


def with_telling_last(made: list[TrainingExample], linkability: float = 1.0) -> list[TrainingExample]:
    """The same questions with the first and the third signal in each other's place."""
    return [TrainingExample(example.signals[:, [2, 1, 0]], example.holds, linkability) for example in made]


def test_weights_follow_what_tells_gold_apart_and_are_never_below_zero() -> None:
    scorer = train_linear_scorer([examples(1)], NAMES)
    assert scorer.weights["telling"] > 5 * scorer.weights["noise"]
    assert scorer.weights["misleading"] == 0
    assert compute_recall(examples(2), scorer.get_weights(list_weight_names(NAMES)), 5) > 0.9


def test_each_dataset_counts_the_same_however_many_questions_it_has() -> None:
    few = train_linear_scorer([examples(1, count=80), with_telling_last(examples(3, count=4))], NAMES)
    alone = train_linear_scorer([examples(1, count=80)], NAMES)
    assert few.weights["telling"] < alone.weights["telling"] / 2


def test_unlinkable_questions_have_separate_weights() -> None:
    weights = train_linear_scorer([examples(1), with_telling_last(examples(2), linkability=0.0)], NAMES).weights
    assert weights["telling"] > 5 * weights["misleading"]
    assert weights[f"misleading, {UNLINKABLE}"] > 5 * weights[f"telling, {UNLINKABLE}"]


@pytest.mark.parametrize("linkability", [0.0, 1.0])
def test_trained_on_one_kind_of_texts_a_signal_has_the_same_weight_in_the_other(linkability: float) -> None:
    weights = train_linear_scorer([examples(1, linkability=linkability)], NAMES).weights
    assert weights["telling"] > 0
    assert {name: weights[name] for name in NAMES} == {name: weights[f"{name}, {UNLINKABLE}"] for name in NAMES}


def test_a_question_of_texts_in_between_is_scored_by_both_weights() -> None:
    example = TrainingExample(np.array([[1], [2]], dtype=np.float32), np.array([[True], [False]]), 0.25)
    assert example.expand_by_linkability(1).tolist() == [[0.25, 0.75], [0.5, 1.5]]


def test_training_twice_gives_the_same_weights() -> None:
    assert train_linear_scorer([examples(1)], NAMES) == train_linear_scorer([examples(1)], NAMES)


def test_the_report_scores_each_dataset_by_weights_trained_on_the_others() -> None:
    training_report = train_with_report({"one": examples(1), "odd": with_telling_last(examples(2))}, NAMES)
    assert training_report.unseen["odd"] < 0.2, "the other dataset tells nothing of what counts here"
    assert training_report.seen["odd"] > training_report.unseen["odd"]
    assert training_report.candidates == {"one": 1.0, "odd": 1.0}
    assert train_with_report({"one": examples(1)}, NAMES).unseen == {}


def example_of(documents: list[str], gold: set[str], linkability: float = 1.0) -> TrainingExample:
    """A question whose candidates are of these documents, the first the best by the only signal."""
    signals = np.arange(len(documents), 0, -1, dtype=np.float32)[:, None]
    passages = [f"{document}#{place:04}" for place, document in enumerate(documents)]
    candidates = Candidates(documents, signals, passages, linkability)
    (example,) = build_examples([candidates], [Question("q", "?", frozenset(gold))])
    return example


ONE_WEIGHT = np.ones(2, dtype=np.float32)


def test_gold_that_is_no_candidate_counts_as_missed() -> None:
    example = example_of(["a", "x"], {"a", "b"})
    assert compute_recall([example], ONE_WEIGHT, 5) == 0.5
    assert compute_candidate_recall([example]) == 0.5


def test_evidence_that_several_passages_hold_is_found_with_the_first_and_counts_once() -> None:
    example = example_of(["a", "a", "b", "x"], {"a", "b"}, linkability=0.5)
    assert example.holds.tolist() == [[True, False], [True, False], [False, True], [False, False]]
    assert example.is_gold.tolist() == [True, True, True, False]
    assert example.linkability == 0.5
    by_document, by_passage = [example], [replace(example, documents=())]
    assert [compute_recall(by_document, ONE_WEIGHT, k) for k in (1, 2, 3)] == [0.5, 1.0, 1.0]
    assert [compute_recall(by_passage, ONE_WEIGHT, k) for k in (1, 2, 3)] == [0.5, 0.5, 1.0]


def test_saving_writes_weights_a_report_and_a_picture(tmp_path: Path) -> None:
    names = SIGNAL_NAMES
    random = np.random.default_rng(0)
    made = [
        TrainingExample(random.random((9, len(names))).astype(np.float32), (np.arange(9) == 0)[:, None])
        for _ in range(3)
    ]
    report = train_and_save({"d": made}, tmp_path / "new")
    assert {file.name for file in (tmp_path / "new").iterdir()} == {
        "weights.tsv",
        "weights.json",
        "weights.png",
    }
    assert list(report.scorer.weights) == list_weight_names(SIGNAL_NAMES)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError):
        train_and_save({"d": made}, tmp_path / "file")


def test_saving_that_is_stopped_leaves_the_earlier_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = SIGNAL_NAMES
    random = np.random.default_rng(0)
    made = [
        TrainingExample(random.random((9, len(names))).astype(np.float32), np.arange(9)[:, None] == 0, 1.0)
        for _ in range(3)
    ]
    train_and_save({"d": made}, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        train_and_save({"d": made[:1], "e": made[1:]}, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def stopped(descriptor: int) -> None:
    """In place of the moment before a file that was written beside another takes its place."""
    raise KeyboardInterrupt


def test_training_without_scipy_names_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtraError, match=r'scipy is not installed; run: pip install "polyad\[local\]"'):
        train_linear_scorer([examples(0)], NAMES)
