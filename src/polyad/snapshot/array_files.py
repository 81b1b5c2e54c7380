"""One array, one file: written in parts, mapped when it is read, and known by its checksum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Said = dict[str, object]
"""Shape, type and checksum of an array, as they are kept beside it."""

_LARGEST_CHECKED = 2**28
"""Bytes up to which an array is compared with its checksum when it is opened: reading more would take seconds."""


def written(folder: Path, name: str, array: Array) -> Said:
    """Write an array. Raises OSError."""
    return written_in_parts(folder, name, [array], array.shape, array.dtype)


def written_in_parts(
    folder: Path, name: str, parts: Iterable[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Said:
    """Write an array whose rows come in parts, so that it need not be whole in memory. Raises OSError."""
    checksum = 0
    with (folder / f"{name}.npy").open("wb") as file:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            data = _bytes_of(np.ascontiguousarray(part))
            file.write(data)
            checksum = crc32(data, checksum)
    return {"shape": list(shape), "type": dtype.str, "checksum": checksum}


def mapped(folder: Path, name: str, expected: Mapping[str, object]) -> Array:
    """An array from its file, which is as it was written. Raises ValueError where it is not."""
    array: Array = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    found = {"shape": list(array.shape), "type": array.dtype.str, "checksum": expected["checksum"]}
    if found != expected or (array.nbytes <= _LARGEST_CHECKED and crc32(_bytes_of(array)) != expected["checksum"]):
        raise ValueError(f"{name} is damaged")
    return array.view(np.ndarray)  # still mapped; numpy.memmap runs Python for every slice


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
