"""The indexer: splits documents into passages, builds hyperedges, embeds the texts, and stores all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from polyad.config import EmbeddingSettings
from polyad.curation.curator import Curator, HistoryRecorder
from polyad.errors import ConfigurationError, NoMoreRepliesError, PolyadError, StoreError
from polyad.indexing.documents import (
    add_language,
    hash_content,
    hash_document,
    hash_passage,
    split_document,
    validate_document,
)
from polyad.indexing.embedding import PendingVectors, embed_passages, get_parallelism
from polyad.indexing.remaining_time import NO_SIZES
from polyad.indexing.run import IndexCounts, OnOutcome, RebuildCheckpoint, RunProgress, ignore_outcome
from polyad.model import (
    NO_VECTOR,
    Document,
    Failure,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols.components import (
    BuildResult,
    Embedder,
    HyperedgeBuilder,
    Progress,
    Splitter,
    build_hyperedge_id,
    silent,
)
from polyad.protocols.lookups import find_duplicates, get_digests
from polyad.protocols.store import PENDING_VECTORS, Store
from polyad.text.files import get_source_file
from polyad.text.removals import build_notes

INCOMPLETE = ""
"""Digest of a document or passage without all of its hyperedges. No content has this digest, so it is built again."""

BATCH_CHARACTERS = 200_000
"""Characters of text that are processed together: enough to fill the embedder's calls with texts of similar length, and
few enough that an interrupted run loses only seconds of work, except for a larger single document."""


@dataclass(slots=True)
class _Run:
    """The state of one indexing run: progress, checkpoint, and the documents seen so far.

    Attributes:
        progress: Reports progress.
        checkpoint: Completed documents of a full rebuild; None if unchanged documents are not built again.
        digests: Digest by document id, of each document of this run that is in the index or will be.
        origins: Source and content hash of each document of this run, by document id.
        pending: Saved vectors of the documents that are embedded now.
        has_failed_document: Whether building a document failed, so that the next run may need the saved vectors.
        on_outcome: Receives the outcome of each document.
    """

    progress: RunProgress
    checkpoint: RebuildCheckpoint | None
    digests: dict[str, str] = field(default_factory=dict)
    origins: dict[str, tuple[str, str]] = field(default_factory=dict)
    pending: PendingVectors | None = None
    has_failed_document: bool = False
    on_outcome: OnOutcome = ignore_outcome

    def fail(self, id: str, error: Exception | str) -> Failure:
        """Report the failure of a document, and return it."""
        reason = error if isinstance(error, str) else _format_reason(error)
        self.on_outcome(id, "failed", reason)
        return Failure(_escape_surrogates(id), reason)


@dataclass(frozen=True, slots=True)
class _Change:
    """A new or changed document of an indexing run.

    ``is_update`` is true if the index has an older version.
    """

    document: Document
    digest: str
    is_update: bool


@dataclass(frozen=True, slots=True)
class _SplitBatch:
    """A batch of documents as passages: new passages, and passages whose content the index already has.

    Attributes:
        by_document: Passages by document id, in order.
        digests: Digest of each passage, by passage id.
        stored: Passages whose content is in the index already, with their hyperedges and vectors, by passage id.
        new: The other passages, which have to be built.
    """

    by_document: Mapping[str, list[Passage]]
    digests: Mapping[str, str]
    stored: dict[str, IndexedPassage]
    new: list[Passage]


@dataclass(frozen=True, slots=True)
class _AssembledDocument:
    """A document with embedded passages, ready to be stored, and notes (counts of items) for the report."""

    indexed: IndexedDocument
    is_update: bool
    notes: Counter[str]


_DEFAULT_SETTINGS = EmbeddingSettings()


class Indexer:
    """Adds new and changed documents to a store, after splitting, building hyperedges and embedding.

    An unchanged document is skipped. Of a changed document, only the changed passages are built and embedded again. A
    document that fails is reported, and the run continues. A passage for which a language model gave no usable reply is
    stored without hyperedges and reported; the next run retries that passage only.

    An interrupted run loses no stored document, and little embedding: the store saves vectors until their documents are
    stored.

    Args:
        store: The index.
        embedder: Embeds passages and hyperedges.
        splitter: Splits documents into passages.
        builder: Builds the hyperedges of passages.
        settings: Whether hyperedges are embedded with the title of their passage.
        recorder: Records the stored documents in the history; by default in an entry of their own.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        splitter: Splitter,
        builder: HyperedgeBuilder,
        settings: EmbeddingSettings = _DEFAULT_SETTINGS,
        recorder: HistoryRecorder | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._curator = Curator(store)
        self._recorder = recorder or HistoryRecorder("index", datetime.now(UTC))
        self._embedder = embedder
        self._splitter = splitter
        self._builder = builder
        titles = "" if settings.hyperedge_titles else " without-titles"
        self._fingerprint = f"{splitter.name} {builder.name}{titles}"

    def index(
        self,
        items: Iterable[Document | Failure],
        progress: Progress,
        file_count: int | None = None,
        *,
        file_lengths: Mapping[str, float] = NO_SIZES,
        checkpoint: RebuildCheckpoint | None = None,
        on_outcome: OnOutcome = ignore_outcome,
    ) -> IndexCounts:
        """Index new and changed documents of ``items`` (documents and read failures), and return counts.

        Args:
            items: Documents, and failures to read a file.
            progress: Receives the progress, in files if ``file_count`` is known, else in documents.
            file_count: Number of files that ``items`` come from.
            file_lengths: Characters of text that each file usually has, from which the remaining time is estimated.
            checkpoint: Build unchanged documents again too, except for the documents in the checkpoint. A document that
                fails remains stored in its earlier version.
            on_outcome: Receives the outcome of each document, and of each file that could not be read.
        """
        run = _Run(RunProgress(progress, file_count, file_lengths), checkpoint, on_outcome=on_outcome)
        run.progress.report("reading")
        counts = IndexCounts()
        attempted: list[str] = []
        for batch in _split_into_batches(items, BATCH_CHARACTERS * get_parallelism(self._embedder)):
            changes, unchanged = self._find_changes(batch, run)
            run.progress.begin_batch(batch, {change.document.id for change in changes})
            counts += unchanged
            counts += self._index_documents(changes, run)
            attempted += [change.document.id for change in changes]
            run.progress.end_batch(counts.passages, counts.hyperedges)
            if counts.stop_reason:
                break
        if not counts.stop_reason and not run.has_failed_document:
            self._store.put_values(PENDING_VECTORS, None)
        return counts + IndexCounts(duplicates=tuple(sorted(find_duplicates(self._store, attempted).items())))

    def find_new_passages(
        self, items: Iterable[Document | Failure], checkpoint: RebuildCheckpoint | None = None
    ) -> Iterator[list[Passage]]:
        """Yield lists of passages that are not in the index yet, to estimate the cost of an indexing run.

        Passages with equal content are built once, so only the first is yielded.

        Args:
            items: Documents, and failures to read a file.
            checkpoint: The checkpoint that would be passed to :meth:`index`.
        """
        run = _Run(RunProgress(silent, None), checkpoint)
        seen: set[str] = set()
        for batch in _split_into_batches(items, BATCH_CHARACTERS):
            changes, _ = self._find_changes(batch, run)
            split = self._split_documents(changes, run)
            first: dict[str, Passage] = {}
            for passage in split.new:
                first.setdefault(split.digests[passage.id], passage)
            yield [passage for digest, passage in first.items() if digest not in seen]
            seen |= first.keys()

    def _find_changes(self, batch: Sequence[Document | Failure], run: _Run) -> tuple[list[_Change], IndexCounts]:
        """Return the new and changed documents of a batch, and counts of its unchanged and invalid documents."""
        failures, changes, unchanged = [], [], 0
        ids = [item.id for item in batch if item.id not in run.digests and _escape_surrogates(item.id) == item.id]
        run.digests.update(get_digests(self._store, ids))
        for unchecked in batch:
            item = validate_document(unchecked) if isinstance(unchecked, Document) else unchecked
            if isinstance(item, Failure):
                run.on_outcome(item.id, "failed", item.reason)
                failures.append(item)
                continue
            source = item.source
            if item.arguments:  # the line of a fact is its location, and changes if a line is inserted above
                item = replace(item, source=get_source_file(source))
            try:
                digest, content = hash_document(item, self._fingerprint), hash_content(item)
            except UnicodeEncodeError as error:
                failures.append(run.fail(item.id, error))
                continue
            is_repeated = item.id in run.origins
            first_source, first_content = run.origins.setdefault(item.id, (source, content))
            is_rebuilt = run.checkpoint is not None and item.id not in run.checkpoint
            if first_content != content:
                failures.append(run.fail(item.id, format_conflict(source, first_source)))
            elif is_repeated or (run.digests.get(item.id) == digest and not is_rebuilt):
                run.on_outcome(item.id, "unchanged", "")
                unchanged += 1
            else:
                # The digest leaves the detected language out, so that unchanged documents need no detection.
                changes.append(_Change(add_language(item), digest, item.id in run.digests))
                run.digests[item.id] = digest
        return changes, IndexCounts(unchanged=unchanged, failures=tuple(failures))

    def _index_documents(self, changes: Sequence[_Change], run: _Run) -> IndexCounts:
        """Split changed documents, build and embed their passages, store all, and return counts.

        After an exception, each document is processed alone.
        """
        if not changes:
            return IndexCounts()
        try:
            split = self._split_documents(changes, run)
            results = self._builder.build(split.new, run.progress.report)
            built = {passage.id: result for passage, result in zip(split.new, results, strict=True)}
            ready, counts = _drop_unprocessed(changes, split, built)
            indexed = self._embed_new_passages(ready, split, built, run)
            documents = [self._assemble_document(change, split, indexed, built) for change in ready]
        except (ConfigurationError, StoreError):
            raise  # no document is at fault
        except Exception as error:  # any exception of a plug-in: one bad document must not end the run
            if len(changes) == 1:
                run.has_failed_document = True
                return IndexCounts(failures=(run.fail(changes[0].document.id, error),))
            counts = IndexCounts()
            for change in changes:
                counts += IndexCounts(unprocessed=1) if counts.stop_reason else self._index_documents([change], run)
            return counts
        return counts + self._store_documents(documents, run)

    def _split_documents(self, changes: Sequence[_Change], run: _Run) -> _SplitBatch:
        """Return the passages of changed documents: new passages, and passages that the index already has."""
        by_document = {change.document.id: split_document(change.document, self._splitter) for change in changes}
        passages = [passage for group in by_document.values() for passage in group]
        digests = {passage.id: hash_passage(passage, self._fingerprint) for passage in passages}
        stored: dict[str, IndexedPassage] = {}
        if run.checkpoint is None:
            stored = self._curator.find_passages_by_digest(list(digests.values()), list(by_document))
        return _SplitBatch(
            by_document,
            digests,
            {p.id: _copy_hyperedges(stored[digests[p.id]], p) for p in passages if digests[p.id] in stored},
            [passage for passage in passages if digests[passage.id] not in stored],
        )

    def _embed_new_passages(
        self, changes: Sequence[_Change], split_batch: _SplitBatch, build_results: Mapping[str, BuildResult], run: _Run
    ) -> dict[str, IndexedPassage]:
        """Embed the new passages of changed documents, and return all passages of these documents by id.

        A passage that failed is not embedded if the index has the same passage; see :meth:`_find_indexed_versions`.
        """
        documents = {change.document.id: change.document for change in changes}
        new = [p for id in documents for p in split_batch.by_document[id] if p.id in build_results]
        previous = self._find_indexed_versions([p for p in new if build_results[p.id].failure], build_results)

        def report(passage: Passage, done: int, total: int) -> None:
            place = _format_place(passage, documents[passage.document_id])
            run.progress.report(f"{place}, {done:,} of {total:,} texts embedded", done / total)

        run.progress.begin_embedding()
        run.pending = PendingVectors(self._store)
        drafts = [
            _build_passage_without_vectors(passage, split_batch.digests[passage.id], build_results[passage.id])
            for passage in new
            if passage.id not in previous
        ]
        embedded = embed_passages(self._embedder, drafts, self._settings.hyperedge_titles, run.pending, report)
        return split_batch.stored | previous | {item.passage.id: item for item in embedded}

    def _find_indexed_versions(
        self, failed_passages: Sequence[Passage], build_results: Mapping[str, BuildResult]
    ) -> dict[str, IndexedPassage]:
        """Return the indexed versions of passages whose new hyperedges could not be built, by passage id.

        A failure with another method or other settings must not delete the stored hyperedges. They are replaced only if
        they are incomplete too, and at least as many new hyperedges were built before the failure.
        """
        document_ids = sorted({passage.document_id for passage in failed_passages})
        stored = {
            (item.passage.document_id, item.passage.title, item.passage.text): item
            for item in (self._curator.get_document_passages(document_ids) if document_ids else ())
        }
        previous = {}
        for passage in failed_passages:
            item = stored.get((passage.document_id, passage.title, passage.text))
            if item is None:
                continue
            if item.digest != INCOMPLETE or len(item.hyperedges) > len(build_results[passage.id].hyperedges):
                previous[passage.id] = replace(_copy_hyperedges(item, passage), digest=INCOMPLETE)
        return previous

    def _assemble_document(
        self,
        change: _Change,
        split_batch: _SplitBatch,
        indexed_passages: Mapping[str, IndexedPassage],
        build_results: Mapping[str, BuildResult],
    ) -> _AssembledDocument:
        """Return a changed document with its ``indexed_passages``, and notes on new passages for the report."""
        document_passages = split_batch.by_document[change.document.id]
        results = [build_results[passage.id] for passage in document_passages if passage.id in build_results]
        document = IndexedDocument(
            change.document,
            INCOMPLETE if any(result.failure for result in results) else change.digest,
            self._splitter.count_tokens(change.document.text),
            tuple(indexed_passages[passage.id] for passage in document_passages),
            self._recorder.time,
        )
        notes = sum((result.notes for result in results), build_notes(change.document.metadata))
        return _AssembledDocument(document, change.is_update, notes)

    def _store_documents(self, documents: Sequence[_AssembledDocument], run: _Run) -> IndexCounts:
        """Store embedded documents in one transaction, and return counts of documents and passages.

        If a text is invalid Unicode, each document is stored separately.
        """
        indexed = [item.indexed for item in documents if item.indexed.passages]
        try:
            self._curator.put(*indexed, recorder=self._recorder)
        except UnicodeEncodeError as error:  # a model's reply has a name or fact with half of a surrogate pair
            if len(documents) == 1:
                return IndexCounts(failures=(run.fail(documents[0].indexed.document.id, error),))
            return sum((self._store_documents([item], run) for item in documents), IndexCounts())
        if run.pending is not None:
            run.pending.delete()
        if run.checkpoint is not None:
            run.checkpoint.add(*(item.document.id for item in indexed))
        for item in documents:
            if item.indexed.passages:
                run.on_outcome(item.indexed.document.id, "updated" if item.is_update else "added", "")
        updated = sum(item.is_update for item in documents if item.indexed.passages)
        passages = [passage for item in indexed for passage in item.passages]
        return IndexCounts(
            added=len(indexed) - updated,
            updated=updated,
            passages=len(passages),
            hyperedges=sum(len(passage.hyperedges) for passage in passages),
            failures=tuple(
                run.fail(item.indexed.document.id, "it has no text") for item in documents if not item.indexed.passages
            ),
            notes=sum((item.notes for item in documents if item.indexed.passages), Counter()),
        )


