"""Reads documents from files and folders. Each format has its own module, imported when the first such file is read."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from polyad.config import ReadSettings
from polyad.errors import ConfigurationError, ReadError
from polyad.model import Document, Failure
from polyad.readers.metadata import FILE_NAME, TITLE_FROM, get_file_metadata
from polyad.readers.one_file import format_reason, ignore_page, load_function, read_content
from polyad.readers.plain_text import Content, single_line
from polyad.readers.sources import displayed
from polyad.readers.titles import get_readable_file_name, is_generic_name
from polyad.readers.workers import Reading, Workers

_SOURCE_CODE = (
    *(".bash", ".bat", ".c", ".cc", ".cfg", ".clj", ".cmake", ".conf", ".cpp", ".cs", ".cxx", ".dart", ".el", ".erl"),
    *(".ex", ".exs", ".f90", ".go", ".gradle", ".graphql", ".groovy", ".h", ".hpp", ".hs", ".ini", ".java", ".jl"),
    *(".js", ".jsx", ".kt", ".lisp", ".lua", ".m", ".mjs", ".ml", ".nim", ".php", ".pl", ".pm", ".properties"),
    *(".proto", ".ps1", ".py", ".pyi", ".r", ".rb", ".rs", ".scala", ".scm", ".sh", ".sql", ".swift", ".tcl", ".tex"),
    *(".tf", ".toml", ".ts", ".tsx", ".vb", ".vue", ".yaml", ".yml", ".zig"),
)
"""Extensions of what people write and read as text; not of data, of logs, or of what programs write."""

ONE_DOCUMENT = {
    **dict.fromkeys(_SOURCE_CODE, "polyad.readers.source_code:read_source_code"),
    ".txt": "polyad.readers.plain_text:read_text",
    ".text": "polyad.readers.plain_text:read_text",
    ".rst": "polyad.readers.rst:read_rst",
    ".eml": "polyad.readers.eml:read_eml",
    ".xhtml": "polyad.readers.html:read_html",
    ".md": "polyad.readers.markdown:read_markdown",
    ".markdown": "polyad.readers.markdown:read_markdown",
    ".html": "polyad.readers.html:read_html",
    ".htm": "polyad.readers.html:read_html",
    ".pdf": "polyad.readers.pdf:read_pdf",
    ".docx": "polyad.readers.docx:read_docx",
    ".xlsx": "polyad.readers.xlsx:read_xlsx",
    ".pptx": "polyad.readers.pptx:read_pptx",
    ".epub": "polyad.readers.epub:read_epub",
    ".odt": "polyad.readers.odt:read_odt",
}
"""Extension to the ``module:function`` that turns the bytes of a file into one document."""

MANY_DOCUMENTS = {
    ".jsonl": "polyad.readers.records:read_json_lines",
    ".csv": "polyad.readers.records:read_csv",
}
"""Extension to the ``module:function`` that streams the documents of a file."""


_PLAIN = {ONE_DOCUMENT[extension] for extension in (*_SOURCE_CODE, ".txt", ".rst", ".md")}
"""Functions that no library stands behind, and whose time goes by the size of a file alone."""

_SMALL = 1024 * 1024
"""Bytes of a file of such a kind that is read in this process; a book of 500 pages has as many."""

_FILES_A_WORKER = 2
"""How many files there are for each process: one is read, and one waits to be."""

_OF_THE_SYSTEM = (Path("/proc"), Path("/sys"))
"""Where files are not what is stored but what the system says when they are read."""


def _silent(words: str) -> None:
    """Discard a progress message."""


class _File(NamedTuple):
    """A file in the reading queue.

    Attributes:
        function: The ``module:function`` that makes one document of it; empty where there are many in it.
        reading: By another process; None where it is read in this one.
    """

    path: Path
    function: str
    reading: Reading | None


class FileReader:
    """Reads files and folders, in the order given and folders sorted by name.

    Hidden files and folders are passed over, and no folder is visited twice. A document's id is its path as given,
    normalised and with forward slashes, so the same command gives the same ids.

    A symbolic link is followed to what lies below the path that was given; one that leads elsewhere is a failure,
    unless the settings say otherwise or it was given itself and is a folder. Whatever the settings, only regular files
    are read, and nothing below ``/proc`` and ``/sys``, where a file may be a secret or have no end.

    A document without a title of its own has the file's name for one, and then ``title_from`` in its metadata is
    ``file name``; a record of a file of many has none. The metadata of each has ``path``, ``folder``, ``extension``
    and ``modified``, unless the document itself says something else under these names.

    Documents are read by other processes, within limits on time and memory (see
    :mod:`polyad.readers.workers`); plain text of a small size, and records, which are streamed, by this one.

    Args:
        settings: How large a document may be, what reading it may take, and which links are followed.
        one_document: Extension to the ``module:function`` that turns the bytes of a file into one document.
        many_documents: Extension to the ``module:function`` that streams the documents of a file.

    Attributes:
        skipped: Files that the last reading passed over because no reader knows their extension. Only files inside a
            folder are passed over; one that was named itself is a failure.
    """

    def __init__(
        self,
        settings: ReadSettings | None = None,
        *,
        one_document: Mapping[str, str] = ONE_DOCUMENT,
        many_documents: Mapping[str, str] = MANY_DOCUMENTS,
    ) -> None:
        self._settings = settings or ReadSettings()
        self._one_document = one_document
        self._many_documents = many_documents
        self._extensions = sorted({*one_document, *many_documents})
        self.skipped: list[str] = []

    def read(
        self, paths: Iterable[Path], told: Callable[[str], None] = _silent
    ) -> Generator[Document | Failure, None, None]:
        """Yield every document below ``paths``, and a failure with its reason for each file that cannot be read.

        Several files are read at a time, in processes that end when the iterator is closed or exhausted; what they say
        comes in the order of the files. An id that comes a second time is no matter of the reader's: its documents are
        all yielded.

        Args:
            paths: Files and folders.
            told: Called with what is being read while that takes a while: ``manual.pdf p. 12/311``.

        Raises:
            ConfigurationError: A path does not exist; found before anything is read.
        """
        given = [Path(os.path.normpath(path)) for path in paths]
        for path in given:
            require_reachable(path)
        self.skipped = []
        return self._documents(given, told)

    def _documents(self, given: list[Path], told: Callable[[str], None]) -> Generator[Document | Failure, None, None]:
        with closing(Workers(self._settings)) as workers:
            for file in _ahead(self._begun(given, workers), workers.count * _FILES_A_WORKER):
                if isinstance(file, Failure):
                    yield file
                    continue
                try:
                    yield from self._load(file, told)
                except Exception as error:  # whatever a format's library raises, one bad file must not end the run
                    yield Failure(displayed(file.path), format_reason(error))

    def _begun(self, given: list[Path], workers: Workers) -> Iterator[_File | Failure]:
        """Yield every file to read, or its failure; start reading in a worker process where one is used."""
        named = set(given)
        for path in self._walk(given):
            if isinstance(path, Failure):
                yield path
            elif path not in named and path.suffix.lower() not in self._extensions:
                self.skipped.append(displayed(path))
            else:
                try:
                    yield self._begin(path, workers)
                except (OSError, ReadError) as error:
                    yield Failure(displayed(path), format_reason(error))

    def _begin(self, path: Path, workers: Workers) -> _File:
        extension = path.suffix.lower()
        if extension not in self._extensions:
            kinds = [known for known in self._extensions if known not in _SOURCE_CODE]
            expected = ", ".join(kinds) + (" or source code" if len(kinds) < len(self._extensions) else "")
            raise ReadError(f"cannot read {extension or 'a file without extension'}; expected {expected}")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ReadError("not a regular file")
        function = self._one_document.get(extension, "")
        is_here = not function or (function in _PLAIN and status.st_size <= _SMALL)
        return _File(path, function, None if is_here else workers.begin(path, function))

    def _walk(self, given: list[Path]) -> Iterator[Path | Failure]:
        """Yield every file below ``given``. The walk is iterative, since folders nest deeper than Python's stack."""
        seen: set[tuple[int, int] | Path] = set()
        named = set(given)
        pending: list[tuple[Path, Path | None]] = [(path, None) for path in given[::-1]]
        while pending:
            path, root = pending.pop()
            try:
                status = path.stat()
                is_folder = stat.S_ISDIR(status.st_mode)
                identity = (status.st_dev, status.st_ino) if is_folder else path
                if identity in seen or (is_folder and path not in named and _leads_back(path)):
                    continue
                self._require_allowed(path, root, is_folder)
                seen.add(identity)
                if is_folder:
                    pending.extend((child, root or path) for child in sorted(_visible(path), reverse=True))
                else:
                    yield path
            except (OSError, ReadError) as error:
                yield Failure(displayed(path), format_reason(error))

    def _require_allowed(self, path: Path, root: Path | None, is_folder: bool) -> None:
        """Raise ReadError for system files, and for links that lead outside ``root``.

        Args:
            path: To a file or folder.
            root: The given folder that it was found in; None where it was given itself.
            is_folder: Whether it is one.
        """
        is_link = path.is_symlink()
        if not is_link and root is not None:
            return
        target = path.resolve()
        if any(target.is_relative_to(place) for place in _OF_THE_SYSTEM):
            raise ReadError("lies in /proc or /sys, of which nothing is read")
        if not is_link or self._settings.follow_links or (root is None and is_folder):
            return
        within = root or path.parent
        if not target.is_relative_to(within.resolve()):
            raise ReadError(
                f"a link to what lies outside {displayed(within)}; give the path that it leads to, or set follow_links "
                "in the section [read]"
            )

    def _load(self, file: _File, told: Callable[[str], None]) -> Iterator[Document | Failure]:
        path, function, reading = file
        name = displayed(path)
        if not function:
            yield from self._records(path, name)
            return
        if reading:
            content = reading.content(lambda page: told(f"reading {name.rpartition('/')[2]} {page}".rstrip()))
        else:
            content = read_content(path, function, self._settings, ignore_page)
        if not content.text.strip():
            raise ReadError("empty: no text")
        yield _document(path, name, content)

    def _records(self, path: Path, name: str) -> Iterator[Document | Failure]:
        known, settings = get_file_metadata(path), self._settings
        count = characters = 0
        for record in load_function(self._many_documents[path.suffix.lower()])(path, name, settings.max_bytes):
            count += 1
            characters += len(record.text) if isinstance(record, Document) else 0
            if count > settings.max_records:
                raise ReadError(f"more than {settings.max_records:,} records (max_records); the rest was not read")
            if characters > settings.max_file_characters:
                most = f"{settings.max_file_characters:,} characters of text (max_file_characters)"
                raise ReadError(f"its records hold more than {most}; the rest was not read")
            is_document = isinstance(record, Document)
            yield replace(record, metadata={**known, **record.metadata}) if is_document else record
        if not count:
            raise ReadError("empty: no records")

    def count(self, paths: Iterable[Path]) -> int:
        """Return the number of files that :meth:`read` would read or report as failures, without opening any file."""
        given = [Path(os.path.normpath(path)) for path in paths]
        return sum(
            isinstance(path, Failure) or path in given or path.suffix.lower() in self._extensions
            for path in self._walk(given)
        )


