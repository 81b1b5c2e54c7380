"""Helpers for files: bounded reads, atomic writes, files of polyad's packages, the file of a document's source."""

from __future__ import annotations

import errno
import hashlib
import importlib.resources
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path

from polyad.errors import ConfigurationError

_RECORD_NUMBER = re.compile(r":\d+$")

_MAX_BYTES = 1 << 26
_NOT_IN_NAMES = re.compile(r"[^\w.,=+ -]")
_MAX_NAME_BYTES = 180
"""Most file systems allow 255; a suffix or a number may follow."""


def read_file(path: Path, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the contents of a regular file of at most ``max_bytes`` bytes.

    Raises:
        OSError: the file cannot be read, is no regular file or is too large.
    """
    with open_file(path) as file:
        contents = file.read(max_bytes + 1)
    if len(contents) > max_bytes:
        raise OSError(errno.EFBIG, f"it is longer than {max_bytes:,} bytes")
    return contents


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading in binary mode; raise OSError for pipes and devices, which may never end.

    Raises:
        OSError: the file cannot be read, or is no regular file.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name has a null character")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device; expected a file")
    return path.open("rb")


def resolve_path(path: str | Path) -> Path:
    """Return an absolute path without symbolic links; links that form a loop stay, so opening the path fails.

    ``Path.resolve`` raises RuntimeError or OSError for a loop, depending on the version of Python.
    """
    return Path(os.path.realpath(path))


def write_atomically(path: Path, contents: bytes | str) -> None:
    """Write ``contents`` to a file so that a crash or a power failure leaves either the old or the new contents.

    A string is encoded as UTF-8.

    If ``path`` is a symbolic link, its target is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    with open_atomically(path) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


@contextmanager
def open_atomically(path: Path) -> Iterator[BufferedWriter]:
    """Open a temporary file for writing, which replaces ``path`` durably at the end of the ``with`` block.

    After an error the temporary file is deleted.

    If ``path`` is a symbolic link, its target is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    target = resolve_path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # without it, a power failure could leave an empty file under the new name
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Create a folder with its parents, unless it exists, so that it survives a power failure.

    Raises:
        OSError: the folder cannot be created.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names of the files in a folder durable, unless the system or a permission prevents that."""
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_output_path(path: Path, *, overwrite: bool, own_files: Iterable[Path] = ()) -> None:
    """Raise an error if writing to ``path`` would replace a file or follow a symbolic link; accept an empty folder.

    Args:
        path: The file or folder to be written.
        overwrite: Whether the user allowed its replacement, except that of ``own_files``.
        own_files: Files and folders of the index, which are never replaced; also their journals.

    Raises:
        ConfigurationError: ``path`` is a file, a folder that is not empty, or a symbolic link, also one without target.
    """
    target = resolve_path(path)
    journals = (f"{resolve_path(file)}{suffix}" for file in own_files for suffix in ("", "-journal", "-shm", "-wal"))
    if any(map(target.is_relative_to, journals)):
        raise ConfigurationError(f"{str(path)!r} belongs to the index itself; expected another file")
    is_empty_folder = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if not (overwrite or is_empty_folder) and (path.is_symlink() or path.exists()):
        raise ConfigurationError(f"{str(path)!r} exists; expected a new name, or replace it with --force")


def read_package_file(package: str, name: str) -> str:
    """Return the text of the file ``name`` in a Python package, such as a prompt, without outer white space."""
    return importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8").strip()


def list_package_files(package: str, pattern: str) -> tuple[str, ...]:
    """Return the sorted names, without suffix, of the files in a Python package that match a glob pattern."""
    with importlib.resources.as_file(importlib.resources.files(package)) as folder:
        return tuple(sorted(path.stem for path in folder.glob(pattern)))


def make_file_name(name: str) -> str:
    """Return a safe file name for any string: without path separators and outer dots, and not too long.

    >>> make_file_name("../tarn"), make_file_name("hypersu.decay=0.3"), make_file_name("..")
    ('_tarn', 'hypersu.decay=0.3', '_')
    """
    safe = _NOT_IN_NAMES.sub("_", name).strip(". ") or "_"
    if len(safe.encode()) <= _MAX_NAME_BYTES:
        return safe
    digest = hashlib.sha256(safe.encode()).hexdigest()[:16]
    return f"{safe.encode()[: _MAX_NAME_BYTES - 20].decode(errors='ignore')}-{digest}"


def get_source_file(source: str) -> str:
    """Return the file path in a document's source, without a line or row number at its end.

    >>> get_source_file("docs/records.jsonl:12"), get_source_file("docs/a.md")
    ('docs/records.jsonl', 'docs/a.md')
    """
    return _RECORD_NUMBER.sub("", source)
