"""Sentence encoders with numpy: texts -> windows of word pieces -> a BERT encoder -> vectors.

The encoder is BERT (Devlin et al., 2019, arXiv 1810.04805): all-MiniLM-L6-v2, and multilingual-e5-small, which has
other word pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import punctuation
from typing import Protocol

import numpy as np

from polyad.model import FloatArray, IntArray

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Ranges of characters that are words of their own, as in the training of the model."""

_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

_MAX_WORD_LENGTH = 100
"""Characters; a longer word becomes the token [UNK]."""

_CACHED_WORDS = 1 << 16

HEADS = 12
"""Attention heads of a layer; divides the width of the network."""

_EPSILON = np.float32(1e-12)
"""Constant that is added to variances in layer normalisation, as in training."""

_LOGIT_OF_PHI = np.array(
    [
        1.59576843e00,
        7.26685649e-02,
        -6.62584125e-05,
        -1.10480757e-04,
        7.93827286e-06,
        -2.66895700e-07,
        3.61128612e-09,
    ],
    dtype=np.float32,
)
"""Coefficients of a polynomial p such that x p(x^2) approximates the logit of Phi(x), the normal distribution function.
Fitted to minimise the maximum error of x Phi(x), which is 6e-7, about the rounding error of float32."""

_MAX_ARGUMENT = np.float32(5.5)
"""For greater absolute values p is constant: x Phi(x) is x or 0 to within 3e-7."""

_BLOCK = 16_384
"""Numbers that an activation processes at a time, so that they stay in the processor's cache."""


class WordPieceTokenizer:
    """Converts texts to the token ids of an uncased BERT model (Devlin et al., 2019), like the library ``tokenizers``.

    A word is split from left to right into the longest pieces in the vocabulary (Schuster and Nakajima, 2012).

    Args:
        vocabulary: Word pieces in the order of their ids; pieces that continue a word begin with ``##``.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: id for id, piece in enumerate(vocabulary)}
        self._unknown = [self._ids["[UNK]"]]
        self._pieces = lru_cache(_CACHED_WORDS)(self._split_word)

    def split_windows(self, text: str, max_tokens: int) -> list[list[int]]:
        """Return the token ids of a text as one or more windows, each starting with [CLS] and ending with [SEP].

        Args:
            text: The text.
            max_tokens: Maximum number of tokens in a window, [CLS] and [SEP] included; 3 or more.
        """
        ids = self._tokenize(text)
        begin, end = self._ids["[CLS]"], self._ids["[SEP]"]
        return [
            [begin, *ids[start : start + max_tokens - 2], end] for start in range(0, max(1, len(ids)), max_tokens - 2)
        ]

    def _tokenize(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in _SPECIAL.split(text):
            if _SPECIAL.fullmatch(part):
                ids.append(self._ids[part])
            else:
                # Lower case without accents, with spaces around punctuation and Chinese characters.
                normal = unicodedata.normalize("NFD", part.translate(_CLEANING)).translate(_SPLITTING)
                for word in normal.split(" "):
                    ids.extend(self._pieces(word))
        return ids

    def _split_word(self, word: str) -> list[int]:
        """Return the token ids of a word's pieces, or the id of ``[UNK]`` for an unknown word."""
        if len(word) > _MAX_WORD_LENGTH:
            return self._unknown
        ids, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                id = self._ids.get(("##" if start else "") + word[start:end])
                if id is not None:
                    ids.append(id)
                    start = end
                    break
            else:
                return self._unknown
        return ids


class _CleaningTable(dict[int, str]):
    """A ``str.translate`` table that deletes control characters and normalises white space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            translation = " "
        elif code in (0, 0xFFFD) or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
            translation = ""
        else:
            translation = " " if character.isspace() else character
        self[code] = translation
        return translation


class _SplittingTable(dict[int, str]):
    """A ``str.translate`` table that removes accents, lowercases, and separates punctuation."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Mn":
            translation = ""
        elif category[0] == "P" or character in punctuation or any(low <= code <= high for low, high in _CJK):
            translation = f" {character} "
        else:
            translation = character.lower()
        self[code] = translation
        return translation


_CLEANING, _SPLITTING = _CleaningTable(), _SplittingTable()


@dataclass(frozen=True, slots=True)
class _Layer:
    """The weights of one transformer layer, transposed for multiplication from the right.

    Attributes:
        attention_input, attention_input_bias: Projection to queries, keys and values, ``[width, 3 width]``; queries are
            already divided by the square root of a head's width.
        attention_output, attention_output_bias: ``[width, width]``.
        attention_norm: Scale and shift of the layer normalisation, ``[width]`` each.
        intermediate, intermediate_bias: ``[width, 4 width]``.
        output, output_bias: ``[4 width, width]``.
        output_norm: Scale and shift of the layer normalisation, ``[width]`` each.
    """

    attention_input: FloatArray
    attention_input_bias: FloatArray
    attention_output: FloatArray
    attention_output_bias: FloatArray
    attention_norm: tuple[FloatArray, FloatArray]
    intermediate: FloatArray
    intermediate_bias: FloatArray
    output: FloatArray
    output_bias: FloatArray
    output_norm: tuple[FloatArray, FloatArray]


class WordVectors(Protocol):
    """The vectors of the tokens of a vocabulary: an array ``[tokens, width]``, or compressed rows."""

    def __getitem__(self, ids: IntArray, /) -> FloatArray:
        """Return the vectors of tokens, float32 ``[ids, width]``."""


