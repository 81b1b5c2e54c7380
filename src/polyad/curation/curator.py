"""Changes the corrections of users, and the documents that the corrections affect, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from polyad.curation.corrections import (
    DISABLED,
    Statements,
    Withdrawal,
    collect_values,
    correct_document,
    load_effects,
    load_originals,
    restore_originals,
)
from polyad.curation.history import HistoryRecorder
from polyad.errors import StoreError, VersionConflictError
from polyad.model import IndexedDocument, IndexedPassage
from polyad.protocols.lookups import count_rows, find_passages_by_digest, get_document_passages
from polyad.protocols.store import ReadTransaction, Store

_ATTEMPTS = 100
"""Attempts at a change while other processes write; each failed attempt means that another writer made progress."""

FindDocuments = Callable[[ReadTransaction], Iterable[str]]
"""A function that returns the ids of the documents that a change of corrections may affect."""


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

        Args:
            documents: Documents as they were built.
            recorder: Records the documents in the history.
        """
        if not documents:
            return
        statements = Statements.load(self._store)
        corrected = [correct_document(document, statements) for document in documents]
        passages = [passage for document in documents for passage in document.passages]
        with recorder.add(len(documents), len(passages), sum(len(item.hyperedges) for item in passages)) as values:
            self._store.put(*(item.document for item in corrected), values={**collect_values(corrected), **values})
        if Statements.load(self._store) != statements:  # another process changed the corrections meanwhile
            ids = [document.document.id for document in documents]
            self.change(lambda current: current, lambda _: ids, recorder)

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
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._attempt(revise, find_documents, recorder, is_trial)
            except VersionConflictError:
                continue
        return self._attempt(revise, find_documents, recorder, is_trial)

    def _attempt(
        self,
        revise: Callable[[Statements], Statements],
        find_documents: FindDocuments,
        recorder: HistoryRecorder,
        is_trial: bool,
    ) -> CorrectionReport:
        with self._store.read_transaction() as transaction:
            version = transaction.version
            statements = Statements.load(self._store)
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


def find_documents_of_entities(keys: Sequence[str]) -> FindDocuments:
    """Return a function that finds the ids of documents that mention an entity of ``keys`` in a read transaction."""

    def find(transaction: ReadTransaction) -> set[str]:
        hyperedges = transaction.find("hyperedges by entity", keys).values()
        return {id.rpartition("#")[0] for group in hyperedges for id in group}

    return find


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