def _ahead(items: Iterator[_File | Failure], most: int) -> Iterator[_File | Failure]:
    """Yield ``items`` with a look-ahead of up to ``most`` items."""
    waiting = deque(islice(items, most))
    while waiting:
        yield waiting.popleft()
        waiting.extend(islice(items, 1))


def _document(path: Path, name: str, content: Content) -> Document:
    """Build the document of a file. The file name replaces a missing or generic title."""
    metadata = {**get_file_metadata(path), **content.metadata}
    title = content.title
    if not title or is_generic_name(title):
        is_code = path.suffix.lower() in _SOURCE_CODE
        from_name = single_line(Path(name).name if is_code else get_readable_file_name(Path(name)))
        if not title or not is_generic_name(from_name):
            title = from_name
            metadata[TITLE_FROM] = FILE_NAME
    return Document(
        name,
        title,
        content.text,
        source=name,
        sections=content.sections,
        url=content.url,
        metadata=metadata,
        places=content.places,
    )


def require_reachable(path: Path) -> None:
    """Raise ConfigurationError unless there is something at ``path`` that this user may look at."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{displayed(path)} cannot be read ({reason}); expected a file or folder") from error


def _leads_back(folder: Path) -> bool:
    """Return whether ``folder`` is a symbolic link to one of its own parent folders."""
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith("."))
