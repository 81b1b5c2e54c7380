"""What an index is kept in: the protocols of stores, and the records that pass through them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from polyad.model import (
    Condition,
    Document,
    Entity,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedPassage,
    IntArray,
    Origin,
    Passage,
    Statistics,
    Usage,
)
from polyad.protocols.components import Reply

IN_COMMON_WORDS = -1.0
"""The strength of an incidence that mentions its entity in words that are no name."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index was built with: the embedder, whose vectors no other's may be compared with, and the extractor."""

    format_version: int
    embedder: str
    dimension: int
    mentions: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to an index between two versions, by the store's own numbers, which are never given again.

    Whoever drops the removed passages and then reads the written documents is at ``version``.

    Attributes:
        version: That they lead to.
        removed: First and last number of the passages of each document that was removed or replaced. It may be one that
            was written after the earlier version, too.
        documents: Numbers of the documents that were written since and are still there, ascending.
    """

    version: int
    removed: tuple[tuple[int, int], ...]
    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """Some documents as they are stored, by the store's own numbers, which ascend.

    Attributes:
        passage_numbers: int64 ``[passages]``.
        passage_ids, document_ids: Of each passage.
        texts: Title and text of each passage, for its words.
        passage_vectors: float32 ``[passages, dimension]``.
        hyperedge_numbers: int64 ``[hyperedges]``.
        hyperedge_ids: Of each hyperedge.
        passage_of_hyperedge: Number of its passage, int64 ``[hyperedges]``.
        hyperedge_scores: float32 ``[hyperedges]``, each in (0, 10].
        hyperedge_vectors: float32 ``[hyperedges, dimension]``.
        incidence_entity, incidence_hyperedge: Numbers, int64 ``[incidences]``.
        incidence_strength: How surely the hyperedge's passage is about the entity, float32 ``[incidences]``: above 0
            where it is the hyperedge's subject, 1 for members of a fact that was given as data. Of all others 0 for
            those that are written as names, and :data:`IN_COMMON_WORDS` for the rest.
        entity_keys: Keys of the entities in the incidences, by their numbers, of those whose keys are wanted.
    """

    passage_numbers: IntArray
    passage_ids: Sequence[str]
    document_ids: Sequence[str]
    texts: Sequence[str]
    passage_vectors: FloatArray
    hyperedge_numbers: IntArray
    hyperedge_ids: Sequence[str]
    passage_of_hyperedge: IntArray
    hyperedge_scores: FloatArray
    hyperedge_vectors: FloatArray
    incidence_entity: IntArray
    incidence_hyperedge: IntArray
    incidence_strength: FloatArray
    entity_keys: Mapping[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class EntityAggregate:
    """What some incidences say of an entity, counted: more of them can be added.

    Attributes:
        names: How many have each name.
        types: How many have each type; 0 for none.
        descriptions: The distinct ones, but the empty one.
        score: The highest.
        hyperedges: How many hyperedges join the entity by these incidences.
    """

    names: Mapping[str, int]
    types: Mapping[str, int]
    descriptions: frozenset[str]
    score: float
    hyperedges: int = 0

    @classmethod
    def of_all(cls, tallies: Sequence[EntityAggregate]) -> EntityAggregate:
        """What the incidences of several tallies say, each of other hyperedges; of one at least."""
        if len(tallies) == 1:
            return tallies[0]
        return cls(
            _summed(tally.names for tally in tallies),
            _summed(tally.types for tally in tallies),
            frozenset().union(*(tally.descriptions for tally in tallies)),
            max(tally.score for tally in tallies),
            sum(tally.hyperedges for tally in tallies),
        )

    def entity(self, key: str) -> Entity:
        """The snapshot over the incidences: the most frequent name and type, of equals the first in order."""
        name, type = map(_most_frequent, (self.names, self.types))
        return Entity(key, name, type, "\n".join(sorted(self.descriptions)), self.score)


def _most_frequent(said: Mapping[str, int]) -> str:
    return next(iter(said)) if len(said) == 1 else min(said, key=lambda own: (-said[own], own))


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Several times faster than counters where each has few: a common entity is made of hundreds."""
    total: dict[str, int] = {}
    for some in counts:
        for said, count in some.items():
            total[said] = total.get(said, 0) + count
    return total


