"""How sure a difference is: two retrievers on the same questions, each question a pair.

Both tests take the questions as the sample, as they are what another day would bring others of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyad.model import FloatArray

RESAMPLES = 10_000

_AT_ONCE = 1 << 22
"""Numbers drawn at a time: 32 MiB."""


def bootstrap_interval(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """The interval in which the mean lies with 95 per cent confidence: percentile bootstrap (Efron, 1979).

    Of paired differences, the paired bootstrap of Sakai (2006) and Koehn (2004).

    Args:
        values: One of each question; at least one.
        seed: Of the resamples.
        resamples: How many samples of as many questions are drawn, with replacement.
    """
    drawn = np.asarray(values, dtype=np.float64)
    generator, means = np.random.default_rng(seed), []
    for size in _portions(resamples, len(drawn)):
        means.append(drawn[generator.integers(0, len(drawn), (size, len(drawn)))].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def randomisation_test(differences: Sequence[float], seed: int, resamples: int = RESAMPLES) -> float:
    """How likely so large a mean difference is if it does not matter which of the two retrievers is which.

    Paired randomisation test, two-sided (Smucker, Allan and Carterette, 2007): the sign of each question's difference
    is drawn anew. The observed signs count as one draw, so that the value is never 0.

    Args:
        differences: One of each question; at least one.
        seed: Of the signs.
        resamples: How often they are drawn.
    """
    given: FloatArray = np.asarray(differences, dtype=np.float64)
    moved = given[given != 0]
    if not len(moved):
        return 1.0
    generator, reached = np.random.default_rng(seed), 0
    observed = abs(moved.sum()) * (1 - 1e-12)  # sums in another order differ in their last digits
    for size in _portions(resamples, len(moved)):
        signs = generator.integers(0, 2, (size, len(moved)), dtype=np.int8) * 2 - 1
        reached += int(np.count_nonzero(np.abs(signs @ moved) >= observed))
    return (reached + 1) / (resamples + 1)


def correct_holm(values: Sequence[float]) -> list[float]:
    """The values of several tests, corrected so that one wrong finding among all is as unlikely as each says.

    Holm (1979): the smallest is multiplied by how many there are, the next by one less, and none gets less than one
    before it.

    >>> correct_holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(values)
    highest = 0.0
    for place, row in enumerate(sorted(range(len(values)), key=lambda row: (values[row], row))):
        highest = max(highest, min(1.0, (len(values) - place) * values[row]))
        corrected[row] = highest
    return corrected


def _portions(total: int, width: int) -> list[int]:
    """``total`` rows of ``width`` numbers in portions that fit into memory."""
    most = max(1, _AT_ONCE // width)
    return [min(most, total - start) for start in range(0, total, most)]
