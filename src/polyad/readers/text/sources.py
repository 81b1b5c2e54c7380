"""Formats the source of documents and finds documents that no longer exist at their source."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from polyad.model import Failure
from polyad.text.files import get_source_file

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f]")
_DIGEST = re.compile("[0-9a-f]{64}")
_ESCAPE = re.compile(r"\\(?=x[0-9a-f]{2})")

COPIES_FOLDER = "files"
"""Name of the folder of an index that holds copies of files, by their digest."""


def format_path(path: Path) -> str:
    r"""Return a path as text with forward slashes; control characters and invalid Unicode bytes are escaped.

    Different paths stay different: the backslash of a name such as ``a\x0a`` is escaped itself.
    """
    posix = _ESCAPE.sub(r"\\x5c", path.as_posix())
    if posix.isascii() and posix.isprintable():
        return posix
    decoded = os.fsencode(posix).decode("utf-8", errors="backslashreplace")
    return _UNPRINTABLE.sub(lambda match: f"\\x{ord(match[0]):02x}", decoded)


def is_digest(value: object) -> bool:
    """Return whether a value of metadata, which anybody may have written, is a SHA-256 in hexadecimal digits."""
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))


def get_copy(folder: str, digest: str) -> Path:
    """Return the path of the copy of a file in the folder of an index; ``digest`` is the SHA-256 of the file.

    Raises:
        ValueError: ``digest`` is no SHA-256.
    """
    if not is_digest(digest):
        raise ValueError(f"{digest!r} is no SHA-256")
    return Path(folder, COPIES_FOLDER, digest)


def keep_copy(path: Path, folder: str, digest: str) -> None:
    """Copy a file into the folder of an index, unless its copy is there or its SHA-256 is another."""
    copy = get_copy(folder, digest)
    with path.open("rb") as file:
        is_equal = hashlib.file_digest(file, "sha256").hexdigest() == digest
    if is_equal and not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        part = copy.with_name(f"{digest}.{os.getpid()}.part")
        shutil.copyfile(path, part)
        part.replace(copy)


@dataclass(frozen=True, slots=True)
class MissingDocuments:
    """The indexed documents whose source (file or record) no longer exists.

    Attributes:
        ids: Ids of all missing documents.
        protected: Ids of missing documents below a path that is now empty. More likely a disk is not mounted than the
            user wants to lose everything.
    """

    ids: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


def get_source_roots(paths: Iterable[Path]) -> list[str] | None:
    """Return the paths as prefixes of document sources; None if a path contains all sources (current or root folder).

    Any document may lie below these two folders, so that the sources need no filter.
    """
    roots = _format_roots(paths)
    return None if {".", "/"} & set(roots) else roots


def find_missing_documents(
    sources: Mapping[str, str],
    paths: Iterable[Path],
    read_ids: Set[str],
    failures: Iterable[Failure],
    skipped: Iterable[str] = (),
) -> MissingDocuments:
    """Return the indexed documents in or below ``paths`` whose file or record no longer exists.

    A document of a file that was not read completely is not missing, nor is one of a file that appeared meanwhile.

    Args:
        sources: Source of each indexed document below the paths, by document id.
        paths: The files and folders that were read.
        read_ids: Ids of the documents that were read.
        failures: Files and records that could not be read.
        skipped: Existing files that no reader reads.
    """
    roots = _format_roots(paths)
    unread = {get_source_file(failure.id) for failure in failures} | set(skipped)
    read_files = {get_source_file(source) for id, source in sources.items() if id in read_ids}
    existing_files = read_files | unread
    nonempty_paths = [root for root in roots if any(_is_below(file, root) for file in existing_files)]
    missing = {
        id: file
        for id, file in ((id, get_source_file(source)) for id, source in sources.items() if id not in read_ids)
        if any(_is_below(file, root) for root in roots)
        and unread.isdisjoint([file, *map(str, PurePosixPath(file).parents)])
        and (file in read_files or not Path(file).is_file())
    }
    protected = (id for id, file in missing.items() if not any(_is_below(file, root) for root in nonempty_paths))
    return MissingDocuments(tuple(missing), tuple(protected))


def find_moved_documents(
    sources: Mapping[str, str], duplicates: Iterable[tuple[str, str]], read_ids: Set[str]
) -> dict[str, str]:
    """Return the documents whose file is now found under another name, as a dictionary: old id -> new id.

    Args:
        sources: Source of each old document by id.
        duplicates: Pairs of ids with equal content: a document that was read, and an older document.
        read_ids: Ids of the documents that were read.
    """
    return {
        old: new
        for new, old in duplicates
        if old not in read_ids and (file := get_source_file(sources.get(old, ""))) and not Path(file).exists()
    }


def match_documents(sources: Mapping[str, str], name: str) -> list[str]:
    """Return the ids of the documents that a name selects: an id, a file or folder, or a pattern such as ``old/*``.

    A ``*`` of a pattern also stands for slashes.

    >>> match_documents({"a": "old/a.md", "b": "new/b.md"}, "old"), match_documents({"a": "old/a.md"}, "o*.md")
    (['a'], ['a'])

    Args:
        sources: Source of each document by id; empty for a document that was not read from a file.
        name: The id, path or pattern.
    """
    if name in sources:
        return [name]
    (root,) = _format_roots([Path(name)])
    files = {id: get_source_file(source) or id for id, source in sources.items()}
    return [
        id for id, file in files.items() if _is_below(file, root) or fnmatchcase(id, name) or fnmatchcase(file, name)
    ]


def find_existing_files(files: Iterable[str], paths: Iterable[Path]) -> list[Path]:
    """Return the ``files`` that exist and lie in or below ``paths``."""
    roots = _format_roots(paths)
    return [Path(file) for file in files if Path(file).exists() and any(_is_below(file, root) for root in roots)]


def _format_roots(paths: Iterable[Path]) -> list[str]:
    """Return the normalised paths as text, in the form of a document's source."""
    return [format_path(Path(os.path.normpath(path))) for path in paths]


def _is_below(source: str, root: str) -> bool:
    """Return whether a document's source is the path ``root`` or lies below the folder ``root``.

    >>> _is_below("docs/a.md", "docs"), _is_below("docs/a.md", "."), _is_below("docs2/a.md", "docs")
    (True, True, False)
    """
    if root == ".":
        return bool(source) and not source.startswith(("/", "../"))
    return source == root or source.startswith(f"{root.rstrip('/')}/")
