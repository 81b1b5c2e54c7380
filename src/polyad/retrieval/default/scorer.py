"""The scorer of the default retriever, stored as text: linear weights, and the networks of the later stages.

A linear scorer explains itself: a passage's score is the sum of its signals times their weights. A score ranks the
passages of one question but is not comparable across questions; see :mod:`polyad.retrieval.default.relevance`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.retrieval.default.last_stage import LAST_FEATURES
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.second_stage import FEATURES
from polyad.text.digests import is_question_hash
from polyad.text.files import read_file, read_package_file
from polyad.text.words import sanitize_line

WEIGHTS_FILE = "weights.tsv"
"""Name of the file with the trained weights."""

_SECOND_STAGE, _LAST_STAGE = "second stage", "last stage"
_STAGE_PREFIX = re.compile(f"({_SECOND_STAGE}|{_LAST_STAGE}): ")
_FEATURES = {_SECOND_STAGE: FEATURES, _LAST_STAGE: LAST_FEATURES}
_TRAINED_ON = re.compile(r"^# trained on (.+) by: ", re.MULTILINE)
_QUESTIONS_PREFIX = "# questions: "
_DIGESTS_PER_LINE = 6

_CHECKSUM = re.compile(r"^# checksum of the next lines: (\w+)\n(.*)", re.MULTILINE | re.DOTALL)
"""Matches the checksum and the lines that it covers; files that a person wrote have none."""

_MAX_WEIGHT = 1e6
"""Largest absolute weight. Trained weights are below 10; sums of weighted signals must not overflow float32."""


@dataclass(frozen=True, slots=True)
class LinearScorer:
    """A linear model with trained weights, which scores a passage by the weighted sum of its ranking signals.

    Attributes:
        weights: Weights by the names of :func:`polyad.retrieval.default.signals.list_weight_names`.
        trained_on: Names of the data sets that the weights were trained on.
        question_digests: Digests of the training questions (:func:`polyad.text.digests.hash_questions`), so that an
            evaluation can report that it measures on training questions.
        network: The network of the second stage; None if the first stage decides alone.
        last_network: The network of the last stage; None if the stages before it decide.
        file: Name of the file of the weights, for messages.
    """

    weights: dict[str, float]
    trained_on: tuple[str, ...] = ()
    question_digests: tuple[str, ...] = ()
    network: RankingNetwork | None = None
    last_network: RankingNetwork | None = None
    file: str = field(default="", compare=False)

    @classmethod
    def from_settings(cls, weights: str) -> LinearScorer:
        """Load a scorer's weights from the file ``weights``; if empty, load the bundled weights.

        Raises:
            ConfigurationError: The file is missing or invalid.
        """
        if weights:
            return cls.load(Path(weights))
        return cls.from_text(read_package_file("polyad.retrieval.default", WEIGHTS_FILE), WEIGHTS_FILE)

    @classmethod
    def load(cls, path: Path) -> LinearScorer:
        """Load a scorer's weights from a text file.

        Raises:
            ConfigurationError: The file is missing or invalid.
        """
        try:
            return cls.from_text(read_file(path).decode(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"cannot read the weights in {str(path)!r}: {error}; expected a file written by "
                "polyad bench train default"
            ) from error

    @classmethod
    def from_text(cls, text: str, name: str) -> LinearScorer:
        """Parse weights from lines of signal name, tab and weight; ``name`` is the file's name for errors.

        Lines of the later stages have several numbers (:meth:`RankingNetwork.to_rows`).

        Lines that begin with ``#`` are comments. The comments that :meth:`to_text` writes name the training data and
        hold a checksum.

        Raises:
            ConfigurationError: A line is invalid, lines differ from their checksum, or the features of the second
                stage are not those of this version.
        """
        _require_checksum(text, name)
        weights: dict[str, list[float]] = {}
        stages: dict[str, dict[str, list[float]]] = {_SECOND_STAGE: {}, _LAST_STAGE: {}}
        digests: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith(_QUESTIONS_PREFIX):
                digests += _parse_digests(line, f"{name}, line {number}")
            if not line.strip() or line.startswith("#"):
                continue
            signal, *numbers = line.split("\t")
            target = weights
            if stage := _STAGE_PREFIX.match(signal):
                target, signal = stages[stage[1]], signal[stage.end() :]
            try:
                values = [float(number) for number in numbers]
                is_valid = signal not in target and all(abs(value) <= _MAX_WEIGHT for value in values)
            except ValueError:
                is_valid = False
            if not is_valid or (target is weights and len(values) != 1):
                raise ConfigurationError(
                    f"{name}, line {number}: {line[:80]!r}; expected a signal's name, once, a tab and a number up to "
                    f"{_MAX_WEIGHT:,.0f}, as written by polyad bench train default"
                )
            target[signal] = values
        trained = _TRAINED_ON.search(text)
        trained_on = tuple(trained[1].split(", ")) if trained else ()
        network, last_network = (
            RankingNetwork.from_rows(stages[stage], features, name) if stages[stage] else None
            for stage, features in _FEATURES.items()
        )
        first_stage = {signal: value for signal, (value,) in weights.items()}
        return cls(first_stage, trained_on, tuple(digests), network, last_network, name)

    def to_text(self) -> str:
        """Return the weights in the file format of :meth:`from_text`, with comments that name the training data."""
        lines = [
            *(f"{signal}\t{weight:.6g}" for signal, weight in self.weights.items()),
            *(
                "\t".join([f"{stage}: {name}", *(f"{number:.5g}" for number in numbers)])
                for (stage, features), network in zip(_FEATURES.items(), (self.network, self.last_network), strict=True)
                if network
                for name, numbers in network.to_rows(features).items()
            ),
            *(
                _QUESTIONS_PREFIX + " ".join(self.question_digests[start : start + _DIGESTS_PER_LINE])
                for start in range(0, len(self.question_digests), _DIGESTS_PER_LINE)
            ),
        ]
        training = f"# trained on {sanitize_line(', '.join(self.trained_on))} by: polyad bench train default"
        return "\n".join([training, f"# checksum of the next lines: {_compute_checksum(lines)}", *lines]) + "\n"

    def get_weights(self, weight_names: Sequence[str]) -> FloatArray:
        """Return the model's weights in the order of ``weight_names``; float32 ``[weights]``.

        Raises:
            ConfigurationError: The weights are for other signals.
        """
        if set(weight_names) != set(self.weights):
            difference = sorted(set(weight_names) ^ set(self.weights))
            raise ConfigurationError(
                f"the weights{self.file and f' in {self.file!r}'} are for other signals (first difference: "
                f"{difference[0]!r}); expected {WEIGHTS_FILE}, written by: polyad bench train default BEIR_DIR"
            )
        return np.array([self.weights[name] for name in weight_names], dtype=np.float32)


def _compute_checksum(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _require_checksum(text: str, name: str) -> None:
    match = _CHECKSUM.search(text)
    if match and match[1] != _compute_checksum(match[2].splitlines()):
        raise ConfigurationError(
            f"{name} was damaged or changed after it was written: the checksum differs; train the weights again with "
            "polyad bench train default, or remove the line of the checksum"
        )


def _parse_digests(line: str, place: str) -> list[str]:
    digests = line.removeprefix(_QUESTIONS_PREFIX).split()
    for digest in digests:
        if not is_question_hash(digest):
            raise ConfigurationError(
                f"{place}: {digest!r} is not the digest of a question; expected 16 hexadecimal digits, as written by "
                "polyad bench train default"
            )
    return digests
