"""Replaces the embedder of an index: all texts are embedded again, and nothing is extracted again."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from polyad.config import EmbeddingSettings
from polyad.curation.corrections import collect_values, correct_document, load_originals, restore_originals
from polyad.curation.curator import HistoryRecorder
from polyad.curation.statements import Statements
from polyad.indexing.embedding import PendingVectors, embed_documents
from polyad.model import IndexedDocument
from polyad.protocols.components import Embedder, Progress
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import Manifest, Store, Values

_BATCH = 50
"""Documents that are read and embedded together; an interrupted run loses the vectors of one batch."""


@dataclass(frozen=True, slots=True)
class ReplacementReport:
    """The result of replacing the embedding model of an index: number of documents and vectors.

    Attributes:
        embedder: Name of the new embedder.
        dimension: Length of its vectors.
        documents: Number of documents.
        vectors: Number of replaced vectors of passages and hyperedges.
        embedded_texts: Number of distinct texts that this run embedded.
        seconds: Wall time.
    """

    embedder: str
    dimension: int
    documents: int
    vectors: int
    embedded_texts: int
    seconds: float


class VectorReplacement:
    """Computes all vectors of an index with another embedding model and replaces them in one transaction.

    Searches and other writers go on meanwhile. An interrupted run leaves the index as it was; the next run with the
    same embedder computes only the vectors that are missing.

    Args:
        store: The index.
        embedder: The new embedder.
        settings: Whether hyperedges are embedded with the title of their passage.
        recorder: Records the replacement in the history.
    """

    def __init__(
        self, store: Store, embedder: Embedder, settings: EmbeddingSettings, recorder: HistoryRecorder
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._recorder = recorder
        self._embedded_texts = 0
        self._vectors = 0

    def run(self, progress: Progress) -> ReplacementReport:
        """Embed all texts of the index with the new embedder, replace the vectors, and return the report."""
        start = time.perf_counter()
        ids = list(get_digests(self._store))
        for done in range(0, len(ids), _BATCH):
            progress(done, len(ids), "documents embedded")
            with self._store.read_transaction() as transaction:
                stored = list(transaction.get(IndexedDocument, ids[done : done + _BATCH]).values())
                built = self._load_uncorrected(stored)
            self._embed_documents(built, save_seconds=0.0)
        progress(len(ids), len(ids), "documents embedded")
        mentions = self._store.manifest.mentions
        self._store.replace_vectors(
            Manifest(self._embedder.name, self._embedder.dimension, mentions), self._replace_documents
        )
        return ReplacementReport(
            self._embedder.name,
            self._embedder.dimension,
            len(ids),
            self._vectors,
            self._embedded_texts,
            time.perf_counter() - start,
        )

    def _load_uncorrected(self, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
        """Return the documents without the users' corrections (retractions and aliases), as the indexer built them."""
        originals = load_originals(self._store, [item.document.id for item in documents])
        return [restore_originals(item, originals.get(item.document.id, ())) for item in documents]

    def _embed_documents(self, documents: Sequence[IndexedDocument], save_seconds: float) -> list[IndexedDocument]:
        """Return ``documents`` with vectors of the new embedder; save vectors every ``save_seconds`` seconds.

        Vectors that are saved already are not computed again.
        """
        pending = PendingVectors(self._store, f"{self._embedder.name} ", save_seconds)
        embedded = embed_documents(self._embedder, documents, self._settings.hyperedge_titles, pending)
        self._embedded_texts += pending.computed
        return embedded

    def _replace_documents(self, documents: Sequence[IndexedDocument]) -> tuple[list[IndexedDocument], Values]:
        """Return ``documents`` with new vectors and the users' corrections, and the values to store beside them.

        The values are the original passages of corrected documents, and the entry of the history.
        """
        statements = Statements.load(self._store)
        # Within the write transaction, nothing can be saved; texts of documents that were added meanwhile are new.
        embedded = self._embed_documents(self._load_uncorrected(documents), save_seconds=math.inf)
        corrected = [correct_document(item, statements) for item in embedded]
        passages = [passage for item in embedded for passage in item.passages]
        hyperedges = sum(len(passage.hyperedges) for passage in passages)
        self._vectors += len(passages) + hyperedges
        with self._recorder.add(len(embedded), len(passages), hyperedges) as entry:
            return [item.document for item in corrected], {**collect_values(corrected), **entry}
