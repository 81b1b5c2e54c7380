"""The indexing pipeline: documents in, committed one at a time, with a report of what became of each."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError, PolyadError, StoreError
from polyad.indexing.builder import DraftHyperedge, HyperedgeBuilder, Tell, hyperedge_id, passage_id
from polyad.model import (
    Document,
    Failure,
    FloatArray,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
    Span,
)
from polyad.protocols import Embedder, Progress, Splitter, Store

INCOMPLETE = ""
"""The digest of what lacks hyperedges that a language model did not give; equal to no other, so it is tried again."""

_BATCH_CHARACTERS = 400_000  # of text prepared together: large enough to fill the embedder's batches with like lengths


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What became of the documents of one run.

    Attributes:
        added, updated, unchanged: Documents.
        left: Documents read but not indexed, because the run was stopped.
        passages, hyperedges: Written.
        failures: What could not be done: whole documents, or passages whose text was indexed without its facts.
        stopped: Why the run ended early; empty when it went to its end.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    left: int = 0
    passages: int = 0
    hyperedges: int = 0
    failures: tuple[Failure, ...] = ()
    stopped: str = ""

    def __add__(self, other: IndexCounts) -> IndexCounts:
        return IndexCounts(
            self.added + other.added,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.left + other.left,
            self.passages + other.passages,
            self.hyperedges + other.hyperedges,
            self.failures + other.failures,
            self.stopped or other.stopped,
        )


class Indexer:
    """Brings a store up to date with documents.

    A document whose digest is known is left alone; of a changed one only the changed passages are built and embedded
    again. A document that fails is reported and the rest goes on. A passage whose hyperedges a language model did not
    give is indexed without them and reported; its document counts as changed the next time, so that only that passage
    is tried again.
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

        def tell(status: str = "") -> None:
            written = f"documents, {total.passages:,} passages, {total.hyperedges:,} hyperedges"
            progress(done, None, f"{written}; {status}" if status else written)

        for batch in _batches(items):
            total += self._index_batch(batch, known, seen, tell)
            done += len(batch)
            tell()
            if total.stopped:
                break
        return total

    def pending(self, items: Iterable[Document | Failure]) -> Iterator[list[Passage]]:
        """Passages that indexing ``items`` would build, a batch of documents at a time; changes nothing.

        Of passages with equal contents there is one: the others cost nothing.
        """
        known = self._store.digests()
        seen: dict[str, str] = {}
        yielded: set[str] = set()
        for batch in _batches(items):
            changed, _ = self._changed(batch, known, seen)
            missing, digests, _ = self._missing([p for document, _, _ in changed for p in self._passages(document)])
            first = {digests[passage.id]: passage for passage in reversed(missing)}
            new = [passage for passage in missing if first[digests[passage.id]] is passage]
            yield [passage for passage in new if digests[passage.id] not in yielded]
            yielded |= first.keys()

    def _index_batch(
        self, batch: Sequence[Document | Failure], known: dict[str, str], seen: dict[str, str], tell: Tell
    ) -> IndexCounts:
        changed, counts = self._changed(batch, known, seen)
        documents = [(document, digest) for document, digest, _ in changed]
        return counts + self._put(documents, {document.id for document, _, before in changed if before}, tell)

    def _changed(
        self, batch: Sequence[Document | Failure], known: dict[str, str], seen: dict[str, str]
    ) -> tuple[list[tuple[Document, str, bool]], IndexCounts]:
        """The documents to index, with digest and whether an older one is there; and what became of the others."""
        failures = []
        changed = []
        unchanged = 0
        for item in batch:
            if isinstance(item, Failure):
                failures.append(item)
                continue
            try:
                digest = _digest(self._recipe, item.id, item.source, *_content(item))
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
        return changed, IndexCounts(unchanged=unchanged, failures=tuple(failures))

    @property
    def _recipe(self) -> str:
        return f"{self._splitter.name} {self._builder.name} {self._embedder.name}"

    def _put(self, documents: Sequence[tuple[Document, str]], updated: set[str], tell: Tell) -> IndexCounts:
        """Build and store documents; when the batch fails, each by itself, to find the one at fault."""
        if not documents:
            return IndexCounts()
        try:
            indexed, counts = self._build(documents, tell)
        except (ConfigurationError, StoreError):
            raise  # no document is at fault
        except Exception as error:  # whatever a plug-in raises, one bad document must not end the run
            if len(documents) == 1:
                return IndexCounts(failures=(Failure(documents[0][0].id, _reason(error)),))
            counts = IndexCounts()
            for one in documents:
                counts += IndexCounts(left=1) if counts.stopped else self._put([one], updated, tell)
            return counts
        for document in indexed:
            counts += self._put_one(document, document.document.id in updated)
        return counts

    def _put_one(self, document: IndexedDocument, is_update: bool) -> IndexCounts:
        if not document.passages:
            return IndexCounts(failures=(Failure(document.document.id, "it has no text"),))
        try:
            self._store.put(document)
        except UnicodeEncodeError as error:  # a name or a fact that a model spelt with half a character
            return IndexCounts(failures=(Failure(document.document.id, _reason(error)),))
        return IndexCounts(
            added=int(not is_update),
            updated=int(is_update),
            passages=len(document.passages),
            hyperedges=sum(len(passage.hyperedges) for passage in document.passages),
        )

    def _build(
        self, documents: Sequence[tuple[Document, str]], tell: Tell
    ) -> tuple[list[IndexedDocument], IndexCounts]:
        """The documents that can be stored, and what was wrong with passages or stopped the run."""
        passages = [self._passages(document) for document, _ in documents]
        missing, digests, stored = self._missing(list(itertools.chain.from_iterable(passages)))
        outcomes = dict(zip((p.id for p in missing), self._builder.build(missing, tell), strict=True))
        failed = {id: outcome for id, outcome in outcomes.items() if isinstance(outcome, LanguageModelError)}
        stops = [str(error) for error in failed.values() if isinstance(error, NoMoreRepliesError)]
        waiting = {id for id, error in failed.items() if isinstance(error, NoMoreRepliesError)}
        ready = [
            (document, digest, own)
            for (document, digest), own in zip(documents, passages, strict=True)
            if waiting.isdisjoint(passage.id for passage in own)
        ]
        wanted = {passage.id for _, _, own in ready for passage in own}
        drafts = {id: [] if isinstance(found, LanguageModelError) else found for id, found in outcomes.items()}
        tell("embedding")
        built = self._embedded(
            [(passage, drafts[passage.id]) for passage in missing if passage.id in wanted],
            {id: digest for id, digest in digests.items() if id not in failed},
        )
        indexed = [
            IndexedDocument(
                document,
                digest if failed.keys().isdisjoint(passage.id for passage in own) else INCOMPLETE,
                self._splitter.count_tokens(document.text),
                tuple(
                    built[passage.id] if passage.id in built else _moved(stored[digests[passage.id]], passage)
                    for passage in own
                ),
            )
            for document, digest, own in ready
        ]
        failures = tuple(
            Failure(id, f"{error}; its text is indexed, its facts are missing: index it again")
            for id, error in failed.items()
            if id in wanted
        )
        left = len(documents) - len(ready)
        return indexed, IndexCounts(left=left, failures=failures, stopped=stops[0] if stops else "")

    def _missing(self, passages: Sequence[Passage]) -> tuple[list[Passage], dict[str, str], dict[str, IndexedPassage]]:
        """The passages to build, the digest of every one by its id, and the stored ones by digest."""
        digests = {passage.id: _digest(self._recipe, *_content(passage)) for passage in passages}
        stored = self._store.known_passages(list(digests.values()))
        return [passage for passage in passages if digests[passage.id] not in stored], digests, stored

    def _passages(self, document: Document) -> list[Passage]:
        """The document's passages; one that is a given fact is never cut."""
        whole = [Span(0, len(document.text))]
        return [
            Passage(
                passage_id(document.id, position),
                document.id,
                document.title,
                span.of(document.text),
                span.start,
                span.end,
                document.arguments,
            )
            for position, span in enumerate(whole if document.arguments else self._splitter.passages(document.text))
        ]

    def _embedded(
        self, drafts: Sequence[tuple[Passage, list[DraftHyperedge]]], digests: Mapping[str, str]
    ) -> dict[str, IndexedPassage]:
        """Passages and their hyperedges with vectors; equal texts are embedded once."""
        texts: dict[str, int] = {}
        for passage, edges in drafts:
            for text in (passage.text, *(draft.hyperedge.text for draft in edges)):
                texts.setdefault(embedding_text(passage.title, text), len(texts))
        vectors = self._embedder.encode(list(texts), "passage")

        def vector_of(title: str, text: str) -> FloatArray:
            vector: FloatArray = vectors[texts[embedding_text(title, text)]]
            return vector

        return {
            passage.id: IndexedPassage(
                replace(passage, arguments=()),
                digests.get(passage.id, INCOMPLETE),
                vector_of(passage.title, passage.text),
                tuple(_with_vector(draft, vector_of(passage.title, draft.hyperedge.text)) for draft in edges),
            )
            for passage, edges in drafts
        }


def _content(item: Document | Passage) -> list[str]:
    """What the hyperedges of a document or a passage are made from."""
    return [item.title, item.text, *(part for argument in item.arguments for part in (argument.role, argument.entity))]


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
    return IndexedPassage(replace(passage, arguments=()), stored.digest, stored.vector, tuple(hyperedges))


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
