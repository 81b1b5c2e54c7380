"""The contract between polyad and the readers of file formats: a row for each format, and one signature to read."""

from __future__ import annotations

import hashlib
import importlib
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Protocol, Self

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Document, Failure, Location, MetadataValue, Section
from polyad.text.removals import Removals

TEXT_PAGE, STORED_SCAN, NEW_SCAN = "", "stored", "new"
"""Kinds of pages: with text, scanned and recognised by an earlier run, and scanned and recognised by this run."""

OnPage = Callable[[int, int, str], None]
"""Called with the number of the page that was read, from 1, the number of pages, and the kind of the page.

For a picture inside a document: the number of pictures so far, 0, and the kind of a new scan."""

Load = Callable[[], bytes]
"""Returns the bytes of a picture; may raise any error of a damaged file."""

_MAX_BYTES = ReadSettings().max_bytes


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: title, text, sections, page locations, URL and metadata.

    Attributes:
        title: A single line; empty if the file states no title.
        text: The text that every span refers to.
        sections: Sections of the text under headings.
        places: Pages, sheets or slides, in order, as spans that do not overlap.
        metadata: Other properties that the file states.
        url: Web address of the document if the file states it.
        removals: What the text leaves out, such as running headers, by kind (see :mod:`polyad.text.removals`).
    """

    title: str
    text: str
    sections: tuple[Section, ...] = ()
    places: tuple[Location, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    url: str = ""
    removals: Removals = field(default_factory=dict)


@dataclass
class Source:
    """A file to read, of limited size.

    Attributes:
        path: The file. A copy in an index has no extension.
        name: Name of the file in ids of its documents and in failures.
        max_bytes: Bytes that the file may have.
    """

    path: Path
    name: str = ""
    max_bytes: int = _MAX_BYTES
    _data: bytes | None = None

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return a source of bytes in memory."""
        return cls(Path(), max_bytes=len(data), _data=data)

    @cached_property
    def size(self) -> int:
        """Number of bytes."""
        return self._require_size(self.path.stat().st_size if self._data is None else len(self._data))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def open(self) -> BufferedIOBase:
        """Open the file, for formats of which a part at a time is in memory.

        Raises:
            ReadError: The file is larger than ``max_bytes``.
            OSError: The file cannot be opened.
        """
        if self._data is not None:
            return io.BytesIO(self._data)
        file = self.path.open("rb")
        try:
            self.size = self._require_size(os.fstat(file.fileno()).st_size)
        except ReadError:
            file.close()
            raise
        return file

    def read(self) -> bytes:
        """Return the bytes.

        The size that the file system states is not trusted, because a file may grow.

        Raises:
            ReadError: The file is larger than ``max_bytes``.
            OSError: The file cannot be opened.
        """
        if self._data is None:
            size = self._require_size(self.path.stat().st_size)
            with self.path.open("rb") as file:
                data = file.read(self.max_bytes + 1)
            self._require_size(max(size, len(data)))
            self._data, self.size = data, len(data)
        return self._data

    def _require_size(self, size: int) -> int:
        if size > self.max_bytes:
            raise ReadError(f"{size:,} bytes; at most {self.max_bytes:,} are read (max_bytes)")
        return size


class Pictures(Protocol):
    """Reads the text of the pictures inside one document.

    The text of equal pictures is read once, and that of logos never.
    """

    def count(self, keys: Iterable[str]) -> None:
        """Count the places of pictures, by key, before they are read, so that logos are recognised."""

    def read(self, key: str, load: Load, description: str = "", name: str = "") -> str:
        """Return the text of a picture to be written at its place; empty if it has none or stood at an earlier place.

        Args:
            key: Identifies the picture in the document, such as the path of its part.
            load: Returns the bytes.
            description: Description or caption, which stands in the text of the document.
            name: Name for reports; empty for the last part of ``key``.
        """

    def has_text(self, key: str) -> bool:
        """Return whether text of this picture was read."""

    def add_caption(self, caption: str) -> None:
        """Add a caption to the picture directly before, or else to the next picture if it follows directly.

        An empty caption stands for other text, which separates pictures and captions.
        """

    def load_part(self, path: str) -> bytes:
        """Return the bytes of a picture in a document that is a ZIP archive.

        Raises:
            ReadError: The part is missing, damaged or too large.
        """

    def find_address(self, address: str) -> tuple[str, Load] | None:
        """Return key and bytes of the picture of a web page that is part of the page or lies in its folder."""

    def complete(self, content: Content) -> Content:
        """Return the content of the document with sections for the texts of pictures, their list and what is left out.

        A document without pictures stays as it is.
        """


