"""The table of file formats, and the reader of all of them.

A new format gets a row in a table of :mod:`polyad.readers.files`; this module joins the tables. A package of its own
names such a row as an entry point (see :mod:`polyad.plugin_tables`).
"""

from __future__ import annotations

from collections.abc import Callable

from polyad.config import ReadSettings
from polyad.plugin_tables import Table
from polyad.readers.files import MANY_DOCUMENTS, ONE_DOCUMENT, FileReader

readers: Table[Callable[..., object]] = Table(
    "readers",
    "format",
    {**ONE_DOCUMENT, **MANY_DOCUMENTS},
    callable,
    normalize_name=lambda name: f".{name.removeprefix('.').lower()}",
)
"""Functions by file extension: each converts the bytes of a file to a document. Some functions of polyad yield several
documents of a file instead."""


def build_file_reader(settings: ReadSettings) -> FileReader:
    """Return a reader of all file formats, including the formats that plug-ins add."""
    added = {name: plugin.reference for name, plugin in readers.plugins.items() if readers.is_usable(plugin)}
    return FileReader(settings, one_document={**ONE_DOCUMENT, **added})
