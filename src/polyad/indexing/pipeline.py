"""The indexing pipeline: documents in, committed one at a time, with a report of what became of each."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from polyad.config import EmbeddingSettings
from polyad.errors import ConfigurationError, NoMoreRepliesError, PolyadError, StoreError
from polyad.indexing.builders import Built, HyperedgeBuilder, hyperedge_id, passage_id
from polyad.indexing.documents import checked, headings_in, sections_in, title_of
from polyad.indexing.embedding import Pending, embed
from polyad.indexing.run import IndexCounts, RebuildCheckpoint, RunProgress
from polyad.model import (
    Argument,
    Document,
    Failure,
    FloatArray,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Location,
    Passage,
    Span,
)
from polyad.protocols.components import Embedder, Progress, Splitter
from polyad.protocols.store import Store
from polyad.text.paragraphs import begins_paragraph

INCOMPLETE = ""
"""The digest of what lacks hyperedges that a language model did not give; equal to no other, so it is tried again."""

HEADINGS = 2
"""How headings are put to passages that hold several sections: another number has them put anew."""

_LINE = re.compile(r":\d+$")
"""What a source has behind the name of a file for the line of a record."""

_BATCH_CHARACTERS = 200_000
"""Of text prepared together: large enough to fill the embedder's batches with like lengths, small enough that a run
that is interrupted loses seconds of what is not embedding, except of a document that is larger by itself."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run knows of documents, by id.

    Attributes:
        known: The digest of each that was read in this run and is in the index, or will be.
        met: The source of each that was read in this run, and the digest of its content.
        redone: Where unchanged documents and passages are built anew, the ids of those that were; else None.
    """

    known: dict[str, str] = field(default_factory=dict)
    met: dict[str, tuple[str, str]] = field(default_factory=dict)
    redone: RebuildCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class _Changed:
    """A document to index; ``is_update`` where an older one is there."""

    document: Document
    digest: str
    is_update: bool
    passages: list[Passage]


@dataclass(frozen=True, slots=True)
class _Contents:
    """The passages of some documents, compared with the index.

    Attributes:
        digests: Of every passage, by its id.
        known: Those whose content is in the index, with what was made of it, by id.
        missing: The others, which are to be built.
    """

    digests: Mapping[str, str]
    known: dict[str, IndexedPassage]
    missing: list[Passage]


@dataclass(frozen=True, slots=True)
class _Whole:
    """A document ready to be stored, and what was noted in building it."""

    indexed: IndexedDocument
    is_update: bool
    notes: Counter[str]


_DEFAULT_SETTINGS = EmbeddingSettings()


class Indexer:
    """Brings a store up to date with documents.

    A document whose digest is known is left alone; of a changed one only the changed passages are built and embedded
    again. A document that fails is reported and the rest goes on. A passage whose hyperedges a language model did not
    give is indexed without them and reported; its document counts as changed the next time, so that only that passage
    is tried again.

    A run that is interrupted loses no document that it has stored, and of one that it has not, little of the embedding:
    the store keeps the vectors until the document is there.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        splitter: Splitter,
        builder: HyperedgeBuilder,
        settings: EmbeddingSettings = _DEFAULT_SETTINGS,
    ) -> None:
        self._settings = settings
        self._store = store
        self._embedder = embedder
        self._splitter = splitter
        self._builder = builder
        plain = "" if settings.hyperedge_titles else " without-titles"
        self._made_by = f"{splitter.name} {builder.name} {embedder.name}{plain}"

    def index(
        self,
        items: Iterable[Document | Failure],
        progress: Progress,
        files: int | None = None,
        *,
        redone: RebuildCheckpoint | None = None,
    ) -> IndexCounts:
        """Index every document of ``items``; failures among them are passed into the report.

        Args:
            items: To index.
            progress: Told how far it is, in files where ``files`` says how many these are, else in documents.
            files: That ``items`` come from.
            redone: Build also what is unchanged anew, but for these documents, which others are added to. Where that
                fails, what is there stays.
        """
        run = _Run(redone=redone)
        total = IndexCounts()
        tried: list[str] = []
        told = RunProgress(progress, files)
        told.tell("reading")
        for batch in _batches(items):
            told.begin(batch)
            changed, counts = self._changed(batch, run)
            total += counts
            total += self._put(changed, told, redone)
            tried += [item.document.id for item in changed]
            told.end(total.passages, total.hyperedges)
            if total.stopped:
                break
        if not total.stopped:
            self._store.drop_pending_vectors(frozenset(tried))  # what waits for one that failed, the next run may need
        duplicates = sorted(self._store.duplicates(tried).items())
        return total + IndexCounts(duplicates=tuple(duplicates))

    def pending(
        self, items: Iterable[Document | Failure], redone: RebuildCheckpoint | None = None
    ) -> Iterator[list[Passage]]:
        """Passages that indexing ``items`` would build, a batch of documents at a time; changes nothing.

        Of passages with equal contents there is one: the others cost nothing.

        Args:
            items: As for :meth:`index`.
            redone: As for :meth:`index`.
        """
        run = _Run(redone=redone)
        yielded: set[str] = set()
        for batch in _batches(items):
            changed, _ = self._changed(batch, run)
            contents = self._contents(changed, is_forced=redone is not None)
            digests = contents.digests
            first = {digests[passage.id]: passage for passage in reversed(contents.missing)}
            new = [passage for passage in contents.missing if first[digests[passage.id]] is passage]
            yield [passage for passage in new if digests[passage.id] not in yielded]
            yielded |= first.keys()

    def _changed(self, batch: Sequence[Document | Failure], run: _Run) -> tuple[list[_Changed], IndexCounts]:
        """The documents to index, and what became of the others; ``run`` is told of all of them."""
        failures = []
        changed = []
        unchanged = 0
        unknown = [item.id for item in batch if item.id not in run.known and _printable(item.id) == item.id]
        run.known.update(self._store.digests(unknown))
        for given in batch:
            item = checked(given) if isinstance(given, Document) else given
            if isinstance(item, Failure):
                failures.append(item)
                continue
            read_from = item.source
            if item.arguments:  # the line of a fact is where it stands, and moves when one is inserted before it
                item = replace(item, source=_LINE.sub("", item.source))
            try:
                digest = _digest(self._made_by, item.id, item.source, *_content(item), *_circumstances(item))
                content = _digest(*_content(item))
            except UnicodeEncodeError as error:
                failures.append(Failure(_printable(item.id), _reason(error)))
                continue
            is_repeated = item.id in run.met
            source, earlier = run.met.setdefault(item.id, (read_from, content))
            if earlier != content:
                failures.append(Failure(item.id, _taken(read_from, source)))
            elif is_repeated or (run.known.get(item.id) == digest and (run.redone is None or item.id in run.redone)):
                unchanged += 1
            else:
                is_update = item.id in run.known
                run.known[item.id] = digest
                changed.append(_Changed(item, digest, is_update, self._passages(item)))
        return changed, IndexCounts(unchanged=unchanged, failures=tuple(failures))

    def _put(self, changed: Sequence[_Changed], told: RunProgress, redone: RebuildCheckpoint | None) -> IndexCounts:
        """Build and store documents; when the batch fails, each by itself, to find the one at fault."""
        if not changed:
            return IndexCounts()
        try:
            whole, counts = self._build(changed, told, is_forced=redone is not None)
        except (ConfigurationError, StoreError):
            raise  # no document is at fault
        except Exception as error:  # whatever a plug-in raises, one bad document must not end the run
            if len(changed) == 1:
                return IndexCounts(failures=(Failure(changed[0].document.id, _reason(error)),))
            counts = IndexCounts()
            for one in changed:
                counts += IndexCounts(left=1) if counts.stopped else self._put([one], told, redone)
            return counts
        return counts + self._stored(whole, redone)

    def _stored(self, whole: Sequence[_Whole], redone: RebuildCheckpoint | None) -> IndexCounts:
        """Store documents together; where they cannot be written, each by itself, to find the one at fault."""
        try:
            self._store.put(*(item.indexed for item in whole if item.indexed.passages))
        except UnicodeEncodeError as error:  # a name or a fact that a model spelt with half a character
            if len(whole) == 1:
                return IndexCounts(failures=(Failure(whole[0].indexed.document.id, _reason(error)),))
            return sum((self._stored([item], redone) for item in whole), IndexCounts())
        if redone is not None:
            redone.add(*(item.indexed.document.id for item in whole if item.indexed.passages))
        return _counts_of(whole)

    def _build(
        self, changed: Sequence[_Changed], told: RunProgress, *, is_forced: bool
    ) -> tuple[list[_Whole], IndexCounts]:
        """The documents that can be stored, and what was wrong with passages or stopped the run."""
        contents = self._contents(changed, is_forced)
        ids = [passage.id for passage in contents.missing]
        built = dict(zip(ids, self._builder.build(contents.missing, told.tell), strict=True))
        failed = {id: found.failure for id, found in built.items() if found.failure}
        stopped = {id: failure for id, failure in failed.items() if isinstance(failure, NoMoreRepliesError)}
        ready = [item for item in changed if stopped.keys().isdisjoint(passage.id for passage in item.passages)]
        passages = contents.known | self._indexed(ready, built, contents.digests, told)
        failures = tuple(
            Failure(passage.id, f"{failed[passage.id]}; its text is indexed, new facts are missing: index it again")
            for item in ready
            for passage in item.passages
            if passage.id in failed
        )
        reason = str(next(iter(stopped.values()), ""))
        return [self._whole(item, passages, built) for item in ready], IndexCounts(
            left=len(changed) - len(ready), failures=failures, stopped=reason
        )

    def _whole(self, item: _Changed, passages: Mapping[str, IndexedPassage], built: Mapping[str, Built]) -> _Whole:
        """The document with its passages, and what was noted in building those that are new."""
        new = [built[passage.id] for passage in item.passages if passage.id in built]
        document = IndexedDocument(
            item.document,
            INCOMPLETE if any(found.failure for found in new) else item.digest,
            self._splitter.count_tokens(item.document.text),
            tuple(passages[passage.id] for passage in item.passages),
        )
        return _Whole(document, item.is_update, sum((found.notes for found in new), Counter()))

    def _indexed(
        self, ready: Sequence[_Changed], built: Mapping[str, Built], digests: Mapping[str, str], told: RunProgress
    ) -> dict[str, IndexedPassage]:
        """By id, the passages that were built; of one that failed, what the index has of it already."""
        new = [passage for item in ready for passage in item.passages if passage.id in built]
        kept = self._kept([p for p in new if built[p.id].failure], built)
        drafts = [(p, built[p.id]) for p in new if p.id not in kept]
        return kept | self._embedded(drafts, digests, {item.document.id: item.document for item in ready}, told)

    def _kept(self, passages: Sequence[Passage], built: Mapping[str, Built]) -> dict[str, IndexedPassage]:
        """By id, those of ``passages`` that are in the index word for word, with the hyperedges they have there.

        A failure to build them anew, by another method or other settings, is no reason to lose these. Only what is
        incomplete there already, and less, gives way to what was built before the failure.
        """
        documents = sorted({passage.document_id for passage in passages})
        stored = {
            (item.passage.document_id, item.passage.title, item.passage.text): item
            for item in (self._store.indexed_passages(documents) if documents else ())
        }
        kept = {}
        for passage in passages:
            item = stored.get((passage.document_id, passage.title, passage.text))
            is_less = item is not None and len(item.hyperedges) <= len(built[passage.id].hyperedges)
            if item is not None and not (is_less and item.digest == INCOMPLETE):
                kept[passage.id] = replace(_moved(item, passage), digest=INCOMPLETE)
        return kept

    def _contents(self, changed: Sequence[_Changed], is_forced: bool = False) -> _Contents:
        passages = [passage for item in changed for passage in item.passages]
        digests = {
            passage.id: _digest(self._made_by, *_content(passage), str(passage.begins_paragraph))
            for passage in passages
        }
        stored = {} if is_forced else self._store.known_passages(list(digests.values()))
        return _Contents(
            digests,
            {p.id: _moved(stored[digests[p.id]], p) for p in passages if digests[p.id] in stored},
            [passage for passage in passages if digests[passage.id] not in stored],
        )

    def _passages(self, document: Document) -> list[Passage]:
        """The document's passages; one that is a given fact is never cut."""
        if document.arguments:
            spans = [Span(0, len(document.text))]
        else:
            spans = self._splitter.passages(document.text, [section.start for section in document.sections])
        passages = []
        parts = zip(spans, sections_in(document, spans), headings_in(document, spans), strict=True)
        for position, (span, sections, heading) in enumerate(parts):
            id, text = passage_id(document.id, position), span.of(document.text)
            title = title_of(sections, len(text))
            place = _place_of(span, document.places)
            passages.append(
                Passage(
                    id,
                    document.id,
                    title,
                    text,
                    span.start,
                    span.end,
                    place.page,
                    heading,
                    place.sheet,
                    place.slide,
                    document.arguments,
                    sections,
                    begins_paragraph(document.text, span.start),
                    document.relation,
                )
            )
        return passages

    def _embedded(
        self,
        drafts: Sequence[tuple[Passage, Built]],
        digests: Mapping[str, str],
        documents: Mapping[str, Document],
        told: RunProgress,
    ) -> dict[str, IndexedPassage]:
        """Passages and their hyperedges with vectors; equal texts are embedded once."""
        texts: dict[str, int] = {}
        first_of: list[Passage] = []  # the passage that each of the texts is from
        for passage, found in drafts:
            edges = (embedding_text(self._title(passage), draft.hyperedge.text) for draft in found.hyperedges)
            for text in (embedding_text(passage.title, passage.text), *edges):
                if texts.setdefault(text, len(texts)) == len(first_of):
                    first_of.append(passage)

        def embedded(done: int) -> None:
            passage = first_of[done - 1]
            place = _in_words(passage, documents[passage.document_id])
            told.tell(f"{place}, {done:,} of {len(texts):,} texts embedded", done / len(texts))

        pending = Pending(self._store, list(texts), [passage.document_id for passage in first_of])
        vectors = embed(self._embedder, list(texts), embedded, pending)

        def vector_of(title: str, text: str) -> FloatArray:
            vector: FloatArray = vectors[texts[embedding_text(title, text)]]
            return vector

        return {
            passage.id: IndexedPassage(
                _as_kept(passage),
                INCOMPLETE if found.failure else digests[passage.id],
                vector_of(passage.title, passage.text),
                tuple(
                    IndexedHyperedge(
                        edge.hyperedge, edge.incidences, vector_of(self._title(passage), edge.hyperedge.text)
                    )
                    for edge in found.hyperedges
                ),
            )
            for passage, found in drafts
        }

    def _title(self, passage: Passage) -> str:
        """What the hyperedges of a passage are embedded under."""
        return passage.title if self._settings.hyperedge_titles else ""


