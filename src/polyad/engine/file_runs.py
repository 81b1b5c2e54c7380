"""Reading files for indexing, once for each construction method that their documents were built by."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from polyad.config import ReadSettings
from polyad.engine.registry import TUPLES, MethodAssignment, methods
from polyad.errors import ConfigurationError
from polyad.indexing.remaining_time import NO_SIZES
from polyad.model import Document, Failure
from polyad.protocols.components import Progress, Reader
from polyad.readers.folder.files import FileReader
from polyad.readers.pool.workers import WorkerPool
from polyad.readers.text.sources import find_existing_files
from polyad.text.files import get_source_file


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files to read in an indexing run, and the ids of single documents to index.

    Attributes:
        paths: Files and folders.
        ids: Ids of single documents to index.
        files: Files of these documents, of which no other document is indexed.
    """

    paths: Sequence[Path]
    ids: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    @classmethod
    def from_paths_or_ids(cls, paths_or_ids: Sequence[Path], sources: Mapping[str, str]) -> FileSelection:
        """Return the files to read again for paths or document ids; all indexed files for an empty sequence.

        Args:
            paths_or_ids: Files, folders and ids of documents.
            sources: Source of each document in the index, by document id.

        Raises:
            ConfigurationError: A document was not read from a file.
        """
        if not paths_or_ids:
            return cls([Path(file) for file in sorted({get_source_file(each) for each in sources.values() if each})])
        ids = {str(path) for path in paths_or_ids if not path.exists() and str(path) in sources}
        for id in sorted(ids):
            if not sources[id]:
                raise ConfigurationError(f"the document {id!r} has no file; expected it in index_documents")
        files = frozenset(get_source_file(sources[id]) for id in ids)
        folders = [path for path in paths_or_ids if str(path) not in ids]
        return cls([*folders, *map(Path, sorted(files))], frozenset(ids), files)

    def contains(self, item: Document | Failure) -> bool:
        """Return whether the selection contains ``item``, a document or a file that could not be read."""
        source = item.source if isinstance(item, Document) else item.id
        return item.id in self.ids or get_source_file(source) not in self.files


class FileProgress:
    """A progress callback that combines the messages of the indexer and of the file reader.

    Args:
        progress: Receives the progress and the messages.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._position: tuple[int, int | None] = (0, None)

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """Report the progress of indexing."""
        self._position = done, total
        self._progress(done, total, message)

    def report_file(self, message: str) -> None:
        """Report a message of the file reader, with the unchanged number of indexed documents."""
        self._progress(*self._position, f"files, {message}")


@dataclass(slots=True)
class MethodRun:
    """Part of an indexing run: the documents whose hyperedges are built by the same construction method.

    Attributes:
        method: The construction method.
        progress: Receives the progress of indexing these documents.
        documents: The documents and failures; can be iterated over once.
        file_count: Number of files to read; None for documents in memory.
        file_sizes: Size of each file in bytes; empty if unknown.
        document_count: Number of documents that were read so far.
    """

    method: str
    progress: Progress
    documents: Iterator[Document | Failure] = field(default_factory=lambda: iter(()))
    file_count: int | None = None
    file_sizes: Mapping[str, int] = field(default_factory=dict)
    document_count: int = 0


@dataclass(slots=True)
class FileRuns:
    """The files of an indexing run, and an iterator over their documents, grouped by construction method.

    The construction method (such as ``facts``) says how hyperedges are built. Files are read once for each method, the
    default method first.

    Attributes:
        selection: The files and documents to read.
        assignment: The method of each document.
        settings: Limits of reading.
        open_pool: Opens the pool of processes that read files.
        is_method_explicit: Whether the user named a method, which then applies to all documents.
        read_ids: Ids of all documents and failures that were read so far.
    """

    selection: FileSelection
    assignment: MethodAssignment
    settings: ReadSettings
    open_pool: Callable[[ReadSettings], WorkerPool]
    is_method_explicit: bool = False
    read_ids: set[str] = field(default_factory=set)
    _default_reader: Reader | None = None

    @property
    def skipped(self) -> tuple[str, ...]:
        """The files that were skipped because their type is not supported."""
        return tuple(self._default_reader.skipped) if self._default_reader else ()

    @property
    def ignored(self) -> tuple[str, ...]:
        """The files and folders that were left out because of .gitignore files or because tools generate them."""
        return tuple(getattr(self._default_reader, "ignored", ()))

    def read(self, progress: Progress) -> Generator[MethodRun, None, None]:
        """Yield the documents of all files, as one :class:`MethodRun` for each construction method.

        Iterate over the documents of a run before requesting the next run.
        """
        for method in self.assignment.methods:
            reader, paths = methods[method].read(self.settings), self.selection.paths
            if isinstance(reader, FileReader):
                reader.open_pool = self.open_pool
            if self._default_reader is None:
                self._default_reader = reader
            elif method == TUPLES:  # its reader would read any table as facts
                paths = find_existing_files(self.assignment.list_files(method), paths)
            file_progress = FileProgress(progress)
            run = MethodRun(method, file_progress)
            with closing(reader.read(paths, file_progress.report_file)) as items:
                run.documents = self._filter_by_method(items, run)
                run.file_sizes = reader.measure_sizes(paths) if isinstance(reader, FileReader) else NO_SIZES
                run.file_count = len(run.file_sizes) or reader.count(paths)
                yield run

    def _filter_by_method(self, items: Iterable[Document | Failure], run: MethodRun) -> Iterator[Document | Failure]:
        """Yield the documents and failures of ``items`` that have the same construction method as ``run``."""
        for item in items:
            has_method = self.is_method_explicit or self.assignment.get_method(item) == run.method
            if has_method and self.selection.contains(item):
                self.read_ids.add(item.id)
                run.document_count += isinstance(item, Document)
                yield item
