"""The indexing pipeline: documents in, committed one at a time, with a report of what became of each."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from polyad.errors import ConfigurationError, PolyadError, StoreError
from polyad.indexing.builder import DraftHyperedge, HyperedgeBuilder, hyperedge_id, passage_id
from polyad.model import (
    Document,
    Failure,
    FloatArray,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols import Embedder, Progress, Splitter, Store

_BATCH_CHARACTERS = 400_000  # of text prepared together: large enough to fill the embedder's batches with like lengths


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What became of the documents of one run."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    passages: int = 0
    hyperedges: int = 0
    failures: tuple[Failure, ...] = ()

    def __add__(self, other: IndexCounts) -> IndexCounts:
        return IndexCounts(
            self.added + other.added,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.passages + other.passages,
            self.hyperedges + other.hyperedges,
            self.failures + other.failures,
        )


class Indexer:
    """Brings a store up to date with documents.

    A document whose digest is known is left alone; of a changed one only the changed passages are built and embedded
    again. A document that fails is reported and the rest goes on.
    """

    def __init__(self, store: Store, embedder: Embedder, splitter: Splitter, builder: HyperedgeBuilder) -> None:
        self._store = store
        self._embedder = embedder
        self._splitter = splitter
        self._builder = builder

    def index(self, items: Iterable[Document | Failure], progress: Progress) -> IndexCounts:
        """Index every document of ``items``; failures among them are passed into the report."""
        known = self._store.digests()
        seen: dict[str, str] = {}
        total = IndexCounts()
        done = 0
        for batch in _batches(items):
            total += self._index_batch(batch, known, seen)
            done += len(batch)
            progress(done, None, f"documents, {total.passages:,} passages, {total.hyperedges:,} hyperedges")
        return total

    def _index_batch(
        self, batch: Sequence[Document | Failure], known: dict[str, str], seen: dict[str, str]
    ) -> IndexCounts:
        failures = []
        changed = []
        unchanged = 0
        for item in batch:
            if isinstance(item, Failure):
                failures.append(item)
                continue
            try:
                digest = _digest(self._recipe, item.id, item.title, item.text, item.source)
            except UnicodeEncodeError as error:
                failures.append(Failure(_printable(item.id), _reason(error)))
                continue
            if seen.setdefault(item.id, digest) != digest:
                failures.append(Failure(item.id, "a document of this id and other content came earlier in this run"))
            elif known.get(item.id) == digest:
                unchanged += 1
            else:
                known_before = item.id in known
                known[item.id] = digest
                changed.append((item, digest, known_before))
        counts = IndexCounts(unchanged=unchanged, failures=tuple(failures))
        return counts + self._put(
            [(document, digest) for document, digest, _ in changed],
            {document.id for document, _, before in changed if before},
        )

    @property
    def _recipe(self) -> str:
        return f"{self._splitter.name} {self._builder.name} {self._embedder.name}"

    def _put(self, documents: Sequence[tuple[Document, str]], updated: set[str]) -> IndexCounts:
        """Build and store documents; when the batch fails, each by itself, to find the one at fault."""
        if not documents:
            return IndexCounts()
        try:
            indexed = self._build(documents)
        except (ConfigurationError, StoreError):
            raise  # no document is at fault
        except Exception as error:  # whatever a plug-in raises, one bad document must not end the run
            if len(documents) == 1:
                return IndexCounts(failures=(Failure(documents[0][0].id, _reason(error)),))
            parts = (self._put([document], updated) for document in documents)
            return sum(parts, IndexCounts())
        counts = IndexCounts()
        for document in indexed:
            if not document.passages:
                counts += IndexCounts(failures=(Failure(document.document.id, "it has no text"),))
                continue
            try:
                self._store.put(document)
            except UnicodeEncodeError as error:  # a name or a fact that a model spelt with half a character
                counts += IndexCounts(failures=(Failure(document.document.id, _reason(error)),))
                continue
            is_update = document.document.id in updated
            counts += IndexCounts(
                added=int(not is_update),
                updated=int(is_update),
                passages=len(document.passages),
                hyperedges=sum(len(passage.hyperedges) for passage in document.passages),
            )
        return counts

    def _build(self, documents: Sequence[tuple[Document, str]]) -> list[IndexedDocument]:
        passages = [self._passages(document) for document, _ in documents]
        digests = {
            passage.id: _digest(self._recipe, passage.title, passage.text)
            for passage in itertools.chain.from_iterable(passages)
        }
        stored = self._store.known_passages(list(digests.values()))
        missing = [passage for passage in itertools.chain.from_iterable(passages) if digests[passage.id] not in stored]
        built = self._embedded(missing, digests)
        return [
            IndexedDocument(
                document,
                digest,
                self._splitter.count_tokens(document.text),
                tuple(
                    built[passage.id] if passage.id in built else _moved(stored[digests[passage.id]], passage)
                    for passage in own
                ),
            )
            for (document, digest), own in zip(documents, passages, strict=True)
        ]

    def _passages(self, document: Document) -> list[Passage]:
        return [
            Passage(
                passage_id(document.id, position),
                document.id,
                document.title,
                span.of(document.text),
                span.start,
                span.end,
            )
            for position, span in enumerate(self._splitter.passages(document.text))
        ]

    def _embedded(self, passages: Sequence[Passage], digests: dict[str, str]) -> dict[str, IndexedPassage]:
        """Build and embed passages; equal texts are embedded once."""
        drafts = self._builder.build(passages)
        texts: dict[str, int] = {}
        for passage, edges in zip(passages, drafts, strict=True):
            for text in (passage.text, *(draft.hyperedge.text for draft in edges)):
                texts.setdefault(embedding_text(passage.title, text), len(texts))
        vectors = self._embedder.encode(list(texts), "passage")

        def vector_of(title: str, text: str) -> FloatArray:
            vector: FloatArray = vectors[texts[embedding_text(title, text)]]
            return vector

        return {
            passage.id: IndexedPassage(
                passage,
                digests[passage.id],
                vector_of(passage.title, passage.text),
                tuple(_with_vector(draft, vector_of(passage.title, draft.hyperedge.text)) for draft in edges),
            )
            for passage, edges in zip(passages, drafts, strict=True)
        }


def embedding_text(title: str, text: str) -> str:
    """What is embedded for a passage or a hyperedge: its text under its title, which says what "it" refers to."""
    return f"{title}\n{text}" if title else text


def _with_vector(draft: DraftHyperedge, vector: FloatArray) -> IndexedHyperedge:
    return IndexedHyperedge(draft.hyperedge, draft.incidences, vector)


def _moved(stored: IndexedPassage, passage: Passage) -> IndexedPassage:
    """A stored passage's contents under the ids of another passage with the same title and text."""
    hyperedges = []
    for position, item in enumerate(stored.hyperedges):
        id = hyperedge_id(passage.id, position)
        incidences = tuple(replace(incidence, hyperedge_id=id) for incidence in item.incidences)
        edge = replace(item.hyperedge, id=id, passage_id=passage.id)
        hyperedges.append(IndexedHyperedge(edge, incidences, item.vector))
    return IndexedPassage(passage, stored.digest, stored.vector, tuple(hyperedges))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[error.start : error.end]!a} in it is half a character; decode with errors='replace'"
    return str(error) if isinstance(error, PolyadError) else f"{type(error).__name__}: {error}"


def _printable(id: str) -> str:
    return id.encode("utf-8", "backslashreplace").decode("utf-8")


def _digest(*parts: str) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8")
        hashed.update(len(encoded).to_bytes(8, "big"))
        hashed.update(encoded)
    return hashed.hexdigest()


def _batches(items: Iterable[Document | Failure]) -> Iterator[list[Document | Failure]]:
    batch: list[Document | Failure] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text) if isinstance(item, Document) else 0
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
