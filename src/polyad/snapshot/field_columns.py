"""The fields of documents and hyperedges that filters compare, in columns of distinct values."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import BoolArray, IntArray, MetadataValue, Origin
from polyad.protocols.store import HyperedgeFields, ReadTransaction
from polyad.snapshot.tables import SnapshotTables
from polyad.text.filters import (
    HYPEREDGE_FIELDS,
    RECORDED,
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    Not,
    build_predicate,
    collect_fields,
    compare_field,
    list_document_fields,
    list_hyperedge_fields,
)

_BATCH = 10_000
"""Documents, or hyperedges, read from the store at a time."""

_MAX_NAMES = 20
"""Names of fields in a message."""

Record = Mapping[str, MetadataValue]
"""The fields of a document or hyperedge."""


@dataclass(slots=True)
class _FieldColumn:
    """The values of one metadata field, such as ``year``, for all rows.

    Attributes:
        values: The distinct values; the first is None, which stands for a missing field.
        codes: Position in ``values`` for each row.
        positions: The position of each value with its type, because True equals 1.
    """

    values: list[MetadataValue | None] = field(default_factory=lambda: [None])
    codes: array[int] = field(default_factory=lambda: array("i"))
    positions: dict[tuple[type, MetadataValue], int] = field(default_factory=dict)

    def append(self, value: MetadataValue | None) -> None:
        """Append one row with the metadata value ``value``; None if the record lacks the field."""
        if value is None:
            self.codes.append(0)
            return
        position = self.positions.setdefault((type(value), value), len(self.values))
        if position == len(self.values):
            self.values.append(value)
        self.codes.append(position)

    def compare(self, comparison: Comparison, count: int) -> BoolArray:
        """Return a mask of the first ``count`` rows: whether each satisfies a comparison, such as ``year >= 2020``."""
        is_selected = np.fromiter(map(build_predicate(comparison), self.values), dtype=bool)
        selected: BoolArray = is_selected[np.frombuffer(self.codes, dtype=np.int32)[:count]]
        return selected


class FieldColumns:
    """The metadata fields of all documents and hyperedges as columns, for evaluating search filters.

    A column is read when a filter first needs it; later snapshots share it.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _FieldColumn] = {}
        self._names = set(HYPEREDGE_FIELDS)
        self._lock = threading.Lock()

    def select(self, filter: Filter, snapshot: SnapshotTables) -> tuple[BoolArray, BoolArray | None]:
        """Return two masks for a metadata filter: the passages, and the hyperedges, that the filter selects.

        The second mask is None if all hyperedges of the selected passages are selected.

        A filter of documents selects all their passages. A filter that compares fields of hyperedges selects
        hyperedges and the passages that state one of them; a passage without hyperedges has no such fields.

        Raises:
            ConfigurationError: No document has one of the fields.
        """
        fields = collect_fields(filter)
        with self._lock:
            with snapshot.store.read_transaction() as transaction:
                self._read_documents(snapshot, transaction, fields - HYPEREDGE_FIELDS)
                self._read_hyperedges(snapshot, transaction, fields & HYPEREDGE_FIELDS)
            self._require_fields(fields - HYPEREDGE_FIELDS, snapshot)
            return self._select(filter, snapshot)

    def _select(self, filter: Filter, snapshot: SnapshotTables) -> tuple[BoolArray, BoolArray | None]:
        document_count, edge_count = len(snapshot.passages.documents), snapshot.row_count("hyperedge")
        document_of_passage = snapshot.passages.document.to_array()

        def compare_passages(comparison: Comparison) -> BoolArray:
            if comparison.field in HYPEREDGE_FIELDS:
                return np.full(len(document_of_passage), compare_field(comparison, None))
            of_passages: BoolArray = self._columns[comparison.field].compare(comparison, document_count)[
                document_of_passage
            ]
            return of_passages

        passages = _evaluate(filter, compare_passages)
        if not collect_fields(filter) & HYPEREDGE_FIELDS:
            return passages, None
        passage_of_edge = snapshot.graph.edge_passage.to_array()

        def compare_hyperedges(comparison: Comparison) -> BoolArray:
            if comparison.field in HYPEREDGE_FIELDS:
                return self._columns[comparison.field].compare(comparison, edge_count)
            of_edges: BoolArray = compare_passages(comparison)[passage_of_edge]
            return of_edges

        hyperedges = _evaluate(filter, compare_hyperedges)
        live = snapshot.graph.live_hyperedges.to_rows()
        passages[passage_of_edge[live]] = False
        passages[passage_of_edge[live[hyperedges[live]]]] = True
        return passages, hyperedges

    def _read_documents(self, snapshot: SnapshotTables, transaction: ReadTransaction, fields: set[str]) -> None:
        def read(rows: IntArray) -> Sequence[Record]:
            ids = snapshot.passages.documents.take(rows)
            origins = transaction.get(Origin, ids)
            records = [list_document_fields(id, origins[id]) if id in origins else {} for id in ids]
            self._names.update(*records)
            return records

        self._extend_columns(fields, len(snapshot.passages.documents), read)

    def _read_hyperedges(self, snapshot: SnapshotTables, transaction: ReadTransaction, fields: set[str]) -> None:
        def read(rows: IntArray) -> Sequence[Record]:
            numbers = snapshot.hyperedges.pks.take(rows).tolist()
            records = transaction.get(HyperedgeFields, numbers)
            return [
                list_hyperedge_fields(records[number].kind, records[number].roles) if number in records else {}
                for number in numbers
            ]

        self._extend_columns(fields, snapshot.row_count("hyperedge"), read)

    def _extend_columns(self, fields: set[str], count: int, read: Callable[[IntArray], Sequence[Record]]) -> None:
        """Extend the columns of ``fields`` to ``count`` rows; the function ``read`` returns the records of rows."""
        columns = {name: self._columns.setdefault(name, _FieldColumn()) for name in fields}
        for start in range(min((len(column.codes) for column in columns.values()), default=count), count, _BATCH):
            rows = np.arange(start, min(start + _BATCH, count))
            for row, record in zip(rows.tolist(), read(rows), strict=True):
                for name, column in columns.items():
                    if len(column.codes) == row:
                        column.append(record.get(name))

    def _require_fields(self, fields: set[str], snapshot: SnapshotTables) -> None:
        """Raise ConfigurationError if no document has one of the filter's ``fields``, which is probably a typo."""
        missing = sorted(name for name in fields if len(self._columns[name].values) == 1 and name != RECORDED)
        if missing and len(snapshot.passages.documents):
            names = sorted(self._names)
            more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
            raise ConfigurationError(
                f"the filter compares {missing[0]!r}, a field that no document of this index has; expected one of "
                f"{', '.join(names[:_MAX_NAMES])}{more}"
            )


def _evaluate(filter: Filter, compare: Callable[[Comparison], BoolArray]) -> BoolArray:
    """Return a mask of the rows that satisfy ``filter``; the function ``compare`` returns one comparison's mask."""
    match filter:
        case Comparison():
            return compare(filter)
        case Not(part):
            return ~_evaluate(part, compare)
        case AllOf(parts):
            return reduce(np.logical_and, (_evaluate(part, compare) for part in parts))
        case AnyOf(parts):
            return reduce(np.logical_or, (_evaluate(part, compare) for part in parts))
