"""Stores documents, corrections of users and the entry of the history of each change, in one transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from polyad.curation.corrections import (
    collect_values,
    correct_document,
    load_effects,
    load_originals,
    restore_originals,
)
from polyad.curation.statements import DISABLED, Statements, Withdrawal, load_statement_values
from polyad.errors import StoreError, VersionConflictError
from polyad.model import IndexedDocument, IndexedPassage, Usage
from polyad.protocols.lookups import count_rows, find_passages_by_digest, get_document_passages, get_version
from polyad.protocols.store import ReadTransaction, Store, Values, ValueStore
from polyad.text.json_types import parse_value

HISTORY: Final = "history"
"""Namespace of the history, by time, number of the entry in its process, and a random token."""

_NUMBERS = count()
"""Numbers of the entries of this process."""

_ATTEMPTS = 100
"""Attempts at a change while other processes write; each failed attempt means that another writer made progress."""

T = TypeVar("T")
FindDocuments = Callable[[ReadTransaction], Iterable[str]]
"""A function that returns the ids of the documents that a change of corrections may affect."""


class _StatementState(NamedTuple):
    """The corrections of an index at one version, as they are stored and parsed."""

    version: int
    values: Values
    statements: Statements


_STATEMENTS: WeakKeyDictionary[Store, _StatementState] = WeakKeyDictionary()
"""The corrections of open indexes at the last version that this process read or wrote."""


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


@dataclass(frozen=True, slots=True)
class CorrectionReport:
    """The result of a user's correction: removed facts, restored facts, and changed documents.

    Attributes:
        withdrawn: Facts, and entities of facts, that are no longer in the index.
        restored: Facts, and entities of facts, that are in the index again.
        documents: Ids of the documents whose stored content changed, sorted.
    """

    withdrawn: tuple[Withdrawal, ...] = ()
    restored: tuple[Withdrawal, ...] = ()
    documents: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[str, ...]:
        """The sorted ids of the passages whose text still states a retracted (withdrawn) fact."""
        return tuple(sorted({one.passage_id for one in self.withdrawn}))


class Curator:
    """Stores documents after applying users' corrections (retractions, aliases), and changes the corrections.

    Args:
        store: The index.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, *documents: IndexedDocument, recorder: HistoryRecorder) -> None:
        """Apply the user's corrections to newly built documents, and store the documents in one transaction.

        The transaction fails, and is repeated, if another process has changed the corrections meanwhile.

        Args:
            documents: Documents as they were built.
            recorder: Records the documents in the history.

        Raises:
            VersionConflictError: Other processes changed the corrections at every attempt.
        """
        if documents:
            _repeat(lambda: self._attempt_put(documents, recorder))

    def _attempt_put(self, documents: Sequence[IndexedDocument], recorder: HistoryRecorder) -> None:
        version, statement_values, statements = _load_statements(self._store, get_version(self._store))
        corrected = [correct_document(document, statements) for document in documents]
        passages = [passage for document in documents for passage in document.passages]
        with recorder.add(len(documents), len(passages), sum(len(item.hyperedges) for item in passages)) as values:
            self._store.put(
                *(item.document for item in corrected),
                values={**collect_values(corrected), **values},
                expected_values=statement_values,
                values_version=version,
            )
        # This write changed no statement, and made the next version, unless another writer did.
        _STATEMENTS[self._store] = _StatementState(version + 1, statement_values, statements)

    def remove(self, document_ids: Sequence[str], recorder: HistoryRecorder) -> None:
        """Remove documents from the index and from the list of disabled documents.

        Raises:
            NotFoundError: A document is not in the index; no document was removed.
        """
        passages = hyperedges = 0
        with suppress(StoreError):  # a damaged document can be removed, though its rows cannot be counted
            passages, hyperedges = count_rows(self._store, document_ids)
        with recorder.add(len(set(document_ids)), passages, hyperedges) as values:
            self._store.remove(document_ids, values={DISABLED: dict.fromkeys(document_ids), **values})

    def change(
        self,
        revise: Callable[[Statements], Statements],
        find_documents: FindDocuments,
        recorder: HistoryRecorder,
        *,
        is_trial: bool = False,
    ) -> CorrectionReport:
        """Replace the corrections by ``revise(corrections)`` and update the affected documents, in one transaction.

        Args:
            revise: Returns the new corrections from the current corrections of the index.
            find_documents: Returns the ids of the documents that the change may concern.
            recorder: Records the change in the history.
            is_trial: Whether to change nothing.

        Raises:
            VersionConflictError: Other processes wrote at every attempt.
        """
        return _repeat(lambda: self._attempt_change(revise, find_documents, recorder, is_trial))

    def _attempt_change(
        self,
        revise: Callable[[Statements], Statements],
        find_documents: FindDocuments,
        recorder: HistoryRecorder,
        is_trial: bool,
    ) -> CorrectionReport:
        with self._store.read_transaction() as transaction:
            version = transaction.version
            statements = _load_statements(self._store, version).statements
            ids = sorted(set(find_documents(transaction)))
            stored = transaction.get(IndexedDocument, ids)
            originals, effects = load_originals(self._store, ids), load_effects(self._store, ids)
        revised = revise(statements)
        corrected = [
            correct_document(restore_originals(document, originals.get(id, ())), revised)
            for id, document in stored.items()
        ]
        changed = [
            item
            for item in corrected
            if not has_equal_content(item.document, stored[item.document.document.id])
            or (item.effects if item.originals else None) != effects.get(item.document.document.id)
        ]
        if not is_trial:
            values = {**revised.difference(statements), **collect_values(changed)}
            if changed or any(values.values()):
                counts = _count_changes([(item.document, stored[item.document.document.id]) for item in changed])
                with recorder.add(len(changed), *counts) as entry:
                    documents = [item.document for item in changed]
                    self._store.put(*documents, values={**values, **entry}, expected_version=version)
        before = [one for part in effects.values() for one in part.withdrawals]
        after = [one for item in corrected for one in item.effects.withdrawals]
        return CorrectionReport(
            _subtract(after, before),
            _subtract(before, after),
            tuple(item.document.document.id for item in changed),
        )

    # Lookups of documents in their state before user corrections

    def find_passages_by_digest(self, digests: Sequence[str], document_ids: Sequence[str]) -> dict[str, IndexedPassage]:
        """Return for each content hash a stored passage, in its state before user corrections; by digest.

        Missing hashes are omitted.

        Args:
            digests: Digests of passages.
            document_ids: Documents whose original passages are searched too, since a disabled document has no others.
        """
        stored = find_passages_by_digest(self._store, digests)
        ids = sorted({*document_ids, *(item.passage.document_id for item in stored.values())})
        originals = [item for group in load_originals(self._store, ids).values() for item in group]
        by_id = {item.passage.id: item for item in originals}
        requested = set(digests)
        hidden = {item.digest: item for item in originals if item.digest in requested}
        return hidden | {digest: by_id.get(item.passage.id, item) for digest, item in stored.items()}

    def get_document_passages(self, document_ids: Sequence[str]) -> list[IndexedPassage]:
        """Return the passages of documents in their state before user corrections."""
        stored = {item.passage.id: item for item in get_document_passages(self._store, document_ids)}
        originals = load_originals(self._store, document_ids)
        return [*(stored | {item.passage.id: item for group in originals.values() for item in group}).values()]


