"""The documents that a filter and a time select, for lookups that read the store instead of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from polyad.errors import ConfigurationError
from polyad.model import Hyperedge, Origin
from polyad.protocols.store import Store
from polyad.text.filters import RECORDED, Where, collect_fields, is_selected, list_document_fields, to_filter
from polyad.text.validity import Time, parse_bounds, parse_interval, parse_period


class DocumentSelection:
    """Tells what a filter and a time select; reads only the documents and hyperedges that it is asked about.

    Args:
        store: The index.
        where: The filter; None selects everything.
        as_of: Time at which documents and hyperedges hold; None for all times.

    Raises:
        SettingError: The time is no date.
    """

    def __init__(self, store: Store, where: Where, as_of: Time = None) -> None:
        self._store = store
        self._filter = to_filter(where)
        self._time = None if as_of is None else parse_period("as_of", as_of).start

    def select_documents(self, ids: Iterable[str]) -> set[str]:
        """Return the ids of the documents among these that are selected."""
        requested = sorted(set(ids))
        if self._filter is None and self._time is None:
            return set(requested)
        with self._store.read_transaction() as transaction:
            origins = transaction.get(Origin, requested)
        return {id for id, origin in origins.items() if self._is_selected(id, origin)}

    def _is_selected(self, id: str, origin: Origin) -> bool:
        if self._time is not None and not parse_interval(origin.metadata).contains(self._time):
            return False
        return self._filter is None or is_selected(self._filter, list_document_fields(id, origin))

    def select_hyperedges(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of the hyperedges among these that are selected, as their documents, in the same order."""
        documents = {id: id.rpartition("/")[0].rpartition("#")[0] for id in ids}
        selected = self.select_documents(documents.values())
        remaining = [id for id, document_id in documents.items() if document_id in selected]
        if self._time is None:
            return remaining
        with self._store.read_transaction() as transaction:
            edges = transaction.get(Hyperedge, remaining).values()
        return [edge.id for edge in edges if parse_bounds(edge.valid_from, edge.valid_to).contains(self._time)]

    def require_fields(self) -> None:
        """Raise ConfigurationError if the filter compares a field that no document of the index has."""
        if self._filter is None:
            return
        with self._store.read_transaction() as transaction:
            origins = transaction.get(Origin)
        names = {name for id, origin in origins.items() for name in list_document_fields(id, origin)}
        missing = sorted(collect_fields(self._filter) - names - {RECORDED})
        if missing and origins:
            raise ConfigurationError(
                f"the filter compares {missing[0]!r}, a field that no document of this index has; expected one of "
                f"{', '.join(sorted(names))}"
            )