def _counts_of(whole: Sequence[_Whole]) -> IndexCounts:
    """What became of documents that were to be stored; without text they were not."""
    stored = [item for item in whole if item.indexed.passages]
    passages = [passage for item in stored for passage in item.indexed.passages]
    updated = sum(item.is_update for item in stored)
    return IndexCounts(
        added=len(stored) - updated,
        updated=updated,
        passages=len(passages),
        hyperedges=sum(len(passage.hyperedges) for passage in passages),
        failures=tuple(
            Failure(item.indexed.document.id, "it has no text") for item in whole if not item.indexed.passages
        ),
        notes=sum((item.notes for item in stored), Counter()),
    )


def _in_words(passage: Passage, document: Document) -> str:
    """Where a passage stands, for somebody who waits: ``gnuplot.pdf p. 120/311``."""
    name = document.source.rpartition("/")[2] or document.title or document.id
    last = document.places[-1].page if document.places else None
    return f"{name} p. {passage.page}/{last}" if passage.page and last else name


def _taken(source: str, earlier: str) -> str:
    """Why a document of an id that came before is not indexed; documents made in memory have no source."""
    place = f", {earlier}" if earlier else ""
    return f"{source or 'it'} has the id of an earlier document with other content{place}; only that one is kept"


def _content(item: Document | Passage) -> list[str]:
    """What the hyperedges of a document or a passage are made from."""
    arguments = [item.relation, *(part for one in item.arguments for part in _parts(one))] if item.arguments else []
    sections = (
        str(part) for section in item.sections for part in (section.name, section.start, section.end, section.strength)
    )
    return [item.title, item.text, *arguments, *sections]


