from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from scipy import stats

from polyad_bench.measures.significance import (
    bootstrap_interval,
    correct_holm,
    randomisation_test,
    welch_test,
)


def test_the_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(3).normal(0.1, 1.0, 200)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=5).confidence_interval
    assert bootstrap_interval(values.tolist(), seed=1) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_the_interval_holds_the_truth_in_about_95_of_100_samples() -> None:
    generator = np.random.default_rng(11)
    held = 0
    for seed in range(200):
        low, high = bootstrap_interval(generator.normal(0.3, 1.0, 60).tolist(), seed, resamples=1000)
        held += low <= 0.3 <= high
    assert 178 <= held <= 199


def test_randomising_comes_near_to_trying_all_signs() -> None:
    differences = [0.5, -0.25, 1.0, 0.0, 0.5, 0.25, 0.75, -0.5, 1.0, 0.5]
    sums = [abs(sum(pair)) for pair in itertools.product(*((value, -value) for value in differences))]
    exact = sum(value >= abs(sum(differences)) - 1e-12 for value in sums) / len(sums)
    assert randomisation_test(differences, seed=0) == pytest.approx(exact, abs=0.01)


def test_equal_results_are_not_significant_and_no_p_value_is_zero() -> None:
    assert randomisation_test([0.0, 0.0], seed=0) == 1.0
    assert randomisation_test([1.0] * 50, seed=0) == 1 / 10_001
    assert bootstrap_interval([0.5], seed=0) == (0.5, 0.5)


def test_the_same_seed_gives_the_same_and_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser = random.Random(4)
    values = [chooser.random() - 0.4 for _ in range(37)]
    whole = (bootstrap_interval(values, seed=9), randomisation_test(values, seed=9))
    assert (bootstrap_interval(values, seed=9), randomisation_test(values, seed=9)) == whole
    assert (bootstrap_interval(values, seed=8), randomisation_test(values, seed=8)) != whole
    monkeypatch.setattr("polyad_bench.measures.significance._BATCH_NUMBERS", 37 * 64)
    assert bootstrap_interval(values, seed=9) == whole[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),
        ([0.9, 0.8, 0.001], [1.0, 1.0, 0.003]),
        ([0.04, 0.04], [0.08, 0.08]),
    ],
)
def test_holm_corrects_step_by_step(values: list[float], expected: list[float]) -> None:
    assert correct_holm(values) == pytest.approx(expected)


def test_welchs_test_is_that_of_scipy_and_runs_without_deviation_are_equal_or_not() -> None:
    first, second = [62.6, 62.9, 62.1], [68.7, 68.4, 68.9, 68.6]
    assert welch_test(first, second) == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)
    assert welch_test([1.0, 1.0], [1.0, 1.0, 1.0]) == 1
    assert welch_test([1.0, 1.0], [2.0, 2.0]) == 0
