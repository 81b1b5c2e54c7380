"""Lookups in a store that are composed of the methods of :class:`polyad.protocols.store.ReadTransaction`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeVar

from polyad.errors import IndexMismatchError, NotFoundError
from polyad.model import (
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
    Statistics,
    Usage,
)
from polyad.protocols.store import Manifest, Store, StoredDocument

RecordT = TypeVar("RecordT")

_HINTS = {
    "document": "`polyad list documents` prints the ids",
    "passage": "`polyad search` prints ids of passages, such as 'handbook.pdf#0007'",
    "hyperedge": "`polyad list hyperedges --like TEXT` prints ids and texts",
    "entity": "`polyad list entities --like NAME` prints similar names",
}
_RECORD_NAMES: dict[type, str] = {
    **dict.fromkeys((Document, DocumentSummary, IndexedDocument, Origin, Pagination, StoredDocument), "document"),
    **dict.fromkeys((Passage, IndexedPassage), "passage"),
    **dict.fromkeys((Hyperedge, IndexedHyperedge), "hyperedge"),
    Entity: "entity",
}

_PASSAGES_PER_BATCH = 1000
"""Passages in memory while hyperedges are counted."""

_MAX_PRIMARY_KEY = 2**62
"""An upper bound of all primary keys."""


def get_all(store: Store, record_type: type[RecordT], ids: Sequence[str] | None = None) -> list[RecordT]:
    """Return records of one type, such as ``Document``, in the order of ``ids``; all records if ``ids`` is None.

    Raises:
        NotFoundError: an id does not exist.
    """
    with store.read_transaction() as transaction:
        if ids is None:
            return list(transaction.get(record_type).values())
        records = transaction.get(record_type, ids)
    require_ids(_RECORD_NAMES[record_type], ids, records)
    return [records[id] for id in ids]


def require_ids(record_name: str, ids: Iterable[str], existing: Container[str]) -> None:
    """Raise NotFoundError if an id of a record (``record_name``) is not in ``existing``; name the first missing id."""
    missing = [id for id in ids if id not in existing]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise NotFoundError(f"no {record_name} {missing[0]!r} in this index{more}; {_HINTS[record_name]}")


def get_version(store: Store) -> int:
    """Return the current version of a store, a number that grows with every change of documents."""
    with store.read_transaction() as transaction:
        return transaction.version


def get_digests(store: Store, ids: Sequence[str] | None = None) -> dict[str, str]:
    """Return the content hash (digest) of documents in a dictionary by id; of all documents if ``ids`` is None."""
    with store.read_transaction() as transaction:
        documents = transaction.get(StoredDocument, ids) if ids is not None else transaction.get(StoredDocument)
    return {id: documents[id].digest for id in sorted(documents)}


def get_sources(store: Store, places: Iterable[str] | None = None) -> dict[str, str]:
    """Return the source (file or URL) of each document that was read from ``places``, in a dictionary by document id.

    Args:
        store: The index.
        places: Files and folders that documents were read from; None for all documents.
    """
    with store.read_transaction() as transaction:
        if places is None:
            documents = transaction.get(StoredDocument)
        else:
            groups = transaction.find("documents by source", places).values()
            documents = transaction.get(StoredDocument, sorted({id for group in groups for id in group}))
    return {id: document.source for id, document in documents.items()}


def get_kinds(store: Store) -> set[HyperedgeKind]:
    """Return the set of hyperedge kinds in the index: semantic unit (sentences), extracted fact or tuple (data)."""
    with store.read_transaction() as transaction:
        return set(transaction.get(HyperedgeKind).values())


def get_document_kinds(store: Store, kinds: Iterable[HyperedgeKind]) -> dict[str, HyperedgeKind]:
    """Return the hyperedge kind (fact, semantic unit, tuple) of documents whose kind is in ``kinds``, by document id.

    The kind of a document is that of its first hyperedge.
    """
    with store.read_transaction() as transaction:
        groups = transaction.find("documents by kind", kinds)
    return {id: HyperedgeKind(kind) for kind, ids in groups.items() for id in ids}


def get_document_passages(store: Store, document_ids: Sequence[str]) -> list[IndexedPassage]:
    """Return the passages of documents, sorted by id, with hyperedges and vectors; unknown documents add none."""
    with store.read_transaction() as transaction:
        groups = transaction.find("passages by document", document_ids).values()
        return list(transaction.get(IndexedPassage, sorted(id for group in groups for id in group)).values())


def count_rows(store: Store, document_ids: Sequence[str]) -> tuple[int, int]:
    """Return the number of passages and the number of hyperedges of documents; unknown documents count as 0."""
    hyperedges = 0
    with store.read_transaction() as transaction:
        passages = [id for group in transaction.find("passages by document", document_ids).values() for id in group]
        for start in range(0, len(passages), _PASSAGES_PER_BATCH):
            batch = transaction.get(IndexedPassage, passages[start : start + _PASSAGES_PER_BATCH])
            hyperedges += sum(len(item.hyperedges) for item in batch.values())
    return len(passages), hyperedges


def find_passages_by_digest(store: Store, digests: Sequence[str]) -> dict[str, IndexedPassage]:
    """Return for each content hash (digest) a stored passage of this hash, with hyperedges and vectors.

    The passage with the lowest id is returned; unknown digests are omitted.
    """
    with store.read_transaction() as transaction:
        groups = transaction.find("passages by digest", digests).values()
        passages = transaction.get(IndexedPassage, [group[0] for group in groups])
    return {passage.digest: passage for passage in passages.values()}


def find_duplicates(store: Store, document_ids: Sequence[str]) -> dict[str, str]:
    """Return for each document the id of an earlier document with the same title and text.

    Documents without a duplicate are omitted.
    """
    with store.read_transaction() as transaction:
        return {id: group[0] for id, group in transaction.find("duplicates by document", document_ids).items()}


def get_incidences(store: Store, hyperedge_ids: Sequence[str]) -> dict[str, list[Incidence]]:
    """Return the members (entities with roles) of each hyperedge, in a dictionary by hyperedge id.

    Members are sorted by entity key and role. An unknown hyperedge has no members.
    """
    with store.read_transaction() as transaction:
        items = transaction.get(IndexedHyperedge, hyperedge_ids)
    return {id: list(items[id].incidences) if id in items else [] for id in hyperedge_ids}


def get_hyperedge_ids(store: Store, entity_key: str) -> list[str]:
    """Return the sorted ids of the hyperedges that contain an entity; an empty list for an unknown entity."""
    with store.read_transaction() as transaction:
        return transaction.find("hyperedges by entity", [entity_key]).get(entity_key, [])


def find_entity_ids(store: Store, name: str) -> list[str]:
    """Return the sorted ids of entities to which the user's tuples give ``name`` beside the id.

    ``name`` must be normalised by :func:`polyad.text.words.normalize_value`.
    """
    with store.read_transaction() as transaction:
        return sorted({id for id, names in transaction.entity_names(0, _MAX_PRIMARY_KEY) if name in names})


def are_vectors_replaced(store: Store) -> bool:
    """Return whether all vectors have been replaced by those of another embedder since the index was opened."""
    try:
        with store.read_transaction() as transaction:
            transaction.changes(transaction.version)
    except IndexMismatchError:
        return True
    return False


def get_statistics(store: Store) -> Statistics:
    """Return the sizes of an index, its language-model usage, and the settings of its creation."""
    with store.read_transaction() as transaction:
        sizes, kinds = transaction.count("size"), transaction.count("kind")
    return Statistics(
        **sizes,
        cost=store.charge(Usage()).cost,
        kinds={HyperedgeKind(kind): count for kind, count in kinds.items()},
        files={},
        settings={"embedder": store.manifest.embedder, "mentions": store.manifest.mentions},
    )


OLD_FORMAT_REMEDY = (
    "export the index with the version of polyad that wrote it, and import the file into another --store: polyad "
    "export --out FILE (retractions, aliases and disabled documents are in the file); or index the documents again, "
    "without these corrections"
)
"""What to do with an index whose format is older than that of this version."""


def check_manifest(manifest: Manifest, *, embedder: str | None = None, mentions: str | None = None) -> None:
    """Raise IndexMismatchError if the index was built with another embedder or mention extractor than requested.

    Args:
        manifest: Manifest of the index.
        embedder: Name of the requested embedder; None for any.
        mentions: Name of the requested mention extractor; None for any.
    """
    directory = manifest.place or manifest.directory
    place = f"the index in {str(directory)!r}" if directory else "the index"
    for what, requested, actual in (
        ("embedder", embedder, manifest.embedder),
        ("mention extractor", mentions, manifest.mentions),
    ):
        if requested not in (None, actual):
            raise IndexMismatchError(
                f"{place} was built with the {what} {actual!r}, not {requested!r}; use that one, or index into another "
                "--store"
            )
