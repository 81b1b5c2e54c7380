"""A store in the memory of this process, for tests and small indexes that need not survive the process: ``memory://NAME``."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from polyad import model
from polyad.errors import IndexMismatchError, StoreError, StoreNotFoundError, VersionConflictError
from polyad.model import HyperedgeKind, IndexedDocument, IndexedHyperedge, IndexedPassage
from polyad.protocols import store as protocol
from polyad.protocols.lookups import check_manifest, require_ids
from polyad.protocols.store import EntityIncidence, Manifest, RecordT
from polyad.text.literals import is_match
from polyad.text.validity import Interval, parse_bounds, parse_interval
from polyad.text.versions import find_family_terms
from polyad.text.words import is_capitalized_name, normalize_value


@dataclass(frozen=True)
class _State:
    """One immutable version of an in-memory index, with all documents and primary keys.

    Attributes:
        version: The store version.
        documents: Document, store version of its last write, and primary key of its first passage and first hyperedge,
            by primary key.
        keys: Primary key of each entity by entity key, in the order of primary keys.
        removed: Version, first and last passage of removed documents.
        next: Next primary key of documents, passages, hyperedges and entities.
    """

    version: int = 0
    documents: Mapping[int, tuple[IndexedDocument, int, int, int]] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    removed: tuple[tuple[int, int, int], ...] = ()
    next: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(("document", "passage", "edge", "entity"), 1))

    @cached_property
    def items(self) -> list[IndexedDocument]:
        """All stored documents with passages, hyperedges and vectors, in the order of primary keys."""
        return [item for item, *_ in self.documents.values()]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The primary key of each document, in a dictionary keyed by document id."""
        return {item.document.id: number for number, (item, *_) in self.documents.items()}

    @cached_property
    def passages(self) -> dict[int, IndexedPassage]:
        """All passages of the index, in a dictionary keyed by primary key."""
        return {
            number: passage
            for item, _, first, _ in self.documents.values()
            for number, passage in enumerate(item.passages, first)
        }

    @cached_property
    def edges(self) -> dict[int, IndexedHyperedge]:
        """All hyperedges of the index, in a dictionary keyed by primary key."""
        return {
            number: edge
            for item, _, _, first in self.documents.values()
            for number, edge in enumerate((edge for passage in item.passages for edge in passage.hyperedges), first)
        }

    def without_document(self, document_id: str, version: int) -> _State:
        """Return a copy of the state without a document, and without entities that only this document mentions."""
        number = self.numbers[document_id]
        item, _, first, _ = self.documents[number]
        documents = {key: value for key, value in self.documents.items() if key != number}
        removed = (version, first, first + len(item.passages) - 1)
        state = replace(self, documents=documents, removed=(*self.removed, removed) if item.passages else self.removed)
        used = {part.entity_key for edge in state.edges.values() for part in edge.incidences}
        return replace(state, keys={key: value for key, value in self.keys.items() if key in used})

    def with_document(self, item: IndexedDocument, version: int) -> _State:
        """Return a copy of the state with one more document, which is recorded as written at ``version``."""
        edges = [edge for passage in item.passages for edge in passage.hyperedges]
        ids = [passage.passage.id for passage in item.passages] + [edge.hyperedge.id for edge in edges]
        existing = {p.passage.id for p in self.passages.values()} | {e.hyperedge.id for e in self.edges.values()}
        if len(set(ids)) < len(ids) or existing & set(ids):
            raise StoreError(f"the document {item.document.id!r} has a passage or hyperedge whose id exists")
        names = [f"{part.entity_key}{part.name}" for edge in edges for part in edge.incidences]
        # Raise UnicodeEncodeError for a lone surrogate, as a database does.
        "".join([item.document.id, item.document.title, item.document.text, *names]).encode()
        new = sorted({part.entity_key for edge in edges for part in edge.incidences} - self.keys.keys())
        numbers = self.next
        sizes = {"document": 1, "passage": len(item.passages), "edge": len(edges), "entity": len(new)}
        row = (item, version, numbers["passage"], numbers["edge"])
        return replace(
            self,
            documents={**self.documents, numbers["document"]: row},
            keys={**self.keys, **{key: number for number, key in enumerate(new, numbers["entity"])}},
            next={name: number + sizes[name] for name, number in numbers.items()},
        )


