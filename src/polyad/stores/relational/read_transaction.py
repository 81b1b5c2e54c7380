"""Read transactions of relational stores: queries, and the records that are built from their rows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from inspect import isgeneratorfunction
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast, overload

from polyad.model import (
    SUBJECT,
    Condition,
    Document,
    DocumentSummary,
    Entity,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Origin,
    Pagination,
    Passage,
)
from polyad.protocols.store import (
    IN_COMMON_WORDS,
    Changes,
    Count,
    DocumentText,
    EntityIncidence,
    HyperedgeFields,
    IdT,
    Lookup,
    Manifest,
    RecordT,
    StoredDocument,
    StoredRows,
    build_intervals,
)
from polyad.stores.relational.connection import Connection, Database, Selection
from polyad.stores.relational.rows import (
    DOCUMENT_COLUMNS,
    HYPEREDGE_COLUMNS,
    NUMBER,
    PASSAGE_COLUMNS,
    SELECT_TUPLES,
    TEXT_CHECK,
    DamageError,
    add_arguments,
    check_count,
    check_types,
    format_check,
    iterate_batches,
    parse_document,
    parse_floats,
    parse_hyperedges,
    parse_metadata,
    parse_passages,
    parse_places,
    parse_primary_keys,
    parse_vectors,
    report_unparsable,
)
from polyad.stores.relational.tuples import find_tuples, select_entity_names
from polyad.text.validity import UNBOUNDED, Interval, parse_bounds, parse_interval
from polyad.text.versions import find_family_terms
from polyad.text.words import is_capitalized_name

_DOCUMENTS_PER_BATCH = 256
"""Documents that :meth:`RelationalReadTransaction.rows` reads at a time."""

_KEYS_PER_BATCH = 256
"""Entity keys that are parsed at a time."""

Ids = Sequence[str] | Sequence[int] | None
Records = dict[Any, Any]
Row = tuple[Any, ...]

_DOCUMENT_PASSAGES = f"""
SELECT passage.number, passage.id, document.id, passage.title, passage.text, passage.vector, passage.hyperedges
FROM document JOIN passage ON passage.document = document.number
WHERE document.number IN ({{}}) AND {format_check("passage")} ORDER BY passage.number
"""

_DOCUMENT_HYPEREDGES = f"""
SELECT hyperedge.number, hyperedge.id, hyperedge.passage, hyperedge.score, hyperedge.vector,
hyperedge.valid_from, hyperedge.valid_to, hyperedge.incidences
FROM document JOIN passage ON passage.document = document.number JOIN hyperedge ON hyperedge.passage = passage.number
WHERE document.number IN ({{}}) AND {format_check("hyperedge")} ORDER BY hyperedge.number
"""

_DOCUMENT_INCIDENCES = f"""
SELECT incidence.entity, incidence.hyperedge, CASE WHEN role = ? OR kind = ? THEN strength ELSE 0 END, name
FROM document JOIN passage ON passage.document = document.number JOIN hyperedge ON hyperedge.passage = passage.number
JOIN incidence ON incidence.hyperedge = hyperedge.number
WHERE document.number IN ({{}}) AND {format_check("incidence")}
"""

_HAS_BOUND = re.compile('"valid_(from|to)": ')
"""Matches metadata with a bound of the document's validity; most have none and are not parsed."""

_DATE = re.compile('"date": "([^"]*)"')
"""Matches the date in the metadata of a document."""

_DOCUMENT_PROPERTIES = (
    f"SELECT id, metadata, title, source, passages FROM document WHERE number IN ({{}}) AND {format_check('document')}"
)

_ROWS_OF_DOCUMENTS: Sequence[tuple[str, Sequence[str]]] = (
    (_DOCUMENT_PASSAGES, ()),
    (_DOCUMENT_HYPEREDGES, ()),
    (_DOCUMENT_PROPERTIES, ()),
    (_DOCUMENT_INCIDENCES, (SUBJECT, HyperedgeKind.TUPLE)),
)
"""The queries for the rows of documents, each with its parameters."""

