"""Replaces the embedder of an index: all texts are embedded again, and nothing is extracted again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.config import EmbeddingSettings
from polyad.curation.corrections import collect_values, correct_document, load_originals, restore_originals
from polyad.curation.history import HistoryRecorder
from polyad.curation.statements import Statements
from polyad.indexing.embedding import embed_texts, format_embedding_text
from polyad.model import FloatArray, IndexedDocument, IndexedHyperedge, IndexedPassage
from polyad.protocols.components import Embedder, Progress
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import PENDING_VECTORS, Manifest, Store, Values

_BATCH = 50
"""Documents that are read and embedded together; an interrupted run loses the vectors of one batch."""


@dataclass(frozen=True, slots=True)
class ReplacementReport:
    """The result of replacing the embedder of an index.

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
    """Computes all vectors of an index with another embedder, then replaces them in one transaction.

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
        """Embed all texts and replace the vectors."""
        start = time.perf_counter()
        ids = list(get_digests(self._store))
        for done in range(0, len(ids), _BATCH):
            progress(done, len(ids), "documents embedded")
            with self._store.read_transaction() as transaction:
                documents = list(transaction.get(IndexedDocument, ids[done : done + _BATCH]).values())
                built = self._read_built(documents)
            self._save(self._embed_missing(self._list_distinct_texts(built)))
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

    def _read_built(self, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
        """Return documents as they were built, before corrections by users."""
        originals = load_originals(self._store, [item.document.id for item in documents])
        return [restore_originals(item, originals.get(item.document.id, ())) for item in documents]

    def _list_distinct_texts(self, documents: Iterable[IndexedDocument]) -> list[str]:
        passages = (passage for item in documents for passage in item.passages)
        return list(dict.fromkeys(text for passage in passages for text in self._list_texts(passage)))

    def _list_texts(self, item: IndexedPassage) -> list[str]:
        """Return the embedded texts of a passage: its own, then those of its hyperedges."""
        title = item.passage.title if self._settings.hyperedge_titles else ""
        hyperedges = (format_embedding_text(title, edge.hyperedge.text) for edge in item.hyperedges)
        return [format_embedding_text(item.passage.title, item.passage.text), *hyperedges]

    def _embed_missing(self, texts: Sequence[str]) -> dict[str, FloatArray]:
        """Return the vectors of the texts whose vectors are not saved, by text."""
        saved = self._store.get_values(PENDING_VECTORS, list(map(self._build_key, texts)))
        missing = [text for text in texts if self._build_key(text) not in saved]
        vectors = embed_texts(self._embedder, missing, lambda _: None)
        self._embedded_texts += len(missing)
        return dict(zip(missing, vectors, strict=True))

    def _save(self, vectors: dict[str, FloatArray]) -> None:
        values = {self._build_key(text): vector.astype("<f4").tobytes() for text, vector in vectors.items()}
        self._store.put_values(PENDING_VECTORS, values)

    def _build_key(self, text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self._embedder.name} {digest}"

    def _replace_documents(self, documents: Sequence[IndexedDocument]) -> tuple[list[IndexedDocument], Values]:
        """Return documents with their new vectors, corrected by the statements of users."""
        statements, built = Statements.load(self._store), self._read_built(documents)
        texts = self._list_distinct_texts(built)
        vectors = self._embed_missing(texts)  # of documents that were added meanwhile
        saved = self._store.get_values(PENDING_VECTORS, list(map(self._build_key, texts)))
        vectors |= {
            text: np.frombuffer(saved[key], dtype="<f4") for text in texts if (key := self._build_key(text)) in saved
        }
        replaced = [
            replace(item, passages=tuple(self._replace_vectors(passage, vectors) for passage in item.passages))
            for item in built
        ]
        corrected = [correct_document(item, statements) for item in replaced]
        passages = [passage for item in replaced for passage in item.passages]
        with self._recorder.add(len(replaced), len(passages), sum(len(one.hyperedges) for one in passages)) as entry:
            return [item.document for item in corrected], {**collect_values(corrected), **entry}

    def _replace_vectors(self, item: IndexedPassage, vectors: dict[str, FloatArray]) -> IndexedPassage:
        passage, *hyperedges = (vectors[text] for text in self._list_texts(item))
        self._vectors += 1 + len(hyperedges)
        return IndexedPassage(
            item.passage,
            item.digest,
            passage,
            tuple(
                IndexedHyperedge(edge.hyperedge, edge.incidences, vector)
                for edge, vector in zip(item.hyperedges, hyperedges, strict=True)
            ),
        )