def _repeat(attempt: Callable[[], T]) -> T:
    """Return ``attempt()``, which is repeated while it raises VersionConflictError, at most :data:`_ATTEMPTS` times."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(VersionConflictError):
            return attempt()
    return attempt()


def _load_statements(store: Store, version: int) -> _StatementState:
    """Return the corrections of an index at ``version``.

    Every change of corrections raises the version, also one by an older polyad. So they are read again only at another
    version than that of the last read or write, and parsed again only if they differ: with 10,000 aliases, reading them
    takes a tenth of the time of parsing.
    """
    cached = _STATEMENTS.get(store)
    if cached and cached.version == version:
        return cached
    values = load_statement_values(store)
    statements = cached.statements if cached and cached.values == values else Statements.parse(values)
    current = _StatementState(version, values, statements)
    _STATEMENTS[store] = current
    return current


def load_history(store: ValueStore) -> list[HistoryEntry]:
    """Return the entries of an index's change log, newest first."""
    entries = sorted(store.get_values(HISTORY).items(), reverse=True)
    return [parse_value(json.loads(value), HistoryEntry) for _, value in entries]


def has_equal_content(document: IndexedDocument, other: IndexedDocument) -> bool:
    """Return whether two versions of a document have equal passages, hyperedges and members."""
    return _list_contents(document) == _list_contents(other)


def _count_changes(pairs: Iterable[tuple[IndexedDocument, IndexedDocument]]) -> tuple[int, int]:
    """Return (number of passages, number of hyperedges) that differ between the two versions of each pair."""
    passages: set[str] = set()
    hyperedges: set[str] = set()
    for pair in pairs:
        first, second = (
            {
                edge.hyperedge.id: (edge.hyperedge, frozenset(edge.incidences))
                for item in one.passages
                for edge in item.hyperedges
            }
            for one in pair
        )
        changed = {id for id in first.keys() | second.keys() if first.get(id) != second.get(id)}
        hyperedges |= changed
        passages |= {(first.get(id) or second[id])[0].passage_id for id in changed}
    return len(passages), len(hyperedges)


def _list_contents(document: IndexedDocument) -> list[object]:
    return [
        (item.passage.id, [(edge.hyperedge, sorted(edge.incidences, key=repr)) for edge in item.hyperedges])
        for item in document.passages
    ]


def _subtract(some: Sequence[Withdrawal], others: Sequence[Withdrawal]) -> tuple[Withdrawal, ...]:
    excluded = set(others)
    return tuple(one for one in some if one not in excluded)
