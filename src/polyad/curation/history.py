"""The history of an index: an entry for each command that changed it, stored together with the change."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Final

from polyad.model import Usage
from polyad.protocols.store import Values, ValueStore
from polyad.text.json_types import parse_value

HISTORY: Final = "history"
"""Namespace of the history, by time, number of the entry in its process, and a random token."""

_NUMBERS = count()
"""Numbers of the entries of this process."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry of an index's change log: the command, the numbers of changed records, and language-model usage.

    Attributes:
        time: When the command began, in ISO 8601, in UTC.
        command: Name of the command, such as ``index``.
        documents: Number of documents that it stored, removed or corrected.
        passages: Number of their passages that were stored, removed or corrected.
        hyperedges: Number of hyperedges that were stored, removed or corrected.
        tokens: Tokens of the language model.
        cost: Cost of the language model in US dollars.
    """

    time: str
    command: str
    documents: int = 0
    passages: int = 0
    hyperedges: int = 0
    tokens: int = 0
    cost: float = 0.0


class HistoryRecorder:
    """Counts the changes of one command, and writes the command's entry in the change log of an index.

    The entry is stored together with each change. An interrupted command leaves an entry of its completed changes, and
    a command without changes leaves no entry.

    Args:
        command: Name of the command.
        now: When it began.
        get_usage: Returns the usage of the language model; only later usage counts.
    """

    def __init__(self, command: str, now: datetime, get_usage: Callable[[], Usage] = Usage) -> None:
        time = now.astimezone(UTC)
        self._key = f"{time.isoformat(timespec='microseconds')} {next(_NUMBERS):08} {secrets.token_hex(4)}"
        self._entry = HistoryEntry(time.isoformat(timespec="seconds"), command)
        self._get_usage, self._usage_before = get_usage, get_usage()

    @property
    def time(self) -> str:
        """The start time of the command in ISO 8601 format, in UTC."""
        return self._entry.time

    @contextmanager
    def add(self, documents: int, passages: int = 0, hyperedges: int = 0) -> Iterator[Values]:
        """Count changed records, and yield the change-log entry as values to store in the same transaction."""
        earlier = self._entry
        entry = self._charge(
            replace(
                earlier,
                documents=earlier.documents + documents,
                passages=earlier.passages + passages,
                hyperedges=earlier.hyperedges + hyperedges,
            )
        )
        yield self._format(entry)
        self._entry = entry

    def finish(self, store: ValueStore) -> None:
        """Store the language-model usage of the command since its last recorded change."""
        charged = self._charge(self._entry)
        if charged != self._entry:
            store.put_values(HISTORY, self._format(charged)[HISTORY])
            self._entry = charged

    def _charge(self, entry: HistoryEntry) -> HistoryEntry:
        usage = self._get_usage() - self._usage_before
        return replace(entry, tokens=usage.tokens, cost=usage.cost)

    def _format(self, entry: HistoryEntry) -> Values:
        return {HISTORY: {self._key: json.dumps(asdict(entry)).encode()}}


def load_history(store: ValueStore) -> list[HistoryEntry]:
    """Return the entries of an index's change log, newest first."""
    entries = sorted(store.get_values(HISTORY).items(), reverse=True)
    return [parse_value(json.loads(value), HistoryEntry) for _, value in entries]
