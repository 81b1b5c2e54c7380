"""The linear scorer of the default retriever: a weight for each signal, kept as text.

A linear scorer can say why: a passage's score is the sum of its signals times their weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.retrieval.default.relevance import CONSTANT, MEASURES, Calibration
from polyad.text.digests import is_digest
from polyad.text.files import packaged

_RELEVANCE = "relevance by "
"""Before the names of the measures of relevance in a file of weights."""

_TRAINED_ON = re.compile(r"^# trained on (.+) by: ", re.MULTILINE)

_QUESTIONS = "# questions: "
"""Before digests of questions in a file of weights; so many of them in one line."""
_IN_A_LINE = 6


def weights_file(rewriting: bool) -> str:
    """The name of the file that weights are kept in."""
    return "weights_rewriting.tsv" if rewriting else "weights.tsv"


@dataclass(frozen=True, slots=True)
class LinearScorer:
    """Weights by the names of their signals.

    Attributes:
        weights: By the names of :func:`polyad.retrieval.default.signals.profile_names`.
        trained_on: Names of the benchmarks.
        calibration: Tells relevance from scores.
        questions: Digests of the questions that it was trained on (:func:`polyad.text.digests.question_digests`).
            Weights of earlier versions have none.
    """

    weights: dict[str, float]
    trained_on: tuple[str, ...] = ()
    calibration: Calibration = field(default_factory=Calibration)
    questions: tuple[str, ...] = ()

    @classmethod
    def bundled(cls, *, rewriting: bool) -> LinearScorer:
        """The weights that come with polyad, for the signals with rewriting or without."""
        name = weights_file(rewriting)
        return cls.from_text(packaged("polyad.retrieval.default", name), name)

    @classmethod
    def from_settings(cls, weights: str, *, rewriting: bool) -> LinearScorer:
        """The weights in the file ``weights``, or where it is empty the bundled ones.

        Raises:
            ConfigurationError: the file is missing or not a list of weights.
        """
        return cls.load(Path(weights)) if weights else cls.bundled(rewriting=rewriting)

    @classmethod
    def load(cls, path: Path) -> LinearScorer:
        """Weights that were trained earlier.

        Raises:
            ConfigurationError: the file is missing or not a list of weights.
        """
        try:
            return cls.from_text(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"cannot read the weights in {str(path)!r}: {error}; expected a file written by polyad train default"
            ) from error

    @classmethod
    def from_text(cls, text: str, name: str) -> LinearScorer:
        """Parse lines of a signal's name, a tab and its weight.

        Lines that begin with ``#`` are comments; those that :meth:`to_text` writes say what they were trained on.
        """
        weights: dict[str, float] = {}
        calibration: dict[str, float] = {}
        questions: list[str] = []
        trained = _TRAINED_ON.search(text)
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith(_QUESTIONS):
                questions += _digests(line, f"{name}, line {number}")
            if not line.strip() or line.startswith("#"):
                continue
            signal, _, weight = line.partition("\t")
            of_relevance = signal.startswith(_RELEVANCE)
            try:
                (calibration if of_relevance else weights)[signal.removeprefix(_RELEVANCE)] = float(weight)
            except ValueError as error:
                raise ConfigurationError(
                    f"{name}, line {number}: {line!r}; expected a signal's name, a tab and a number"
                ) from error
        if calibration and calibration.keys() != {*MEASURES, CONSTANT}:
            found, expected = (", ".join(sorted(names)) for names in (calibration, {*MEASURES, CONSTANT}))
            raise ConfigurationError(f"{name} tells relevance by {found}; expected {expected}; train again")
        trained_on = tuple(trained[1].split(", ")) if trained else ()
        return cls(weights, trained_on, Calibration(calibration), tuple(questions))

    def to_text(self) -> str:
        """The file's contents, between comments of what the weights were trained on."""
        lines = [
            f"# trained on {', '.join(self.trained_on)} by: polyad train default",
            *(f"{signal}\t{weight:.6g}" for signal, weight in self.weights.items()),
            *(f"{_RELEVANCE}{measure}\t{weight:.6g}" for measure, weight in self.calibration.weights.items()),
            *(
                _QUESTIONS + " ".join(self.questions[start : start + _IN_A_LINE])
                for start in range(0, len(self.questions), _IN_A_LINE)
            ),
        ]
        return "\n".join(lines) + "\n"

    def vector(self, signals: Sequence[str]) -> FloatArray:
        """The weights in the order of ``signals``; float32 ``[signals]``.

        Raises:
            ConfigurationError: the weights are for other signals.
        """
        if set(signals) != set(self.weights):
            odd = sorted(set(signals) ^ set(self.weights))
            raise ConfigurationError(
                f"these weights are for other signals (first difference: {odd[0]!r}); expected a file weights.tsv, or "
                "weights_rewriting.tsv to search with --rewrite, written by: polyad train default BEIR_DIR"
            )
        return np.array([self.weights[signal] for signal in signals], dtype=np.float32)


def _digests(line: str, place: str) -> list[str]:
    """The digests of a line of them.

    Raises:
        ConfigurationError: something in it is none.
    """
    found = line.removeprefix(_QUESTIONS).split()
    for one in found:
        if not is_digest(one):
            raise ConfigurationError(
                f"{place}: {one!r} is no digest of a question; expected 16 hexadecimal digits, as polyad train default "
                "writes them"
            )
    return found
