"""The contents of an index at one point in time, in batches, so that memory does not grow with the index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from polyad.curation.corrections import load_originals, restore_originals
from polyad.curation.statements import Statements
from polyad.model import NO_VECTOR, Entity, IndexedDocument, IndexedHyperedge, Passage
from polyad.protocols.components import Progress, silent
from polyad.protocols.store import Manifest, ReadTransaction, Store, StoredDocument

_DOCUMENTS_PER_BATCH = 50
_ENTITIES_PER_BATCH = 5000


class IndexContents:
    """The documents and entities of an index, read in one transaction for an export.

    Args:
        store: The index.
        transaction: The read transaction of this thread.
        progress: Receives the number of documents that were read.
        vectors: Whether documents have their vectors; otherwise their vectors are empty.
    """

    def __init__(
        self, store: Store, transaction: ReadTransaction, progress: Progress = silent, *, vectors: bool = True
    ) -> None:
        self._store = store
        self._transaction = transaction
        self._progress = progress
        self.has_vectors = vectors
        self._ids = list(transaction.get(StoredDocument))

    @property
    def manifest(self) -> Manifest:
        """The names of the index's embedder and mention extractor, and the vector dimension."""
        return self._store.manifest

    @property
    def statements(self) -> Statements:
        """All users' corrections in the index: retractions, aliases and disabled documents."""
        return Statements.load(self._store)

    def count_records(self) -> dict[str, int]:
        """Return the numbers of documents, passages, entities, hyperedges and memberships, by name."""
        sizes = self._transaction.count("size")
        return {name: sizes[name] for name in ("documents", "passages", "entities", "hyperedges", "incidences")}

    def iterate_documents(self, *, as_built: bool = False) -> Iterator[IndexedDocument]:
        """Yield every document with passages and hyperedges, sorted by id.

        ``as_built`` omits the user's corrections.

        Args:
            as_built: Whether to yield documents as they were before corrections by users.
        """
        for start in range(0, len(self._ids), _DOCUMENTS_PER_BATCH):
            self._progress(start, len(self._ids), "documents")
            ids = self._ids[start : start + _DOCUMENTS_PER_BATCH]
            originals = load_originals(self._store, ids) if as_built else {}
            for id, document in self._transaction.get(IndexedDocument, ids).items():
                built = restore_originals(document, originals[id]) if id in originals else document
                yield built if self.has_vectors else _drop_vectors(built)

    def iterate_hyperedges(self) -> Iterator[tuple[Passage, IndexedHyperedge]]:
        """Yield each hyperedge with its passage, sorted by document."""
        for document in self.iterate_documents():
            for item in document.passages:
                yield from ((item.passage, edge) for edge in item.hyperedges)

    def iterate_entities(self) -> Iterator[Entity]:
        """Yield every entity in the order in which entities were added to the index."""
        keys = [key for _, key in self._transaction.entity_keys()]
        for start in range(0, len(keys), _ENTITIES_PER_BATCH):
            yield from self._transaction.get(Entity, keys[start : start + _ENTITIES_PER_BATCH]).values()


def select_fields(record: object, *names: str) -> dict[str, Any]:
    """Return the listed attributes of a record as a dictionary."""
    return {name: getattr(record, name) for name in names}


def _drop_vectors(document: IndexedDocument) -> IndexedDocument:
    passages = (
        replace(item, vector=NO_VECTOR, hyperedges=tuple(replace(edge, vector=NO_VECTOR) for edge in item.hyperedges))
        for item in document.passages
    )
    return replace(document, passages=tuple(passages))
