"""Readers of PDF, Office, web and e-mail files, pictures and markup; usable without an index.

>>> import polyad_readers
>>> content = polyad_readers.read("report.pdf")                             # doctest: +SKIP
>>> content.text, content.sections, content.places, content.removals        # doctest: +SKIP

polyad knows the formats by an entry point of this distribution, as it knows those of other packages.
"""

from __future__ import annotations

from pathlib import Path

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.readers.format import Content, OnPage, ignore_page
from polyad.readers.formats import find_format, list_formats
from polyad.readers.pool.one_file import read_content

__all__ = ["Content", "ReadSettings", "read"]


def read(path: str | Path, settings: ReadSettings | None = None, on_page: OnPage = ignore_page) -> Content:
    """Return the content of a file: title, text, sections, pages, metadata, and what the text leaves out.

    The file is read in this process. Limits on time and memory hold only in the processes of
    :class:`polyad.readers.folder.files.FileReader`, which reads files of strangers.

    Args:
        path: The file. Its extension tells its format.
        settings: Limits on sizes, and settings of OCR; None for the defaults.
        on_page: Called after each page: its number from 1, the number of pages, and the kind of the page.

    Raises:
        ReadError: The file is of an unknown format, of one with many documents, too large, or damaged.
        MissingExtraError: A package that reads the format is not installed.
        OSError: The file cannot be opened.
    """
    path = Path(path)
    format = find_format(path, list_formats())
    if format.has_records:
        raise ReadError(f"{path} holds many documents; expected a file with one, see polyad.readers.folder.files")
    return read_content(path, format, settings or ReadSettings(), on_page)
