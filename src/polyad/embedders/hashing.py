"""An embedder without a model, for tests: hashed bags of words."""

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
from polyad.text.terms import in_pairs

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Adds a direction for each word, chosen by the word's hash; texts that share words are near each other.

    A test double: deterministic on every machine, fast, and with no understanding whatever. A text's vector depends on
    that text alone, bit for bit.

    Args:
        dimension: Length of the vectors; 1 or more.
    """

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 1:
            raise ConfigurationError(f"dimension is {dimension}; expected 1 or more")
        self._dimension = dimension

    @classmethod
    def from_name(cls, dimension: str, settings: EncoderSettings) -> Self:  # noqa: ARG003  # those of models
        """The embedder of ``hashing:DIMENSION``, from what follows the colon.

        Raises:
            ConfigurationError: that is not a whole number of 1 or more.
        """
        if not dimension.isdecimal():
            raise ConfigurationError(
                f"no embedder 'hashing:{dimension}'; expected hashing:DIMENSION, as in hashing:384"
            )
        return cls(int(dimension))

    @property
    def name(self) -> str:
        """``hashing:`` and the dimension."""
        return f"hashing:{self._dimension}"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:  # noqa: ARG002  # the protocol's parameter
        """Embed ``texts``; questions like passages. See :class:`polyad.protocols.components.Embedder`."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            words = _WORD.findall(in_pairs(text).lower()) or [text]
            total = np.sum([_direction(word, self._dimension) for word in words], axis=0)
            vectors[row] = _unit(total) if total.any() else _unit(_direction(text, self._dimension))
        return vectors


@lru_cache(maxsize=1 << 14)
def _direction(word: str, dimension: int) -> FloatArray:
    """A vector of -1 and 1, of shape ``[dimension]``."""
    hashed = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(-(-dimension // 8))
    bits = np.unpackbits(np.frombuffer(hashed, dtype=np.uint8))[:dimension]
    return bits.astype(np.float32) * 2 - 1


def _unit(vector: FloatArray) -> FloatArray:
    result: FloatArray = vector / np.sqrt(np.sum(vector * vector))
    return result
