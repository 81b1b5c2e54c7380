"""Exports an index to a file, and imports one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType

from polyad.curation.curator import Curator, HistoryRecorder
from polyad.curation.statements import Statements
from polyad.engine.components import Components
from polyad.engine.opening import list_own_files
from polyad.errors import ConfigurationError, StoreNotFoundError
from polyad.indexing.embedding import embed_documents
from polyad.interchange.contents import IndexContents
from polyad.interchange.jsonl import list_vectors, read_documents, read_header
from polyad.model import Failure, IndexedDocument
from polyad.protocols.components import Embedder, Progress
from polyad.protocols.lookups import check_manifest, get_digests
from polyad.protocols.store import Store, StoreOpener
from polyad.text.files import check_output_path, make_folder

EXPORT_FORMATS = MappingProxyType(
    {
        "jsonl": "polyad.interchange.jsonl:write_jsonl",
        "hif": "polyad.interchange.hif:write_hif",
        "graphml": "polyad.interchange.graphml:write_graphml",
        "parquet": "polyad.interchange.parquet:write_parquet",
    }
)
"""Reference to the function that writes each format, by name."""

_BATCH_CHARACTERS = 200_000
"""Characters of text that an import stores in one transaction; an interrupted import repeats one such batch."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export: the files and the numbers of records in them.

    Attributes:
        format: Name of the format.
        files: The files.
        documents, entities, hyperedges: Numbers of records in the index.
        size: Size of the files in bytes.
        seconds: Wall time.
    """

    format: str
    files: tuple[Path, ...]
    documents: int
    entities: int
    hyperedges: int
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import: the numbers of added, updated and unchanged documents, and the failures.

    Attributes:
        added, updated, unchanged: Numbers of documents.
        embedded: Number of documents whose texts were embedded again.
        statements: Number of corrections by users that the index did not have.
        failures: Lines that were not imported, with reasons.
        seconds: Wall time.
    """

    added: int
    updated: int
    unchanged: int
    embedded: int
    statements: int
    failures: tuple[Failure, ...]
    seconds: float


def export_index(
    store: Store, path: Path, format: str, progress: Progress, *, vectors: bool, overwrite: bool
) -> ExportReport:
    """Write an index to the file ``path`` in an export format; see :meth:`polyad.engine.engine.Engine.export`."""
    start = time.perf_counter()
    if format not in EXPORT_FORMATS:
        raise ConfigurationError(f"the format is {format!r}; expected one of {', '.join(EXPORT_FORMATS)}")
    write = resolve_name(EXPORT_FORMATS[format])
    try:
        check_output_path(path, overwrite=overwrite, own_files=list_own_files(store))
        make_folder(path.parent)
        with store.read_transaction() as transaction:
            contents = IndexContents(store, transaction, progress, vectors=vectors)
            files: list[Path] = write(contents, path)
            counts = contents.count_records()
        size = sum(file.stat().st_size for file in files)
    except OSError as error:
        raise ConfigurationError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    return ExportReport(
        format,
        tuple(files),
        counts["documents"],
        counts["entities"],
        counts["hyperedges"],
        size,
        time.perf_counter() - start,
    )


class Importer:
    """Adds the documents and corrections of a file in polyad's JSON Lines format to an index.

    Documents that the index has with the same digest are skipped, so a repeated import continues an interrupted one.

    Args:
        store: The index.
        components: The embedder, which is loaded if texts have to be embedded again, and the settings.
        path: The file.
        recorder: Records the import in the history.
    """

    def __init__(self, store: Store, components: Components, path: Path, recorder: HistoryRecorder) -> None:
        self._store = store
        self._components = components
        self._curator = Curator(store)
        self._path = path
        self._recorder = recorder
        self._header = read_header(path)
        check_manifest(store.manifest, mentions=self._header.mentions)
        self._failures: list[Failure] = []
        self._counts = {"added": 0, "updated": 0, "unchanged": 0, "embedded": 0}

    def run(self, progress: Progress) -> ImportReport:
        """Import the corrections (retractions, aliases, disabled documents), then the documents; return a report."""
        start = time.perf_counter()
        statements = self._add_statements(self._header.parse_statements())
        count = 0
        for batch in self._split_into_batches(read_documents(self._path, self._header)):
            progress(count, self._header.documents, "documents")
            count += len(batch)
            self._import_batch(batch)
        return ImportReport(
            **self._counts,
            statements=statements,
            failures=tuple(self._failures),
            seconds=time.perf_counter() - start,
        )

    # Documents

    def _split_into_batches(self, items: Iterable[IndexedDocument | Failure]) -> Iterator[list[IndexedDocument]]:
        """Yield documents in batches with distinct ids; add each failure to the report."""
        batch: dict[str, IndexedDocument] = {}
        size = 0
        for item in items:
            if isinstance(item, Failure):
                self._failures.append(item)
                continue
            if size >= _BATCH_CHARACTERS or item.document.id in batch:
                yield list(batch.values())
                batch, size = {}, 0
            batch[item.document.id] = item
            size += len(item.document.text)
        if batch:
            yield list(batch.values())

    def _import_batch(self, documents: Sequence[IndexedDocument]) -> None:
        """Store the new and changed documents of ``documents``, one batch of the import file."""
        digests = get_digests(self._store, [item.document.id for item in documents])
        changed = [item for item in documents if not item.digest or digests.get(item.document.id) != item.digest]
        updated = sum(item.document.id in digests for item in changed)
        self._curator.put(*self._embed_missing(changed), recorder=self._recorder)
        self._counts["unchanged"] += len(documents) - len(changed)
        self._counts["updated"] += updated
        self._counts["added"] += len(changed) - updated

    def _embed_missing(self, documents: Sequence[IndexedDocument]) -> Sequence[IndexedDocument]:
        """Return ``documents`` with vectors of the index's embedder, which are computed if the file has none."""
        manifest, header = self._store.manifest, self._header
        has_same_embedder = (header.embedder, header.dimension) == (manifest.embedder, manifest.dimension)
        missing = [item for item in documents if not (has_same_embedder and list_vectors(item)[0].size)]
        if not missing:
            return documents
        self._counts["embedded"] += len(missing)
        titles = self._components.settings.embedding.hyperedge_titles
        by_id = {item.document.id: item for item in embed_documents(self._components.embedder, missing, titles)}
        return [by_id.get(item.document.id, item) for item in documents]

    # Corrections

    def _add_statements(self, statements: Statements) -> int:
        """Add the user corrections of an imported file to the index, and return the number of new ones."""

        def report(problem: str) -> None:
            self._failures.append(Failure(f"{self._path}:1", problem))

        added = Statements.load(self._store).select_new(statements, report)
        count = sum(1 for _ in added)
        if count:
            self._curator.change(
                lambda current: current.add(current.select_new(added, report)), added.find_documents, self._recorder
            )
        return count


def create_like(path: Path, place: str | Path, open_store: StoreOpener, embedder: Embedder | None) -> None:
    """Create an index at ``place`` with the embedder and extractor of the export file ``path``, unless one exists.

    Args:
        path: The file.
        place: Location of the index.
        open_store: Opens the store.
        embedder: Embedder of the new index; None for the embedder that the file names.
    """
    manifest = read_header(path).manifest
    if embedder is not None:
        manifest = replace(manifest, embedder=embedder.name, dimension=embedder.dimension)
    try:
        open_store(place).close()
    except StoreNotFoundError:
        open_store(place, manifest).close()
