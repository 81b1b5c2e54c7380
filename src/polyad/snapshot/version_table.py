"""The families of versions among the documents of a snapshot, derived from paths, titles, metadata and first lines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyad.model import Origin, Passage
from polyad.snapshot.incidences import Incidences
from polyad.snapshot.tables import SnapshotTables
from polyad.text.versions import Marks, VersionFamily, add_statement, build_family_terms, read_marks

_BATCH = 10_000
"""Documents read from the store at a time."""

_MAX_READ = 200
"""Largest family whose first lines are read: longer series are issues, whose names have dates."""

_MAX_MEMBERS = 1000
"""Documents with a common key from which on the key is too common to make a family."""

_MAX_CACHED = 100_000
"""Documents whose marks are kept."""


@dataclass(slots=True)
class VersionTable:
    """The marks of versions of the documents that searches met, by row of the document.

    The keys of families are search terms of the documents' first passages, so that a search reads only the documents of
    the families of its hits. A changed document has a new row; families are those of the live documents of a snapshot.
    """

    _marks: dict[int, Marks] = field(default_factory=dict)
    _members: dict[int, Marks] = field(default_factory=dict)
    _cache: tuple[Incidences | None, dict[str, VersionFamily]] = (None, {})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find_starts(self, snapshot: SnapshotTables, passage_ids: Sequence[str]) -> list[float | None]:
        """Return the date of the document of each passage, in seconds since 1970; None if unknown."""
        rows = _find_documents(snapshot, passage_ids)
        with self._lock:
            self._read(snapshot, rows)
            return [marks.start if (marks := self._marks.get(row)) else None for row in rows]

    def find_families(
        self, snapshot: SnapshotTables, passage_ids: Sequence[str]
    ) -> dict[str, tuple[str, VersionFamily]]:
        """Return for each passage the document, or the file of several documents, and the family of its versions.

        Passages of documents without other versions are left out.

        Args:
            snapshot: The snapshot, or a part of it; documents that it lacks belong to no family.
            passage_ids: Ids of passages of the snapshot.
        """
        rows = _find_documents(snapshot, passage_ids)
        places = {}
        with self._lock:
            if self._cache[0] is not snapshot.graph:
                self._cache = snapshot.graph, {}
            if len(self._marks) > _MAX_CACHED:
                self._marks.clear()
                self._members.clear()
            families = self._cache[1]
            self._read(snapshot, rows)
            for passage_id, row in zip(passage_ids, rows, strict=True):
                marks = self._marks.get(row)
                if marks is None or not marks.keys:
                    continue
                if marks.unit not in families:
                    family = VersionFamily(self._find_members(snapshot, row))
                    families.update(dict.fromkeys([marks.unit, *(member.unit for member in family.members)], family))
                if len(families[marks.unit].members) > 1 and families[marks.unit].level:
                    places[passage_id] = marks.unit, families[marks.unit]
        return places

    def list_families(self, snapshot: SnapshotTables) -> list[VersionFamily]:
        """Return all families with several members, sorted by their first member."""
        families = self.find_families(snapshot, snapshot.ids("passage", snapshot.graph.live_passages.to_rows()))
        distinct = {id(family): family for _, family in families.values()}
        return sorted(distinct.values(), key=lambda family: family.members[0].unit)

    def _read(self, snapshot: SnapshotTables, rows: Iterable[int]) -> None:
        """Read the marks of documents that are not known yet."""
        missing = [row for row in dict.fromkeys(rows) if row not in self._marks]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            ids = snapshot.passages.documents.take(batch)
            with snapshot.store.read_transaction() as transaction:
                origins: Mapping[str, Origin] = transaction.get(Origin, ids)
            pairs = zip(batch, ids, strict=True)
            self._marks.update((row, read_marks(id, origins[id])) for row, id in pairs if id in origins)

    def _find_members(self, snapshot: SnapshotTables, row: int) -> tuple[Marks, ...]:
        """Return the marks of the live documents that common keys connect with a document, one for each unit."""
        terms, keys, reached, new = snapshot.passages.terms, set[str](), {row}, [row]
        while new:
            self._read(snapshot, new)
            added = sorted({key for each in new if each in self._marks for key in self._marks[each].keys} - keys)
            keys.update(added)
            family_terms = build_family_terms(added)
            counts = terms.document_frequencies(family_terms).tolist()
            common = [term for term, count in zip(family_terms, counts, strict=True) if 1 <= count <= _MAX_MEMBERS]
            documents = snapshot.passages.document.take(terms.find_passages(common))
            new = [each for each in np.unique(documents).tolist() if each not in reached]
            reached.update(new)
        units = {marks.unit: each for each in sorted(reached, reverse=True) if (marks := self._marks.get(each))}
        rows = [units[unit] for unit in sorted(units)]
        if 2 <= len(rows) <= _MAX_READ:
            self._read_statements(snapshot, [each for each in rows if each not in self._members])
        return tuple(self._members.get(each) or self._get_member(snapshot, each) for each in rows)

    def _get_member(self, snapshot: SnapshotTables, row: int) -> Marks:
        """Return the marks of a document, or those of the name of a file whose records are documents."""
        marks = self._marks[row]
        [id] = snapshot.passages.documents.take([row])
        return marks if marks.unit == id else read_marks(marks.unit, Origin("", marks.unit))

    def _read_statements(self, snapshot: SnapshotTables, rows: Sequence[int]) -> None:
        """Add what the first lines of documents say to their marks."""
        pks = snapshot.passages.pks.take(snapshot.passages.document.count_below(np.array(rows, dtype=np.int64)))
        with snapshot.store.read_transaction() as transaction:
            passages = transaction.get(Passage, pks.tolist())
        for row, pk in zip(rows, pks.tolist(), strict=True):
            marks = self._get_member(snapshot, row)
            is_stated = pk in passages and marks is self._marks[row]
            self._members[row] = add_statement(marks, passages[pk].text) if is_stated else marks


def _find_documents(snapshot: SnapshotTables, passage_ids: Sequence[str]) -> list[int]:
    rows: list[int] = snapshot.passages.document.take(snapshot.passages.ids.find_rows(passage_ids)).tolist()
    return rows
