"""One run of the indexer: its counts and report, its progress messages, and the checkpoint of a full rebuild."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Literal

from polyad.indexing.remaining_time import NO_SIZES, RemainingTime
from polyad.model import Document, Failure, Usage
from polyad.protocols.components import Progress
from polyad.protocols.store import REBUILDS, Store
from polyad.text.files import get_source_file

Outcome = Literal["added", "updated", "unchanged", "failed"]
"""What became of a document."""

OnOutcome = Callable[[str, Outcome, str], None]
"""Receives the id of a document or of an unreadable file, its outcome, and the reason of a failure."""


def ignore_outcome(id: str, outcome: Outcome, reason: str) -> None:
    """Do nothing: an :data:`OnOutcome`."""


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """Counts of the documents of one indexing run by outcome, with failures and notes.

    Attributes:
        added, updated, unchanged: Numbers of documents.
        unprocessed: Number of documents that were read but not indexed, because the run stopped.
        passages, hyperedges: Numbers of stored passages and hyperedges.
        failures: Documents that could not be indexed, and passages that were indexed without new facts.
        stop_reason: The reason why the run ended early; empty if it finished.
        notes: Counts of extracted, dropped and repaired items of the stored documents, by reason.
        duplicates: Pairs of ids: a document of this run and an older document with the same content.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    unprocessed: int = 0
    passages: int = 0
    hyperedges: int = 0
    failures: tuple[Failure, ...] = ()
    stop_reason: str = ""
    notes: Counter[str] = field(default_factory=Counter)
    duplicates: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: IndexCounts) -> IndexCounts:
        sums = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        return IndexCounts(**{**sums, "stop_reason": self.stop_reason or other.stop_reason})


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an indexing run: counts, failures, times and usage of language models.

    Attributes:
        method: Construction method of the hyperedges; the index decides if the user named none.
        counts: Counts of documents, passages and hyperedges.
        skipped: Files of a type that is not read.
        seconds: Wall time.
        encode_seconds: Part of the wall time that was spent inside the embedder.
        embedded_texts: Number of embedded texts.
        usage: Usage of the language model, including replies that could not be parsed.
        ignored: Files and folders that were left out, because .gitignore files name them or tools generate them.
        missing: Ids of indexed documents that no longer exist at their source.
        protected: Ids of missing documents that pruning does not remove, because their whole folder is missing.
        moved: Pairs of ids: a document whose file is gone, and the document with the same content under another name.
        is_pruned: Whether the other missing documents, and the old ids of moved ones, were removed.
        other_methods: Number of documents by construction method, for documents that keep a method other than
            ``method``; naming a method would replace it.
    """

    method: str
    counts: IndexCounts
    skipped: tuple[str, ...]
    seconds: float
    encode_seconds: float
    embedded_texts: int
    usage: Usage = field(default_factory=Usage)
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    is_pruned: bool = False
    other_methods: Mapping[str, int] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """Number of documents that could be read."""
        return self.counts.added + self.counts.updated + self.counts.unchanged + self.counts.unprocessed

    def merge(self, other: IndexReport, document_count: int) -> IndexReport:
        """Return the sum of this report and ``other``, on ``document_count`` documents with another method."""
        return replace(
            self,
            counts=self.counts + other.counts,
            seconds=self.seconds + other.seconds,
            encode_seconds=self.encode_seconds + other.encode_seconds,
            embedded_texts=self.embedded_texts + other.embedded_texts,
            usage=self.usage + other.usage,
            other_methods={
                **self.other_methods,
                other.method: self.other_methods.get(other.method, 0) + document_count,
            },
        )

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Documents and passages that could not be indexed, with reasons."""
        return self.counts.failures

    @property
    def duplicates(self) -> tuple[tuple[str, str], ...]:
        """Pairs of ids: a document of this run and an older document with the same content."""
        return self.counts.duplicates

    @property
    def skipped_kinds(self) -> Mapping[str, int]:
        """Number of skipped (unsupported) files by file extension, the most frequent extension first."""
        kinds = Counter(PurePath(name).suffix.lower() or "without extension" for name in self.skipped)
        return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))

    @property
    def notes(self) -> Mapping[str, int]:
        """Number of extracted, dropped and repaired items of an indexing run, by reason."""
        return {reason: count for reason, count in sorted(self.counts.notes.items()) if count}

    @property
    def is_empty(self) -> bool:
        """Whether an indexing run had no input: no document, and no unreadable file."""
        return not (self.documents or self.failures)

    @property
    def is_complete(self) -> bool:
        """Whether the run processed all documents without a failure."""
        return not self.failures and not self.counts.stop_reason