def ignore_page(page: int, pages: int, kind: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Context:
    """How a file is read.

    Attributes:
        settings: Limits, and settings of OCR.
        on_page: Called after each page, and after each picture inside a document.
        pictures: Reads the pictures inside the document; None if their text is not read.
    """

    settings: ReadSettings = field(default_factory=ReadSettings)
    on_page: OnPage = ignore_page
    pictures: Pictures | None = None


DEFAULT_CONTEXT = Context()
"""Reads with the default settings, without pictures inside documents."""

Read = Callable[[Source, Context], Content | Iterator[Document | Failure]]
"""Reads a file: one document, or a stream of documents for a format of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format. A function is a reference ``module:function``, which is imported in the process that reads.

    Attributes:
        name: Name for people.
        extensions: File extensions, with the dot and in lower case.
        read: Reads a file: ``read(source, context)`` returns a :class:`Content`, or yields documents and failures.
        has_records: Whether a file has many documents, which ``read`` yields. Then ``max_bytes`` limits a record.
        takes_bytes: Whether ``read`` is a function of the bytes of the file alone.
        in_process: Whether ``read`` needs no library, and a time that depends on the size of the file alone. Such files
            of up to 1 MB are read without a worker process.
        pictures: Opens the reader of the pictures inside a document: ``open(source, context)`` returns
            :class:`Pictures`. Empty if documents have none.
        render: Draws a page, or a picture inside a document, with a passage marked:
            ``render(source, context, request)``. Empty if the format has neither.
        recognize: Recognises and stores some of the scanned pages while another process reads the file:
            ``recognize(source, context, part)``, where ``part`` is the number of the process, from 0, and the number
            of such processes. Empty for formats without scans.
        is_code: Whether files are source code: the file name with its extension is the title, and a file that a program
            wrote is skipped.
        is_picture: Whether a file is a picture. Those without text are skipped in folders, and all of them without
            ``packages``.
        packages: Import packages of an extra that is needed to read the text of pictures.
        size_factor: Multiple of ``max_bytes`` that a file may have, if a part at a time is in memory.
        characters_per_byte: Characters of text in a byte of a file, until files of the format have been read.
        size_exponent: Power of the size to which the characters are proportional; below 1 if large files have more
            links and code.
    """

    name: str
    extensions: tuple[str, ...]
    read: str
    has_records: bool = False
    takes_bytes: bool = False
    in_process: bool = False
    pictures: str = ""
    render: str = ""
    recognize: str = ""
    is_code: bool = False
    is_picture: bool = False
    packages: tuple[str, ...] = ()
    size_factor: int = 1
    characters_per_byte: float = 1.0
    size_exponent: float = 1.0

    @property
    def has_pages(self) -> bool:
        """Whether pages of a file can be shown."""
        return bool(self.render) and not self.pictures

    def is_installed(self) -> bool:
        """Return whether the packages of the format are installed."""
        return all(map(find_spec, self.packages))

    def estimate_characters(self, size: int) -> float:
        """Return the number of characters of text that a file of this size usually has."""
        return min(size, self.characters_per_byte * math.pow(size, self.size_exponent))


def load_function(reference: str) -> Callable[..., Any]:
    """Import and return a function from a reference of the form ``module:function``.

    Raises:
        MissingExtraError: The module needs a package that is not installed.
    """
    module, function = reference.split(":")
    imported: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return imported
