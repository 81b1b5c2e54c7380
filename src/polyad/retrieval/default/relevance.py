"""Relevance: how likely a passage is to be evidence, as a calibrated probability beside the score.

A score ranks the passages of one question, and says little across questions: the best of passages that have nothing to
do with a question has a score too. A logistic model of the score and of measures that mean the same for every question
tells how often passages like this one were evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyad.model import FloatArray

MEASURES = (
    "score",
    "cosine",
    "cosine of the nearest hyperedge",
    "share of the question's words",
    "about an entity of the question",
)
"""What relevance is told by, in the order of its columns."""

CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The logistic model: what each of :data:`MEASURES` counts, and a constant; empty where none was fitted."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def relevance(self, measures: FloatArray) -> list[float | None]:
        """The probability that each passage is evidence, in [0, 1]; None where no model was fitted.

        Args:
            measures: float32 ``[passages, measures]``, in the order of :data:`MEASURES`.
        """
        if not self.weights:
            return [None] * len(measures)
        slopes = np.array([self.weights[name] for name in MEASURES])
        logits = measures @ slopes + self.weights[CONSTANT]
        likely: list[float | None] = (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).tolist()
        return likely
