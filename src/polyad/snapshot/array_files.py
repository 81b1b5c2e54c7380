"""Arrays in files: one file for each array, mapped when it is read and verified by a checksum."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from zlib import crc32

import numpy as np

from polyad.snapshot.columns import AppendOnlyArray, Column
from polyad.text.files import open_file

Array = np.ndarray[Any, np.dtype[Any]]

ArrayEntry = dict[str, object]
"""Shape, type and checksum of an array, in the manifest."""

_MAX_VERIFIED = 2**28
"""Bytes of the largest array whose checksum is verified when it is mapped: reading more would take seconds."""

_READ_BYTES = 2**20
"""Bytes that are read at a time to compute a checksum."""


def write_array(folder: Path, name: str, array: Array) -> ArrayEntry:
    """Write an array to the file ``folder/name.bin`` and return its manifest entry: shape, type and checksum.

    Raises OSError.
    """
    return write_blocks(folder, name, [array], array.shape, array.dtype)


def write_blocks(
    folder: Path, name: str, blocks: Iterable[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> ArrayEntry:
    """Write an array, which ``blocks`` yields in parts, to the file ``folder/name.bin``; return its manifest entry.

    Raises OSError.
    """
    checksum = 0
    with _get_path(folder, name).open("wb") as file:
        for block in blocks:
            data = _get_bytes(np.ascontiguousarray(block))
            file.write(data)
            checksum = crc32(data, checksum)
    return {"shape": list(shape), "type": dtype.str, "checksum": checksum}


def map_array(folder: Path, name: str, entry: Mapping[str, Any]) -> Array:
    """Return the array of a file as its manifest ``entry`` describes, memory-mapped if the file system can map files.

    Args:
        folder: Folder of the file.
        name: Name of the array.
        entry: Shape, type and checksum that :func:`write_blocks` returned.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file differs from the entry.
    """
    path, dtype, shape = _get_path(folder, name), np.dtype(entry["type"]), tuple(entry["shape"])
    size = path.stat().st_size
    if dtype.hasobject or size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} is damaged")
    array = _map_bytes(path, size)
    if size <= _MAX_VERIFIED and crc32(array.data) != entry["checksum"]:
        raise ValueError(f"{name} is damaged")
    typed: Array = array.view(dtype)
    return typed.reshape(shape)


def sync_unverified_arrays(folder: Path) -> None:
    """Make the arrays durable that :func:`map_array` does not verify: a power failure could damage them unnoticed.

    Raises OSError.
    """
    for path in folder.iterdir():
        if path.stat().st_size > _MAX_VERIFIED:
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def is_array_sound(folder: Path, name: str, entry: Mapping[str, Any]) -> bool:
    """Return whether an array's file has the size and checksum in its manifest ``entry``."""
    size = checksum = 0
    try:
        with open_file(_get_path(folder, name)) as file:
            while block := file.read(_READ_BYTES):
                size, checksum = size + len(block), crc32(block, checksum)
    except OSError:
        return False
    expected = math.prod(entry["shape"]) * np.dtype(entry["type"]).itemsize, entry["checksum"]
    return (size, checksum) == expected


def _get_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"


def _map_bytes(path: Path, size: int) -> Array:
    if not size:
        return np.empty(0, np.uint8)  # an empty file cannot be mapped
    try:
        return np.memmap(path, np.uint8, "r").view(np.ndarray)  # numpy.memmap runs Python code for every slice
    except OSError:
        return np.fromfile(path, np.uint8)


def iterate_arrays(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    """Yield (dotted name, array) for each numpy array in nested dataclasses; a name is ``graph.edge_passage``.

    Of a dataclass, only the fields without a default are visited.

    Objects with a method ``compact`` are compacted one after the other; a tuple has at most one item then.
    """
    if isinstance(value, Column):
        yield name, value.to_array()
    elif isinstance(value, AppendOnlyArray):
        yield name, value.values
    elif isinstance(value, (np.ndarray, int)):
        yield name, np.asarray(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from iterate_arrays(name, item)
    else:
        compact = value.compact() if hasattr(value, "compact") else value
        for field in _get_saved_fields(compact):
            yield from iterate_arrays(f"{name}.{field.name}", getattr(compact, field.name))


def restore_object(kind: Any, name: str, arrays: Mapping[str, Array]) -> Any:
    """Return a dataclass of type ``kind``, built from the (dotted name, array) pairs of :func:`iterate_arrays`.

    Raises LookupError.
    """
    if kind is Column:
        return Column.from_array(arrays[name])
    if kind is AppendOnlyArray:
        return AppendOnlyArray.from_values(arrays[name])
    if kind is int:
        return int(arrays[name])
    if get_origin(kind) is tuple:
        return (restore_object(get_args(kind)[0], name, arrays),)
    if is_dataclass(kind):
        types = get_type_hints(kind)
        values = {
            field.name: restore_object(types[field.name], f"{name}.{field.name}", arrays)
            for field in _get_saved_fields(kind)
        }
        return kind(**values)  # type: ignore[operator]  # a class, of which is_dataclass is true, too
    return arrays[name]


def _get_saved_fields(dataclass: Any) -> Iterator[Field[Any]]:
    return (field for field in fields(dataclass) if field.default is MISSING and field.default_factory is MISSING)


def _get_bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
