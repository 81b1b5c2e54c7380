"""Reads one file within the limits, in this process or in a worker process."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyad.config import ReadSettings
from polyad.errors import PolyadError, ReadError
from polyad.readers.plain_text import Content, single_line

OnPage = Callable[[int, int], None]
"""Told the number of a page that was read, and how many there are."""

_TELLS_PAGES = "polyad.readers.pdf:read_pdf"
"""The one function that takes long enough to say how far it is."""

_MOST_PLACES = 500_000
"""Sections, pages, sheets and slides of a document together; manuals of thousands of pages have ten thousand."""


def read_content(path: Path, function: str, settings: ReadSettings, on_page: OnPage) -> Content:
    """Return the content of a file.

    Args:
        path: Of a regular file.
        function: The ``module:function`` that turns its bytes into one document.
        settings: How large it may be, before and after.
        on_page: Told of the pages of a PDF.

    Raises:
        ReadError: It is above a limit, or the function says that it cannot be read.
        OSError: It cannot be read.
    """
    read = load_function(function)
    data = _bytes_of(path, settings.max_bytes)
    content: Content = read(data, on_page) if function == _TELLS_PAGES else read(data)
    if len(content.text) > settings.max_characters:
        raise ReadError(
            f"{len(content.text):,} characters of text; at most {settings.max_characters:,} are read (max_characters)"
        )
    if (places := len(content.sections) + len(content.places)) > _MOST_PLACES:
        raise ReadError(f"{places:,} headings and pages; at most {_MOST_PLACES:,} are read: split it")
    return content


def ignore_page(page: int, pages: int) -> None:
    """Discard the progress of pages."""


def load_function(reference: str) -> Callable[..., Any]:
    """Import and return the function named by ``module:function``.

    Raises:
        MissingExtraError: The module needs a package that is not installed.
    """
    module, function = reference.split(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def format_reason(error: Exception) -> str:
    """Return the reason why a file could not be read, as one line for the user."""
    if isinstance(error, PolyadError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return single_line(f"cannot be read: {type(error).__name__}: {error}")


def _bytes_of(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file. The size in the file system is not trusted: a file may grow.

    Raises:
        ReadError: it is larger than ``most``.
    """
    size = path.stat().st_size
    if size <= most:
        with path.open("rb") as file:
            contents = file.read(most + 1)
        if len(contents) <= most:
            return contents
        size = max(size, len(contents))
    raise ReadError(f"{size:,} bytes; at most {most:,} are read (max_bytes)")