_CHANGES = (
    "SELECT first_passage, last_passage FROM removal "
    f"WHERE version > ? AND {format_check('removal')} ORDER BY version, first_passage",
    "SELECT number FROM document WHERE version > ? ORDER BY +number",
    "SELECT token FROM state WHERE version = ?",
)
"""The queries that read what changed after a version: deleted passages, new documents, the version's token."""

_ENTITY_INCIDENCES = f"""
SELECT entity.key, name, type, description, MAX(score), COUNT(*)
FROM incidence JOIN entity ON entity.number = incidence.entity
WHERE {{condition}} AND {format_check("entity")} AND {format_check("incidence")} GROUP BY 1, 2, 3, 4
"""
"""The distinct incidences of entities with their counts: a common entity has thousands of equal incidences."""

_HYPEREDGE_INCIDENCES = f"""
SELECT incidence.hyperedge, entity.key, name, role, type, description, score, grounded, strength
FROM incidence JOIN entity ON entity.number = incidence.entity
WHERE incidence.hyperedge IN ({{}}) AND {format_check("entity")} AND {format_check("incidence")}
ORDER BY entity.key, role
"""

_HYPEREDGE_ROLES = (
    f"SELECT hyperedge, role FROM incidence WHERE hyperedge IN ({{}}) AND role <> '' AND {format_check('incidence')}",
    f"SELECT tuple, role FROM argument WHERE tuple IN ({{}}) AND {format_check('argument')}",
)

_SELECT_KINDS = """
WITH RECURSIVE found(kind) AS (
    SELECT MIN(kind) FROM hyperedge
    UNION ALL SELECT (SELECT MIN(kind) FROM hyperedge WHERE kind > found.kind) FROM found WHERE kind IS NOT NULL
) SELECT kind FROM found WHERE kind IN ({})
""".format(", ".join(f"'{kind}'" for kind in HyperedgeKind))
"""Skip scan: reads one entry of the index on kinds for each kind. Any other kind is in a damaged row."""

_DOCUMENTS_BY_KIND = """
SELECT id FROM document
WHERE number IN (
    SELECT DISTINCT passage.document FROM hyperedge JOIN passage ON passage.number = hyperedge.passage
    WHERE hyperedge.kind = ?
) AND ? = (
    SELECT kind FROM passage JOIN hyperedge ON hyperedge.passage = passage.number
    WHERE passage.document = document.number ORDER BY hyperedge.number LIMIT 1
)
"""

_SOURCE_SEPARATORS = (("/", "0"), (":", ";"))
"""Separators between a folder and its file, and between a file and its record, each with the next ASCII character."""

_DUPLICATES = """
SELECT id, earlier FROM (
    SELECT document.id, (
        SELECT other.id FROM passage AS same JOIN document AS other ON other.number = same.document
        WHERE same.digest = last.digest AND same."end" = last."end" AND same.number < last.number
        AND other.number <> document.number AND other.title = document.title AND other.text = document.text
        ORDER BY same.number LIMIT 1
    ) AS earlier
    FROM document JOIN passage AS last
    ON last.number = (SELECT MAX(number) FROM passage WHERE passage.document = document.number)
    WHERE document.id IN ({}) AND last.digest <> ''
) AS pair WHERE earlier IS NOT NULL
"""
"""Compares whole texts only of documents whose last passages agree in digest and position: texts often begin alike, and
texts that end alike (with the same licence) seldom have the same length."""

_PASSAGES_OF_DOCUMENTS = (
    "SELECT passage.number FROM document JOIN passage ON passage.document = document.number WHERE document.id IN ({})"
)

_LOOKUPS: Mapping[str, str] = {
    "duplicates by document": _DUPLICATES,
    "passages by document": (
        "SELECT document.id, passage.id FROM document JOIN passage ON passage.document = document.number "
        "WHERE document.id IN ({})"
    ),
    "passages by digest": "SELECT digest, id FROM passage WHERE digest IN ({})",
    "hyperedges by entity": (
        "SELECT DISTINCT entity.key, hyperedge.id FROM entity JOIN incidence ON incidence.entity = entity.number "
        "JOIN hyperedge ON hyperedge.number = incidence.hyperedge WHERE entity.key IN ({})"
    ),
}

