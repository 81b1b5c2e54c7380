"""Training the linear scorer."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import Query
from polyad.evaluation.signal_training import Example, coverage, examples_of, recall_at, report, save, train
from polyad.retrieval.default.signals import signal_names

NAMES = ["telling", "noise", "misleading"]


def examples(seed: int, count: int = 40) -> list[Example]:
    """Questions whose one gold candidate has the first signal high, the second by chance and the third low."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        signals = random.random((20, 3)).astype(np.float32)
        is_gold = np.zeros(20, dtype=bool)
        is_gold[random.integers(20)] = True
        signals[is_gold, 0] += 0.8
        signals[is_gold, 2] -= 0.8
        made.append(Example(signals, is_gold, 1))
    return made


def test_weights_follow_what_tells_gold_apart_and_are_never_below_zero() -> None:
    scorer = train([examples(1)], NAMES)
    assert scorer.weights["telling"] > 5 * scorer.weights["noise"]
    assert scorer.weights["misleading"] == 0
    assert recall_at(examples(2), scorer.vector(NAMES), 5) > 0.9


def test_each_dataset_counts_the_same_however_many_questions_it_has() -> None:
    swapped = [Example(example.signals[:, [2, 1, 0]], example.is_gold, 1) for example in examples(3, count=4)]
    few = train([examples(1, count=80), swapped], NAMES)
    alone = train([examples(1, count=80)], NAMES)
    assert few.weights["telling"] < alone.weights["telling"] / 2


def test_training_twice_gives_the_same_weights() -> None:
    assert train([examples(1)], NAMES) == train([examples(1)], NAMES)


def test_the_report_scores_each_dataset_by_weights_trained_on_the_others() -> None:
    swapped = [Example(example.signals[:, [2, 1, 0]], example.is_gold, 1) for example in examples(2)]
    found = report({"one": examples(1), "odd": swapped}, NAMES)
    assert found.unseen["odd"] < 0.2, "the other dataset tells nothing of what counts here"
    assert found.seen["odd"] > found.unseen["odd"]
    assert found.candidates == {"one": 1.0, "odd": 1.0}
    assert report({"one": examples(1)}, NAMES).unseen == {}


def test_gold_that_is_no_candidate_counts_as_missed() -> None:
    query = Query("q", "?", frozenset({"a", "b"}))
    (example,) = examples_of([(["a", "x"], np.array([[1.0], [0.0]], dtype=np.float32))], [query])
    assert recall_at([example], np.array([1.0], dtype=np.float32), 5) == 0.5
    assert coverage([example]) == 0.5


def test_saving_writes_weights_a_report_and_a_picture_for_each_set_of_signals(tmp_path: Path) -> None:
    names = signal_names(rewriting=True)
    random = np.random.default_rng(0)
    made = [Example(random.random((9, len(names))).astype(np.float32), np.arange(9) == 0, 1) for _ in range(3)]
    reports = save({"d": made}, tmp_path / "new")
    assert {file.name for file in (tmp_path / "new").iterdir()} == {
        "weights.tsv",
        "weights.json",
        "weights.png",
        "weights_rewriting.tsv",
        "weights_rewriting.json",
        "weights_rewriting.png",
    }
    assert list(reports["weights.tsv"].scorer.weights) == signal_names(rewriting=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write into"):
        save({"d": made}, tmp_path / "file")


def test_saving_that_is_stopped_leaves_the_earlier_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = signal_names(rewriting=True)
    random = np.random.default_rng(0)
    made = [
        Example(random.random((9, len(names))).astype(np.float32), np.arange(9)[:, None] == 0, 1.0) for _ in range(3)
    ]
    save({"d": made}, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        save({"d": made[:1], "e": made[1:]}, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def stopped(descriptor: int) -> None:
    """In place of the moment before a file that was written beside another takes its place."""
    raise KeyboardInterrupt