class ReadTransaction(Protocol):
    """A store as it is at one moment, whatever is written meanwhile."""

    @property
    def version(self) -> int:
        """Of the store."""

    def state(self, version: int) -> str:
        """What tells the index at a version from any other that had as many changes; empty where it is not known."""

    def changes(self, since: int) -> Changes | None:
        """What was removed and written after the version ``since``.

        The passages of a document have consecutive numbers, in the order in which they were put, and so have its
        hyperedges. None where ``since`` is too long ago for the log, or still to come, as in an index that was made
        anew: everything has to be read then.
        """

    def documents(self) -> Sequence[int]:
        """The numbers of all documents, ascending."""

    def entity_keys(self) -> Iterator[tuple[int, str]]:
        """The number and the key of every entity, by number."""

    def rows(self, documents: Sequence[int], known: int = 0) -> Iterator[StoredRows]:
        """The rows of some documents, some at a time.

        Args:
            documents: Their numbers, ascending.
            known: The number of the last entity whose key is not wanted.
        """

    def passages(self, numbers: Sequence[int]) -> dict[int, Passage]:
        """Passages by their numbers, of those that are there."""

    def hyperedges(self, numbers: Sequence[int]) -> dict[int, Hyperedge]:
        """Hyperedges by their numbers, of those that are there."""

    def entities(self, asked: Sequence[tuple[int, int, int]]) -> list[EntityAggregate | None]:
        """What some hyperedges say of some entities, in the order asked; None where none of them joins the entity.

        Args:
            asked: The number of each entity, and between which hyperedges those are that count: after the number of
                one, up to that of another. An entity may be asked for more than once.
        """

    def origins(self, document_ids: Sequence[str]) -> dict[str, Origin]:
        """What is known of documents beside their texts, of those that are there."""

    def given_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """What entities are known by and called, in tuples that give them names beside their id; each pair once.

        Args:
            after: The number of a hyperedge after which those begin that count; 0 for all.
            last: Hyperedges with higher numbers do not count.
        """