_COUNTS: Mapping[str, str] = {
    "kind": "SELECT kind, COUNT(*) FROM hyperedge GROUP BY 1 ORDER BY 1",
    "relation": "SELECT relation, COUNT(*) FROM tuple GROUP BY 1 ORDER BY 1",
    "role": (
        "SELECT role, COUNT(*) FROM (SELECT role FROM argument UNION ALL SELECT role FROM incidence) AS part "
        "WHERE role <> '' GROUP BY 1 ORDER BY 1"
    ),
}


F = TypeVar("F", bound=Callable[..., Any])


def report_errors(method: F) -> F:
    """Decorate a method, or a generator method, so that database errors in its body become StoreError."""

    @wraps(method)
    def report(self: Any, *args: Any, **keywords: Any) -> Any:
        with self._database.report_errors():
            return method(self, *args, **keywords)

    @wraps(method)
    def report_during_iteration(self: Any, *args: Any, **keywords: Any) -> Any:
        with self._database.report_errors():
            yield from method(self, *args, **keywords)

    return cast(F, report_during_iteration if isgeneratorfunction(method) else report)


class RelationalReadTransaction(ABC):
    """The base class of read transactions, with the queries that SQLite and PostgreSQL share.

    Args:
        connection: A connection inside a transaction that lasts as long as this object is used.
        database: Translates errors of the connection.
        manifest: The manifest of the index when it was opened.
        log_length: How many of the last versions the log of removals covers.
        get_version: Returns the store version of the transaction.
    """

    _documents_by_source = "SELECT id FROM document WHERE source = ? OR (source >= ? AND source < ?)"

    def __init__(
        self,
        connection: Connection,
        database: Database,
        manifest: Manifest,
        log_length: int,
        get_version: Callable[[], int],
    ) -> None:
        self.connection = connection
        self._database = database
        self._manifest = manifest
        self._log_length = log_length
        self._get_version = get_version

    @property
    def version(self) -> int:
        """The store version that all reads see, which grows with each write of documents."""
        return self._get_version()

    @report_errors
    def changes(self, since: int | None = None) -> Changes:
        """Return the documents written and deleted after version ``since``; all documents if ``since`` is unknown."""
        if since is None or not self.version - self._log_length <= since <= self.version:
            return Changes(self.version, (), self._get_document_keys(), is_complete=True)
        selections = [Selection(query, None, [since]) for query in _CHANGES]
        removed, documents, tokens = self.connection.select_each(selections)
        return Changes(
            self.version,
            tuple(check_types(removed, int, int)),
            tuple(number for (number,) in check_types(documents, int)),
            "".join(str(token) for (token,) in tokens),
        )

    def _get_document_keys(self) -> tuple[int, ...]:
        """Return the sorted primary keys of all documents, after checking that no row is missing."""
        query = f"SELECT number, passages FROM document WHERE {format_check('document')} ORDER BY number"
        rows = check_types(self.connection.execute(query), int, int)
        [(passages,)] = self.connection.execute("SELECT COUNT(*) FROM passage")
        check_count("passages", sum(count for _, count in rows), passages)
        return tuple(number for number, _ in rows)

    @report_errors
    def entity_keys(self) -> Iterator[tuple[int, str]]:
        """Yield (primary key, entity key) of every entity, sorted by primary key.

        The entity key is the normalised name, or an id from the user's data.
        """
        rows = self.connection.execute(f"SELECT number, key FROM entity WHERE {format_check('entity')} ORDER BY number")
        while batch := check_types(rows.fetchmany(_KEYS_PER_BATCH), int, str):
            yield from batch

    @report_errors
    def entity_page(self, first: int, limit: int) -> tuple[list[str], int]:
        """Return the keys of at most ``limit`` entities in key order, from position ``first`` on, and the total number.

        The keys are not checked for damage here, because that would read those before ``first`` too.
        """
        rows = self.connection.execute("SELECT key FROM entity ORDER BY key LIMIT ? OFFSET ?", [limit, first])
        keys = [key for (key,) in check_types(rows, str)]
        [(total,)] = check_types(self.connection.execute("SELECT COUNT(*) FROM entity"), int)
        return keys, total

    @report_errors
    def entity_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (entity id, names) from the user's facts whose primary key is above ``after`` and at most ``last``.

        Only tuples (facts that the user supplied as data) name entities beside the id. Other entities are left out.
        """
        yield from select_entity_names(self.connection, after, last)

    @report_errors
    def rows(self, documents: Sequence[int], entities_after: int = 0) -> Iterator[StoredRows]:
        """Yield the passages, hyperedges and incidences of ``documents`` (primary keys) as arrays, in batches.

        Args:
            documents: Primary keys of the documents, ascending.
            entities_after: The arrays contain the keys of entities whose primary key is above this number.
        """
        sent: set[int] = set()
        for numbers in iterate_batches(documents, _DOCUMENTS_PER_BATCH):
            selections = [Selection(query, numbers, parameters) for query, parameters in _ROWS_OF_DOCUMENTS]
            passages, hyperedges, properties, incidences = self.connection.select_each(selections)
            check_types(passages, int, str, str, str, str, bytes, int)
            check_types(hyperedges, int, str, int, NUMBER, bytes, str, str, int)
            check_types(properties, str, str, str, str, int)
            dated = {id: _parse_validity(text) for id, text, *_ in properties if _HAS_BOUND.search(text)}
            dates = {id: match[1] for id, text, *_ in properties if (match := _DATE.search(text))}
            families = {
                id: find_family_terms(title, source, parse_metadata(text)) for id, text, title, source, *_ in properties
            }
            check_count("passages", sum(row[-1] for row in properties), len(passages))
            check_count("hyperedges", sum(row[-1] for row in passages), len(hyperedges))
            check_count("incidences", sum(row[-1] for row in hyperedges), len(incidences))
            pairs = parse_primary_keys([row[:2] for row in incidences]).reshape(-1, 2)
            entities = pairs[:, 0]
            new = sorted(set(entities[entities > entities_after].tolist()) - sent)
            sent.update(new)
            keys = f"SELECT number, key FROM entity WHERE number IN ({{}}) AND {format_check('entity')}"
            yield StoredRows(
                passage_numbers=parse_primary_keys([row[0] for row in passages]),
                passage_ids=[row[1] for row in passages],
                document_ids=[row[2] for row in passages],
                texts=[f"{row[3]}\n{row[4]}" for row in passages],
                document_dates=[dates.get(row[2], "") for row in passages],
                document_families=[families[row[2]] for row in passages],
                passage_vectors=parse_vectors([row[5] for row in passages], self._manifest),
                hyperedge_numbers=parse_primary_keys([row[0] for row in hyperedges]),
                hyperedge_ids=[row[1] for row in hyperedges],
                passage_of_hyperedge=parse_primary_keys([row[2] for row in hyperedges]),
                hyperedge_scores=parse_floats([row[3] for row in hyperedges]),
                hyperedge_vectors=parse_vectors([row[4] for row in hyperedges], self._manifest),
                passage_intervals=build_intervals(dated.get(row[2], UNBOUNDED) for row in passages),
                hyperedge_intervals=build_intervals(_parse_bounds(*row[5:7]) for row in hyperedges),
                incidence_entity=entities,
                incidence_hyperedge=pairs[:, 1],
                incidence_strength=parse_floats(_compute_strengths(incidences)),
                entity_keys=dict(check_types(self.connection.select_in(keys, new), int, str)),
            )

    @overload
    def get(self, record_type: type[RecordT], ids: Sequence[IdT]) -> dict[IdT, RecordT]: ...
    @overload
    def get(self, record_type: type[RecordT], ids: None = None) -> dict[str, RecordT]: ...
    @report_errors
    def get(self, record_type: type[RecordT], ids: Any = None) -> dict[Any, RecordT]:
        """Return records of one type in a dictionary by id (or primary key), in the order of ``ids``.

        ``ids`` are ids or primary keys; None stands for all records. Missing records are omitted.
        """
        query: _RecordQuery[RecordT] = _QUERIES[record_type]
        [rows] = self.connection.select_each([query.select(ids)])
        records = query.parse(self, rows)
        order = sorted(records) if ids is None else (id for id in dict.fromkeys(ids) if id in records)
        return {id: records[id] for id in order}

    @report_errors
    def get_together(
        self, ids: Mapping[type[Any], Sequence[str] | Sequence[int]], requests: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], Records], list[list[EntityIncidence]]]:
        """Return (records of each type with the listed ``ids``, incidences of an entity for each of ``requests``).

        A request is (entity, after, last): primary keys of the entity, of the hyperedge before a range, and of the last
        hyperedge of the range.
        """
        selections = [_QUERIES[record_type].select(requested) for record_type, requested in ids.items()]
        rows, incidences = self._select_with_incidences(selections, requests)
        parts = zip(ids, rows, strict=True)
        return {record_type: _QUERIES[record_type].parse(self, part) for record_type, part in parts}, incidences

    @abstractmethod
    def _select_with_incidences(
        self, selections: Sequence[Selection], requests: Sequence[tuple[int, int, int]]
    ) -> tuple[list[list[Row]], list[list[EntityIncidence]]]:
        """Return (rows of each selection, incidences of an entity for each of ``requests``), in one round trip.

        A request is (entity, after, last): primary keys of the entity, of the hyperedge before the range, and of the
        last hyperedge.
        """

    def _parse_indexed_documents(self, rows: Sequence[Row]) -> dict[str, IndexedDocument]:
        numbers = self.connection.select_in(_PASSAGES_OF_DOCUMENTS, [row[0] for row in rows])
        passages = self.get(IndexedPassage, sorted(number for (number,) in numbers))
        by_document = defaultdict(list)
        for _, item in sorted(passages.items()):
            by_document[item.passage.document_id].append(item)
        documents = {row[0]: parse_document(row[:-3]) for row in rows}
        return {
            id: IndexedDocument(documents[id], digest, tokens, tuple(by_document[id]), recorded)
            for id, digest, tokens, recorded in check_types([(row[0], *row[-3:]) for row in rows], str, str, int, str)
        }

    def _parse_indexed_passages(self, rows: Sequence[Row]) -> dict[str | int, IndexedPassage]:
        passages = parse_passages(row[3:] for row in rows)
        edge_rows = self.connection.select_in(_HYPEREDGES_OF_PASSAGES, [passage.id for passage in passages])
        hyperedges = defaultdict(list)
        for item in self._parse_indexed_hyperedges(edge_rows).values():
            hyperedges[item.hyperedge.passage_id].append(item)
        vectors = parse_vectors([row[2] for row in rows], self._manifest)
        return {
            row[0]: IndexedPassage(passage, row[1], vector, tuple(hyperedges[passage.id]))
            for row, passage, vector in zip(rows, passages, vectors, strict=True)
        }

    def _parse_hyperedges(self, rows: Sequence[Row]) -> dict[str | int, Hyperedge]:
        """Return hyperedges, with relations and arguments, by their id or primary key in the first column."""
        hyperedges = parse_hyperedges(row[1:] for row in rows)
        facts = [number for number, edge in hyperedges.items() if edge.kind is not HyperedgeKind.SEMANTIC_UNIT]
        hyperedges = add_arguments(hyperedges, self.connection.select_in(SELECT_TUPLES, facts))
        return {row[0]: hyperedges[row[1]] for row in rows}

    def _parse_indexed_hyperedges(self, rows: Sequence[Row]) -> dict[str | int, IndexedHyperedge]:
        """Return hyperedges with vectors and members, by their id or primary key in the first column."""
        hyperedges = self._parse_hyperedges(rows)
        edge_ids = {row[1]: hyperedges[row[0]].id for row in rows}
        incidences = defaultdict(list)
        types: tuple[type | tuple[type, ...], ...] = (int, *[str] * 5, NUMBER, int, NUMBER)
        for number, key, name, role, type, description, score, grounded, strength in check_types(
            self.connection.select_in(_HYPEREDGE_INCIDENCES, list(edge_ids)), *types
        ):
            incidences[number].append(
                Incidence(key, edge_ids[number], name, role, type, description, score, bool(grounded), strength)
            )
        for _, number, count, *_ in rows:
            check_count("incidences", count, len(incidences[number]))
        vectors = parse_vectors([row[3] for row in rows], self._manifest)
        return {
            row[0]: IndexedHyperedge(hyperedges[row[0]], tuple(incidences[row[1]]), vector)
            for row, vector in zip(rows, vectors, strict=True)
        }

    def _parse_hyperedge_fields(self, rows: Sequence[Row]) -> dict[str | int, HyperedgeFields]:
        checked = check_types(rows, (int, str), int, str)
        numbers, roles = [row[1] for row in checked], defaultdict(set)
        for number, role in check_types(
            chain(*(self.connection.select_in(each, numbers) for each in _HYPEREDGE_ROLES)), int, str
        ):
            roles[number].add(role)
        return {id: HyperedgeFields(kind, tuple(sorted(roles[number]))) for id, number, kind in checked}

    @report_errors
    def find(self, lookup: Lookup, values: Iterable[str]) -> dict[str, list[str]]:
        """Return record ids by value: for the lookup "passages by document", the passage ids of each document id.

        The ids are sorted. A value without records is left out.
        """
        pairs: Iterable[tuple[str, str]]
        if lookup == "documents by source":
            pairs = (
                (place, id)
                for place in values
                for first, after in _SOURCE_SEPARATORS
                for (id,) in self.connection.execute(self._documents_by_source, [place, place + first, place + after])
            )
        elif lookup == "documents by kind":
            pairs = (
                (kind, id) for kind in values for (id,) in self.connection.execute(_DOCUMENTS_BY_KIND, [kind, kind])
            )
        else:
            pairs = cast(list[tuple[str, str]], self.connection.select_in(_LOOKUPS[lookup], values))
        ids: defaultdict[str, set[str]] = defaultdict(set)
        for value, id in check_types(pairs, str, str):
            ids[value].add(id)
        return {value: sorted(group) for value, group in ids.items()}

    @report_errors
    def find_tuples(self, relation: str, conditions: Sequence[Condition]) -> list[str]:
        """Return the sorted ids of facts whose arguments satisfy all conditions, such as ``year >= 1990``.

        Only facts with the relation ``relation`` are returned; an empty relation stands for any.
        """
        numbers = find_tuples(self.connection, relation, conditions)
        rows = self.connection.select_in("SELECT id FROM hyperedge WHERE number IN ({})", numbers)
        return sorted(id for (id,) in check_types(rows, str))

    @report_errors
    def count(self, quantity: Count) -> dict[str, int]:
        """Return counts in a dictionary: hyperedges by kind, facts by relation, roles, or all records by type."""
        if quantity != "size":
            numbers = dict(check_types(self.connection.execute(_COUNTS[quantity]), str, int))
            if quantity == "kind" and (unknown := sorted(numbers.keys() - _KINDS)):
                raise DamageError(f"a hyperedge of the kind {unknown[0]!r}")
            return numbers
        tables = {"documents": "document", "passages": "passage", "entities": "entity"}
        tables |= {"hyperedges": "hyperedge", "incidences": "incidence"}
        sizes = {name: f"SELECT COUNT(*) FROM {table}" for name, table in tables.items()}
        sizes["tokens"] = "SELECT COALESCE(SUM(tokens), 0) FROM document"
        counts = {name: int(self.connection.execute(query).fetchall()[0][0]) for name, query in sizes.items()}
        return counts | {"disk_bytes": self._database.get_disk_bytes()}


_KINDS = frozenset(HyperedgeKind)

_HYPEREDGES = (
    f"SELECT {{key}}, {HYPEREDGE_COLUMNS} FROM hyperedge JOIN passage ON passage.number = hyperedge.passage "
    f"WHERE {{condition}} AND {format_check('hyperedge')} AND {format_check('passage')}"
)
"""The text of a hyperedge may be a span of the passage's text."""