class Network:
    """A BERT encoder whose output is the mean of the token vectors (mean pooling).

    A window that is computed alone has the same bits whatever else is embedded: no matrix product has a shape that
    depends on other texts. Several short windows in one product take less time, and may differ in the last bits.

    Args:
        weights: float32 arrays by their names in the model's file.
        words: Word vectors; by default an array of ``weights``.
    """

    def __init__(self, weights: Mapping[str, FloatArray], words: WordVectors | None = None) -> None:
        self._words: WordVectors = weights["embeddings.word_embeddings.weight"] if words is None else words
        positions = weights["embeddings.position_embeddings.weight"]
        self._positions: FloatArray = positions + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = _get_norm(weights, "embeddings.LayerNorm")
        count = sum(name.endswith("attention.output.dense.weight") for name in weights)
        self._layers = [_build_layer(weights, f"encoder.layer.{number}.") for number in range(count)]

    def encode_windows(self, windows: Sequence[Sequence[int]]) -> FloatArray:
        """Return the mean token vector of each window (a list of token ids), float32 ``[windows, dimension]``.

        The tokens of all windows are rows of the same matrix products, without padding; attention is separate.

        Args:
            windows: Token ids: at least one, at most as many as the network has positions (512).
        """
        ends = np.cumsum([len(window) for window in windows])
        parts = [slice(end - len(window), end) for window, end in zip(windows, ends, strict=True)]
        positions = np.concatenate([self._positions[: len(window)] for window in windows])
        states: FloatArray = self._words[np.concatenate(windows)] + positions
        states = _normalise(states, self._norm)
        for layer in self._layers:
            attention = _attend(states, layer, parts) @ layer.attention_output
            attention += layer.attention_output_bias
            attention += states
            states = _normalise(attention, layer.attention_norm)
            wide = states @ layer.intermediate
            wide += layer.intermediate_bias
            output = apply_gelu(wide) @ layer.output
            output += layer.output_bias
            output += states
            states = _normalise(output, layer.output_norm)
        return np.stack([states[part].mean(axis=0) for part in parts])


def apply_gelu(values: FloatArray) -> FloatArray:
    """Apply the activation GELU, ``x Phi(x)``, to each value in place (Hendrycks and Gimpel, 2016, arXiv 1606.08415).

    Args:
        values: Contiguous float32 of any shape; overwritten. The error is at most 6e-7.
    """
    flat = values.reshape(-1)
    squares, powers = np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        square, power = squares[: block.size], powers[: block.size]
        np.multiply(block, block, out=square)
        np.minimum(square, _MAX_ARGUMENT * _MAX_ARGUMENT, out=square)
        np.multiply(square, _LOGIT_OF_PHI[-1], out=power)
        for coefficient in _LOGIT_OF_PHI[-2:0:-1]:
            power += coefficient
            power *= square
        power += _LOGIT_OF_PHI[0]
        power *= block
        np.negative(power, out=power)
        np.minimum(power, np.float32(80.0), out=power)  # exp of a larger number overflows float32
        np.exp(power, out=power)
        power += np.float32(1.0)
        np.divide(block, power, out=block)
    return values


def _attend(states: FloatArray, layer: _Layer, parts: Sequence[slice]) -> FloatArray:
    """Return the multi-head self-attention of tokens within each window of ``parts``, shape ``[tokens, width]``."""
    joint = states @ layer.attention_input
    joint += layer.attention_input_bias
    result = np.empty_like(states)
    for part in parts:
        rows = joint[part].reshape(-1, 3, HEADS, states.shape[1] // HEADS)
        queries, keys, values = np.ascontiguousarray(rows.transpose(1, 2, 0, 3))  # each [heads, tokens, width / heads]
        weights = queries @ keys.transpose(0, 2, 1)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        gathered = weights @ values
        gathered /= weights.sum(axis=-1, keepdims=True)
        result[part] = gathered.transpose(1, 0, 2).reshape(-1, states.shape[1])
    return result


def _normalise(states: FloatArray, norm: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Apply layer normalisation to each row in place, and return the array."""
    states -= states.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", states, states)[:, None] / np.float32(states.shape[1])
    states /= np.sqrt(variance + _EPSILON)
    states *= norm[0]
    states += norm[1]
    return states


def _get_norm(weights: Mapping[str, FloatArray], name: str) -> tuple[FloatArray, FloatArray]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _transpose(matrix: FloatArray) -> FloatArray:
    """Return a transposed copy of the matrix that is contiguous in memory.

    Copying strips that fit the processor's cache takes 40 % less time.
    """
    transposed = np.empty(matrix.shape[::-1], dtype=matrix.dtype)
    for start in range(0, len(matrix), 32):
        transposed[:, start : start + 32] = matrix[start : start + 32].T
    return transposed


def _build_layer(weights: Mapping[str, FloatArray], prefix: str) -> _Layer:
    def get_matrix(name: str) -> FloatArray:
        return _transpose(weights[f"{prefix}{name}.weight"])

    def get_bias(name: str) -> FloatArray:
        return weights[f"{prefix}{name}.bias"]

    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    attention_input = np.concatenate([get_matrix(part) for part in parts], axis=1)
    input_bias = np.concatenate([get_bias(part) for part in parts])
    width = attention_input.shape[0]
    scale = np.sqrt(np.float32(width // HEADS))
    attention_input[:, :width] /= scale
    input_bias[:width] /= scale
    return _Layer(
        attention_input,
        input_bias,
        get_matrix("attention.output.dense"),
        get_bias("attention.output.dense"),
        _get_norm(weights, f"{prefix}attention.output.LayerNorm"),
        get_matrix("intermediate.dense"),
        get_bias("intermediate.dense"),
        get_matrix("output.dense"),
        get_bias("output.dense"),
        _get_norm(weights, f"{prefix}output.LayerNorm"),
    )
