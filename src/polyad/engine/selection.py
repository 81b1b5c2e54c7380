"""The documents that a filter selects, for lookups that read the store instead of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from polyad.errors import ConfigurationError
from polyad.model import Origin
from polyad.protocols.store import Store
from polyad.text.filters import Where, collect_fields, is_selected, list_document_fields, to_filter


class DocumentSelection:
    """Tells which documents a filter selects; reads only the documents that it is asked about.

    Args:
        store: The index.
        where: The filter; None selects everything.
    """

    def __init__(self, store: Store, where: Where) -> None:
        self._store = store
        self._filter = to_filter(where)

    def select_documents(self, ids: Iterable[str]) -> set[str]:
        """Return the ids of the documents among these that the filter selects."""
        requested = sorted(set(ids))
        if self._filter is None:
            return set(requested)
        with self._store.read_transaction() as transaction:
            origins = transaction.get(Origin, requested)
        return {id for id, origin in origins.items() if is_selected(self._filter, list_document_fields(id, origin))}

    def select_hyperedges(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of the hyperedges among these whose documents the filter selects, in the same order."""
        documents = {id: id.rpartition("/")[0].rpartition("#")[0] for id in ids}
        selected = self.select_documents(documents.values())
        return [id for id, document_id in documents.items() if document_id in selected]

    def require_fields(self) -> None:
        """Raise ConfigurationError if the filter compares a field that no document of the index has."""
        if self._filter is None:
            return
        with self._store.read_transaction() as transaction:
            origins = transaction.get(Origin)
        names = {name for id, origin in origins.items() for name in list_document_fields(id, origin)}
        missing = sorted(collect_fields(self._filter) - names)
        if missing and origins:
            raise ConfigurationError(
                f"the filter compares {missing[0]!r}, a field that no document of this index has; expected one of "
                f"{', '.join(sorted(names))}"
            )
