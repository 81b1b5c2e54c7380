"""The documents of an index as a table: rows with title, type, language and date, which can be filtered and sorted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from polyad.curation.statements import DISABLED
from polyad.errors import ConfigurationError
from polyad.model import DocumentSummary
from polyad.protocols.lookups import get_all
from polyad.protocols.store import Store
from polyad.text.languages import LANGUAGE, parse_language_code

SortKey = Literal["id", "title", "type", "language", "tokens", "passages", "date", "recorded", "state"]
"""The columns by which the table can be sorted."""

Facet = Literal["type", "language", "year", "folder", "state"]
"""The properties whose distinct values are counted, and by which the table can be filtered."""

FACETS: tuple[Facet, ...] = get_args(Facet)

_MAX_VALUES = 500
"""Values of a facet that are counted, the most frequent: an index may have a folder for each document."""

_DATE_KEYS = ("date", "published", "created", "year")
"""Metadata keys with the date of a document, the surest first. ``modified`` is none: it may be the time of the file."""

_ISO_DATE = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d(?:-[01]\d(?:-[0-3]\d)?)?(?!\d)")


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document in the table of documents.

    Attributes:
        id: Id of the document.
        source: Path of the file; empty for an uploaded document.
        title: Title; empty if there is none.
        type: Extension of the file without its dot, such as ``pdf``; ``text`` for a document without a file.
        language: ISO 639-1 code; empty if unknown, or if the document states no such code (``C``, ``German``).
        tokens: Length of the text in tokens.
        passages: Number of passages; 0 for a disabled document.
        date: Date that the document states, such as ``2023-05-01`` or ``2023``, or its year; empty if it states none.
        recorded: Time when the document was indexed.
        folder: Folder of the file; empty if there is none.
        state: ``searchable``, ``disabled`` (hidden by a user) or ``empty`` (a text without words).
    """

    id: str
    source: str
    title: str
    type: str
    language: str
    tokens: int
    passages: int
    date: str
    recorded: str
    folder: str
    state: str

    @property
    def year(self) -> str:
        """The year of the document's date; empty if there is no date."""
        return self.date[:4]


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """A selection of rows of the table of documents, and their order.

    Attributes:
        text: Text in the id or the title, ignoring case.
        facets: Required value of some facets; an empty value selects documents without one.
        sort: The column to sort by; equal rows are sorted by id.
        is_descending: Whether the highest value comes first.
    """

    text: str = ""
    facets: Mapping[Facet, str] = field(default_factory=dict)
    sort: SortKey = "id"
    is_descending: bool = False


class DocumentTable:
    """The documents of one index as rows. The rows are read again when the index has changed.

    Args:
        store: The index.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: tuple[tuple[int, frozenset[str]], tuple[DocumentRow, ...]] | None = None

    def get_rows(self) -> tuple[DocumentRow, ...]:
        """Return the rows of all documents, sorted by id."""
        with self._store.read_transaction() as transaction:
            key = transaction.version, frozenset(self._store.get_values(DISABLED))
            cache = self._cache  # another thread may replace it
            if cache is None or cache[0] != key:
                summaries = transaction.get(DocumentSummary)
                cache = key, tuple(_build_row(id, summary, key[1]) for id, summary in summaries.items())
                self._cache = cache
        return cache[1]

    def get(self, id: str) -> DocumentRow:
        """Return the row of one document.

        Raises:
            NotFoundError: The index has no document with this id.
        """
        disabled = self._store.get_values(DISABLED, [id])
        return _build_row(id, get_all(self._store, DocumentSummary, [id])[0], disabled)

    def select(
        self, query: DocumentQuery, ids: Container[str] | None = None
    ) -> tuple[list[DocumentRow], dict[Facet, dict[str, int]]]:
        """Return the rows that satisfy a query, in its order, and the number of documents by facet and value.

        The values of a facet are counted among the documents that satisfy all other conditions.

        Args:
            query: The conditions and the order.
            ids: Documents to select from; None for all.

        Raises:
            ConfigurationError: The table has no such column.
        """
        if query.sort not in get_args(SortKey):
            raise ConfigurationError(f"sort is {query.sort!r}; expected one of {', '.join(get_args(SortKey))}")
        text, required = query.text.casefold(), query.facets.items()
        counts: dict[Facet, Counter[str]] = {facet: Counter() for facet in FACETS}
        selected = []
        for row in self.get_rows():
            if (ids is not None and row.id not in ids) or text not in f"{row.id}\n{row.title}".casefold():
                continue
            failed = [facet for facet, value in required if getattr(row, facet) != value]
            if not failed:
                selected.append(row)
            for facet in FACETS if not failed else failed if len(failed) == 1 else ():
                counts[facet][getattr(row, facet)] += 1
        if query.sort != "id" or query.is_descending:
            selected.sort(key=_get_sort_key(query.sort), reverse=query.is_descending)
        return selected, {facet: dict(sorted(counter.most_common(_MAX_VALUES))) for facet, counter in counts.items()}


def _get_sort_key(column: SortKey) -> Callable[[DocumentRow], Any]:
    if column == "title":
        return lambda row: (row.title or row.id).casefold()
    return attrgetter(column)


def _build_row(id: str, summary: DocumentSummary, disabled: Container[str]) -> DocumentRow:
    origin, metadata = summary.origin, summary.origin.metadata
    path = PurePosixPath(str(metadata.get("path", "" if origin.url else id)).replace("\\", "/"))
    extension = str(metadata.get("extension") or PurePosixPath(origin.source).suffix).lower().removeprefix(".")
    folder = str(
        metadata.get("folder") or (path.parent if len(path.parts) > 1 else urlsplit(origin.url).hostname or "")
    )
    language = parse_language_code(metadata.get(LANGUAGE))
    state = "disabled" if id in disabled else "searchable" if summary.passages else "empty"
    return DocumentRow(
        id,
        origin.source,
        origin.title,
        extension or "text",
        language,
        summary.tokens,
        summary.passages,
        _find_date([metadata[key] for key in _DATE_KEYS if key in metadata]),
        origin.recorded,
        folder,
        state,
    )


def _find_date(values: Sequence[object]) -> str:
    """Return the first ISO 8601 date, month or year in some metadata values; empty if there is none.

    >>> _find_date(["unknown", "2023-05-01T10:00:00+00:00", 1999])
    '2023-05-01'
    """
    return next((match[0] for value in values if (match := _ISO_DATE.search(str(value)))), "")