class MemoryReadTransaction:
    """A read transaction of an in-memory index.

    It implements :class:`polyad.protocols.store.ReadTransaction`.

    Args:
        state: The state that all reads see.
        dimension: Length of the vectors.
    """

    def __init__(self, state: _State, dimension: int) -> None:
        self._state = state
        self._dimension = dimension

    @property
    def version(self) -> int:
        """The store version that all reads see, which grows with each write of documents."""
        return self._state.version

    def changes(self, since: int | None = None) -> protocol.Changes:
        """Return the documents written and deleted after version ``since``; all documents if ``since`` is unknown."""
        if since is None or since > self.version:
            return protocol.Changes(self.version, (), tuple(self._state.documents), is_complete=True)
        removed = tuple((first, last) for version, first, last in self._state.removed if version > since)
        documents = tuple(number for number, (_, version, *_) in self._state.documents.items() if version > since)
        return protocol.Changes(self.version, removed, documents)

    def rows(self, documents: Sequence[int], entities_after: int = 0) -> Iterator[protocol.StoredRows]:
        """Yield the passages, hyperedges and incidences of ``documents`` (primary keys) as arrays, in batches.

        The arrays contain the keys of entities whose primary key is above ``entities_after``.
        """
        passages: list[tuple[int, IndexedPassage]] = []
        edges: list[tuple[int, int, IndexedHyperedge]] = []
        intervals: list[Interval] = []
        dates: list[str] = []
        families: list[Sequence[str]] = []
        for item, _, passage_number, edge_number in (self._state.documents[number] for number in documents):
            family = find_family_terms(item.document.title, item.document.source, item.document.metadata)
            for number, passage in enumerate(item.passages, passage_number):
                passages.append((number, passage))
                intervals.append(parse_interval(item.document.metadata))
                dates.append(str(item.document.metadata.get("date") or ""))
                families.append(family)
                edges += [(edge_number + place, number, edge) for place, edge in enumerate(passage.hyperedges)]
                edge_number += len(passage.hyperedges)
        if not documents:
            return
        texts, units = [one.passage for _, one in passages], [edge.hyperedge for *_, edge in edges]
        incidences = [(number, edge.hyperedge.kind, part) for number, _, edge in edges for part in edge.incidences]
        keys = self._state.keys
        new = {keys[part.entity_key]: part.entity_key for *_, part in incidences}
        yield protocol.StoredRows(
            passage_numbers=_build_integers(number for number, _ in passages),
            passage_ids=[passage.id for passage in texts],
            document_ids=[passage.document_id for passage in texts],
            texts=[f"{passage.title}\n{passage.text}" for passage in texts],
            document_dates=dates,
            document_families=families,
            passage_vectors=self._stack([one.vector for _, one in passages]),
            hyperedge_numbers=_build_integers(number for number, *_ in edges),
            hyperedge_ids=[unit.id for unit in units],
            passage_of_hyperedge=_build_integers(passage for _, passage, _ in edges),
            hyperedge_scores=np.array([unit.score for unit in units], dtype=np.float32),
            hyperedge_vectors=self._stack([edge.vector for *_, edge in edges]),
            passage_intervals=protocol.build_intervals(intervals),
            hyperedge_intervals=protocol.build_intervals(parse_bounds(u.valid_from, u.valid_to) for u in units),
            incidence_entity=_build_integers(keys[part.entity_key] for *_, part in incidences),
            incidence_hyperedge=_build_integers(number for number, *_ in incidences),
            incidence_strength=np.array([_get_strength(kind, part) for _, kind, part in incidences], dtype=np.float32),
            entity_keys={number: key for number, key in new.items() if number > entities_after},
        )

    def _stack(self, vectors: Sequence[model.FloatArray]) -> model.FloatArray:
        return np.array(vectors, dtype=np.float32).reshape(-1, self._dimension)

    def entity_keys(self) -> Iterator[tuple[int, str]]:
        """Yield (primary key, entity key) of every entity, sorted by primary key.

        The entity key is the normalised name, or an id from the user's data.
        """
        return iter([(number, key) for key, number in self._state.keys.items()])

    def entity_page(self, first: int, limit: int) -> tuple[list[str], int]:
        """Return at most ``limit`` entity keys, in their order, from position ``first`` on, and the total number."""
        return sorted(self._state.keys)[first : first + limit], len(self._state.keys)

    def entity_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (entity id, names) from the user's facts whose primary key is above ``after`` and at most ``last``.

        Only tuples (facts that the user supplied as data) name entities beside the id. Other entities are left out.
        """
        edges = (edge.hyperedge for number, edge in self._state.edges.items() if after < number <= last)
        arguments = (one for edge in edges for one in edge.arguments)
        pairs = {(normalize_value(one.value), tuple(map(normalize_value, one.names))) for one in arguments if one.names}
        return iter(sorted(pairs))

    def get(self, record_type: type[RecordT], ids: Any = None) -> dict[Any, RecordT]:
        """Return records of one type in a dictionary by id (or primary key), in the order of ``ids``.

        ``ids`` are ids or primary keys; None stands for all records. Missing records are omitted.
        """
        records = self._get_all(record_type, by_number=bool(ids) and isinstance(ids[0], int))
        return {id: records[id] for id in (sorted(records) if ids is None else ids) if id in records}

    def get_together(
        self, ids: Mapping[type[Any], Sequence[str] | Sequence[int]], requests: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], dict[Any, Any]], list[list[EntityIncidence]]]:
        """Return (records of each type with the listed ``ids``, incidences of an entity for each of ``requests``).

        A request is (entity, after, last): primary keys of the entity, of the hyperedge before a range, and of the last
        hyperedge of the range.
        """
        records = {record_type: self.get(record_type, requested) for record_type, requested in ids.items()}
        return records, self._read_incidences(requests)

    def _get_all(self, record_type: type, by_number: bool) -> dict[Any, Any]:
        state, items = self._state, self._state.items
        passages = {n if by_number else p.passage.id: p for n, p in state.passages.items()}
        edges = {n if by_number else e.hyperedge.id: e for n, e in state.edges.items()}
        if record_type is model.Entity:
            groups = self._read_incidences([(number, 0, state.next["edge"]) for number in state.keys.values()])
            labels = {key: [(*row[1:], 1) for row in group] for key, group in zip(state.keys, groups, strict=True)}
            return {key: model.Entity.from_labels(key, group) for key, group in labels.items() if group}
        documents = {one.document.id: one for one in items}
        records: dict[type, dict[Any, Any]] = {
            model.Passage: {id: passage.passage for id, passage in passages.items()},
            IndexedPassage: {**passages},
            protocol.DocumentText: {
                id: protocol.DocumentText(
                    passage.passage.document_id, documents[passage.passage.document_id].document.text
                )
                for id, passage in passages.items()
            },
            model.Hyperedge: {id: edge.hyperedge for id, edge in edges.items()},
            IndexedHyperedge: {**edges},
            protocol.HyperedgeFields: {id: _get_fields(edge) for id, edge in edges.items()},
            HyperedgeKind: {edge.hyperedge.kind: edge.hyperedge.kind for edge in edges.values()},
            model.Document: {id: one.document for id, one in documents.items()},
            IndexedDocument: {
                id: replace(one, document=replace(one.document, sections=(), arguments=(), relation=""))
                for id, one in documents.items()
            },
            protocol.StoredDocument: {
                id: protocol.StoredDocument(one.digest, one.document.source) for id, one in documents.items()
            },
            model.Pagination: {id: model.Pagination(one.document.places) for id, one in documents.items()},
            model.Origin: {id: _build_origin(one) for id, one in documents.items()},
            model.DocumentSummary: {
                id: model.DocumentSummary(_build_origin(one), one.tokens, len(one.passages))
                for id, one in documents.items()
            },
        }
        return records[record_type]

    def find(self, lookup: protocol.Lookup, values: Iterable[str]) -> dict[str, list[str]]:
        """Return record ids by value: for the lookup "passages by document", the passage ids of each document id.

        The ids are sorted. A value without records is left out.
        """
        requested, ids = dict.fromkeys(values), defaultdict(set)
        for value, id in self._list_pairs(lookup, requested):
            ids[value].add(id)
        return {value: sorted(ids[value]) for value in requested if value in ids}

    def _list_pairs(self, lookup: protocol.Lookup, values: Iterable[str]) -> Iterable[tuple[str, str]]:
        items, edges, passages = self._state.items, self._state.edges.values(), self._state.passages.values()
        if lookup == "documents by source":
            prefixes = {value: (f"{value}/", f"{value}:") for value in values}
            sources = [(one.document.source, one.document.id) for one in items]
            return [(v, id) for v in values for source, id in sources if source == v or source.startswith(prefixes[v])]
        if lookup == "documents by kind":
            edges_of = ((item, [edge for part in item.passages for edge in part.hyperedges]) for item in items)
            return [(item_edges[0].hyperedge.kind, item.document.id) for item, item_edges in edges_of if item_edges]
        if lookup == "duplicates by document":
            contents = [(one.document.title, one.document.text) for one in items]
            first = {content: one.document.id for one, content in reversed([*zip(items, contents, strict=True)])}
            pairs = ((item, first[content]) for item, content in zip(items, contents, strict=True))
            return [
                (item.document.id, id)
                for item, id in pairs
                if id != item.document.id and item.passages and item.passages[-1].digest
            ]
        if lookup == "hyperedges by entity":
            return [(part.entity_key, edge.hyperedge.id) for edge in edges for part in edge.incidences]
        by_digest = lookup == "passages by digest"
        return [(one.digest if by_digest else one.passage.document_id, one.passage.id) for one in passages]

    def find_tuples(self, relation: str, conditions: Sequence[model.Condition]) -> list[str]:
        """Return the sorted ids of facts whose arguments satisfy all conditions, such as ``year >= 1990``.

        Only facts with the relation ``relation`` are returned; an empty relation stands for any.
        """
        edges = (edge.hyperedge for edge in self._state.edges.values())
        tuples = (e for e in edges if (e.relation == relation if relation else _has_relation(e)))
        return sorted(edge.id for edge in tuples if is_match(conditions, edge.arguments))

    def _read_incidences(self, requests: Sequence[tuple[int, int, int]]) -> list[list[EntityIncidence]]:
        rows = defaultdict(list)
        for number, edge in self._state.edges.items():
            for part in edge.incidences:
                row = (number, part.name, part.type, part.description, part.score)
                rows[self._state.keys[part.entity_key]].append(row)
        return [[row for row in rows[entity] if after < row[0] <= last] for entity, after, last in requests]

    def count(self, quantity: protocol.Count) -> dict[str, int]:
        """Return counts in a dictionary: hyperedges by kind, facts by relation, roles, or all records by type."""
        edges = [edge.hyperedge for edge in self._state.edges.values()]
        roles = [part.role for edge in self._state.edges.values() for part in edge.incidences]
        if quantity == "size":
            sizes = {"documents": len(self._state.items), "passages": len(self._state.passages)}
            sizes |= {"entities": len(self._state.keys), "hyperedges": len(edges), "incidences": len(roles)}
            return sizes | {"tokens": sum(one.tokens for one in self._state.items), "disk_bytes": 0}
        values: dict[str, list[str]] = {
            "kind": [edge.kind for edge in edges],
            "relation": [edge.relation for edge in edges if _has_relation(edge)],
            "role": [role for role in (*roles, *(one.role for edge in edges for one in edge.arguments)) if role],
        }
        return dict(sorted(Counter(values[quantity]).items()))


def _build_integers(numbers: Iterable[int]) -> model.IntArray:
    return np.fromiter(numbers, dtype=np.int64)


def _has_relation(edge: model.Hyperedge) -> bool:
    return edge.kind is HyperedgeKind.TUPLE or bool(edge.relation)


def _build_origin(item: IndexedDocument) -> model.Origin:
    document = item.document
    return model.Origin(document.title, document.source, document.url, document.metadata, item.recorded)


def _get_fields(edge: IndexedHyperedge) -> protocol.HyperedgeFields:
    roles = {part.role for part in edge.incidences} | {one.role for one in edge.hyperedge.arguments}
    return protocol.HyperedgeFields(edge.hyperedge.kind, tuple(sorted(roles - {""})))


def _get_strength(kind: HyperedgeKind, part: model.Incidence) -> float:
    if part.role == model.SUBJECT or kind is HyperedgeKind.TUPLE:
        return part.strength
    return 0.0 if is_capitalized_name(part.name) else protocol.IN_COMMON_WORDS


@dataclass
class _Contents:
    """The contents of an in-memory index, which all :class:`MemoryStore` objects of the same name share."""

    manifest: Manifest
    state: _State = field(default_factory=_State)
    values: dict[str, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    usage: model.Usage = field(default_factory=model.Usage)
    writing: threading.Lock = field(default_factory=threading.Lock)
    updating: threading.Lock = field(default_factory=threading.Lock)


_INDEXES: dict[str, _Contents] = {}


class MemoryStore:
    """A store that keeps an index in the memory of this process.

    It implements :class:`polyad.protocols.store.Store`.

    All handles of one name share the index, which lives as long as the process. Reads scan all documents.

    Args:
        contents: The shared contents of the index.
    """

    def __init__(self, contents: _Contents) -> None:
        self._contents = contents
        self._manifest = contents.manifest
        self._is_closed = False
        self._transactions = threading.local()

    @classmethod
    def open(cls, place: str | Path, manifest: Manifest | None = None, *, replies: Path | None = None) -> MemoryStore:  # noqa: ARG003
        """Open the in-memory index with the name ``place``; if there is none, create it with ``manifest``.

        Cached replies are always part of the index: ``replies`` is ignored.
        """
        name = str(place)
        if name not in _INDEXES:
            if manifest is None:
                raise StoreNotFoundError(f"no index in {name!r} in this process; index documents into it first")
            _INDEXES.setdefault(name, _Contents(manifest))
        store = cls(_INDEXES[name])
        if manifest is not None:
            check_manifest(store.manifest, embedder=manifest.embedder, mentions=manifest.mentions)
        return store

    @property
    def manifest(self) -> Manifest:
        """The properties of the index that are fixed at its creation, such as the embedder's name."""
        return self._manifest

    def put(
        self,
        *documents: IndexedDocument,
        values: protocol.Values = protocol.NO_VALUES,
        expected_version: int | None = None,
        expected_values: protocol.Values = protocol.NO_VALUES,
        values_version: int | None = None,
    ) -> None:
        """Store documents and key-value pairs in one transaction; a document replaces a stored one with the same id."""
        with self._contents.writing:
            before = state = self._contents.state
            if expected_version not in (None, state.version):
                raise VersionConflictError(f"version {state.version} where {expected_version} was expected")
            compared = {} if values_version == state.version else expected_values
            if any(self.get_values(namespace) != expected for namespace, expected in compared.items()):
                raise VersionConflictError("the expected values were changed meanwhile")
            for item in documents:
                if item.document.id in state.numbers:
                    state = state.without_document(item.document.id, before.version + 1)
                state = state.with_document(item, before.version + 1)
            if documents or values:
                self._commit(state, values)

    def remove(self, document_ids: Sequence[str], *, values: protocol.Values = protocol.NO_VALUES) -> None:
        """Delete documents with all their rows, and store the key-value pairs ``values``, in one transaction.

        Nothing is deleted, and NotFoundError is raised, if an id does not exist.
        """
        with self._contents.writing:
            state = self._contents.state
            require_ids("document", document_ids, state.numbers)
            for id in sorted(set(document_ids)):
                state = state.without_document(id, self._contents.state.version + 1)
            self._commit(state, values)

    def replace_vectors(
        self,
        manifest: Manifest,
        embed: Callable[[Sequence[IndexedDocument]], tuple[Sequence[IndexedDocument], protocol.Values]],
    ) -> None:
        """Replace all documents by copies with new vectors from ``embed``, and the manifest, in one transaction."""
        with self._contents.writing:
            state = self._contents.state
            documents, values = embed(state.items)
            for item in documents:
                state = state.without_document(item.document.id, state.version + 1).with_document(
                    item, state.version + 1
                )
            self._contents.manifest = self._manifest = manifest
            self._commit(
                state, {**{name: dict.fromkeys(self.get_values(name)) for name in protocol.VECTOR_NAMESPACES}, **values}
            )

    def _commit(self, state: _State, values: protocol.Values) -> None:
        before = self._contents.state
        self.put_values(protocol.ENTITY_VECTORS, dict.fromkeys(before.keys.keys() - state.keys.keys()))
        replaced = set(before.numbers.items()) - set(state.numbers.items())
        for namespace in protocol.DOCUMENT_NAMESPACES:
            self.put_values(namespace, {id: None for id, _ in replaced})
        for namespace in values:
            self.put_values(namespace, values[namespace])
        self._contents.state = replace(state, version=self._contents.state.version + 1)

    @contextmanager
    def read_transaction(self) -> Iterator[MemoryReadTransaction]:
        """Open a read transaction: all reads in the ``with`` block see one store version."""
        if self._is_closed:
            raise StoreError("the index was closed; open it again")
        if self._contents.manifest != self._manifest:
            raise IndexMismatchError("the vectors of the index were replaced since it was opened; open it again")
        outer: MemoryReadTransaction | None = getattr(self._transactions, "current", None)
        current = outer or MemoryReadTransaction(self._contents.state, self.manifest.dimension)
        self._transactions.current = current
        try:
            yield current
        finally:
            self._transactions.current = outer

    def list_namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces (groups of key-value pairs) that have values."""
        with self._contents.updating:
            return sorted(namespace for namespace, values in self._contents.values.items() if values)

    def charge(self, usage: model.Usage) -> model.Usage:
        """Add language-model usage (tokens, cost) to the total of the index, and return the total."""
        with self._contents.updating:
            self._contents.usage += usage
            return self._contents.usage

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        with self._contents.updating:
            values = self._contents.values[namespace]
            return {key: values[key] for key in (list(values) if keys is None else keys) if key in values}

    def put_values(
        self,
        namespace: str,
        values: Mapping[str, bytes | None] | None,
        *,
        is_optional: bool = False,  # noqa: ARG002
    ) -> None:
        """Store the key-value pairs ``values`` in a namespace; a key whose value is None is deleted.

        ``values=None`` deletes all keys of the namespace.
        """
        with self._contents.updating:
            merged = {**self._contents.values[namespace], **values} if values is not None else {}
            self._contents.values[namespace] = {key: value for key, value in merged.items() if value is not None}

    def close(self) -> None:
        """Close this store object; the index stays in memory."""
        self._is_closed = True
