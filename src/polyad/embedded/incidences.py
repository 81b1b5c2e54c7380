"""Which entities each hyperedge joins, as stored, and with the names that stand for its subject elsewhere.

A hyperedge's subject is in it also by each name that stands for it in other texts, as it would be by a title (see
:mod:`polyad.embedded.subject_names`). These names are put in where neighbours are asked for; what is kept is what was
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.embedded.columns import Column
from polyad.embedded.ids import EntityKeys
from polyad.embedded.subject_names import SubjectNames
from polyad.hypergraph.incidence import PatchedAdjacency, distinct
from polyad.hypergraph.sparse import among, union
from polyad.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class NewIncidences:
    """The incidences of hyperedges that came.

    Attributes:
        passage_of: Row of the passage of each new hyperedge, in the order of their rows; ``[hyperedges]``.
        scores: Of each new hyperedge; ``[hyperedges]``.
        entities, hyperedges: Rows, ``[incidences]`` each.
        strengths: How surely the passage is about the entity; above 0 where it is a subject, below where it is
            mentioned in common words; ``[incidences]``.
    """

    passage_of: IntArray
    scores: FloatArray
    entities: IntArray
    hyperedges: IntArray
    strengths: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Incidences:
    """The hypergraph of a view. Immutable; rows of what has gone are in no other row.

    Attributes:
        edge_passage: The passage of each hyperedge.
        edge_score: The score of each hyperedge, in (0, 10].
        edge_members: Entities of each hyperedge, with the strength of each.
        entity_edges: Hyperedges of each entity, likewise.
        entity_passages: Passages that mention each entity, with the strength with which each is about it; 0 for not,
            and below where it is written in common words alone.
        passage_edges: Hyperedges of each passage.
        names: What stands for a subject elsewhere.
    """

    edge_passage: Column
    edge_score: Column
    edge_members: PatchedAdjacency
    entity_edges: PatchedAdjacency
    entity_passages: PatchedAdjacency
    passage_edges: PatchedAdjacency
    names: SubjectNames

    @classmethod
    def none(cls) -> Incidences:
        """Of an index without documents."""
        empty = PatchedAdjacency.empty()
        passages, scores = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        return cls(Column.of(passages), Column.of(scores), empty, empty, empty, empty, SubjectNames.none())

    # As stored

    def are_subjects(self, entities: IntArray) -> BoolArray:
        """Whether some passage is about each."""
        _, owners, strengths = self.entity_passages.gather(entities)
        return np.bincount(owners[strengths > 0], minlength=len(entities)) > 0

    def are_there(self, entities: IntArray) -> BoolArray:
        """Whether any hyperedge joins each."""
        return self.entity_edges.degrees(entities) > 0

    def stored_members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges as stored, and the position in ``hyperedges`` each belongs to."""
        return self.edge_members.gather(hyperedges)[:2]

    def passages(self, hyperedges: IntArray) -> IntArray:
        """The passage of each of some hyperedges."""
        found: IntArray = self.edge_passage.at(hyperedges).astype(np.int64)
        return found

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some passages, and the position in ``passages`` each belongs to."""
        return self.passage_edges.gather(passages)[:2]

    def scores(self, hyperedges: IntArray) -> FloatArray:
        """The score of each of some hyperedges, in (0, 10]."""
        found: FloatArray = self.edge_score.at(hyperedges)
        return found

    # With the names that stand for subjects

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, and for each the position in ``hyperedges`` it belongs to."""
        entities, owners, strengths = self.edge_members.gather(hyperedges)
        subjects = strengths > 0
        names, places, _ = self.names.names.gather(entities[subjects])
        return _united((entities, owners), (names, owners[subjects][places]))

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, and for each the position in ``entities`` it belongs to."""
        own, owners, _ = self.entity_edges.gather(entities)
        named, subjects = self._subjects(entities)
        if not len(named):
            return own, owners
        edges, places, strengths = self.entity_edges.gather(subjects)
        about = strengths > 0
        return _united((own, owners), (edges[about], named[places[about]]))

    def mentions(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The passages that mention each of some entities, or are about it, and the position each belongs to."""
        own, owners, _ = self.entity_passages.gather(entities)
        named, subjects = self._subjects(entities)
        if not len(named):
            return own, owners
        of_subjects, places, strengths = self.entity_passages.gather(subjects)
        about = strengths > 0
        return _united((own, owners), (of_subjects[about], named[places[about]]))

    def about(self, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The passages about each of some entities, the position each belongs to, and how surely it is its subject."""
        own, owners, strengths = self.entity_passages.gather(entities)
        named, subjects = self._subjects(entities)
        of_subjects, places, subject_strengths = self.entity_passages.gather(subjects)
        passages = np.concatenate([own, of_subjects])
        owners = np.concatenate([owners, named[places]])
        strengths = np.concatenate([strengths, subject_strengths])
        subject = strengths > 0
        passages, owners, strengths = passages[subject], owners[subject], strengths[subject]
        order = np.lexsort((-strengths, passages, owners))
        passages, owners, strengths = passages[order], owners[order], strengths[order]
        first = _first(owners, passages)
        return passages[first], owners[first], strengths[first]

    def degrees(self, entities: IntArray) -> IntArray:
        """How many passages mention each of some entities, or are about it."""
        found = self.entity_passages.degrees(entities)
        named, _ = self._subjects(entities)
        if len(named):
            found = found.copy()
            found[named] = np.bincount(self.mentions(entities[named])[1], minlength=len(named))
        return found

    def subjects_of(self, names: Sequence[str]) -> dict[str, int]:
        """The entity that each of some names stands for which is none itself; of those that stand for one."""
        rows = self.names.subjects_of(names, self.are_subjects).tolist()
        return {name: row for name, row in zip(names, rows, strict=True) if row >= 0}

    def _subjects(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of the entities that stand for a subject, and the row of each one's."""
        subjects = self.names.subject.at(entities)
        named = (subjects >= 0).nonzero()[0]
        return named, subjects[named].astype(np.int64)

    # Moving on

    def advanced(self, keys: EntityKeys | None, gone: IntArray, new: NewIncidences) -> tuple[Incidences, IntArray]:
        """The same after some passages went and others came, and the entities whose passages changed by that.

        Args:
            keys: Of all entities; new ones at the end. None to leave to :meth:`named` what stands for subjects.
            gone: Rows of passages, sorted.
            new: What came with others.
        """
        first = len(self.edge_passage)
        passage_of = self.edge_passage.extended(new.passage_of)
        gone_edges = distinct(self.passage_edges.gather(gone)[0])
        touched = distinct(np.concatenate([self.edge_members.gather(gone_edges)[0], new.entities]))
        rows = np.arange(first, len(passage_of))
        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        members = self.edge_members.rewritten(gone_edges, nothing[0], *nothing).rewritten(
            rows, new.hyperedges - first, new.entities, new.strengths
        )
        owner = np.searchsorted(touched, new.entities)
        memberships = _moved(self.entity_edges, touched, gone_edges, owner, new.hyperedges, new.strengths)
        of_incidence = new.passage_of[new.hyperedges - first]
        by_entity = _moved(self.entity_passages, touched, gone, owner, of_incidence, new.strengths)
        with_edges = distinct(new.passage_of)
        hyperedges = self.passage_edges.rewritten(gone, nothing[0], *nothing).rewritten(
            with_edges, np.searchsorted(with_edges, new.passage_of), rows, np.zeros(len(rows), dtype=np.float32)
        )
        moved = Incidences(
            passage_of, self.edge_score.extended(new.scores), members, memberships, by_entity, hyperedges, self.names
        )
        if keys is None:
            return moved, touched
        known = touched[touched < len(self.names.keys)]
        was_subject = np.zeros(len(touched), dtype=bool)
        was_subject[: len(known)] = self.are_subjects(known)
        changed = touched[moved.are_subjects(touched) != was_subject]
        names, renamed = self.names.advanced(keys, changed, touched, moved.are_subjects, moved.are_there)
        return replace(moved, names=names), union([touched, renamed])

    def named(self, keys: EntityKeys) -> Incidences:
        """The same with all names that stand for subjects, told anew; ``keys`` are those of all entities."""
        rows = np.arange(len(keys))
        return replace(self, names=SubjectNames.of(keys, self.are_subjects(rows), self.are_there(rows)))


def _moved(
    adjacency: PatchedAdjacency,
    rows: IntArray,
    gone: IntArray,
    owners: IntArray,
    neighbours: IntArray,
    weights: FloatArray,
) -> PatchedAdjacency:
    """An adjacency without some neighbours of some rows, and with others."""
    kept, kept_owners, kept_weights = adjacency.gather(rows)
    stays = ~among(kept, gone)
    return adjacency.rewritten(
        rows,
        np.concatenate([kept_owners[stays], owners]),
        np.concatenate([kept[stays], neighbours]),
        np.concatenate([kept_weights[stays], weights]),
    )


def _united(stored: tuple[IntArray, IntArray], of_subjects: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
    """Neighbours and owners of both, by owner, each pair once, those of one owner sorted."""
    if not len(of_subjects[0]):
        return stored
    neighbours, owners = (np.concatenate(both) for both in zip(stored, of_subjects, strict=True))
    order = np.lexsort((neighbours, owners))
    neighbours, owners = neighbours[order], owners[order]
    first = _first(owners, neighbours)
    return neighbours[first], owners[first]


def _first(owners: IntArray, neighbours: IntArray) -> BoolArray:
    """Which of some sorted pairs differ from the one before."""
    first = np.ones(len(owners), dtype=bool)
    np.not_equal(owners[1:], owners[:-1], out=first[1:])
    first[1:] |= neighbours[1:] != neighbours[:-1]
    return first
