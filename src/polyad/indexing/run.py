"""The report of a run of indexing."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from polyad.model import Document, Failure, Usage
from polyad.protocols.components import Progress
from polyad.protocols.store import Store


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What became of the documents of one run.

    Attributes:
        added, updated, unchanged: Documents.
        left: Documents read but not indexed, because the run was stopped.
        passages, hyperedges: Written.
        failures: What could not be done: whole documents, or passages whose text was indexed without its facts.
        stopped: Why the run ended early; empty when it went to its end.
        notes: Of what was written: what was found, dropped and repaired, counted by reason.
        duplicates: Of the documents written, the id of each that has the content of one written earlier, and that
            one's id.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    left: int = 0
    passages: int = 0
    hyperedges: int = 0
    failures: tuple[Failure, ...] = ()
    stopped: str = ""
    notes: Counter[str] = field(default_factory=Counter)
    duplicates: tuple[tuple[str, str], ...] = ()

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
            self.notes + other.notes,
            self.duplicates + other.duplicates,
        )


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a run of indexing did.

    Attributes:
        method: How hyperedges were built; the index settles it where none was named.
        counts: What became of the documents.
        skipped: Files of a kind that is not read.
        seconds: Wall time.
        encode_seconds: The part of it spent inside the embedder.
        embedded_texts: How many texts that were.
        usage: What was spent on the language model, on replies that could not be used too.
        gone: Documents of an earlier run that were no longer where they had come from.
        spared: Those of them that pruning leaves, as nothing else is there either.
        pruned: Whether the others were removed.
        kept_methods: Documents met that keep the method by which they were indexed, another than ``method``, counted
            by that; naming a method would replace them.
    """

    method: str
    counts: IndexCounts
    skipped: tuple[str, ...]
    seconds: float
    encode_seconds: float
    embedded_texts: int
    usage: Usage = field(default_factory=Usage)
    gone: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    pruned: bool = False
    kept_methods: Mapping[str, int] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """How many were met that could be read."""
        return self.counts.added + self.counts.updated + self.counts.unchanged + self.counts.left

    def joined(self, other: IndexReport, documents: int) -> IndexReport:
        """This report with that of ``documents`` that were indexed by another method in the same run."""
        return replace(
            self,
            counts=self.counts + other.counts,
            seconds=self.seconds + other.seconds,
            encode_seconds=self.encode_seconds + other.encode_seconds,
            embedded_texts=self.embedded_texts + other.embedded_texts,
            usage=self.usage + other.usage,
            kept_methods={**self.kept_methods, other.method: self.kept_methods.get(other.method, 0) + documents},
        )

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What could not be indexed, with reasons."""
        return self.counts.failures

    @property
    def duplicates(self) -> tuple[tuple[str, str], ...]:
        """The id of each document written that has the content of one written earlier, and that one's id."""
        return self.counts.duplicates

    @property
    def skipped_kinds(self) -> Mapping[str, int]:
        """How many files of each kind were skipped, by extension, the most frequent first."""
        kinds = Counter(PurePath(name).suffix.lower() or "without extension" for name in self.skipped)
        return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))

    @property
    def notes(self) -> Mapping[str, int]:
        """What was found, dropped and repaired in what was written, counted by reason, sorted by it."""
        return {reason: count for reason, count in sorted(self.counts.notes.items()) if count}

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to index: neither a document nor one that could not be read."""
        counts = self.counts
        return not (counts.added or counts.updated or counts.unchanged or counts.left or self.failures)

    @property
    def is_complete(self) -> bool:
        """Whether everything was indexed."""
        return not self.failures and not self.counts.stopped


_RECORD = re.compile(r":\d+$")
"""What stands behind a file's name in the source of one of its many documents."""

_LEAST_SECONDS = 5.0
"""Before that nothing is said of the time left; the first seconds are not like the rest."""


class RunProgress:
    """Counts files where their number is known, else documents, and guesses the time left from the share done.

    Args:
        progress: Told of it.
        files: How many there are; None where nobody counted.
        clock: In seconds.
    """

    def __init__(self, progress: Progress, files: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._files = files
        self._clock = clock
        self._started = clock()
        self._last_file = ""
        self._last_goes_on = False  # a file of many documents, which may have more of them
        self._done = 0
        self._coming = 0
        self._written = ""

    def begin(self, batch: Sequence[Document | Failure]) -> None:
        """``batch`` comes next."""
        if self._files is None:
            self._coming = len(batch)
            return
        self._coming = 0
        for item in batch:
            source = item.source or item.id if isinstance(item, Document) else item.id
            file = _RECORD.sub("", source)
            if file != self._last_file:
                self._coming += self._last_goes_on  # until here: it is done
                self._last_goes_on = file != source
                self._coming += not self._last_goes_on
                self._last_file = file

    def end(self, passages: int, hyperedges: int) -> None:
        """The batch is done; so much is written in all."""
        self._done += self._coming
        self._coming = 0
        self._written = f"{passages:,} passages, {hyperedges:,} hyperedges"
        self.tell()

    def tell(self, words: str = "", share: float = 0.0) -> None:
        """``words`` for what is being done; ``share`` of the batch is done with it."""
        position = self._done + share * self._coming
        unit = "documents" if self._files is None else "files"
        parts = (unit, words or self._written, self._time_left(position))
        self._progress(int(position), self._files, ", ".join(part for part in parts if part))

    def _time_left(self, position: float) -> str:
        elapsed = self._clock() - self._started
        if self._files is None or elapsed < _LEAST_SECONDS or not 0 < position < self._files:
            return ""
        return f"{in_words(elapsed * (self._files - position) / position)} left"


def in_words(seconds: float) -> str:
    """A time as people say it.

    >>> in_words(42), in_words(240), in_words(7000)
    ('42 s', '4 min', '1 h 57 min')
    """
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class RebuildCheckpoint:
    """What one run has done, documents by id and replies by key; what was added is there whatever dies when.

    Args:
        store: Keeps them until the run is finished.
        run: What the run is of: the same again, it goes on. Another, it begins.
    """

    def __init__(self, store: Store, run: Iterable[str]) -> None:
        self._store = store
        self._run = hashlib.sha256(json.dumps(list(run)).encode()).hexdigest()
        self._names = store.redone(self._run)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, *names: str) -> None:
        """It has done these, too."""
        new = [name for name in names if name not in self._names]
        if new:
            self._store.keep_redone(self._run, new)
            self._names.update(new)

    def finish(self) -> None:
        """The run is over; the same once more is a new one."""
        self._store.drop_redone(self._run)
        self._names = set()