class RunProgress:
    """Reports the progress of an indexing run to a callback, in files or, if their number is unknown, in documents.

    Args:
        progress: Receives the number of completed files or documents, the total, and a message.
        files: Number of files; None if unknown.
        lengths: Characters of text that each file usually has, from which the remaining time is estimated.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        progress: Progress,
        files: int | None,
        lengths: Mapping[str, float] = NO_SIZES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._files = files
        self._remaining_time = RemainingTime(lengths, clock)
        self._last_file = ""
        self._last_is_open = False  # whether the last file contains records, of which more may follow
        self._completed = 0
        self._batch_size = 0
        self._totals = ""

    def begin_batch(self, batch: Sequence[Document | Failure], changed_ids: Container[str]) -> None:
        """Record the start of a batch of documents, and count the files or documents in the batch.

        Args:
            batch: The documents, and files that could not be read.
            changed_ids: Ids of the documents that are new or changed.
        """
        self._remaining_time.begin_batch(batch, changed_ids)
        if self._files is None:
            self._batch_size = len(batch)
            return
        self._batch_size = 0
        for item in batch:
            source = item.source or item.id if isinstance(item, Document) else item.id
            file = get_source_file(source)
            if file != self._last_file:
                self._batch_size += self._last_is_open  # the file of records is complete when another file follows
                self._last_is_open = file != source
                self._batch_size += not self._last_is_open
                self._last_file = file

    def begin_embedding(self) -> None:
        """Record that the texts of the batch are embedded from now on."""
        self._remaining_time.begin_embedding()

    def end_batch(self, passages: int, hyperedges: int) -> None:
        """Report the end of a batch, with the numbers of passages and hyperedges that the run has stored so far."""
        self._remaining_time.end_batch()
        self._completed += self._batch_size
        self._batch_size = 0
        self._totals = f"{passages:,} passages, {hyperedges:,} hyperedges"
        self.report()

    def report(self, message: str = "", batch_share: float = 0.0) -> None:
        """Report the step ``message``; ``batch_share`` is the completed share of the current batch, in [0, 1]."""
        position = self._completed + batch_share * self._batch_size
        unit = "documents" if self._files is None else "files"
        seconds = self._remaining_time.estimate(batch_share)
        remaining = f"{format_duration(seconds)} left" if seconds and seconds >= 1 else ""
        self._progress(
            int(position), self._files, ", ".join(part for part in (unit, message or self._totals, remaining) if part)
        )


def format_duration(seconds: float) -> str:
    """Return a number of seconds as text in seconds, minutes, or hours and minutes.

    >>> format_duration(42), format_duration(240), format_duration(7000)
    ('42 s', '4 min', '1 h 57 min')
    """
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class RebuildCheckpoint:
    """A checkpoint of a full rebuild of the index, from which an interrupted rebuild resumes.

    Args:
        store: Stores the steps until the run is finished.
        run: Identifies the run by its method and paths: the same values resume it, other values start another run.
    """

    def __init__(self, store: Store, run: Iterable[str]) -> None:
        self._store = store
        self._namespace = f"{REBUILDS}{hashlib.sha256(json.dumps(list(run)).encode()).hexdigest()}"
        self._keys = set(store.get_values(self._namespace))

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def add(self, *keys: str) -> None:
        """Add keys of completed documents or language model requests to the checkpoint of the rebuild."""
        new = [key for key in keys if key not in self._keys]
        if new:
            self._store.put_values(self._namespace, dict.fromkeys(new, b""))
            self._keys.update(new)

    def finish(self) -> None:
        """Delete the checkpoint after a complete rebuild."""
        self._store.put_values(self._namespace, None)
        self._keys = set()
