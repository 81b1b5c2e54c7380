"""A small model in the format of multilingual-e5-small: one layer, and single characters as word pieces."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyad.model import FloatArray

WIDTH, WIDE, POSITIONS = 96, 128, 512
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def compress(matrix: FloatArray) -> tuple[bytes, FloatArray]:
    """Return a matrix in blocks of 4 bits, and the matrix that the blocks hold."""
    groups = matrix.reshape(-1, 32)
    scales = (np.abs(groups).max(axis=1) / 7).astype("<f2")
    weights = np.clip(np.round(groups / scales[:, None].astype(np.float32)), -8, 7).astype(np.int64)
    nibbles = (weights + 8).astype(np.uint8)
    halves = nibbles[:, :16] | (nibbles[:, 16:] << 4)
    blocks = np.concatenate([scales[:, None].view(np.uint8), halves], axis=1)
    return blocks.tobytes(), (weights * scales[:, None].astype(np.float32)).reshape(matrix.shape).astype(np.float32)


def write_small_model(file: Path, characters: str) -> dict[str, FloatArray]:
    """Write a model with random weights, and return the weights by their names in the file."""
    pieces: Sequence[str] = (*SPECIAL, "\u2581", *sorted(set(characters)))
    rng = np.random.default_rng(0)
    shapes = {"emb.word": (len(pieces), WIDTH), "emb.pos": (POSITIONS, WIDTH), "emb.type": (2, WIDTH)}
    shapes |= {f"l0.{part}.w": (WIDTH, WIDTH) for part in ("q", "k", "v", "ao")}
    shapes |= {"l0.fi.w": (WIDE, WIDTH), "l0.fo.w": (WIDTH, WIDE)}
    arrays = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    norms = ("emb.ln.w", "l0.aln.w", "l0.oln.w")
    zeros = ("emb.ln.b", "l0.q.b", "l0.k.b", "l0.v.b", "l0.ao.b", "l0.fo.b", "l0.aln.b", "l0.oln.b")
    arrays |= {name: np.ones(WIDTH, np.float32) for name in norms} | {
        name: np.zeros(WIDTH, np.float32) for name in zeros
    }
    arrays["l0.fi.b"] = np.zeros(WIDE, np.float32)
    data = {}
    for name, array in arrays.items():
        is_compressed = name == "emb.word" or (name[0] == "l" and array.ndim == 2)
        data[name], arrays[name] = compress(array) if is_compressed else (array.tobytes(), array)

    encoded = [piece.encode() for piece in pieces]
    offsets = np.cumsum([0, *map(len, encoded)]).astype("<u4").tobytes()
    scores = np.full(len(pieces), -2.0, "<f4").tobytes()
    text = b"".join(encoded)
    settings = struct.pack("<4sI7ifi", b"E5S1", 1, WIDTH, 1, 12, WIDE, len(pieces), POSITIONS, 2, 1e-12, 32)
    head = settings + struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, len(text)) + offsets + scores + text
    head += struct.pack("<iIi", 0, 0, len(data))
    start = len(head) + sum(2 + len(name) + 21 for name in data)
    for name, content in data.items():
        is_compressed = len(content) != arrays[name].nbytes
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", is_compressed, arrays[name].size, start, len(content))
        start += len(content)
    file.write_bytes(head + b"".join(data.values()))
    return arrays