_HYPEREDGES_IN_ORDER = f"{_HYPEREDGES} ORDER BY hyperedge.number"
_HYPEREDGES_OF_PASSAGES = _HYPEREDGES_IN_ORDER.format(key="hyperedge.id", condition="passage.id IN ({})")


def _parse_entities(_: RelationalReadTransaction, rows: Sequence[Row]) -> dict[str, Entity]:
    checked = check_types(rows, str, str, str, str, NUMBER, int)
    groups = groupby(sorted(checked, key=itemgetter(0)), key=itemgetter(0))
    return {key: Entity.from_labels(key, (row[1:] for row in group)) for key, group in groups}


def _parse_document_texts(_: RelationalReadTransaction, rows: Sequence[Row]) -> dict[str | int, DocumentText]:
    """Return the texts by passage, from rows of one passage each, or of all passages of a document each."""
    if not rows or len(rows[0]) == 3:
        return {key: DocumentText(id, text) for key, id, text in check_types(rows, (int, str), str, str)}
    texts: dict[str | int, DocumentText] = {}
    for first, passages, id, text in check_types(rows, int, int, str, str):
        document = DocumentText(id, text)
        for number in range(first, first + passages):
            texts[number] = document
    return texts


@dataclass(frozen=True, slots=True)
class _RecordQuery(Generic[RecordT]):
    """The query for records of one type, and the conversion of its rows to records.

    Attributes:
        query: SQL, in which ``{key}`` stands for the column of the ids or primary keys, and ``{condition}`` for a
            condition on this column.
        key: The column of the ids, such as ``passage.id``; the column of the primary keys is ``passage.number``.
        parse: Converts the rows to records by id or primary key, and reads further tables in the transaction.
        range_query: SQL for at least the records of a range of primary keys, from the first to the last, if reading
            them in order is faster than one by one; its rows are other columns of the same records.
    """

    query: str
    key: str
    parse: Callable[[RelationalReadTransaction, Sequence[Row]], dict[Any, RecordT]]
    range_query: str = ""

    def select(self, ids: Ids) -> Selection:
        """Return the query for the records with ``ids`` (ids or primary keys); None for all records.

        It may select other records too.
        """
        if ids and self.range_query:
            first, last = min(ids), max(ids)
            if isinstance(first, int) and isinstance(last, int) and last - first < 2 * len(ids):
                return Selection(self.range_query, None, (first, last))
        key = self.key.replace(".id", ".number") if ids and isinstance(ids[0], int) else self.key
        condition = "TRUE" if ids is None else f"{key} IN ({{}})"
        return Selection(self.query.format(key=key, condition=condition), ids)


