"""Checks the invariants of an index, and repairs what is derived from documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.curation.corrections import correct_document, load_effects, load_originals, restore_originals
from polyad.curation.curator import Curator, has_equal_content
from polyad.curation.history import HistoryRecorder
from polyad.curation.statements import ALIASES, DISABLED, RETRACTIONS, Statements
from polyad.errors import PolyadError
from polyad.model import FloatArray, IndexedDocument, IndexedPassage
from polyad.protocols.components import Progress, silent
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import ORIGINALS, Store
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider

_BATCH = 100
"""Documents in memory at a time."""

_MAX_REPAIRS = 3

_DERIVED = ("entity", "index", "value", "reply")
"""Tables whose rows are deleted, and indexes that are built again: no document needs them."""

_STATED = (RETRACTIONS, ALIASES, DISABLED, ORIGINALS)
"""Namespaces of values that cannot be computed again."""

_MAX_NORM_ERROR = 1e-3
"""Largest difference from 1 of the norm of a vector that is not zero."""


@dataclass(frozen=True, slots=True)
class Damage:
    """An invariant that an index violates at one place.

    Attributes:
        invariant: Name of the invariant, ``rows``, ``vectors``, ``spans``, ``corrections``, ``values`` or ``snapshot``.
        place: Table and id of a row, id of a document, passage or hyperedge, or name of an array.
        message: What is wrong.
    """

    invariant: str
    place: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    Attributes:
        damage: All damage.
        remaining: The damage that was not repaired.
    """

    damage: tuple[Damage, ...] = ()
    remaining: tuple[Damage, ...] = ()


class Checker:
    """Checks one index.

    Args:
        store: The index.
        snapshots: Builds snapshots of the index.
        files: The saved snapshot; None if there is none.
        recorder: Records repairs in the history.
    """

    def __init__(
        self, store: Store, snapshots: SnapshotProvider, files: SnapshotFiles | None, recorder: HistoryRecorder
    ) -> None:
        self._recorder = recorder
        self._store = store
        self._snapshots = snapshots
        self._files = files

    def run(self, progress: Progress = silent, *, repair: bool = False) -> CheckReport:
        """Check the index, and repair what can be repaired if ``repair`` is set."""
        damage = remaining = self._find_damage(progress)
        for _ in range(_MAX_REPAIRS if repair and damage else 0):
            remaining = self._repair(remaining)
            if remaining:
                break
            remaining = self._find_damage(progress)  # the repair lets later groups of invariants be checked
            if not remaining:
                break
            damage = [*damage, *remaining]
        return CheckReport(tuple(damage), tuple(remaining))

    def _find_damage(self, progress: Progress) -> list[Damage]:
        """Return the damage of the first groups of invariants that are violated; later groups rely on them."""
        damage: list[Damage] = []
        checks = (self._check_rows, self._check_values, self._check_documents, self._check_snapshot)
        for done, check in enumerate(checks):
            progress(done, len(checks), "groups of invariants checked")
            if not damage or check == self._check_values:
                damage += check()
        return damage

    def _repair(self, damage: Sequence[Damage]) -> list[Damage]:
        """Repair damage by computing derived data again; return what only indexing documents again can repair."""
        repairable = [one for one in damage if _is_repairable(one)]
        rows = [one.place.partition("/") for one in repairable if one.invariant == "rows"]
        undeletable = self._store.delete_damaged([(table, id) for table, _, id in rows]) if rows else []
        ids = [one.place for one in repairable if one.invariant == "corrections"]
        if ids:
            Curator(self._store).change(lambda statements: statements, lambda _: ids, self._recorder)
        if repairable and self._files:
            self._files.delete()
            self._snapshots.discard()
        places = {f"{table}/{id}" for table, id in undeletable}
        return [one for one in damage if one not in repairable or one.place in places]

    def _check_rows(self) -> Iterator[Damage]:
        """Check that rows are as they were written, and that rows that belong together are there."""
        for table, id in self._store.verify():
            yield Damage("rows", f"{table}/{id}", "changed since it was written, or without the rows that belong to it")

    def _check_values(self) -> Iterator[Damage]:
        """Check that corrections can be parsed."""
        try:
            Statements.load(self._store)
        except PolyadError as error:
            yield Damage("values", "corrections", str(error))

    def _check_documents(self) -> Iterator[Damage]:
        """Check vectors, spans and corrections of all documents."""
        ids = list(get_digests(self._store))
        for first in range(0, len(ids), _BATCH):
            batch = ids[first : first + _BATCH]
            with self._store.read_transaction() as transaction:
                documents = transaction.get(IndexedDocument, batch)
                statements = Statements.load(self._store)
                originals, effects = load_originals(self._store, batch), load_effects(self._store, batch)
            for id, document in documents.items():
                for passage in document.passages:
                    yield from self._check_vectors(passage)
                    yield from _check_spans(passage, document.document.text)
                corrected = correct_document(restore_originals(document, originals.get(id, ())), statements)
                is_applied = (corrected.effects if corrected.originals else None) == effects.get(id)
                if not has_equal_content(corrected.document, document) or not is_applied:
                    yield Damage("corrections", id, "differs from what the corrections of users make of it")

    def _check_vectors(self, item: IndexedPassage) -> Iterator[Damage]:
        """Check that vectors have the length of the index, and the norm 1 or 0."""
        vectors: list[tuple[str, FloatArray]] = [(item.passage.id, item.vector)]
        vectors += [(edge.hyperedge.id, edge.vector) for edge in item.hyperedges]
        for id, vector in vectors:
            if len(vector) != self._store.manifest.dimension:
                yield Damage("vectors", id, f"{len(vector)} numbers; expected {self._store.manifest.dimension}")
                continue
            norm = float(np.linalg.norm(vector))
            if norm and not abs(norm - 1) <= _MAX_NORM_ERROR:
                yield Damage("vectors", id, f"a vector of the norm {norm:.3g}; expected 1")

    def _check_snapshot(self) -> Iterator[Damage]:
        """Check that the saved snapshot is as it was written, and in step with the rows of the index."""
        if self._files is None:
            return
        damaged = self._files.verify()
        for name in damaged:
            yield Damage("snapshot", name, "changed since it was written")
        if not damaged and self._files.get_version():
            current, fresh = self._snapshots.get_current(), self._snapshots.build()
            for name, ours, expected in zip(
                ("passages", "hyperedges", "members", "terms"), _describe(current), _describe(fresh), strict=True
            ):
                if ours != expected:
                    yield Damage("snapshot", name, "differ from the rows of the index")


