"""Scores triples by plausibility: HyperRAG's classifier f_theta (section 3.1.4), run with numpy.

A perceptron with one hidden layer reads a question and a triple as x = [q || h || f || t || extras] (eq. 9): the
vectors of the question, the head, the hyperedge and the tail, then structural features and those that the recipe adds.
The first layer is linear, so W x is a sum of parts. The parts of heads, hyperedges and tails are multiplied once for
each row that a question reaches (:meth:`TripleScorer.predict_by_row`); a triple then costs three lookups and a dot
product of the hidden layer's width.

Weights are stored in one safetensors file whose metadata hold the recipe. Weights for another embedder are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

import numpy as np

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.hypergraph.distance import Triples, get_encoding_width
from polyad.model import FloatArray
from polyad.text.digests import is_question_hash
from polyad.text.files import read_file, write_atomically
from polyad.text.json_types import parse_value

HIDDEN = 256
"""Width of the hidden layer of a new scorer."""

BUNDLED_FOR = "all-MiniLM-L6-v2"
"""The embedder of the weights that come with polyad."""

_BATCH = 2048  # triples scored at once, so that their hidden layer stays in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The configuration of a triple scorer, stored with its weights: embedder, input features and training data.

    Attributes:
        embedder: Name of the embedder of all vectors.
        dimension: Length of its vectors.
        rounds: L of the directional distance encoding (:mod:`polyad.hypergraph.distance`), 0 or more.
        directions: Whether forward and backward encodings are ``separate`` or ``mixed``.
        starts: Where the encoding starts: at the entities of the question, or at every head (eq. 4).
        closeness: Whether the cosines of the question to head, hyperedge and tail are features.
        signals: Names of the default retriever's signals, of the hyperedge's passage, that are features; usually none.
        trained_on: Names of the data sets; empty for an untrained scorer.
        questions: Digests of the training and validation questions
            (:func:`polyad.text.digests.hash_questions`).

    Raises:
        ConfigurationError: A value is invalid.
    """

    embedder: str
    dimension: int
    rounds: int = 2
    directions: Literal["separate", "mixed"] = "separate"
    starts: Literal["heads", "topics"] = "topics"
    closeness: bool = True
    signals: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, is_valid, expected in (
            ("embedder", bool(self.embedder), "the name of an embedder"),
            ("dimension", self.dimension > 0, "a whole number, 1 or more"),
            ("rounds", self.rounds >= 0, "a whole number, 0 or more"),
            (
                "questions",
                all(map(is_question_hash, self.questions)),
                "digests of questions, 16 hexadecimal digits each",
            ),
        ):
            if not is_valid:
                raise ConfigurationError(
                    f"{name} is {getattr(self, name)!r} in a recipe of weights; expected {expected}"
                )

    @property
    def extra_count(self) -> int:
        """The number of input features of a triple other than the vectors of question, head, hyperedge and tail."""
        return 2 * get_encoding_width(self.rounds, self.directions) + 3 * self.closeness + len(self.signals)

    @property
    def width(self) -> int:
        """The number of input features of a triple, including the elements of its vectors."""
        return 4 * self.dimension + self.extra_count

    def require_match(self, embedder: str, dimension: int, signals: Sequence[str], *, file: str = "") -> None:
        """Raise ConfigurationError if a scorer's weights were trained for another embedder or other features.

        Args:
            embedder: Name of the embedder of the index.
            dimension: Length of its vectors.
            signals: Names of the available signals; empty if the scorer must not read signals.
            file: Path of the weights, for the message.

        Raises:
            ConfigurationError: The embedder or dimension differs, or a signal is unknown.
        """
        weights, train = f"the weights in {file!r}" if file else "these weights", _how_to_train(bool(signals))
        if embedder != self.embedder:
            raise ConfigurationError(
                f"{weights} were trained with the embedder {self.embedder!r}, and the index was built with "
                f"{embedder!r}; {train}"
            )
        if dimension != self.dimension:
            raise ConfigurationError(
                f"{weights} are for vectors of {self.dimension} numbers, and the embedder {embedder!r} gives "
                f"{dimension}; {train}"
            )
        if bool(self.signals) != bool(signals):
            expected, actual = ("with", "without") if signals else ("without", "with")
            raise ConfigurationError(
                f"{weights} are for HyperRetriever {actual} signals; expected weights {expected} signals; "
                f"set signals = {str(not signals).lower()} in the section [hyperretriever], or {train}"
            )
        if not set(self.signals) <= set(signals):
            raise ConfigurationError(
                f"{weights} read the signals {', '.join(map(repr, self.signals))}; this version of polyad has "
                f"{', '.join(map(repr, signals))}; {train}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class TripleScorer:
    """A neural network with one hidden layer that predicts how plausible a triple is for a question.

    p = sigmoid(output . relu(hidden x + hidden_bias) + output_bias)

    Attributes:
        recipe: The features of x.
        hidden: float32 ``[hidden, width]``.
        hidden_bias: float32 ``[hidden]``.
        output: float32 ``[hidden]``.
        output_bias: float32 ``[1]``.

    Raises:
        ConfigurationError: A shape does not fit the recipe, or a value is not finite.
    """

    recipe: Recipe
    hidden: FloatArray
    hidden_bias: FloatArray
    output: FloatArray
    output_bias: FloatArray

    def __post_init__(self) -> None:
        units = max(1, self.output.size)
        expected = {
            "hidden": (units, self.recipe.width),
            "hidden_bias": (units,),
            "output": (units,),
            "output_bias": (1,),
        }
        for name, shape in expected.items():
            array = getattr(self, name)
            if array.shape != shape:
                raise ConfigurationError(
                    f"the weights {name!r} have shape {array.shape}; expected {shape} for {self.recipe.width} numbers "
                    "a triple; train them again"
                )
            if not np.isfinite(array).all():
                raise ConfigurationError(
                    f"the weights {name!r} hold {array[~np.isfinite(array)][0]}; expected finite numbers; train them "
                    "again"
                )

    @classmethod
    def create_untrained(cls, recipe: Recipe, seed: int = 0, units: int = HIDDEN) -> TripleScorer:
        """Return a triple scorer with ``units`` hidden units and random weights, to be trained or as a baseline."""
        random = np.random.default_rng(seed)

        def uniform(fan_in: int, *shape: int) -> FloatArray:
            return random.uniform(-(fan_in**-0.5), fan_in**-0.5, shape).astype(np.float32)

        width = recipe.width
        return cls(
            recipe, uniform(width, units, width), uniform(width, units), uniform(units, units), uniform(units, 1)
        )

    def predict(self, features: FloatArray) -> FloatArray:
        """Return the plausibility, in (0, 1), of each triple from its feature vector.

        Args:
            features: float32 ``[triples, width]``.
        """
        hidden = np.maximum(features @ self.hidden.T + self.hidden_bias, 0)
        return _sigmoid(hidden @ self.output + self.output_bias)

    def predict_by_row(
        self, question: FloatArray, vectors: Iterable[FloatArray], triples: Triples, extras: FloatArray
    ) -> FloatArray:
        """Return the plausibility, in (0, 1), of each triple, with little work for triples that share vectors.

        Each vector is multiplied with the first layer once, however many triples contain it. Plausibilities equal those
        of :meth:`predict` except for the order of summation.

        Args:
            question: Vector of the question, ``[dimension]``.
            vectors: Vectors of head entities, of hyperedges and of tail entities, each float32 ``[rows, dimension]``.
            triples: Indices into the three arrays of vectors: heads, hyperedges and tails.
            extras: Features other than vectors, float32 ``[triples, recipe.extra_count]``.
        """
        dimension = self.recipe.dimension
        question_weights, *weights = (self.hidden[:, dimension * n : dimension * (n + 1)] for n in range(4))
        heads, edges, tails = (array @ weight.T for array, weight in zip(vectors, weights, strict=True))
        extra_weights = np.ascontiguousarray(self.hidden[:, 4 * dimension :].T)
        constant = question_weights @ question + self.hidden_bias
        logits = np.empty(len(triples), dtype=np.float32)
        for start in range(0, len(triples), _BATCH):
            batch = slice(start, start + _BATCH)
            hidden = extras[batch] @ extra_weights
            hidden += constant
            hidden += heads[triples.heads[batch]]
            hidden += edges[triples.edges[batch]]
            hidden += tails[triples.tails[batch]]
            logits[batch] = np.maximum(hidden, 0, out=hidden) @ self.output
        return _sigmoid(logits + self.output_bias)

    def save(self, path: Path) -> None:
        """Write the weights as float16, which halves the file and changes scores by less than 0.001.

        Equal weights give equal bytes: the recipe is one entry of the metadata, as safetensors does not order entries.

        Raises:
            ConfigurationError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        try:
            from safetensors.numpy import save
        except ImportError as error:
            raise MissingExtraError("safetensors", "local") from error
        arrays = {name: np.ascontiguousarray(getattr(self, name), dtype=np.float16) for name in _ARRAYS}
        try:
            write_atomically(path, save(arrays, {_RECIPE: json.dumps(asdict(self.recipe), sort_keys=True)}))
        except OSError as error:
            raise ConfigurationError(f"cannot write the weights to {str(path)!r}: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path) -> TripleScorer:
        """Load a triple scorer from a file of weights that :meth:`save` wrote.

        Raises:
            ConfigurationError: The file is missing, invalid or damaged.
            MissingExtraError: safetensors is not installed.
        """
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load
        except ImportError as error:
            raise MissingExtraError("safetensors", "local") from error
        try:
            contents = read_file(path)
            arrays = load(contents)
            header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
            with np.errstate(over="ignore"):  # a number beyond float16 becomes infinite, which is refused
                weights = [arrays[name].astype(np.float16).astype(np.float32) for name in _ARRAYS]
            recipe = parse_value(json.loads(header.get("__metadata__", {}).get(_RECIPE, "null")), Recipe)
            return cls(recipe, *weights)
        except (
            *(OSError, SafetensorError, TypeError, ValueError, LookupError, RecursionError, ConfigurationError),
        ) as error:
            raise ConfigurationError(
                f"cannot read the weights in {str(path)!r}: {error}; expected a file written by "
                "polyad bench train hyperretriever"
            ) from error

    @classmethod
    def load_bundled(cls, embedder: str, *, signals: bool) -> TripleScorer:
        """Load the triple scorer that is part of polyad, which was trained for the embedder :data:`BUNDLED_FOR`.

        With ``signals``, the scorer also reads ranking signals.

        Raises:
            ConfigurationError: The weights are for another embedder.
        """
        if embedder != BUNDLED_FOR:
            raise ConfigurationError(
                f"the weights that come with polyad are for the embedder {BUNDLED_FOR!r}, and the index was built "
                f"with {embedder!r}; {_how_to_train(signals)}"
            )
        with as_file(files("polyad.retrieval.hyperretriever").joinpath(get_weights_file_name(signals=signals))) as path:
            return cls.load(path)

    @classmethod
    def from_settings(cls, weights: str, embedder: str, dimension: int, signals: Sequence[str]) -> TripleScorer:
        """Load the scorer's weights from a file, or the bundled weights, and check that they fit the embedder.

        Args:
            weights: Path of a file, or an empty string.
            embedder: Name of the embedder of the index.
            dimension: Length of its vectors.
            signals: Names of the available signals; empty if the scorer must not read signals.

        Raises:
            ConfigurationError: The weights are missing, or are for another embedder or variant.
        """
        scorer = cls.load(Path(weights)) if weights else cls.load_bundled(embedder, signals=bool(signals))
        scorer.recipe.require_match(embedder, dimension, signals, file=weights)
        return scorer


_ARRAYS = ("hidden", "hidden_bias", "output", "output_bias")

_RECIPE = "recipe"
"""The entry of the metadata that holds the recipe, as JSON."""


def get_weights_file_name(*, signals: bool) -> str:
    """Return the file name of the triple scorer's bundled weights, with or without ranking signals as inputs."""
    return "hyperretriever_signals.safetensors" if signals else "hyperretriever.safetensors"


def _how_to_train(signals: bool) -> str:
    variant = " with signals = true in the section [hyperretriever] of polyad.toml" if signals else ""
    return f"train weights with: polyad bench train hyperretriever BEIR_DIR{variant}"


def _sigmoid(logits: FloatArray) -> FloatArray:
    """Return the logistic function of ``logits`` without overflow."""
    result: FloatArray = np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * logits))
    return result
