"""A cache of parts of a snapshot: the rows that a filter selects and that are valid at a date."""

from __future__ import annotations

from dataclasses import dataclass

from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.parts import connect, restrict, select_time
from polyad.text.filters import RECORDED, Filter, collect_fields, format_filter
from polyad.text.validity import Interval

_MAX_PARTS = 8
"""Snapshots of filters and dates that are cached."""


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A cached part of a snapshot: the rows that one filter selects and that are valid at one date.

    Attributes:
        whole: The snapshot without filter and date.
        filter: Text of the filter; empty for none.
        times: Interval of the dates for which the selection is valid; None for a selection without a date.
        valid: The copy with the passages and facts that are valid at the date.
        selected: The copy of ``valid`` with the passages that satisfy the filter.
        connected: The selected passages with the hypergraph of ``valid``; None if walks stay inside the selection.
    """

    whole: MappedSnapshot
    filter: str
    times: Interval | None
    valid: MappedSnapshot
    selected: MappedSnapshot
    connected: MappedSnapshot | None = None

    def is_valid_for(self, as_of: float | None) -> bool:
        """Return whether this part is valid for a search as of the date ``as_of`` (None: a search without a date)."""
        return self.times is None if as_of is None else self.times is not None and self.times.contains(as_of)


class PartCache:
    """A cache of the parts of the current snapshot that recent searches selected, for several threads."""

    def __init__(self) -> None:
        self._parts: list[SnapshotPart] = []

    def restrict(
        self, snapshot: MappedSnapshot, where: Filter | None, as_of: float | None, *, bridges_outside: bool = False
    ) -> SnapshotPart:
        """Return the part of a snapshot that ``where`` and ``as_of`` select; walks may leave it if ``bridges_outside``.

        Recent parts are cached.

        Args:
            snapshot: The whole index.
            where: Selects documents or hyperedges; None for all.
            as_of: Selects what is valid at this time, in seconds since 1970; None for all.
            bridges_outside: Whether a search may reach its hits through documents that the filter excludes.

        Raises:
            ConfigurationError: The filter compares a field that no document has.
        """
        if as_of is None or not snapshot.is_dated:
            as_of = None
            if where is None:
                return SnapshotPart(snapshot, "", None, snapshot, snapshot)
        key = format_filter(where) if where else ""
        cached = [part for part in self._parts if part.whole is snapshot]
        for part in cached:
            if part.filter == key and part.is_valid_for(as_of):
                break
        else:
            valid, times = (snapshot, None) if as_of is None else select_time(snapshot, as_of)
            selected = restrict(valid, *valid.fields.select(where, valid)) if where else valid
            # With a filter by the time of indexing, a search does not pass through documents that were indexed later.
            connects = bridges_outside and where and RECORDED not in collect_fields(where) and selected.passage_count
            part = SnapshotPart(snapshot, key, times, valid, selected, connect(selected, valid) if connects else None)
        self._parts = [*[other for other in cached if other is not part][1 - _MAX_PARTS :], part]
        return part
