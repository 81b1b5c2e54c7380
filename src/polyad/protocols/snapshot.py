"""An index at one moment, as retrievers see it.

Retrievers work on rows: numbers of passages, hyperedges and entities that mean something within one snapshot. They ask
for what they reached, many rows at a time, and never for the whole of anything; vectors stay where they are, and only
cosines leave. What needs the whole corpus is a statistic of the snapshot. Rows come in the order in which documents
did; ties are broken by id (:meth:`Snapshot.order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from polyad.model import BoolArray, Entity, FloatArray, Hyperedge, IntArray, Origin, Passage

Kind = Literal["passage", "hyperedge", "entity"]
"""Of what a row is the number."""


class Graph(Protocol):
    """Which nodes hyperedges join."""

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, sorted, and the position in ``hyperedges`` each belongs to.

        The subject of a hyperedge is there also by each name that stands for it in other texts, as by a title.
        """

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, sorted, and the position in ``entities`` each belongs to."""


class SnapshotGraph(Graph, Protocol):
    """The hypergraph of an index: hyperedges join entities and lie in passages, which are about some of these."""

    def stored_members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """As :meth:`members`, without the names that other texts have for a subject."""

    def passages(self, hyperedges: IntArray) -> IntArray:
        """The passage of each of some hyperedges."""

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some passages, and the position in ``passages`` each belongs to."""

    def mentions(self, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The passages that mention each of some entities, or are about it, and the position each belongs to.

        With each how surely it is about the entity, in (0, 1]; 0 or below where it is not.
        """

    def about(self, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The passages about each of some entities, the position each belongs to, and how surely it is: (0, 1]."""

    def degrees(self, entities: IntArray) -> IntArray:
        """How many passages mention each of some entities, or are about it."""

    def scores(self, hyperedges: IntArray) -> FloatArray:
        """The score of each of some hyperedges, in (0, 10]."""


class Words(Protocol):
    """The words of passages."""

    def best(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """The ``k`` best passages that share a word with a question, and their BM25 scores; best first."""

    def frequencies(self, words: Sequence[str]) -> IntArray:
        """How many passages hold each of some words, as :func:`polyad.text.indexed_words.query_terms` gives them."""

    def holds(self, words: Sequence[str], passages: IntArray) -> BoolArray:
        """Which of some words each of some passages holds, ``[passages, words]``."""


class Snapshot(Protocol):
    """An index at one moment. Immutable; all it shows, texts included, is of that moment.

    Methods that show texts raise :class:`polyad.errors.StaleSnapshotError` when what they should show has been removed
    since: the search begins again with a later snapshot.
    """

    @property
    def version(self) -> int:
        """Of the store at that moment."""

    @property
    def graph(self) -> SnapshotGraph:
        """Which entities hyperedges join."""

    @property
    def words(self) -> Words:
        """What passages say, in words."""

    # Statistics

    @property
    def passage_count(self) -> int:
        """How many passages there are."""

    @property
    def linkability(self) -> float:
        """How far names lead to what is about them, in [0, 1]: see :mod:`polyad.snapshot.linkability`."""

    @property
    def density(self) -> float:
        """Hyperedges that join any entity, for each entity that is joined; 0 for an empty index."""

    def mean_cosines(self, vectors: FloatArray) -> FloatArray:
        """The mean cosine of all passages to each of some vectors; ``[vectors]``."""

    # Vectors

    def nearest(
        self, kind: Kind, vectors: FloatArray, k: int, *, weighted: bool = False
    ) -> list[tuple[IntArray, FloatArray]]:
        """For each of some vectors the ``k`` nearest rows and their cosines, best first, ties by id.

        Args:
            kind: Entities only of a snapshot in which they are described.
            vectors: Of unit length, float32 ``[vectors, dimension]``.
            k: How many; all where there are fewer.
            weighted: Rank hyperedges and entities by cosine times score, and give that.
        """

    def cosines(self, kind: Kind, rows: IntArray, vectors: FloatArray) -> FloatArray:
        """The cosine of each of some rows to each of some vectors, or to one; ``[rows, vectors]`` or ``[rows]``."""

    def vectors(self, kind: Kind, rows: IntArray) -> FloatArray:
        """The vectors of some rows, for scorers that were trained on vectors; ``[rows, dimension]``."""

    def row_count(self, kind: Kind) -> int:
        """All rows are below it; some may have gone. For what is made once of a whole index."""

    # Names

    def order(self, kind: Kind, rows: IntArray) -> FloatArray:
        """A number for each of some rows; of two rows the one with the lower id, or key, has the lower number."""

    def find(self, keys: Iterable[str]) -> dict[str, int]:
        """The row of each of some entity keys that is known."""

    def subjects_of(self, names: Sequence[str]) -> dict[str, int]:
        """The entity that each of some names, by its key, stands for which is none itself; where that can be told."""

    def called(self, names: Iterable[str]) -> dict[str, list[int]]:
        """The entities that given facts know by an id and call by each of some names, by its key; of those that are."""

    def named_with(self, word: str) -> list[int]:
        """The entities whose keys hold a word."""

    def passage_rows(self, ids: Sequence[str]) -> dict[str, int]:
        """The row of each of some passages that is known."""

    def ids(self, kind: Kind, rows: IntArray | Sequence[int]) -> list[str]:
        """The ids of some rows, or the keys of entities."""

    def document_ids(self, passages: IntArray | Sequence[int]) -> list[str]:
        """The documents of some passages."""

    # Texts

    def reading(self) -> AbstractContextManager[object]:
        """For a block that asks for several texts: where they are kept, they are asked for together."""

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """Passages, in order."""

    def hyperedges(self, rows: Sequence[int]) -> list[Hyperedge]:
        """Hyperedges, in order."""

    def entities(self, rows: Sequence[int]) -> list[Entity]:
        """Entities, in order."""

    def origins(self, passages: Sequence[int]) -> list[Origin]:
        """What is known of the documents of some passages beside their texts, in order."""