class Documents(Protocol):
    """Holds documents with all that came from them, and knows what changed.

    Writing a document is atomic: after a crash it is there whole or not at all. Reading never waits for writing.
    """

    def version(self) -> int:
        """Grows with every committed change to documents; equal versions mean equal contents."""

    def put(self, *documents: IndexedDocument) -> None:
        """Store documents whole, each in place of any earlier one of the same id; all of them or none."""

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents and all that came from them. Raises NotFoundError, and removes none, if any is unknown."""

    def digests(self, ids: Sequence[str] | None = None) -> dict[str, str]:
        """The digest of every document, or of those of some that are there, by id, sorted by id."""

    def sources(self, places: Iterable[str] | None = None) -> dict[str, str]:
        """Where each document came from, by id, sorted by id; of some files and folders, or of all."""

    def kinds(self) -> set[HyperedgeKind]:
        """The kinds of hyperedges that there are; to be known without reading all of them."""

    def kinds_of_documents(self, kinds: Iterable[HyperedgeKind]) -> dict[str, HyperedgeKind]:
        """By id, the kind of the hyperedges of each document that has any of some kinds: that of its first."""

    def duplicates(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Of these documents, those with the title and the text of one that was written earlier; its id, by theirs.

        A document whose last passage has no digest is not compared.
        """

    def known_passages(self, digests: Sequence[str]) -> dict[str, IndexedPassage]:
        """The stored passages with these digests, with hyperedges and vectors, by digest."""

    def indexed_passages(self, document_ids: Sequence[str]) -> list[IndexedPassage]:
        """The passages of these documents, with hyperedges and vectors; none of a document that is not there."""

    def pending_vectors(self, digests: Sequence[str]) -> dict[str, FloatArray]:
        """Vectors made for documents that are not stored yet, by the digest of their text."""

    def keep_pending_vectors(self, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
        """Keep vectors, by the digest of their text, each with the id of its document, until that is put or removed.

        A store may keep a limited number.
        """

    def drop_pending_vectors(self, kept: Container[str] = ()) -> None:
        """Drop the vectors that wait, but for those of the documents with the ids ``kept``."""

    def redone(self, run: str) -> set[str]:
        """The names of what an unfinished run that builds anew has done; empty where there is no such run."""

    def keep_redone(self, run: str, names: Sequence[str]) -> None:
        """Note that the run has done more, until it is dropped."""

    def drop_redone(self, run: str) -> None:
        """Forget the run: it is finished."""


class LookUps(Protocol):
    """Finds what is stored by ids and keys, many at a time."""

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """In the order given. Raises NotFoundError. So do the next four."""

    def origins(self, document_ids: Sequence[str]) -> list[Origin]:
        """What is known of documents beside their texts, in the order given."""

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """In the order given."""

    def hyperedges(self, ids: Sequence[str]) -> list[Hyperedge]:
        """In the order given."""

    def all_hyperedges(self) -> list[Hyperedge]:
        """Every hyperedge, sorted by id."""

    def entities(self, keys: Sequence[str]) -> list[Entity]:
        """The snapshots over their incidences, in the order given."""

    def all_entities(self) -> list[Entity]:
        """The snapshot of every entity, sorted by key."""

    def incidences(self, hyperedge_ids: Sequence[str]) -> dict[str, list[Incidence]]:
        """The incidences of each hyperedge, sorted by entity key, then role."""

    def memberships(self, entity_key: str) -> list[str]:
        """Ids of the hyperedges that join an entity, sorted; none if there is no such entity."""

    def given(self, relation: str, conditions: Sequence[Condition]) -> list[str]:
        """Ids of the tuples of a relation, of any where it is empty, whose arguments meet some conditions; sorted.

        What a condition asks, and what several do, is said by :func:`polyad.text.literals.meets`.
        """

    def called(self, name: str) -> list[str]:
        """What the entities are known by that tuples give this name beside their id, exactly; sorted."""

    def relations(self) -> dict[str, int]:
        """How many tuples there are of each relation, sorted by its name; "" where it is not known."""

    def roles(self) -> list[str]:
        """Every role that is taken in any hyperedge, sorted."""

    def units(self, role: str) -> dict[str, int]:
        """How many numbers of tuples have each unit in a role, sorted by it; "" where they have none."""


class ReadTransactions(Protocol):
    """Shows a store as it is at one moment."""

    def read_transaction(self) -> AbstractContextManager[ReadTransaction]:
        """All of it as it is now, for as long as the block runs; within it, the same moment again on this thread."""


class EntityVectors(Protocol):
    """Keeps the vectors of entities, which are derived."""

    def entity_vectors(self, keys: Sequence[str]) -> dict[str, tuple[str, FloatArray]]:
        """By key, the vectors kept for some entities, each with the digest of the text it was made from."""

    def keep_entity_vectors(self, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
        """Keep the vectors of entities, by key, in place of older ones; entities that are gone are passed over."""


class Upkeep(Protocol):
    """What an index was built with, holds and has cost, and whether it is sound."""

    @property
    def manifest(self) -> Manifest:
        """What the index was built with."""

    def check(self, *, embedder: str | None = None, mentions: str | None = None) -> None:
        """Raise IndexMismatchError unless the index was built with these."""

    def statistics(self) -> Statistics:
        """Sizes of the index."""

    @property
    def directory(self) -> Path | None:
        """Where what is derived from the index is kept for the processes of this machine; None for nowhere."""

    def charge(self, usage: Usage) -> None:
        """Put what a language model has cost on the index's account, which :meth:`statistics` shows."""

    def verify(self) -> list[tuple[str, str]]:
        """Kind and id of everything that is not as it was written, or has lost what belongs to it; may take long."""

    def close(self) -> None:
        """Release the file. The store is unusable afterwards."""


class Store(Documents, LookUps, ReadTransactions, EntityVectors, Upkeep, Protocol):
    """An index. None of its methods is specific to one database or to one process."""


class StoreKind(Protocol):
    """Makes and opens the stores of one kind. What names a place is the kind's: a directory, or an address."""

    def exists(self, place: str | Path, /) -> bool:
        """Whether there is an index. Raises StoreError where that cannot be seen."""

    def create(
        self,
        place: str | Path,
        /,
        embedder: str,
        dimension: int,
        mentions: str,
        *,
        replies: Path | None = None,
    ) -> Store:
        """Make a new, empty index, or open the one that is there.

        Args:
            place: Where to.
            embedder: Name of the embedder of all vectors.
            dimension: Their length.
            mentions: Name of the mention extractor.
            replies: As for :meth:`open`.

        Raises:
            IndexMismatchError: there is an index, and it was built with others, or is of another format.
            StoreError: it cannot be made.
        """

    def replies(self, place: str | Path, /, file: Path | None = None) -> Replies:
        """Open the replies of language models, which several indexes may share.

        Args:
            place: Of the index.
            file: Where they are kept, if not with the index.

        Raises:
            StoreError: ``file`` cannot be read, or made.
        """

    def open(self, place: str | Path, /, *, replies: Path | None = None) -> Store:
        """Open an index; one of an earlier format is brought to the present one.

        Args:
            place: Where it is.
            replies: The file that replies of an index of an earlier format go to; by default one beside it.

        Raises:
            StoreNotFoundError: there is none.
            IndexMismatchError: it is of another format, and cannot be brought to the present one.
        """


class Replies(Protocol):
    """Language model replies that were paid for, by key; several indexes may share them. A batch is kept or not."""

    def known(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Those that are here, by key; they cost nothing and say so."""

    def keep(self, replies: Iterable[tuple[str, Reply]]) -> None:
        """Keep replies by their keys, in place of earlier ones."""

    def forget(self, keys: Iterable[str]) -> None:
        """Have some asked for again; keys that are not here are passed over."""

    def close(self) -> None:
        """Release them. They cannot be used afterwards."""