def _drop_unprocessed(
    changes: Sequence[_Change], split_batch: _SplitBatch, build_results: Mapping[str, BuildResult]
) -> tuple[list[_Change], IndexCounts]:
    """Return (documents for which all language model requests were sent, counts of other documents and failures).

    The model stops if the budget is exhausted or the API key is wrong. The counts contain the number of omitted
    documents, and a failure for each passage of a returned document whose facts are missing.
    """
    failures = {id: result.failure for id, result in build_results.items() if result.failure}
    stops = {id: failure for id, failure in failures.items() if isinstance(failure, NoMoreRepliesError)}
    ids = {change.document.id: [p.id for p in split_batch.by_document[change.document.id]] for change in changes}
    ready = [change for change in changes if stops.keys().isdisjoint(ids[change.document.id])]
    return ready, IndexCounts(
        unprocessed=len(changes) - len(ready),
        failures=tuple(
            Failure(id, f"{failures[id]}; its text is indexed, new facts are missing: index it again")
            for change in ready
            for id in ids[change.document.id]
            if id in failures
        ),
        stop_reason=str(next(iter(stops.values()), "")),
    )


def _build_passage_without_vectors(passage: Passage, content_digest: str, result: BuildResult) -> IndexedPassage:
    """Return a new passage with the hyperedges of a build result, still without vectors.

    ``content_digest`` identifies the passage's content. It is left out if ``result`` has a failure, so that the next
    run builds the passage again.
    """
    return IndexedPassage(
        _strip_passage(passage), INCOMPLETE if result.failure else content_digest, NO_VECTOR, tuple(result.hyperedges)
    )


