"""Protocols of stores (databases that hold an index), and the records that stores return."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

import numpy as np

from polyad.model import Condition, FloatArray, IndexedDocument, IntArray, TimeArray, Usage

RecordT = TypeVar("RecordT")
"""A record type of :meth:`ReadTransaction.get`."""

IdT = TypeVar("IdT", str, int)
"""An id, or the primary key of a passage or hyperedge."""

IN_COMMON_WORDS = -1.0
"""Strength of an incidence whose mention is written in common words, not as a name."""

PENDING_VECTORS = "pending-vectors"
"""Namespace of vectors of documents that are not stored yet, by the SHA-256 digest of the embedded text."""

ENTITY_VECTORS = "entity-vectors"
"""Namespace of entity vectors, by entity key. The store deletes a value together with its entity."""

ORIGINALS = "originals"
"""Namespace of passages before retractions and aliases were applied, by document id; see :mod:`polyad.curation`."""

WITHDRAWN = "withdrawn"
"""Namespace of what retractions and aliases changed, by document id; see :mod:`polyad.curation`."""

DOCUMENT_NAMESPACES = (ORIGINALS, WITHDRAWN)
"""Namespaces whose values the store deletes together with the document that is their key."""

RELEVANCE = "relevance"
"""Namespace of a calibration that earlier versions stored; it is only deleted."""

ENCODER_TRUST = "encoder-trust"
"""Namespace, and only key, of the trust in the encoder by language."""

EMBEDDER_CHOICE = "embedder-choice"
"""Namespace, and only key, of an index whose documents choose the embedder; missing if the user named it."""

REPLIES = "replies"
"""Namespace of cached replies of language models. Several indexes may share the values of this namespace."""

VECTOR_NAMESPACES = (PENDING_VECTORS, ENTITY_VECTORS, RELEVANCE, ENCODER_TRUST)
"""Namespaces whose values were computed from vectors of the index's embedder."""

REBUILDS = "rebuild-"
"""Beginning of the namespaces of checkpoints of interrupted rebuilds."""

Remedy = Literal["repair", "index", "restore"]
"""What undoes damage: a repair, indexing the document again, or a backup."""

Lookup = Literal[
    "documents by source",
    "documents by kind",
    "duplicates by document",
    "passages by document",
    "passages by digest",
    "hyperedges by entity",
]
"""A query of :meth:`ReadTransaction.find`, which returns the ids of records by value."""

VectorType = Literal["float32", "float16", "vector", "halfvec"]
"""How a database stores vectors: as bytes of float32 or float16 numbers, or in columns of the extension pgvector, whose
``vector`` has float32 and ``halfvec`` float16 numbers."""

Count = Literal["size", "kind", "relation", "role"]
"""What :meth:`ReadTransaction.count` counts: records by type, or by one of their properties."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The properties of an index that are fixed at its creation: embedder, vector length and mention extractor.

    Attributes:
        embedder: Name of the embedder of all vectors. Vectors of different embedders cannot be compared.
        dimension: Length of the vectors.
        mentions: Name of the mention extractor.
        directory: Folder on this machine for files that are derived from the index; None if there is none.
        place: Address of the index, for messages; empty if it is the folder.
        vector_type: How vectors are stored. They are computed and searched in float32.
    """

    embedder: str
    dimension: int
    mentions: str
    directory: Path | None = None
    place: str = ""
    vector_type: VectorType = "float32"

    @property
    def number_type(self) -> np.dtype[Any]:
        """The type of the numbers of stored vectors: little-endian float32 or float16."""
        return np.dtype("<f4" if self.vector_type in ("float32", "vector") else "<f2")


