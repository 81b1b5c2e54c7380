"""The remaining time of an indexing run, estimated from the sizes of its files and the work that is done."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType

from polyad.model import Document, Failure
from polyad.text.files import get_source_file

NO_SIZES: Mapping[str, int] = MappingProxyType({})
"""Sizes of files, or lengths of their texts, that are unknown."""

_MIN_SECONDS = 5.0
"""Run time before the remaining time is estimated; the first seconds, in which models load, are not representative."""

_MIN_SHARE = 0.1
"""Share of the work that must be done before the remaining time is estimated."""

_PRIOR_CHARACTERS = 10_000
"""Characters of files of a type for which the prior value counts."""

_UNCHANGED_WORK = 0.02
"""Work for a character of an unchanged document, which is read but not embedded, relative to a new one."""


class RemainingTime:
    """Estimates the remaining time of an indexing run.

    The unit of work is a character of a new or changed document. The work in unread files follows from the usual length
    of the text of a file of their format and size, and from the files of the same type that were read. A batch of
    documents first takes time before it is embedded (reading, finding names, calls of a language model), then for
    embedding; both are averaged over the run.

    Args:
        lengths: Characters of text that each file usually has; nothing is estimated if they are unknown.
        clock: Returns the time in seconds.
    """

    def __init__(self, lengths: Mapping[str, float] = NO_SIZES, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._has_lengths = bool(lengths)
        self._unread = dict(lengths)
        self._expected_work, self._actual_work = defaultdict[str, float](float), defaultdict[str, float](float)
        self._open_file, self._open_length, self._open_work = "", 0.0, 0.0
        self._done = self._batch = 0.0
        self._seconds = {"preparing": 0.0, "embedding": 0.0}
        self._started_at = self._batch_started_at = clock()
        self._embedding_started_at: float | None = None

    def begin_batch(self, batch: Sequence[Document | Failure], changed_ids: Container[str]) -> None:
        """Add the work of a batch of documents, of which those with ``changed_ids`` are embedded."""
        for item in batch:
            source = item.source or item.id if isinstance(item, Document) else item.id
            if (file := get_source_file(source)) != self._open_file:
                self._close_file()
                self._open_file, self._open_length = file, self._unread.pop(file, 0.0)
            characters = len(item.text) if isinstance(item, Document) else 0
            work = characters * (1.0 if item.id in changed_ids else _UNCHANGED_WORK)
            self._open_work += work
            self._batch += work
            if file == source:  # other files may have further documents
                self._close_file()

    def begin_embedding(self) -> None:
        """Record that the texts of the batch are embedded from now on."""
        self._embedding_started_at = self._clock()

    def end_batch(self) -> None:
        """Record that the batch is stored."""
        now = self._clock()
        embedding = now if self._embedding_started_at is None else self._embedding_started_at
        self._seconds["preparing"] += embedding - self._batch_started_at
        self._seconds["embedding"] += now - embedding
        self._done += self._batch
        self._batch, self._batch_started_at, self._embedding_started_at = 0.0, now, None

    def estimate(self, batch_share: float) -> float | None:
        """Return the remaining seconds; None before a tenth of the work is done, or without lengths of texts.

        Args:
            batch_share: Embedded share of the current batch, in [0, 1].
        """
        now, embedded = self._clock(), batch_share * self._batch
        rest, unread = self._batch - embedded, self._predict_unread_work()
        done = self._done + embedded
        if (
            not self._has_lengths
            or now - self._started_at < _MIN_SECONDS
            or not done
            or done < _MIN_SHARE * (done + rest + unread)
        ):
            return None
        is_preparing = self._embedding_started_at is None
        embedding_at = now if self._embedding_started_at is None else self._embedding_started_at
        preparing_seconds = self._seconds["preparing"] + embedding_at - self._batch_started_at
        preparing = preparing_seconds / (self._done if is_preparing and self._done else self._done + self._batch)
        embedding = (self._seconds["embedding"] + now - embedding_at) / done
        return rest * embedding + unread * (preparing + embedding)

    def _close_file(self) -> None:
        """Record the expected and the actual work of a file that was read completely."""
        suffix = PurePath(self._open_file).suffix.lower()
        self._expected_work[suffix] += self._open_length
        self._actual_work[suffix] += self._open_work
        self._open_file, self._open_length, self._open_work = "", 0.0, 0.0

    def _predict_unread_work(self) -> float:
        open_work = self._predict_work(self._open_file, self._open_length) - self._open_work
        return max(0.0, open_work) + sum(self._predict_work(*file) for file in self._unread.items())

    def _predict_work(self, file: str, length: float) -> float:
        """Return the work of a file: the usual length of its text, corrected by the files of its type."""
        suffix = PurePath(file).suffix.lower()
        correction = (self._actual_work[suffix] + _PRIOR_CHARACTERS) / (self._expected_work[suffix] + _PRIOR_CHARACTERS)
        return length * correction
