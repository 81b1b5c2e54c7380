"""The report of a run of indexing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from polyad.indexing.pipeline import IndexCounts
from polyad.model import Failure, Usage


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
