"""The index at one point in time, as retrievers read it.

Retrievers work on rows: numbers of passages, hyperedges and entities that are valid within one snapshot. Methods take
many rows at a time, and their cost grows with the number of these rows. Values that depend on the whole corpus are
statistics of the snapshot. Rows are numbered in the order in which documents were written; ties between scores are
broken by id (:func:`polyad.hypergraph.sparse.rank_by_id`).
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
    """A protocol of hypergraphs, which return the entities of hyperedges and the hyperedges of entities."""

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entities of hyperedges: an array of entity rows, and parallel indices into ``hyperedges``.

        The entities of each hyperedge are sorted.
        """

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of entities: an array of hyperedge rows, and parallel indices into ``entities``.

        The hyperedges of each entity are sorted.
        """


class SnapshotGraph(Graph, Protocol):
    """A protocol of the hypergraph of a snapshot, which also connects passages with hyperedges and entities.

    A passage may be about entities, which are its subjects.
    """

    def members(self, hyperedges: IntArray, *, variants: bool = True) -> tuple[IntArray, IntArray]:
        """Return the entities of hyperedges: an array of entity rows, and parallel indices into ``hyperedges``.

        The entities of each hyperedge are sorted.

        With ``variants``, the subject of a hyperedge counts also under its name variants: the shorter names that other
        texts use for it.
        """

    def passages(self, hyperedges: IntArray) -> IntArray:
        """Return for each hyperedge the row of the passage that contains the hyperedge; shape ``[hyperedges]``."""

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of passages: an array of hyperedge rows, and parallel indices into ``passages``."""

    def subjects(self, passages: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the entities that passages are about: entity rows, indices into ``passages``, and strengths in (0, 1].

        The three arrays are parallel. The strength states how certain the subject is.
        """

    def mentions(self, entities: IntArray, *, as_subject: bool = False) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the passages that mention entities: passage rows, indices into ``entities``, and subject strengths.

        The three arrays are parallel. The subject strength is how certainly the passage is about the entity, in (0, 1];
        it is 0 or below for a passage that only mentions the entity. With ``as_subject``, only passages about the
        entity are read and returned.
        """

    def mention_counts(self, entities: IntArray) -> IntArray:
        """Return for each entity the number of passages that mention the entity or are about it."""


class LanguagePassages(Protocol):
    """A protocol of the passages in one language."""

    @property
    def mean(self) -> FloatArray:
        """The mean of their vectors, float32 ``[dimension]``."""

    @property
    def count(self) -> int:
        """The number of passages."""

    def contains(self, rows: IntArray) -> BoolArray:
        """Return whether each of the passages ``rows`` is in the language."""

    def nearest(self, vectors: FloatArray, k: int) -> list[tuple[IntArray, FloatArray]]:
        """Return for each query vector the rows with the ``k`` highest cosines and the cosines, best first."""


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
        """How reliably names in this index lead to the passage about the named entity, in [0, 1]."""

    @property
    def languages(self) -> Mapping[str, LanguagePassages]:
        """The passages by language, as ISO 639-1 code; empty if all passages are in one language."""

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """Return for each query vector the mean cosine with the vectors of all passages; shape ``[vectors]``."""

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return for each query vector the rows with the ``k`` highest cosines and the cosines, best first, ties by id.

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

    def find_similar_words(self, word: str, max_edits: int) -> list[tuple[int, str]]:
        """Return (edits, word) for each word of the passages that becomes ``word`` by few edits, fewest edits first.

        Words are in lower case; accents do not count. Deleted passages may have had some of them.
        """

    def infer_language(self, question: str) -> str:
        """Return the ISO 639-1 code of a question's language; that of the index if it is too short to tell."""

    def contains_terms(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""

    # Names

    def find_rows(self, kind: Literal["passage", "entity"], ids: Iterable[str]) -> dict[str, int]:
        """Return the row number of each passage id (or entity key), in a dictionary; unknown ids are left out."""

    def find_entities(self, relation: NameRelation, names: Sequence[str]) -> dict[str, list[int]]:
        """Return for each name the rows of the entities that have the name as short form, label or word of their key.

        ``relation`` selects one of the three; see :data:`NameRelation`. Names without such entities are omitted.
        """

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the passage ids, hyperedge ids or entity keys of ``rows``."""

    def document_ranges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each passage the row range of its document: the first row, and the row after the last row.

        The passages of a document are consecutive rows in the order of the text.
        """

    # Texts

    def read_transaction(self, rows: Mapping[type[Any], Sequence[int]] = NO_ROWS) -> AbstractContextManager[object]:
        """Open a read transaction of the store for the ``with`` block; all calls of :meth:`get` in the block use it.

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
