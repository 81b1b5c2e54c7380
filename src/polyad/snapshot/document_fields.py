"""The fields of documents that filters compare, in columns of distinct values."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from polyad.errors import ConfigurationError
from polyad.model import BoolArray, MetadataValue, Origin
from polyad.text.filters import (
    RECORDED,
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    Not,
    collect_fields,
    compare_field,
    list_document_fields,
)

if TYPE_CHECKING:
    from polyad.snapshot.mapped_snapshot import MappedSnapshot

_BATCH = 10_000
"""Documents read from the store at a time."""

_MAX_NAMES = 20
"""Names of fields in a message."""


@dataclass(slots=True)
class _FieldColumn:
    """The value of one field in each document.

    Attributes:
        values: The distinct values; the first is None, which stands for a missing field.
        codes: Position in ``values`` for each document.
        positions: The position of each value with its type, because True equals 1.
    """

    values: list[MetadataValue | None] = field(default_factory=lambda: [None])
    codes: array[int] = field(default_factory=lambda: array("i"))
    positions: dict[tuple[type, MetadataValue], int] = field(default_factory=dict)

    def append(self, value: MetadataValue | None) -> None:
        """Add the value of the next document."""
        if value is None:
            self.codes.append(0)
            return
        position = self.positions.setdefault((type(value), value), len(self.values))
        if position == len(self.values):
            self.values.append(value)
        self.codes.append(position)


class DocumentFields:
    """Columns with the metadata fields of all documents, by which filters select documents.

    A column is read when a filter first needs it; later snapshots share it.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _FieldColumn] = {}
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def select(self, filter: Filter, snapshot: MappedSnapshot) -> BoolArray:
        """Return which documents a filter selects; bool ``[documents]``.

        Raises:
            ConfigurationError: No document has one of the fields.
        """
        fields = collect_fields(filter)
        with self._lock:
            for name in fields - self._columns.keys():
                self._columns[name] = _FieldColumn()
            self._read(snapshot, fields)
            self._require(fields, snapshot)
            return self._evaluate(filter, len(snapshot.documents))

    def _read(self, snapshot: MappedSnapshot, fields: Iterable[str]) -> None:
        """Append the documents that the columns of these fields lack."""
        columns = {name: self._columns[name] for name in fields}
        first_unread = min(len(column.codes) for column in columns.values())
        with snapshot.store.read_transaction() as transaction:
            for start in range(first_unread, len(snapshot.documents), _BATCH):
                rows = np.arange(start, min(start + _BATCH, len(snapshot.documents)))
                ids = snapshot.documents.take(rows)
                origins = transaction.get(Origin, ids)
                for row, id in zip(rows.tolist(), ids, strict=True):
                    record = list_document_fields(id, origins[id]) if id in origins else {}
                    self._names.update(record)
                    for name, column in columns.items():
                        if len(column.codes) == row:
                            column.append(record.get(name))

    def _require(self, fields: Iterable[str], snapshot: MappedSnapshot) -> None:
        """Raise ConfigurationError if no document has one of the fields, which is most often misspelt."""
        missing = sorted(name for name in fields if len(self._columns[name].values) == 1 and name != RECORDED)
        if missing and len(snapshot.documents):
            names = sorted(self._names)
            more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
            raise ConfigurationError(
                f"the filter compares {missing[0]!r}, a field that no document of this index has; expected one of "
                f"{', '.join(names[:_MAX_NAMES])}{more}"
            )

    def _evaluate(self, filter: Filter, count: int) -> BoolArray:
        match filter:
            case Comparison(field):
                column = self._columns[field]
                is_selected = np.array([compare_field(filter, value) for value in column.values], dtype=bool)
                selected: BoolArray = is_selected[np.frombuffer(column.codes, dtype=np.int32)[:count]]
                return selected
            case Not(part):
                return ~self._evaluate(part, count)
            case AllOf(parts):
                return reduce(np.logical_and, (self._evaluate(part, count) for part in parts))
            case AnyOf(parts):
                return reduce(np.logical_or, (self._evaluate(part, count) for part in parts))