_DOCUMENT_CONDITION = f"FROM document WHERE {{condition}} AND {format_check('document')}"
_PASSAGE_CONDITION = (
    "FROM passage JOIN document ON document.number = passage.document WHERE {condition} "
    f"AND {format_check('passage')}"
)

_QUERIES: Mapping[type, _RecordQuery[Any]] = {
    Document: _RecordQuery(
        f"SELECT {DOCUMENT_COLUMNS} {_DOCUMENT_CONDITION} AND {TEXT_CHECK}",
        "document.id",
        lambda _, rows: {row[0]: parse_document(row) for row in rows},
    ),
    IndexedDocument: _RecordQuery(
        f"SELECT {DOCUMENT_COLUMNS}, digest, tokens, recorded {_DOCUMENT_CONDITION} AND {TEXT_CHECK}",
        "document.id",
        RelationalReadTransaction._parse_indexed_documents,
    ),
    StoredDocument: _RecordQuery(
        "SELECT id, digest, source FROM document WHERE {condition}",
        "document.id",
        lambda _, rows: {row[0]: StoredDocument(*row[1:]) for row in check_types(rows, str, str, str)},
    ),
    Origin: _RecordQuery(
        f"SELECT id, title, source, url, metadata, recorded {_DOCUMENT_CONDITION}",
        "document.id",
        lambda _, rows: {
            row[0]: Origin(row[1], row[2], row[3], parse_metadata(row[4]), row[5])
            for row in check_types(rows, *[str] * 6)
        },
    ),
    DocumentSummary: _RecordQuery(
        f"SELECT id, title, source, url, metadata, recorded, tokens, passages {_DOCUMENT_CONDITION}",
        "document.id",
        lambda _, rows: {
            row[0]: DocumentSummary(Origin(row[1], row[2], row[3], parse_metadata(row[4]), row[5]), row[6], row[7])
            for row in check_types(rows, *[str] * 6, int, int)
        },
    ),
    Pagination: _RecordQuery(
        f"SELECT id, places {_DOCUMENT_CONDITION}",
        "document.id",
        lambda _, rows: {id: Pagination(parse_places(places)) for id, places in check_types(rows, str, str)},
    ),
    Passage: _RecordQuery(
        f"SELECT {{key}}, {PASSAGE_COLUMNS} {_PASSAGE_CONDITION}",
        "passage.id",
        lambda _, rows: dict(zip((row[0] for row in rows), parse_passages(row[1:] for row in rows), strict=True)),
    ),
    IndexedPassage: _RecordQuery(
        f"SELECT {{key}}, passage.digest, passage.vector, {PASSAGE_COLUMNS} {_PASSAGE_CONDITION}",
        "passage.id",
        RelationalReadTransaction._parse_indexed_passages,
    ),
    DocumentText: _RecordQuery(
        "SELECT {key}, document.id, document.text FROM passage JOIN document ON document.number = passage.document "
        "WHERE {condition}",
        "passage.id",
        _parse_document_texts,
        "SELECT COALESCE((SELECT MIN(number) FROM passage WHERE document = document.number), 0), passages, id, text "
        "FROM document WHERE number BETWEEN (SELECT document FROM passage WHERE number >= ? ORDER BY number LIMIT 1) "
        "AND (SELECT document FROM passage WHERE number <= ? ORDER BY number DESC LIMIT 1)",
    ),
    Hyperedge: _RecordQuery(_HYPEREDGES, "hyperedge.id", RelationalReadTransaction._parse_hyperedges),
    IndexedHyperedge: _RecordQuery(
        _HYPEREDGES_IN_ORDER, "hyperedge.id", RelationalReadTransaction._parse_indexed_hyperedges
    ),
    HyperedgeFields: _RecordQuery(
        f"SELECT {{key}}, number, kind FROM hyperedge WHERE {{condition}} AND {format_check('hyperedge')}",
        "hyperedge.id",
        RelationalReadTransaction._parse_hyperedge_fields,
    ),
    Entity: _RecordQuery(_ENTITY_INCIDENCES, "entity.key", _parse_entities),
    HyperedgeKind: _RecordQuery(
        _SELECT_KINDS, "kind", lambda _, rows: {kind: HyperedgeKind(kind) for (kind,) in check_types(rows, str)}
    ),
}


@report_unparsable
def _parse_validity(metadata: str) -> Interval:
    return parse_interval(parse_metadata(metadata))


_parse_bounds = report_unparsable(parse_bounds)


def _compute_strengths(incidences: Sequence[tuple[Any, ...]]) -> list[float]:
    """Return how certainly the passage is about the entity of each incidence, in [0, 1]; -1 for common words."""
    is_name = cache(is_capitalized_name)
    return [row[2] if row[2] or is_name(row[3]) else IN_COMMON_WORDS for row in incidences]
