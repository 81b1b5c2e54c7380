"""Names the source of documents and finds documents that no longer exist at their source."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from polyad.model import Failure
from polyad.text.files import get_source_file

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f]")


def displayed(path: Path) -> str:
    """Return the path with forward slashes, with escapes for line breaks and bytes that are not Unicode."""
    posix = path.as_posix()
    if posix.isascii() and posix.isprintable():
        return posix
    decoded = os.fsencode(posix).decode("utf-8", errors="backslashreplace")
    return _UNPRINTABLE.sub(lambda match: f"\\x{ord(match[0]):02x}", decoded)


@dataclass(frozen=True, slots=True)
class MissingDocuments:
    """Indexed documents that no longer exist at their source.

    Attributes:
        ids: All of them.
        spared: Those of them that came from a path in which there is nothing at all now. That is more likely a disk
            that is missing than a wish to lose everything.
    """

    ids: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


def places_of(paths: Iterable[Path]) -> list[str] | None:
    """Files and folders as sources name them; None where all that came from any file may lie in them."""
    places = [displayed(Path(os.path.normpath(path))) for path in paths]
    return None if {".", "/"} & set(places) else places


def gone(
    sources: Mapping[str, str],
    paths: Iterable[Path],
    read: Set[str],
    failures: Iterable[Failure],
    skipped: Iterable[str] = (),
) -> MissingDocuments:
    """Documents that came from some paths and were not there; none of a file that was not read, or not whole.

    Args:
        sources: Of every document known that came from one of the paths, by its id.
        paths: What was read.
        read: Ids of the documents that were there.
        failures: What could not be read.
        skipped: Files that are there, but not of a kind that was read.
    """
    places = [displayed(Path(os.path.normpath(path))) for path in paths]
    unread = {get_source_file(failure.id) for failure in failures} | set(skipped)
    there = {get_source_file(source) for id, source in sources.items() if id in read} | unread
    holding = [place for place in places if any(_is_below(file, place) for file in there)]
    missing = {
        id: file
        for id, file in ((id, get_source_file(source)) for id, source in sources.items() if id not in read)
        if any(_is_below(file, place) for place in places)
        and unread.isdisjoint([file, *map(str, PurePosixPath(file).parents)])
    }
    spared = (id for id, file in missing.items() if not any(_is_below(file, place) for place in holding))
    return MissingDocuments(tuple(missing), tuple(spared))


def present(files: Iterable[str], paths: Iterable[Path]) -> list[Path]:
    """Those of some files that are there, and are among what was named or lie in it."""
    places = [displayed(Path(os.path.normpath(path))) for path in paths]
    return [Path(file) for file in files if Path(file).exists() and any(_is_below(file, place) for place in places)]


def _is_below(source: str, place: str) -> bool:
    """Whether a source is ``place`` or lies in that folder.

    >>> _is_below("docs/a.md", "docs"), _is_below("docs/a.md", "."), _is_below("docs2/a.md", "docs")
    (True, True, False)
    """
    if place == ".":
        return bool(source) and not source.startswith(("/", "../"))
    return source == place or source.startswith(f"{place.rstrip('/')}/")
