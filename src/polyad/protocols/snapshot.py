"""The index at one point in time, as retrievers read it.

Retrievers work on rows: numbers of passages, hyperedges and entities that are valid within one snapshot. Methods take
many rows at a time and cost no more than the rows they are given; vectors stay inside and cosines come out. Values that
depend on the whole corpus are statistics of the snapshot. Rows are numbered in the order in which documents were
written; ties between scores are broken by id (:func:`rank_by_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

import numpy as np

from polyad.model import BoolArray, FloatArray, IntArray

Kind = Literal["passage", "hyperedge", "entity"]
"""The kind of record that a row belongs to."""

NameRelation = Literal["variant", "label", "word"]
"""How entities are found by a name: the entity key is a variant of the entity's name, such as ``ed sullivan`` for
``edward sullivan`` (at most one entity); a label that tuples give to the entity beside its id, or an alias; or a word
of the entity's key."""

RecordT = TypeVar("RecordT")
"""A record type of :meth:`Snapshot.get`."""


class Graph(Protocol):
    """The incidences of a hypergraph, read in both directions."""

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entities of each hyperedge, sorted, and for each entity the position of its hyperedge."""

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of each entity, sorted, and for each hyperedge the position of its entity."""


class SnapshotGraph(Graph, Protocol):
    """The hypergraph of an index: hyperedges join entities and lie in passages, and passages are about entities."""

    def members(self, hyperedges: IntArray, *, variants: bool = True) -> tuple[IntArray, IntArray]:
        """Return the entities of each hyperedge, sorted, and for each entity the position of its hyperedge.

        With ``variants``, the subject of a hyperedge counts also under its name variants: the shorter names that other
        texts use for it.
        """

    def passages(self, hyperedges: IntArray) -> IntArray:
        """Return the passage of each hyperedge."""

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of each passage, and for each hyperedge the position of its passage."""

    def subjects(self, passages: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the subjects of each passage, the position of the passage, and the subject strength, in (0, 1]."""

    def mentions(self, entities: IntArray, *, as_subject: bool = False) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the passages that mention each entity, the position of the entity, and the subject strength.

        The subject strength is how certainly the passage is about the entity, in (0, 1]; it is 0 or below for a passage
        that only mentions the entity. With ``as_subject``, only passages about the entity are read and returned.
        """

    def mention_counts(self, entities: IntArray) -> IntArray:
        """Return the number of passages that mention each entity or are about it."""


class Snapshot(Protocol):
    """The index at one point in time. Immutable; texts belong to the same time.

    Methods that return texts raise :class:`polyad.errors.StaleSnapshotError` if a requested text has been deleted from
    the store since; the search then starts again with a newer snapshot.
    """

    @property
    def graph(self) -> SnapshotGraph:
        """The hypergraph."""

    # Statistics

    @property
    def passage_count(self) -> int:
        """The number of passages."""

    @property
    def linkability(self) -> float:
        """How reliably names lead to the passage about them, in [0, 1]; see :mod:`polyad.snapshot.incidences`."""

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """Return the mean cosine of all passages to each vector; shape ``[vectors]``."""

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return for each vector the ``k`` nearest rows and their cosines, best first, ties by id.

        Args:
            kind: Entities have vectors only in a snapshot with entity vectors.
            vectors: Unit vectors, float32 ``[vectors, dimension]``.
            k: The number of rows; all rows if there are fewer.
            weighted: Rank hyperedges and entities by cosine times score, and return the products.
        """

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray, *, weighted: bool = False) -> FloatArray:
        """Return the cosine of each row to each vector; shape ``[rows, vectors]``, or ``[rows]`` for one vector.

        With ``weighted``, cosines of hyperedges and entities are multiplied by the scores of the rows.
        """

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """Return the vectors of rows, for scorers that are trained on vectors; float32 ``[rows, dimension]``."""

    def row_count(self, kind: Kind) -> int:
        """Return the number of rows, including deleted rows, for work that covers a whole index once."""

    # Terms, which are those of :func:`polyad.text.words.extract_query_terms`

    def search_terms(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """Return the ``k`` passages with the highest BM25 scores above 0, best first, and their scores."""

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term."""

    def contains_terms(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""

    # Names

    def find_rows(self, kind: Literal["passage", "entity"], ids: Iterable[str]) -> dict[str, int]:
        """Return the row of each passage id or entity key. Omit ids that are not in the snapshot."""

    def find_entities(self, relation: NameRelation, names: Sequence[str]) -> dict[str, list[int]]:
        """Return the rows of the entities that stand in a relation to each name; omit names without such entities."""

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """Return the ids of rows; the keys of entities."""

    def document_ranges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the first row of each passage's document, and the row after its last passage.

        The passages of a document are consecutive rows in the order of the text.
        """

    # Texts

    def read_transaction(self) -> AbstractContextManager[object]:
        """Open a read transaction of the store, which calls of :meth:`get` share inside the ``with`` block."""

    def get(self, record_type: type[RecordT], rows: Sequence[int]) -> list[RecordT]:
        """Return records of one type, in the order of ``rows``.

        Args:
            record_type: ``Passage``, ``Hyperedge`` or ``Entity``; or ``Origin`` or ``Pagination``, of the documents of
                passages.
            rows: Rows of passages, hyperedges or entities.
        """


def rank_by_id(snapshot: Snapshot, kind: Kind, rows: IntArray) -> FloatArray:
    """Return a sort key for each row: the row with the lower id (or entity key) has the lower sort key."""
    ids = snapshot.ids(kind, rows)
    ranks = {id: rank for rank, id in enumerate(sorted(set(ids)))}
    return np.fromiter(map(ranks.__getitem__, ids), dtype=np.float32, count=len(ids))