@dataclass(frozen=True, slots=True, order=True)
class Damage:
    """One damaged record or file of an index, with the problem and the remedy.

    Attributes:
        invariant: Name of the invariant.
        table: Table, namespace or file with the violation.
        id: Id of the row, or key of the value; empty if there is none.
        problem: What is wrong.
        document_id: The document to index again; empty if there is none.
        remedy: What undoes the damage.
    """

    invariant: str
    table: str
    id: str
    problem: str
    document_id: str = ""
    remedy: Remedy = "restore"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The content hash and the source (file or URL) of a stored document, without its text."""

    digest: str
    source: str


@dataclass(frozen=True, slots=True)
class HyperedgeFields:
    """The fields of a hyperedge that filters can compare: its kind and its sorted role names."""

    kind: str
    roles: tuple[str, ...]


class DocumentText(NamedTuple):
    """The id and the text of the document that contains a passage; not compared with the checksum, to be fast."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The documents that were written and removed between two versions of an index, as primary keys.

    To reach ``version``, a reader first drops the removed passages, then reads the written documents.

    Attributes:
        version: The later version.
        removed: First and last primary key of the passages of each removed or replaced document. A document that was
            written after the earlier version and removed again is included.
        documents: Primary keys of the documents that were written since and still exist, ascending.
        token: Random token of the earlier version; a copy of the index that continued on its own has other tokens.
            Empty if unknown.
        is_complete: Whether the changes lead from an empty index to ``version``, because the log of removals does not
            reach back to the earlier version. ``documents`` then lists all documents.
    """

    version: int
    removed: tuple[tuple[int, int], ...]
    documents: tuple[int, ...]
    token: str = ""
    is_complete: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """The passages, hyperedges and incidences (memberships) of a batch of documents, as parallel arrays.

    Attributes:
        passage_numbers: Primary keys of the passages, int64 ``[passages]``.
        passage_ids, document_ids: Id and document id of each passage.
        texts: Title and text of each passage, for the term index.
        document_dates: Date in the metadata of each passage's document, for the term index; empty for none.
        document_families: Terms of the family of versions of each passage's document, for the term index.
        passage_vectors: float32 ``[passages, dimension]``.
        hyperedge_numbers: Primary keys of the hyperedges, int64 ``[hyperedges]``.
        hyperedge_ids: Id of each hyperedge.
        passage_of_hyperedge: Primary key of the passage of each hyperedge, int64 ``[hyperedges]``.
        hyperedge_scores: float32 ``[hyperedges]``, each in (0, 10].
        hyperedge_vectors: float32 ``[hyperedges, dimension]``.
        passage_intervals: Interval in which the document of each passage holds, float64 ``[passages, 2]``.
        hyperedge_intervals: Interval in which each hyperedge holds, if its document does; float64 ``[hyperedges, 2]``.
        incidence_entity, incidence_hyperedge: Primary keys, int64 ``[incidences]``.
        incidence_strength: How surely the hyperedge's passage is about the entity, float32 ``[incidences]``: above 0
            if the entity is the hyperedge's subject, 1 for members of a tuple. For all other incidences 0 if the
            mention is written as a name, and :data:`IN_COMMON_WORDS` if not.
        entity_keys: Entity keys by primary key, of the entities in the incidences whose keys were requested.
    """

    passage_numbers: IntArray
    passage_ids: Sequence[str]
    document_ids: Sequence[str]
    texts: Sequence[str]
    document_dates: Sequence[str]
    document_families: Sequence[Sequence[str]]
    passage_vectors: FloatArray
    hyperedge_numbers: IntArray
    hyperedge_ids: Sequence[str]
    passage_of_hyperedge: IntArray
    hyperedge_scores: FloatArray
    hyperedge_vectors: FloatArray
    passage_intervals: TimeArray
    hyperedge_intervals: TimeArray
    incidence_entity: IntArray
    incidence_hyperedge: IntArray
    incidence_strength: FloatArray
    entity_keys: Mapping[int, str]


def build_intervals(intervals: Iterable[tuple[float, float]]) -> TimeArray:
    """Convert (start, end) pairs of times to a float64 array of shape ``[intervals, 2]``."""
    return np.array(list(intervals), dtype=np.float64).reshape(-1, 2)


EntityIncidence = tuple[int, str, str, str, float]
"""Primary key of the hyperedge, name, type, description and score of an incidence of one entity."""


class ReadTransaction(Protocol):
    """A protocol of read transactions, in which all reads see the same version of the store."""

    @property
    def version(self) -> int:
        """The store version that all reads see, which grows with each write of documents."""

    def changes(self, since: int | None = None) -> Changes:
        """Return the documents written and deleted after version ``since``; all documents if ``since`` is unknown.

        The passages of a document have consecutive primary keys in document order, and so have its hyperedges.
        """

    def rows(self, documents: Sequence[int], entities_after: int = 0) -> Iterator[StoredRows]:
        """Yield the rows of documents as arrays, in batches, with the keys of entities above ``entities_after``.

        Args:
            documents: Primary keys of the documents, ascending.
            entities_after: A primary key: the rows contain the entity keys of entities with a greater primary key only.
        """

    def entity_keys(self) -> Iterator[tuple[int, str]]:
        """Yield (primary key, entity key) of every entity, sorted by primary key.

        The entity key is the normalised name, or an id from the user's data.
        """

    def entity_page(self, first: int, limit: int) -> tuple[list[str], int]:
        """Return the keys of at most ``limit`` entities in key order, from position ``first`` on, and the total number.

        Only these keys are read.
        """

    def entity_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (entity id, names) from the user's facts whose primary key is above ``after`` and at most ``last``.

        Only tuples (facts that the user supplied as data) name entities beside the id. Other entities are left out.

        Args:
            after: A primary key of tuples; 0 to begin with the first tuple.
            last: Primary key of the last tuple to read.
        """

    @overload
    def get(self, record_type: type[RecordT], ids: Sequence[IdT]) -> dict[IdT, RecordT]: ...
    @overload
    def get(self, record_type: type[RecordT], ids: None = None) -> dict[str, RecordT]: ...
    def get(self, record_type: type[RecordT], ids: Sequence[IdT] | None = None) -> object:
        """Return records of one type in a dictionary by id (or primary key), in the order of ``ids``.

        Missing ids are left out.

        Args:
            record_type: ``Document``, ``DocumentSummary``, ``IndexedDocument`` (without sections), ``StoredDocument``,
                ``Origin`` or ``Pagination`` by document id; ``Passage``, ``IndexedPassage`` or ``DocumentText`` (of its
                document) by passage id; ``Hyperedge``, ``IndexedHyperedge`` or ``HyperedgeFields`` by hyperedge id;
                ``Entity`` by key; or ``HyperedgeKind`` (the kinds that occur in the index).
            ids: Ids, or integer primary keys of passages and hyperedges. None for all records, sorted by id.
        """

    def get_together(
        self, ids: Mapping[type[Any], Sequence[str] | Sequence[int]], requests: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[dict[type[Any], dict[Any, Any]], list[list[EntityIncidence]]]:
        """Return the records listed in ``ids`` by type, and for each request an entity's incidences in a range.

        A database server receives all queries in one round trip.

        Args:
            ids: Ids or primary keys of records by type, as for :meth:`get`.
            requests: Triples of the primary key of an entity and the range of hyperedges that count: greater than the
                second primary key, up to the third. An entity may be requested more than once.

        Returns:
            The records, and the memberships for each request, sorted by hyperedge.
        """

    def find(self, lookup: Lookup, values: Iterable[str]) -> dict[str, list[str]]:
        """Return record ids by value: for the lookup "passages by document", the passage ids of each document id.

        Args:
            lookup: ``documents by source``: documents read from a file (or a record of the file) or folder, sorted.
                ``documents by kind``: documents whose first hyperedge has this kind, sorted.
                ``duplicates by document``: the first stored earlier document with the same title and text; a document
                whose last passage has no digest has no duplicates.
                ``passages by document``, ``passages by digest``, ``hyperedges by entity`` (by entity key): sorted.
            values: The values to look up; values without ids are missing in the result.
        """

    def find_tuples(self, relation: str, conditions: Sequence[Condition]) -> list[str]:
        """Return the sorted ids of facts whose arguments satisfy all conditions, such as ``year >= 1990``.

        :func:`polyad.text.literals.is_match` defines the conditions.

        Args:
            relation: Relation of the facts; empty for any.
            conditions: Conditions on the arguments.
        """

    def count(self, quantity: Count) -> dict[str, int]:
        """Return counts in a dictionary: hyperedges by kind, facts by relation, roles, or all records by type.

        Args:
            quantity: ``kind``: hyperedges by kind. ``relation``: tuples by relation, "" if unknown, and extracted facts
                with a relation. ``role``: incidences and arguments by role. ``size``: the numbers of ``documents``,
                ``passages``, ``entities``, ``hyperedges`` and ``incidences``, the ``tokens`` of all documents and the
                ``disk_bytes`` of the files.
        """


Values = Mapping[str, Mapping[str, bytes | None]]
"""Values by namespace and key; None deletes a key."""

NO_VALUES: Values = MappingProxyType({})


class ValueStore(Protocol):
    """A protocol of durable key-value stores with namespaces, for cached replies and vectors."""

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""

    def put_values(
        self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool = False
    ) -> None:
        """Store key-value pairs under a namespace in one transaction; a None value deletes a key.

        Args:
            namespace: The namespace of the keys.
            values: Values by key; a value of None deletes the key. None deletes all values of the namespace.
            is_optional: Whether to store nothing, instead of waiting or raising StoreError, if another process is
                writing, the disk is full or the index is read-only.
        """


class Store(ValueStore, Protocol):
    """A protocol of databases that hold one index: documents, passages, hyperedges and vectors.

    A document is written atomically: after a crash it is stored completely or not at all. Readers never wait for
    writers. A store may be used by several threads and processes.
    """

    @property
    def manifest(self) -> Manifest:
        """The properties of the index that are fixed at its creation, such as the embedder's name."""

    def put(
        self,
        *documents: IndexedDocument,
        values: Values = NO_VALUES,
        expected_version: int | None = None,
        expected_values: Values = NO_VALUES,
        values_version: int | None = None,
    ) -> None:
        """Store documents and key-value pairs in one transaction; a document replaces a stored one with the same id.

        Args:
            documents: Documents with distinct ids.
            values: Values that are stored, replaced or deleted in the same transaction; not of :data:`REPLIES`.
            expected_version: The version that the documents were computed from; None for any.
            expected_values: All values of some namespaces that the documents were computed from; not of
                :data:`REPLIES`.
            values_version: A version at which the store had ``expected_values``. They are not compared while the store
                still has this version; that every writer of the namespaces raises it is the caller's assertion.

        Raises:
            VersionConflictError: the store has another version than ``expected_version``, or a namespace has other
                values than ``expected_values``; nothing is stored.
        """

    def remove(self, document_ids: Sequence[str], *, values: Values = NO_VALUES) -> None:
        """Delete documents and all rows derived from the documents, in one transaction.

        Args:
            document_ids: Ids of the documents.
            values: Values that are stored, replaced or deleted in the same transaction; not of :data:`REPLIES`.

        Raises:
            NotFoundError: a document does not exist; no document is deleted.
        """

    def replace_vectors(
        self,
        manifest: Manifest,
        embed: Callable[[Sequence[IndexedDocument]], tuple[Sequence[IndexedDocument], Values]],
    ) -> None:
        """Switch the index to another embedder: replace all vectors and the manifest in one transaction.

        Values that depend on vectors (:data:`VECTOR_NAMESPACES`) are deleted. Other handles on the index raise
        IndexMismatchError when they next read or write documents.

        Args:
            manifest: The manifest with the new embedder and dimension.
            embed: Returns some documents with new vectors, and the values to store with them.
        """

    def read_transaction(self) -> AbstractContextManager[ReadTransaction]:
        """Open a read transaction: all reads in the ``with`` block see one store version.

        Nested blocks on one thread share the transaction.
        """

    def list_namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces that contain values."""

    def charge(self, usage: Usage) -> Usage:
        """Add language-model usage (tokens, cost) to the total of the index, and return the total.

        An empty ``usage`` only reads the total. A read-only index does not record usage.
        """

    def close(self) -> None:
        """Close the store's files and connections; no other method may be called afterwards."""


@runtime_checkable
class MaintainedStore(Protocol):
    """A protocol of stores that can check, repair and copy their data.

    Database servers use their own tools instead.
    """

    def verify(self) -> list[Damage]:
        """Read the whole index and return a sorted list with a :class:`Damage` for each damaged record."""

    def repair(self) -> None:
        """Delete orphaned rows, and damaged values that can be computed again, in one transaction.

        Contributions of documents are not changed. Snapshots are built again.
        """

    def back_up(self, path: Path) -> list[Path]:
        """Copy one version of the index to a file, and its cached replies to a second file; the index stays in use.

        Each file is replaced as a whole or not at all.

        Args:
            path: The file, which is replaced if it exists.

        Returns:
            The written files.

        Raises:
            StoreError: the store cannot be copied to a file, or the file cannot be written.
        """


@runtime_checkable
class NotifyingStore(Protocol):
    """A protocol of stores that notify this process when another process has changed the index."""

    def listen(self, seconds: float) -> Generator[None]:
        """Yield at once, then after each change of the index, and after ``seconds`` without a change.

        The regular wake-up covers a lost notification.
        """


@runtime_checkable
class LockingStore(Protocol):
    """A protocol of stores with locks, by which processes and machines agree who does a piece of work."""

    def lock(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Return a context manager that yields a function, which takes the lock ``name`` unless another block has it.

        The function returns whether this block has the lock: False also if the connection to a database was lost, since
        another process may have the lock then. A lock ends with its ``with`` block, or with the process.
        """


class StoreOpener(Protocol):
    """A protocol of functions that open or create stores of one kind, such as SQLite databases."""

    def __call__(self, place: str | Path, /, manifest: Manifest | None = None, *, replies: Path | None = None) -> Store:
        """Open the index at ``place`` (a folder or an address); if there is none, create one with ``manifest``.

        Args:
            place: Location of the index: a directory or an address.
            manifest: Properties of a new index, which is created if ``place`` holds no index. None to only open.
            replies: File of the namespace :data:`REPLIES`, which several indexes may share; by default part of the
                index.

        Raises:
            StoreNotFoundError: there is no index and ``manifest`` is None.
            IndexMismatchError: the index has another format, or was built with another embedder or mention extractor
                than ``manifest`` states.
            StoreError: the index is damaged or cannot be created.
        """
