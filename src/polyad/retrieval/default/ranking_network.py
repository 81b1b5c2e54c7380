"""The neural networks of the second and the last ranking stage, computed with numpy.

The network has one hidden layer beside a linear part, so it is a linear scorer plus what pairs of features say
together. Several networks of different seeds, whose outputs are averaged, are one network with more hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import FloatArray

_MAX_DEVIATIONS = 6.0
"""Standardised features are clipped to this absolute value, so that a rare outlier cannot decide alone."""

_BIAS, _OUTPUT = "bias of each hidden unit", "output of each hidden unit"
_COLUMNS = 3
"""Numbers of a feature before its hidden weights: mean, standard deviation and linear weight."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingNetwork:
    """A network that scores the candidates of a question by their features.

    score = z . linear + relu(z hidden + bias) . output, with z = (features - mean) / deviation, clipped

    Attributes:
        mean: Mean of each feature in training, float32 ``[features]``.
        deviation: Standard deviation of each feature in training, above 0; float32 ``[features]``.
        linear: Weight of each feature in the linear part, float32 ``[features]``.
        hidden: float32 ``[features, units]``.
        bias: float32 ``[units]``.
        output: float32 ``[units]``.
    """

    mean: FloatArray
    deviation: FloatArray
    linear: FloatArray
    hidden: FloatArray
    bias: FloatArray
    output: FloatArray

    def standardise(self, features: FloatArray) -> FloatArray:
        """Return features with mean 0 and standard deviation 1 over the training data, clipped.

        Args:
            features: float32 ``[..., features]``.
        """
        standardised: FloatArray = np.clip(
            (features - self.mean) / self.deviation, -_MAX_DEVIATIONS, _MAX_DEVIATIONS
        ).astype(np.float32, copy=False)
        return standardised

    def score(self, features: FloatArray) -> FloatArray:
        """Return the score of each candidate, float32 ``[candidates]``.

        Args:
            features: In the order of the training, float32 ``[candidates, features]``.
        """
        inputs = self.standardise(features)
        scores: FloatArray = inputs @ self.linear + np.maximum(inputs @ self.hidden + self.bias, 0) @ self.output
        return scores

    def to_rows(self, names: Sequence[str]) -> dict[str, list[float]]:
        """Return the numbers of each feature (mean, deviation, linear and hidden weights), and of the hidden units.

        Args:
            names: Names of the features, in order.
        """
        columns = np.column_stack([self.mean, self.deviation, self.linear, self.hidden]).tolist()
        return {**dict(zip(names, columns, strict=True)), _BIAS: self.bias.tolist(), _OUTPUT: self.output.tolist()}

    @classmethod
    def from_rows(cls, rows: Mapping[str, list[float]], names: Sequence[str], file: str) -> RankingNetwork:
        """Build a network from the rows of :meth:`to_rows`.

        Args:
            rows: The numbers by name.
            names: Names of the features of this version, in order.
            file: Name of the file of the rows, for errors.

        Raises:
            ConfigurationError: The rows are not those of this version's features, or differ in length.
        """
        if rows.keys() != {*names, _BIAS, _OUTPUT}:
            difference = sorted(rows.keys() ^ {*names, _BIAS, _OUTPUT})
            raise ConfigurationError(
                f"{file} has a network with other features (first difference: {difference[0]!r}); train the "
                "weights again with polyad bench train default"
            )
        units = len(rows[_BIAS])
        lengths = {feature: len(rows[feature]) - (_COLUMNS if feature in names else 0) for feature in rows}
        if wrong := [feature for feature, length in lengths.items() if length != units]:
            raise ConfigurationError(
                f"{file} has {lengths[wrong[0]]} hidden weights of {wrong[0]!r}; expected {units}, the number of "
                "biases; train the weights again with polyad bench train default"
            )
        table = np.array([rows[feature] for feature in names], dtype=np.float32)
        mean, deviation, linear = table[:, :_COLUMNS].T
        bias, output = np.array([rows[_BIAS], rows[_OUTPUT]], dtype=np.float32)
        return cls(mean, deviation, linear, table[:, _COLUMNS:], bias, output)
