"""The forward pass of a BERT encoder (Devlin et al., 2019, arXiv 1810.04805) with numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.model import FloatArray

HEADS = 12
"""Attention heads of a layer; the width of the network is a multiple of it."""

_EPSILON = np.float32(1e-12)
"""Added to variances, as the model was trained with."""

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
"""A polynomial p in x^2 for which x p(x^2) is the logit of Phi(x), the normal distribution function. Fitted for the
least largest error of x Phi(x), which is 6e-7 anywhere, as much as float32 rounds."""

_FURTHEST = np.float32(5.5)
"""From here on x p(x^2) goes on as a line: x Phi(x) is x or 0 to within 3e-7."""

_BLOCK = 16_384
"""Numbers that an activation works on at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer, transposed to be multiplied from the right; ``width`` is 384 in MiniLM.

    Attributes:
        attending: To queries, keys and values, ``[width, 3 width]``, and ``attending_bias``; queries are already
            divided by the root of a head's width.
        attended: ``[width, width]``, and ``attended_bias``.
        attention_norm: Scale and shift, ``[width]`` each.
        widening: ``[width, 4 width]``, and ``widening_bias``.
        narrowing: ``[4 width, width]``, and ``narrowing_bias``.
        output_norm: Scale and shift.
    """

    attending: FloatArray
    attending_bias: FloatArray
    attended: FloatArray
    attended_bias: FloatArray
    attention_norm: tuple[FloatArray, FloatArray]
    widening: FloatArray
    widening_bias: FloatArray
    narrowing: FloatArray
    narrowing_bias: FloatArray
    output_norm: tuple[FloatArray, FloatArray]


class Network:
    """Token ids to the mean of what the last layer says of each token.

    One window of tokens is computed at a time, at its own length: no padding, and no product whose shape depends on
    other texts. So a vector has the same bits whatever is embedded beside it, whichever kernels a matrix library has
    (several windows in one product would be faster for short ones, and differ in the last bit on some processors).

    Args:
        weights: By their names in the model's file, float32.
    """

    def __init__(self, weights: Mapping[str, FloatArray]) -> None:
        self._words = weights["embeddings.word_embeddings.weight"]
        positions = weights["embeddings.position_embeddings.weight"]
        self._positions: FloatArray = positions + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = _norm(weights, "embeddings.LayerNorm")
        count = sum(name.endswith("attention.output.dense.weight") for name in weights)
        self._layers = [_layer(weights, f"encoder.layer.{number}.") for number in range(count)]

    @property
    def width(self) -> int:
        """Length of every vector."""
        return int(self._words.shape[1])

    def mean(self, window: Sequence[int]) -> FloatArray:
        """The vector of a window of tokens, float32 ``[width]``; not normalised.

        Args:
            window: Ids of tokens, at least one, at most as many as the network has positions (512).
        """
        states: FloatArray = self._words[np.asarray(window)] + self._positions[: len(window)]
        states = _normalised(states, self._norm)
        for layer in self._layers:
            attention = _attention(states, layer) @ layer.attended
            attention += layer.attended_bias
            attention += states
            states = _normalised(attention, layer.attention_norm)
            wide = states @ layer.widening
            wide += layer.widening_bias
            output = gelu(wide) @ layer.narrowing
            output += layer.narrowing_bias
            output += states
            states = _normalised(output, layer.output_norm)
        result: FloatArray = states.mean(axis=0)
        return result


def gelu(values: FloatArray) -> FloatArray:
    """``x Phi(x)`` in place of every ``x`` (Hendrycks and Gimpel, 2016, arXiv 1606.08415); to within 6e-7.

    Args:
        values: Contiguous float32 of any shape; overwritten.
    """
    flat = values.reshape(-1)
    squares, powers = np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        square, power = squares[: block.size], powers[: block.size]
        np.multiply(block, block, out=square)
        np.minimum(square, _FURTHEST * _FURTHEST, out=square)
        np.multiply(square, _LOGIT_OF_PHI[-1], out=power)
        for coefficient in _LOGIT_OF_PHI[-2:0:-1]:
            power += coefficient
            power *= square
        power += _LOGIT_OF_PHI[0]
        power *= block
        np.negative(power, out=power)
        np.minimum(power, np.float32(80.0), out=power)  # e to the power of more is beyond float32
        np.exp(power, out=power)
        power += np.float32(1.0)
        np.divide(block, power, out=block)
    return values


def _attention(states: FloatArray, layer: _Layer) -> FloatArray:
    """What each token gathers from all of them: ``[tokens, width]`` to the same shape."""
    tokens, width = states.shape
    joint = states @ layer.attending
    joint += layer.attending_bias
    heads = np.ascontiguousarray(joint.reshape(tokens, 3, HEADS, width // HEADS).transpose(1, 2, 0, 3))
    queries, keys, values = heads  # each [heads, tokens, width of a head]
    weights = queries @ keys.transpose(0, 2, 1)
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    gathered = weights @ values
    gathered /= weights.sum(axis=-1, keepdims=True)
    result: FloatArray = gathered.transpose(1, 0, 2).reshape(tokens, width)
    return result


def _normalised(states: FloatArray, norm: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Each row with mean 0 and variance 1, then scaled and shifted; in place."""
    states -= states.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", states, states)[:, None] / np.float32(states.shape[1])
    states /= np.sqrt(variance + _EPSILON)
    states *= norm[0]
    states += norm[1]
    return states


def _norm(weights: Mapping[str, FloatArray], name: str) -> tuple[FloatArray, FloatArray]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _layer(weights: Mapping[str, FloatArray], prefix: str) -> _Layer:
    def matrix(name: str) -> FloatArray:
        return np.ascontiguousarray(weights[f"{prefix}{name}.weight"].T)

    def bias(name: str) -> FloatArray:
        return weights[f"{prefix}{name}.bias"]

    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    attending = np.concatenate([matrix(part) for part in parts], axis=1)
    attending_bias = np.concatenate([bias(part) for part in parts])
    width = attending.shape[0]
    scale = np.sqrt(np.float32(width // HEADS))
    attending[:, :width] /= scale
    attending_bias[:width] /= scale
    return _Layer(
        attending,
        attending_bias,
        matrix("attention.output.dense"),
        bias("attention.output.dense"),
        _norm(weights, f"{prefix}attention.output.LayerNorm"),
        matrix("intermediate.dense"),
        bias("intermediate.dense"),
        matrix("output.dense"),
        bias("output.dense"),
        _norm(weights, f"{prefix}output.LayerNorm"),
    )
