"""The plausibility of a triple: HyperRAG's classifier f_theta (section 3.1.4), run with numpy.

A perceptron with one hidden layer reads a question and a triple as x = [q || h || f || t || extras] (eq. 9): the
vectors of the question, the head, the hyperedge and the tail, then the structural numbers and what else the recipe
names. The first layer is linear, so W x is a sum of parts, and the parts of heads, hyperedges and tails do not depend
on the question: they are multiplied once for an index (:class:`Projection`), and a triple costs three look-ups and a
dot product of the hidden layer's width.

Weights are kept in one safetensors file whose metadata say what they are for. They are of no use with the vectors of
another embedder, so loading them beside one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

import numpy as np

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.hypergraph.distance import Triples
from polyad.model import FloatArray, IntArray

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
        starts: Where the encoding starts: the entities the question names, or every head (eq. 4).
        closeness: Whether the cosines of the question to head, hyperedge and tail are read too.
        signals: Names of the signals of the hyperedge's passage that are read too; mostly none.
        trained_on: Names of the data sets; none for a scorer that was not trained.
    """

    embedder: str
    dimension: int
    rounds: int = 2
    starts: Literal["heads", "topics"] = "topics"
    closeness: bool = True
    signals: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()

    @property
    def extras(self) -> int:
        """How many numbers follow the four vectors."""
        return 2 * (1 + 2 * self.rounds) + 3 * self.closeness + len(self.signals)

    @property
    def width(self) -> int:
        """Length of x."""
        return 4 * self.dimension + self.extras
