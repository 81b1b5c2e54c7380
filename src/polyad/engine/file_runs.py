"""Reading files for indexing: once for each method that the documents in them were built by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from polyad.config import ReadSettings
from polyad.engine.registry import methods
from polyad.errors import ConfigurationError
from polyad.indexing.builders import TUPLES, MethodAssignment
from polyad.indexing.run import IndexReport
from polyad.model import Document, Failure
from polyad.protocols.components import Progress, Reader
from polyad.readers.sources import find_existing_files
from polyad.text.files import get_source_file

Index = Callable[[Iterable[Document | Failure], str, Progress, int], IndexReport]
"""Indexes documents from so many files by a method."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What is to be read.

    Attributes:
        paths: Files and folders.
        ids: Of documents, where not all in their files are wanted.
        files: Of which only these are.
    """

    paths: Sequence[Path]
    ids: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def wants(self, item: Document | Failure) -> bool:
        """Return whether a document, or a failure to read one, belongs to the selection."""
        source = item.source if isinstance(item, Document) else item.id
        return item.id in self.ids or get_source_file(source) not in self.files


def selected(paths: Sequence[Path], sources: Mapping[str, str]) -> Selected:
    """Resolve paths and document ids to the files to read; without any, select all files of the index.

    Raises:
        ConfigurationError: a document came from no file, and cannot be read anew.
    """
    if not paths:
        return Selected(
            [Path(file) for file in sorted({get_source_file(source) for source in sources.values() if source})]
        )
    ids = {str(path) for path in paths if not path.exists() and str(path) in sources}
    for id in sorted(ids):
        if not sources[id]:
            raise ConfigurationError(f"the document {id!r} came from no file; give it to index_documents once more")
    files = frozenset(get_source_file(sources[id]) for id in ids)
    return Selected(
        [*(path for path in paths if str(path) not in ids), *map(Path, sorted(files))], frozenset(ids), files
    )


@dataclass(slots=True)
class FileRuns:
    """The runs over some files, the default method's first.

    Attributes:
        wanted: What is read.
        remembered: By which method each document is built.
        read: Ids of all that was there.
        skipped: Files of a kind that is not read.
    """

    wanted: Selected
    remembered: MethodAssignment
    settings: ReadSettings
    is_named: bool = False  # the method, which then is that of all
    read: set[str] = field(default_factory=set)
    skipped: tuple[str, ...] = ()

    def index(self, index: Index, progress: Progress) -> IndexReport:
        """Read and index by one method after the other, until one of them is stopped."""
        first, *others = self.remembered.methods
        reader = self._reader(first)
        report, _ = self._run(reader, first, self.wanted.paths, index, progress)
        self.skipped = tuple(reader.skipped)
        for method in others:
            paths = self.wanted.paths
            if method == TUPLES:  # a reader of these takes any table for facts
                paths = find_existing_files(self.remembered.list_files(method), paths)
            if report.counts.stop_reason:
                break
            found, met = self._run(self._reader(method), method, paths, index, progress)
            report = report.merge(found, met) if met else report
        return report

    def _run(
        self, reader: Reader, method: str, paths: Sequence[Path], index: Index, progress: Progress
    ) -> tuple[IndexReport, int]:
        """Index the files by one method; return its report and the number of documents."""
        position: tuple[int, int | None] = (0, None)
        met = 0

        def told(done: int, total: int | None, message: str) -> None:
            nonlocal position
            position = done, total
            progress(done, total, message)

        def own(items: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
            nonlocal met
            for item in items:
                if self.wanted.wants(item) and (self.is_named or self.remembered.get_method(item) == method):
                    self.read.add(item.id)
                    met += isinstance(item, Document)
                    yield item

        with closing(reader.read(paths, lambda words: progress(*position, f"files, {words}"))) as items:
            return index(own(items), method, told, reader.count(paths)), met

    def _reader(self, method: str) -> Reader:
        return methods[method].read(self.settings)