def _is_repairable(damage: Damage) -> bool:
    """Return whether damage concerns what is derived from documents, or computed again when it is missing."""
    if damage.invariant == "rows":
        table, namespace, *_ = [*damage.place.split("/"), ""]
        return table in _DERIVED and not (table == "value" and namespace in _STATED)
    return damage.invariant in ("corrections", "snapshot")


def _check_spans(item: IndexedPassage, text: str) -> Iterator[Damage]:
    """Check that a passage is a part of its document's text, and hyperedges lie inside their passage."""
    passage = item.passage
    if text[passage.start : passage.end] != passage.text:
        yield Damage("spans", passage.id, "is not the text of its document at its offsets")
    for edge in item.hyperedges:
        if not 0 <= edge.hyperedge.start <= edge.hyperedge.end <= len(passage.text):
            yield Damage("spans", edge.hyperedge.id, "lies outside of its passage")


def _describe(snapshot: MappedSnapshot) -> tuple[object, object, object, object]:
    """Return the passages, hyperedges, members and terms of a snapshot in a form that its order does not affect."""
    live = {"passage": snapshot.graph.live_passages.to_rows(), "hyperedge": snapshot.graph.live_hyperedges.to_rows()}
    parts = [
        sorted(zip(snapshot.ids(kind, rows), map(bytes, snapshot.vectors(kind, rows)), strict=True))  # type: ignore[arg-type]
        for kind, rows in live.items()
    ]
    entities, positions = snapshot.graph.members(live["hyperedge"])
    edge_ids, keys = snapshot.ids("hyperedge", live["hyperedge"][positions]), snapshot.ids("entity", entities)
    terms = sorted({word for key in keys for word in key.split()})
    frequencies = snapshot.terms.document_frequencies(terms).tolist()
    return parts[0], parts[1], sorted(zip(edge_ids, keys, strict=True)), (snapshot.passage_count, frequencies)
