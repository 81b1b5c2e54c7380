"""The families of versions among the documents of a snapshot, derived from paths, titles, metadata and first lines."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyad.model import Origin, Passage, ScoredPassage
from polyad.snapshot.incidences import Incidences
from polyad.snapshot.tables import SnapshotTables
from polyad.text.versions import Marks, VersionFamily, add_statement, read_marks

_BATCH = 10_000
"""Documents read from the store at a time."""

_MAX_READ = 200
"""Largest family whose first lines are read: longer series are issues, whose names have dates."""

_NO_FAMILY = VersionFamily(())


@dataclass(slots=True)
class VersionTable:
    """The marks of versions of all documents, by row of the document.

    Rows are read when a search first needs them; later snapshots share them. A changed document has a new row, and rows
    that a snapshot lacks are skipped, so that families are those of an index of the remaining documents.
    """

    _marks: list[Marks | None] = field(default_factory=list)
    _rows: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _of_hits: dict[int, Marks] = field(default_factory=dict)
    _with_statements: dict[int, Marks] = field(default_factory=dict)
    _cache: tuple[Incidences | None, dict[str, VersionFamily]] = (None, {})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def may_have_versions(self, snapshot: SnapshotTables, hits: Sequence[ScoredPassage]) -> bool:
        """Return whether the name or metadata of any hit has the marks of a version, or two hits the same name.

        Otherwise a search need not read the documents of the index.
        """
        rows = snapshot.passages.document.take(snapshot.passages.ids.find_rows([hit.passage.id for hit in hits]))
        keys: dict[str, str] = {}
        for row, hit in zip(rows.tolist(), hits, strict=True):
            marks = self._of_hits.get(row) or read_marks(hit.passage.document_id, hit.origin)
            self._of_hits[row] = marks
            if marks.level or any(keys.setdefault(key, marks.unit) != marks.unit for key in marks.keys):
                return True
        return False

    def find_starts(self, snapshot: SnapshotTables, passage_ids: Sequence[str]) -> list[float | None]:
        """Return the date of the document of each passage, in seconds since 1970; None if unknown."""
        rows = snapshot.passages.document.take(snapshot.passages.ids.find_rows(passage_ids)).tolist()
        return [marks.start if (marks := self._marks[row]) else None for row in rows]

    def find_families(
        self, snapshot: SnapshotTables, passage_ids: Sequence[str]
    ) -> dict[str, tuple[str, VersionFamily]]:
        """Return for each passage the document, or the file of several documents, and the family of its versions.

        Passages of documents without other versions are left out.

        Args:
            snapshot: The snapshot, or a part of it; documents that it lacks belong to no family.
            passage_ids: Ids of passages of the snapshot.
        """
        rows = snapshot.passages.document.take(snapshot.passages.ids.find_rows(passage_ids)).tolist()
        found = {}
        with self._lock:
            self._extend(snapshot)
            if self._cache[0] is not snapshot.graph:
                self._cache = snapshot.graph, {}
            families = self._cache[1]
            for passage_id, row in zip(passage_ids, rows, strict=True):
                marks = self._marks[row]
                if marks is None or not marks.keys:
                    continue
                if marks.unit not in families:
                    members = self._find_members(snapshot, row)
                    family = VersionFamily(members) if len(members) > 1 else _NO_FAMILY
                    families.update(dict.fromkeys([marks.unit, *(member.unit for member in members)], family))
                if families[marks.unit].level:
                    found[passage_id] = marks.unit, families[marks.unit]
        return found

    def list_families(self, snapshot: SnapshotTables) -> list[VersionFamily]:
        """Return all families with several members, sorted by their first member."""
        families = self.find_families(snapshot, snapshot.ids("passage", snapshot.graph.live_passages.to_rows()))
        distinct = {id(family): family for _, family in families.values()}
        return sorted(distinct.values(), key=lambda family: family.members[0].unit)

    def _extend(self, snapshot: SnapshotTables) -> None:
        """Read the marks of the documents that were added since the table was last used."""
        count = len(snapshot.passages.documents)
        for start in range(len(self._marks), count, _BATCH):
            ids = snapshot.passages.documents.take(np.arange(start, min(start + _BATCH, count)))
            with snapshot.store.read_transaction() as transaction:
                origins: Mapping[str, Origin] = transaction.get(Origin, ids)
            for row, id in enumerate(ids, start):
                marks = read_marks(id, origins[id]) if id in origins else None
                self._marks.append(marks)
                for key in marks.keys if marks else ():
                    self._rows[key].append(row)

    def _find_members(self, snapshot: SnapshotTables, row: int) -> tuple[Marks, ...]:
        """Return the marks of the live documents that common keys connect with a document, one for each unit."""
        members: dict[str, list[tuple[int, Marks]]] = defaultdict(list)
        rows, keys, reached = [row], set[str](), set[int]()
        while rows:
            marks = self._marks[rows.pop()]
            for key in marks.keys if marks else ():
                if key not in keys:
                    keys.add(key)
                    for other in self._select_live(snapshot, self._rows[key]):
                        if other not in reached and (marks := self._marks[other]):
                            reached.add(other)
                            rows.append(other)
                            members[marks.unit].append((other, marks))
        firsts = [min(members[unit], key=_sort_rows) for unit in sorted(members)]
        if not 2 <= len(firsts) <= _MAX_READ:
            return tuple(marks for _, marks in firsts)
        return tuple(self._read_statement(snapshot, *first) for first in firsts)

    def _select_live(self, snapshot: SnapshotTables, rows: Sequence[int]) -> list[int]:
        """Return the documents of ``rows`` that have passages in the snapshot."""
        documents = np.array([row for row in rows if row < len(snapshot.passages.documents)], dtype=np.int64)
        firsts, ends = (snapshot.passages.document.count_below(documents + shift) for shift in (0, 1))
        mask = snapshot.graph.live_passages.mask
        bounds = zip(documents.tolist(), firsts.tolist(), ends.tolist(), strict=True)
        return [row for row, first, end in bounds if mask[first:end].any()]

    def _read_statement(self, snapshot: SnapshotTables, row: int, marks: Marks) -> Marks:
        """Return the marks of a document, with those of the first lines of its text."""
        if row not in self._with_statements:
            pk = snapshot.passages.pks.take(snapshot.passages.document.count_below(np.array([row]))).tolist()
            with snapshot.store.read_transaction() as transaction:
                passages = transaction.get(Passage, pk)
            self._with_statements[row] = add_statement(marks, passages[pk[0]].text) if passages else marks
        return self._with_statements[row]


def _sort_rows(row: tuple[int, Marks]) -> tuple[float, tuple[int, ...], str]:
    """Return a key that selects the same row of a file in whatever order the rows were indexed."""
    _, marks = row
    return math.inf if marks.start is None else marks.start, marks.number, marks.status
