"""An embedder that hashes words instead of running a model, for tests and comparisons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Self

import numpy as np

from polyad.config import EncoderSettings
from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.protocols.components import TextKind
from polyad.text.words import split_ideographs

_WORD = re.compile(r"\w+")

_MAX_DIMENSION = 65_536
"""Longest vectors; an index from another person names its embedder, and must not take all memory."""


class HashingEmbedder:
    """An embedder without a model: the vector of a text is the sum of one pseudo-random vector per word.

    The vector of a word is derived from its hash. Vectors are the same on every machine, and a text's vector does not
    depend on other texts. Meaning is not represented.

    Args:
        dimension: Length of the vectors, 1 to 65,536.

    Attributes:
        dimension: The number of components of the embedding vectors.
    """

    def __init__(self, dimension: int = 64) -> None:
        if not 1 <= dimension <= _MAX_DIMENSION:
            raise ConfigurationError(f"dimension is {dimension}; expected 1 to {_MAX_DIMENSION:,}")
        self.dimension = dimension

    @property
    def name(self) -> str:
        """Name of the embedder: ``hashing:DIMENSION``, unless a subclass has a name of its own."""
        return f"hashing:{self.dimension}"

    @classmethod
    def from_name(cls, dimension: str, settings: EncoderSettings) -> Self:  # noqa: ARG003  # settings of models
        """Return the embedder with the name ``hashing:DIMENSION``; ``dimension`` is the text after the colon.

        An empty text stands for dimension 384.

        Raises:
            ConfigurationError: ``dimension`` is not a whole number from 1 to 65,536.
        """
        if not dimension:
            return cls(384)
        if not dimension.isdecimal():
            raise ConfigurationError(
                f"no embedder 'hashing:{dimension}'; expected hashing:DIMENSION, as in hashing:384"
            )
        return cls(int(dimension))

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:  # noqa: ARG002  # the protocol's parameter
        """Return unit vectors of texts, float32 ``[texts, dimension]``; queries are embedded like passages."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            words = _WORD.findall(split_ideographs(text).lower()) or [text]
            total = np.sum([_hash_word(word, self.dimension) for word in words], axis=0)
            vectors[row] = _normalise(total) if total.any() else _normalise(_hash_word(text, self.dimension))
        return vectors


@lru_cache(maxsize=1 << 14)
def _hash_word(word: str, dimension: int) -> FloatArray:
    """Return a pseudo-random vector of -1 and 1 for a word, shape ``[dimension]``."""
    hashed = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(-(-dimension // 8))
    bits = np.unpackbits(np.frombuffer(hashed, dtype=np.uint8))[:dimension]
    return bits.astype(np.float32) * 2 - 1


def _normalise(vector: FloatArray) -> FloatArray:
    result: FloatArray = vector / np.sqrt(np.sum(vector * vector))
    return result
