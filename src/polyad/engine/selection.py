"""Documents and hyperedges selected by a filter and a time, for lookups that read the store and not a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyad.errors import ConfigurationError
from polyad.model import Hyperedge, MetadataValue, Origin
from polyad.protocols.store import HyperedgeFields, ReadTransaction, Store
from polyad.text.filters import (
    HYPEREDGE_FIELDS,
    RECORDED,
    Where,
    collect_fields,
    is_selected,
    list_document_fields,
    list_hyperedge_fields,
    to_filter,
)
from polyad.text.validity import Time, parse_bounds, parse_interval, parse_period

_Records = Mapping[str, dict[str, MetadataValue]]
"""The fields of documents by id."""


class DocumentSelection:
    """Selects documents and hyperedges by a metadata filter and a date, among ids that the caller lists.

    A filter that compares fields of hyperedges selects the documents that state such a hyperedge, and reads these
    fields of all hyperedges.

    Args:
        store: The index.
        where: The filter; None selects everything.
        as_of: Time at which documents and hyperedges are valid; None for all times.

    Raises:
        SettingError: The time is no date.
    """

    def __init__(self, store: Store, where: Where, as_of: Time = None) -> None:
        self._store = store
        self._filter = to_filter(where)
        self._fields = collect_fields(self._filter) if self._filter is not None else set()
        self._time = None if as_of is None else parse_period("as_of", as_of).start

    def select_documents(self, ids: Iterable[str]) -> set[str]:
        """Return the ids of documents that satisfy the metadata filter and are valid at the date."""
        if self._filter is None and self._time is None:
            return set(ids)
        with self._store.read_transaction() as transaction:
            records = self._read_documents(transaction, ids)
            if not self._fields & HYPEREDGE_FIELDS:
                return set(records)
            edges = [id for id in transaction.get(HyperedgeFields) if _get_document_id(id) in records]
            selected = set(map(_get_document_id, self._select_hyperedges(transaction, records, edges)))
            others = records.keys() - set(map(_get_document_id, edges))
            return selected | {id for id in others if self._is_selected(records[id])}

    def select_hyperedges(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of hyperedges that, with their documents, satisfy the filter and the date, in input order."""
        if self._filter is None and self._time is None:
            return list(ids)
        unique = list(dict.fromkeys(ids))
        with self._store.read_transaction() as transaction:
            records = self._read_documents(transaction, map(_get_document_id, unique))
            return self._select_hyperedges(transaction, records, unique)

    def _read_documents(self, transaction: ReadTransaction, ids: Iterable[str]) -> _Records:
        """Return the metadata of documents that satisfy the filter and are valid at the date, keyed by document id.

        A filter that compares fields of hyperedges is not applied here.
        """
        origins = transaction.get(Origin, sorted(set(ids)))
        records = {
            id: list_document_fields(id, origin)
            for id, origin in origins.items()
            if self._time is None or parse_interval(origin.metadata).contains(self._time)
        }
        if self._fields & HYPEREDGE_FIELDS:
            return records
        return {id: record for id, record in records.items() if self._is_selected(record)}

    def _select_hyperedges(self, transaction: ReadTransaction, records: _Records, ids: Iterable[str]) -> list[str]:
        remaining = [id for id in ids if _get_document_id(id) in records]
        if self._fields & HYPEREDGE_FIELDS:
            remaining = [
                id
                for id, fields in transaction.get(HyperedgeFields, remaining).items()
                if self._is_selected(records[_get_document_id(id)] | list_hyperedge_fields(fields.kind, fields.roles))
            ]
        if self._time is None:
            return remaining
        edges = transaction.get(Hyperedge, remaining).values()
        return [edge.id for edge in edges if parse_bounds(edge.valid_from, edge.valid_to).contains(self._time)]

    def _is_selected(self, record: Mapping[str, MetadataValue]) -> bool:
        return self._filter is None or is_selected(self._filter, record)

    def require_fields(self) -> None:
        """Raise ConfigurationError if the filter compares a metadata field that no document of the index has."""
        if self._filter is None:
            return
        with self._store.read_transaction() as transaction:
            origins = transaction.get(Origin)
        names = {name for id, origin in origins.items() for name in list_document_fields(id, origin)} | HYPEREDGE_FIELDS
        missing = sorted(self._fields - names - {RECORDED})
        if missing and origins:
            raise ConfigurationError(
                f"the filter compares {missing[0]!r}, a field that no document of this index has; expected one of "
                f"{', '.join(sorted(names))}"
            )


def _get_document_id(hyperedge_id: str) -> str:
    return hyperedge_id.rpartition("/")[0].rpartition("#")[0]