def _parts(argument: Argument) -> tuple[str, ...]:
    return argument.role, argument.value, argument.type, argument.unit, json.dumps(argument.names)


def _circumstances(document: Document) -> list[str]:
    """What is known of a document beside its content: when it changes, nothing is built or embedded anew.

    When its file was last written is left out: a file that was only touched is unchanged.
    """
    metadata = {key: value for key, value in document.metadata.items() if key != "modified"}
    known: dict[str, object] = {"url": document.url, "metadata": metadata, "places": [*map(astuple, document.places)]}
    if document.sections:
        known["headings"] = HEADINGS
    return [json.dumps(known, sort_keys=True)]


def _place_of(span: Span, places: Sequence[Location]) -> Location:
    """The page, sheet or slide that a span begins on; a location without any where the document has none."""
    found = bisect_right(places, span.start, key=lambda place: place.start) - 1
    return places[found] if found >= 0 else Location(span.start, span.end)


def embedding_text(title: str, text: str) -> str:
    """What is embedded for a passage or a hyperedge: its text under its title, which says what "it" refers to."""
    return f"{title}\n{text}" if title else text


def _as_kept(passage: Passage) -> Passage:
    """The passage without what it has only while it is being indexed."""
    return replace(passage, arguments=(), relation="", sections=(), begins_paragraph=True)


def _moved(stored: IndexedPassage, passage: Passage) -> IndexedPassage:
    """A stored passage's contents under the ids of another passage with the same title and text."""
    hyperedges = []
    for position, item in enumerate(stored.hyperedges):
        id = hyperedge_id(passage.id, position)
        incidences = tuple(replace(incidence, hyperedge_id=id) for incidence in item.incidences)
        edge = replace(item.hyperedge, id=id, passage_id=passage.id)
        hyperedges.append(IndexedHyperedge(edge, incidences, item.vector))
    return IndexedPassage(_as_kept(passage), stored.digest, stored.vector, tuple(hyperedges))


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
