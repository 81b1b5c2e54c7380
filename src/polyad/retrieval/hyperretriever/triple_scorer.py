"""The plausibility of a triple: HyperRAG's classifier f_theta (section 3.1.4), run with numpy.

A perceptron with one hidden layer reads a question and a triple as x = [q || h || f || t || extras] (eq. 9): the
vectors of the question, the head, the hyperedge and the tail, then the structural numbers and what else the recipe
names. The first layer is linear, so W x is a sum of parts: those of heads, hyperedges and tails are multiplied once for
each that a question reaches (:class:`PrecomputedScorer`), and a triple costs three look-ups and a dot product of the
hidden layer's width.

Weights are kept in one safetensors file whose metadata say what they are for. They are of no use with the vectors of
another embedder, so loading them beside one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.hypergraph.distance import Triples, get_encoding_width
from polyad.model import FloatArray
from polyad.text.digests import is_digest
from polyad.text.files import write_atomically

HIDDEN = 256
"""Width of the hidden layer of a new scorer."""

BUNDLED_FOR = "all-MiniLM-L6-v2"
"""The embedder that the weights that come with polyad are for."""

_BLOCK = 2048  # triples scored at once: the hidden layer of as many stays in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a scorer reads, and where it came from: the metadata of a file of weights.

    Attributes:
        embedder: Name of the embedder of all vectors.
        dimension: Length of its vectors.
        rounds: L of the directional distance encoding (:mod:`polyad.hypergraph.distance`), 0 or more.
        directions: Whether forward and backward encodings are ``separate`` or ``mixed``.
        starts: Where the encoding starts: the entities the question names, or every head (eq. 4).
        closeness: Whether the cosines of the question to head, hyperedge and tail are read too.
        signals: Names of the signals of the hyperedge's passage that are read too; mostly none.
        trained_on: Names of the data sets; none for a scorer that was not trained.
        questions: Digests of their questions that it was trained on, or that it was stopped by
            (:func:`polyad.text.digests.question_digests`). Weights of earlier versions have none.

    Raises:
        ConfigurationError: a value is none of these.
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
        for name, is_right, expected in (
            ("embedder", _is_name(self.embedder), "the name of an embedder"),
            ("dimension", _is_whole(self.dimension, 1), "a whole number, 1 or more"),
            ("rounds", _is_whole(self.rounds, 0), "a whole number, 0 or more"),
            ("directions", self.directions in ("separate", "mixed"), "'separate' or 'mixed'"),
            ("starts", self.starts in ("heads", "topics"), "'heads' or 'topics'"),
            ("closeness", isinstance(self.closeness, bool), "true or false"),
            ("signals", _are_names(self.signals), "the names of signals"),
            ("trained_on", _are_names(self.trained_on), "the names of data sets"),
            ("questions", _are_digests(self.questions), "digests of questions, 16 hexadecimal digits each"),
        ):
            if not is_right:
                raise ConfigurationError(
                    f"{name} is {getattr(self, name)!r} in a recipe of weights; expected {expected}"
                )

    @property
    def extras(self) -> int:
        """How many numbers follow the four vectors."""
        return 2 * get_encoding_width(self.rounds, self.directions) + 3 * self.closeness + len(self.signals)

    @property
    def width(self) -> int:
        """Length of x."""
        return 4 * self.dimension + self.extras

    def require(self, embedder: str, dimension: int, signals: Sequence[str], *, file: str = "") -> None:
        """Refuse to be used for anything else.

        Args:
            embedder: Name of the embedder of the index.
            dimension: Length of its vectors.
            signals: Names of the signals there are; none where the scorer is to read none.
            file: Where the weights are from, for the message.

        Raises:
            ConfigurationError: the vectors are another embedder's or of another length, or a signal is unknown.
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
            wanted, found = ("with", "without") if signals else ("without", "with")
            raise ConfigurationError(
                f"{weights} are for HyperRetriever {found} signals; expected some for it {wanted} them; "
                f"set signals = {str(not signals).lower()} in the section [hyperretriever], or {train}"
            )
        if not set(self.signals) <= set(signals):
            raise ConfigurationError(
                f"{weights} read the signals {', '.join(map(repr, self.signals))}; this version of polyad has "
                f"{', '.join(map(repr, signals))}; {train}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class TripleScorer:
    """A perceptron with one hidden layer: p = sigmoid(output . relu(hidden x + hidden_bias) + output_bias).

    Attributes:
        recipe: What x is.
        hidden: float32 ``[hidden, width]``.
        hidden_bias: float32 ``[hidden]``.
        output: float32 ``[hidden]``.
        output_bias: float32 ``[1]``.

    Raises:
        ConfigurationError: the arrays do not fit together or do not fit the recipe, or hold what is no number.
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
    def untrained(cls, recipe: Recipe, seed: int = 0, units: int = HIDDEN) -> TripleScorer:
        """Weights as training begins with them: small and random. What a trained scorer is compared with."""
        random = np.random.default_rng(seed)

        def uniform(fan_in: int, *shape: int) -> FloatArray:
            return random.uniform(-(fan_in**-0.5), fan_in**-0.5, shape).astype(np.float32)

        width = recipe.width
        return cls(
            recipe, uniform(width, units, width), uniform(width, units), uniform(units, units), uniform(units, 1)
        )

    def scores(self, features: FloatArray) -> FloatArray:
        """The plausibility of each x, in (0, 1); the plain forward pass, which :class:`PrecomputedScorer` takes apart.

        Args:
            features: float32 ``[triples, width]``.
        """
        hidden = np.maximum(features @ self.hidden.T + self.hidden_bias, 0)
        return _sigmoid(hidden @ self.output + self.output_bias)

    def save(self, path: Path) -> None:
        """Write the weights as float16, which halves the file and moves scores by less than a thousandth.

        Equal weights give equal bytes: the recipe is one entry of the file's metadata, as more have no fixed order.

        Raises:
            ConfigurationError: the file cannot be written.
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
        """Weights that were saved earlier.

        Raises:
            ConfigurationError: the file is missing, or not one of such weights, or damaged.
            MissingExtraError: safetensors is not installed.
        """
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise MissingExtraError("safetensors", "local") from error
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                arrays = [file.get_tensor(name).astype(np.float32) for name in _ARRAYS]
            return cls(_recipe(metadata), *arrays)
        except (OSError, SafetensorError, TypeError, ValueError, ConfigurationError) as error:
            raise ConfigurationError(
                f"cannot read the weights in {str(path)!r}: {error}; expected a file written by "
                "polyad train hyperretriever"
            ) from error

    @classmethod
    def bundled(cls, embedder: str, *, signals: bool) -> TripleScorer:
        """The weights that come with polyad.

        Raises:
            ConfigurationError: they are for another embedder.
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
        """The weights in the file ``weights``, or where it is empty the bundled ones, fit for an index.

        Args:
            weights: Path of a file.
            embedder: Name of the embedder of the index.
            dimension: Length of its vectors.
            signals: Names of the signals that will be read; none where the scorer is to read none.

        Raises:
            ConfigurationError: there are none, or they are for another embedder or variant.
        """
        found = cls.load(Path(weights)) if weights else cls.bundled(embedder, signals=bool(signals))
        found.recipe.require(embedder, dimension, signals, file=weights)
        return found


class PrecomputedScorer:
    """The scorer with the part of the first layer multiplied that belongs to some heads, hyperedges and tails.

    Equal to the plain forward pass but for the order of summation.

    Args:
        scorer: The scorer.
        heads: Vectors, float32 ``[heads, dimension]``.
        edges: Likewise of hyperedges.
        tails: Likewise.
    """

    def __init__(self, scorer: TripleScorer, heads: FloatArray, edges: FloatArray, tails: FloatArray) -> None:
        dimension = scorer.recipe.dimension
        question, head, edge, tail = (scorer.hidden[:, dimension * n : dimension * (n + 1)] for n in range(4))
        self._scorer = scorer
        self._question = question
        self._extras = np.ascontiguousarray(scorer.hidden[:, 4 * dimension :].T)
        self._heads = heads @ head.T
        self._edges = edges @ edge.T
        self._tails = tails @ tail.T

    def scores(self, question: FloatArray, triples: Triples, extras: FloatArray) -> FloatArray:
        """The plausibility of each triple, float32 ``[triples]``, in (0, 1).

        Args:
            question: Its vector, ``[dimension]``.
            triples: Rows of the three arrays of vectors.
            extras: float32 ``[triples, recipe.extras]``.
        """
        scorer = self._scorer
        constant = self._question @ question + scorer.hidden_bias
        logits = np.empty(len(triples), dtype=np.float32)
        for start in range(0, len(triples), _BLOCK):
            block = slice(start, start + _BLOCK)
            hidden = extras[block] @ self._extras
            hidden += constant
            hidden += self._heads[triples.heads[block]]
            hidden += self._edges[triples.edges[block]]
            hidden += self._tails[triples.tails[block]]
            logits[block] = np.maximum(hidden, 0, out=hidden) @ scorer.output
        return _sigmoid(logits + scorer.output_bias)


_ARRAYS = ("hidden", "hidden_bias", "output", "output_bias")

_RECIPE = "recipe"
"""The entry of the metadata that holds the recipe, as JSON."""

_EARLIER: Mapping[str, object] = {"directions": "separate", "questions": []}
"""What weights of earlier versions do not say."""


def get_weights_file_name(*, signals: bool) -> str:
    """The name of the file that weights are kept in."""
    return "hyperretriever_signals.safetensors" if signals else "hyperretriever.safetensors"


def _how_to_train(signals: bool) -> str:
    variant = " with signals = true in the section [hyperretriever] of polyad.toml" if signals else ""
    return f"train some with: polyad train hyperretriever BEIR_DIR{variant}"


def _recipe(metadata: Mapping[str, str]) -> Recipe:
    read = json.loads(metadata.get(_RECIPE, "null"))
    names = {field.name for field in fields(Recipe)}
    if isinstance(read, dict):
        for name, value in _EARLIER.items():
            read.setdefault(name, value)
    if not isinstance(read, dict) or set(read) != names:
        raise ValueError(f"its metadata have no {_RECIPE!r} of {', '.join(sorted(names))}")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in read.items()}
    return Recipe(**values)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_names(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_name, value))


def _are_digests(value: object) -> bool:
    return isinstance(value, tuple) and all(map(is_digest, value))


def _sigmoid(logits: FloatArray) -> FloatArray:
    """Through tanh, which does not overflow."""
    result: FloatArray = np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * logits))
    return result
