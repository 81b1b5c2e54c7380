"""Reads one file within the limits, in this process or in a worker process."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from polyad.config import ReadSettings
from polyad.errors import PolyadError, ReadError
from polyad.protocols.components import report_failure
from polyad.readers.format import Content, Context, Format, OnPage, Source, ignore_page, load_function
from polyad.readers.text.metadata import CONTENT_HASH
from polyad.readers.text.plain_text import to_single_line
from polyad.readers.text.properties import prepend_properties

_BASE_CHARACTERS, _CHARACTERS_PER_BYTE = 500_000, 50
"""Limit on characters: the base, and this number for each byte of the file. Real files have some four a byte, sheets
with long column names twenty; a file with far more repeats itself, and would cost its reader more than its writer."""

_MAX_PLACES = 200_000
"""Sections, pages, sheets and slides of a document together; manuals of thousands of pages have ten thousand."""

_OWN_PACKAGES = ("polyad.", "polyad_readers.")
"""Packages whose errors are not those of a plug-in."""


def open_source(path: Path, format: Format, settings: ReadSettings, name: str = "") -> Source:
    """Return the source of a file, with the limit on the bytes of its format."""
    return Source(path, name, format.size_factor * settings.max_bytes)


def read_content(path: Path, format: Format, settings: ReadSettings, on_page: OnPage = ignore_page) -> Content:
    """Return the content of a file, with its title and author as first lines unless the text begins with them.

    See :func:`prepend_properties`. The metadata of a file whose pages can be shown has its SHA-256.

    Args:
        path: A regular file.
        format: The format of the file, which has one document.
        settings: Limits on the bytes of the file and the characters of its text.
        on_page: Called after each page, and each picture in a document.

    Raises:
        ReadError: The file exceeds a limit, or the function cannot read the file.
        OSError: The file cannot be opened.
    """
    read = load_function(format.read)
    is_own = format.read.startswith(_OWN_PACKAGES)
    source, context = open_source(path, format, settings), Context(settings, on_page)
    with nullcontext() if is_own else report_failure(ReadError, f"the reader {format.read!r}"):
        if format.pictures:
            context = replace(context, pictures=load_function(format.pictures)(source, context))
        content = read(source.read()) if format.takes_bytes else read(source, context)
        if not isinstance(content, Content):
            raise TypeError(f"it returned {repr(content)[:60]}; expected a polyad.readers.format.Content")
        if context.pictures:
            content = context.pictures.complete(content)
        if format.has_pages:
            content = replace(content, metadata={**content.metadata, CONTENT_HASH: source.digest})
    require_plausible_length(len(content.text), source.size)
    if len(content.text) > settings.max_characters:
        raise ReadError(
            f"{len(content.text):,} characters of text; at most {settings.max_characters:,} are read (max_characters)"
        )
    if (places := len(content.sections) + len(content.places)) > _MAX_PLACES:
        raise ReadError(f"{places:,} headings and pages; at most {_MAX_PLACES:,} are read: split it")
    return prepend_properties(content)


def require_plausible_length(characters: int, size: int) -> None:
    """Raise ReadError if the text of a file is implausibly long for the file's size (a decompression bomb)."""
    if characters > (limit := _BASE_CHARACTERS + _CHARACTERS_PER_BYTE * size):
        raise ReadError(f"more than {limit:,} characters of text, the limit for a file of {size:,} bytes")


def format_reason(error: Exception | SystemExit) -> str:
    """Return the reason why a file could not be read, as one line for a message to the user."""
    if isinstance(error, PolyadError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return to_single_line(f"cannot be read: {type(error).__name__}: {error}")
