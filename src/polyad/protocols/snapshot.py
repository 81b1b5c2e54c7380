"""The index at one point in time, as retrievers read it.

Retrievers work on rows: numbers of passages, hyperedges and entities that are valid within one snapshot. Methods take
many rows at a time and cost no more than the rows they are given; vectors stay inside and cosines come out. Values that
depend on the whole corpus are statistics of the snapshot. Rows are numbered in the order in which documents were
written; ties between scores are broken by id (:func:`polyad.hypergraph.sparse.rank_by_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from polyad.model import BoolArray, FloatArray, IntArray

Kind = Literal["passage", "hyperedge", "entity"]
"""The kind of record that a row belongs to."""

NameRelation = Literal["variant", "label", "word"]
"""How entities are found by a name: the entity key is a variant of the entity's name, such as ``ed sullivan`` for
``edward sullivan`` (at most one entity); a label that tuples give to the entity beside its id, or an alias; or a word
of the entity's key."""

NO_ROWS: Mapping[type[Any], Sequence[int]] = MappingProxyType({})

RecordT = TypeVar("RecordT")
"""A record type of :meth:`Snapshot.get`."""


class Graph(Protocol):
    """A protocol of hypergraphs that can be read from hyperedges to entities and back."""

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entities in the hyperedges as parallel arrays: entity, and index in ``hyperedges``.

        The entities of each hyperedge are sorted.
        """

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of the entities as parallel arrays: hyperedge, and index in ``entities``.

        The hyperedges of each entity are sorted.
        """


class SnapshotGraph(Graph, Protocol):
    """A protocol of an index's hypergraph, with the passage of each hyperedge.

    A passage may be about entities, which are its subjects.
    """

    def members(self, hyperedges: IntArray, *, variants: bool = True) -> tuple[IntArray, IntArray]:
        """Return the entities in the hyperedges as parallel arrays: entity, and index in ``hyperedges``.

        The entities of each hyperedge are sorted.

        With ``variants``, the subject of a hyperedge counts also under its name variants: the shorter names that other
        texts use for it.
        """

    def passages(self, hyperedges: IntArray) -> IntArray:
        """Return the row of the passage that each hyperedge comes from; ``[hyperedges]``."""

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of the passages as parallel arrays: hyperedge, and index in ``passages``."""

    def subjects(self, passages: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return what passages are about, as parallel arrays: entity, index in ``passages``, and strength in [0, 1].

        The three arrays are parallel. The strength, in (0, 1], states how certain the subject is.
        """

    def mentions(self, entities: IntArray, *, as_subject: bool = False) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the passages that mention entities, as arrays: passage, index in ``entities``, subject strength.

        The strength is 0 in a passage that is not about the entity.

        The three arrays are parallel.

        The subject strength is how certainly the passage is about the entity, in (0, 1]; it is 0 or below for a passage
        that only mentions the entity. With ``as_subject``, only passages about the entity are read and returned.
        """

    def mention_counts(self, entities: IntArray) -> IntArray:
        """Return for each entity the number of passages that mention it or are about it."""


class Snapshot(Protocol):
    """A protocol of an immutable, read-only copy of the index, addressed by row numbers.

    Methods that return texts raise :class:`polyad.errors.StaleSnapshotError` if a requested text has been deleted from
    the store since; the search then starts again with a newer snapshot.
    """

    @property
    def graph(self) -> SnapshotGraph:
        """The hypergraph that connects passages, hyperedges and entities."""

    # Statistics

    @property
    def passage_count(self) -> int:
        """The number of passages in the snapshot, without deleted passages."""

    @property
    def linkability(self) -> float:
        """The linkability of the index: how reliably names lead to the passages about them, in [0, 1]."""

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """Return the mean cosine between all passages and each query vector; shape ``[vectors]``."""

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return for each query vector the ``k`` nearest rows and their cosines, best first, ties by id.

        Args:
            kind: Entities have vectors only in a snapshot with entity vectors.
            vectors: Unit vectors, float32 ``[vectors, dimension]``.
            k: The number of rows; all rows if there are fewer.
            weighted: Rank hyperedges and entities by cosine times score, and return the products.
        """

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray, *, weighted: bool = False) -> FloatArray:
        """Return the cosine of each row with each query vector; ``[rows, vectors]``, or ``[rows]`` for one vector.

        With ``weighted``, cosines of hyperedges and entities are multiplied by the scores of the rows.
        """

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """Return the vectors of ``rows``; float32 ``[rows, dimension]``."""

    def row_count(self, kind: Kind) -> int:
        """Return the number of rows of a kind (passage, hyperedge or entity), including deleted rows."""

    # Terms, which are those of :func:`polyad.text.words.extract_query_terms`

    def search_terms(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """Return the ``k`` passages with the highest BM25 scores above 0, best first, and their scores."""

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term (its document frequency)."""

    def contains_terms(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""

    # Names

    def find_rows(self, kind: Literal["passage", "entity"], ids: Iterable[str]) -> dict[str, int]:
        """Return a dictionary from passage id (or entity key) to row number. Unknown ids are omitted."""

    def find_entities(self, relation: NameRelation, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the entities that have it as a label, as a short form or as a word of their name.

        Names without such entities are omitted.
        """

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the passage ids, hyperedge ids or entity keys of ``rows``."""

    def document_ranges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each passage the row range of its document: the first row, and the row after the last.

        The passages of a document are consecutive rows in the order of the text.
        """

    # Texts

    def read_transaction(self, rows: Mapping[type[Any], Sequence[int]] = NO_ROWS) -> AbstractContextManager[object]:
        """Open a read transaction of the store; calls of :meth:`get` inside the ``with`` block share it.

        Args:
            rows: Rows whose records the block reads, by record type: a database server is asked once for all.
        """

    def get(self, record_type: type[RecordT], rows: Sequence[int]) -> list[RecordT]:
        """Return the records of one type, such as :class:`Passage`, in the order of ``rows``.

        Args:
            record_type: ``Passage``, ``Hyperedge`` or ``Entity``; or ``Origin`` or ``Pagination``, of the documents of
                passages.
            rows: Rows of passages, hyperedges or entities.
        """
