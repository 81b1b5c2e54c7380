"""How far a run of indexing is, in words: what is done, what is being done, and how long it may take."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from polyad.model import Document, Failure
from polyad.protocols.components import Progress

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
