"""Significance of differences: confidence intervals and tests on paired questions.

Both methods treat the questions as a sample of all questions that users might ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from polyad.errors import MissingExtraError
from polyad.model import FloatArray

RESAMPLES = 10_000

_BATCH_NUMBERS = 1 << 22
"""Random numbers drawn at a time: 32 MiB."""


def bootstrap_interval(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95 per cent confidence interval of the mean of ``values`` by the percentile bootstrap (Efron, 1979).

    For paired differences, this is the paired bootstrap of Sakai (2006) and Koehn (2004).

    Args:
        values: One value per question; at least one.
        seed: Seed of the resamples.
        resamples: Number of samples with replacement.
    """
    sample = np.asarray(values, dtype=np.float64)
    generator, means = np.random.default_rng(seed), []
    for size in _split_batches(resamples, len(sample)):
        means.append(sample[generator.integers(0, len(sample), (size, len(sample)))].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def randomisation_test(differences: Sequence[float], seed: int) -> float:
    """Return the two-sided p value of a randomisation test on paired ``differences`` (Smucker et al., 2007).

    Each resample draws the sign of every difference at random. The observed signs count as one resample, so that the
    p value is never 0.

    Args:
        differences: One difference per question; at least one.
        seed: Seed of the signs.
    """
    values: FloatArray = np.asarray(differences, dtype=np.float64)
    nonzero = values[values != 0]
    if not len(nonzero):
        return 1.0
    generator, count = np.random.default_rng(seed), 0
    observed = abs(nonzero.sum()) * (1 - 1e-12)  # tolerance: sums in another order differ in their last digits
    for size in _split_batches(RESAMPLES, len(nonzero)):
        signs = generator.integers(0, 2, (size, len(nonzero)), dtype=np.int8) * 2 - 1
        count += int(np.count_nonzero(np.abs(signs @ nonzero) >= observed))
    return (count + 1) / (RESAMPLES + 1)


def welch_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p value of Welch's t-test on the results of two systems with at least two runs each.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy.stats import ttest_ind_from_stats  # takes half a second to import
    except ImportError as error:
        raise MissingExtraError("scipy", "local") from error
    samples = [(fmean(values), stdev(values), len(values)) for values in (first, second)]
    if samples[0][1] == samples[1][1] == 0:
        return float(samples[0][0] == samples[1][0])
    return float(ttest_ind_from_stats(*samples[0], *samples[1], equal_var=False).pvalue)


def correct_holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple tests by the step-down method of Holm (1979).

    >>> correct_holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, row in enumerate(sorted(range(len(p_values)), key=lambda row: (p_values[row], row))):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[row]))
        corrected[row] = highest
    return corrected


def _split_batches(row_count: int, column_count: int) -> list[int]:
    """Return batch sizes that add up to ``row_count``, so that each batch of rows fits into memory."""
    size = max(1, _BATCH_NUMBERS // column_count)
    return [min(size, row_count - start) for start in range(0, row_count, size)]
