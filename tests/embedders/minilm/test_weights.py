from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from polyad.embedders.minilm import weights
from polyad.errors import ModelNotFoundError


def test_arrays_are_those_that_the_library_wrote(tmp_path: Path) -> None:
    arrays = {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(5, np.float32)}
    save_file({**arrays, "positions": np.arange(3)}, tmp_path / "x.safetensors")
    values = weights.read_weights(tmp_path / "x.safetensors")
    assert sorted(values) == ["a", "b"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(values[name], array)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, (2).to_bytes(8, "little") + b"[]" + bytes(8)])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors.*cannot be read"):
        weights.read_weights(file)