def _strip_passage(passage: Passage) -> Passage:
    """Return a passage without the fields that only the indexer uses, ready to be stored."""
    return replace(passage, arguments=(), relation="", sections=(), begins_paragraph=True)


def _copy_hyperedges(stored: IndexedPassage, passage: Passage) -> IndexedPassage:
    """Return ``passage`` with copies of the hyperedges and vectors of ``stored``, which has the same content."""
    hyperedges = []
    for position, item in enumerate(stored.hyperedges):
        id = build_hyperedge_id(passage.id, position)
        incidences = tuple(replace(incidence, hyperedge_id=id) for incidence in item.incidences)
        edge = replace(item.hyperedge, id=id, passage_id=passage.id)
        hyperedges.append(IndexedHyperedge(edge, incidences, item.vector))
    return IndexedPassage(_strip_passage(passage), stored.digest, stored.vector, tuple(hyperedges))


def _format_place(passage: Passage, document: Document) -> str:
    """Return the location of a passage for a progress message, such as ``gnuplot.pdf p. 120/311``."""
    name = document.source.rpartition("/")[2] or document.title or document.id
    last = document.places[-1].page if document.places else None
    return f"{name} p. {passage.page}/{last}" if passage.page and last else name


def format_conflict(source: str, first_source: str) -> str:
    """Return the message that ``source`` is skipped: ``first_source`` has another document with the same id."""
    place = f", {first_source}" if first_source else ""
    return f"{source or 'it'} has the id of an earlier document with other content{place}; only that one is indexed"


def _format_reason(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[error.start : error.end]!a} in it is half a character; decode with errors='replace'"
    return str(error) if isinstance(error, PolyadError) else f"{type(error).__name__}: {error}"


def _escape_surrogates(id: str) -> str:
    return id.encode("utf-8", "backslashreplace").decode("utf-8")


def _split_into_batches(items: Iterable[Document | Failure], characters: int) -> Iterator[list[Document | Failure]]:
    batch: list[Document | Failure] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text) if isinstance(item, Document) else 0
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
