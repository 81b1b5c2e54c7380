"""Which entities each hyperedge joins, as stored, and with the names that stand for its subject elsewhere.

A hyperedge's subject is in it also by each name that stands for it in other texts, as it would be by a title (see
:mod:`polyad.snapshot.subject_names`). These names are put in where neighbours are asked for; what is kept is what was
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import union
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import GrowingAdjacency, Presence, PrunedAdjacency
from polyad.snapshot.ids import EntityKeys
from polyad.snapshot.subject_names import SubjectNames


@dataclass(frozen=True, slots=True)
class NewIncidences:
    """The incidences of hyperedges that came.

    Attributes:
        passages: How many came, with hyperedges or without.
        passage_of: Row of the passage of each new hyperedge, in the order of their rows; ``[hyperedges]``.
        scores: Of each new hyperedge; ``[hyperedges]``.
        entities, hyperedges: Rows, ``[incidences]`` each.
        strengths: How surely the passage is about the entity; above 0 where it is a subject, below where it is
            mentioned in common words; ``[incidences]``.
    """

    passages: int
    passage_of: IntArray
    scores: FloatArray
    entities: IntArray
    hyperedges: IntArray
    strengths: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Incidences:
    """The hypergraph of a snapshot. Immutable; rows of what has gone are in no other row, and empty.

    Attributes:
        edge_passage: The passage of each hyperedge.
        edge_score: The score of each hyperedge, in (0, 10].
        edge_members: Entities of each hyperedge, with the strength of each.
        entity_edges: Hyperedges of each entity, likewise.
        entity_passages: Passages that mention each entity, with the strength with which each is about it; 0 for not,
            and below where it is written in common words alone.
        subject_passages: Those of them that are about it.
        passage_edges: Hyperedges of each passage.
        names: What stands for a subject elsewhere.
    """

    edge_passage: Column
    edge_score: Column
    edge_members: GrowingAdjacency
    entity_edges: PrunedAdjacency
    entity_passages: PrunedAdjacency
    subject_passages: PrunedAdjacency
    passage_edges: GrowingAdjacency
    names: SubjectNames

    @classmethod
    def none(cls) -> Incidences:
        """Of an index without documents."""
        rows, mentions = GrowingAdjacency.none(), PrunedAdjacency.none()
        passages, scores = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        names = SubjectNames.none()
        return cls(Column.of(passages), Column.of(scores), rows, mentions, mentions, mentions, rows, names)

    # As stored

    def are_subjects(self, entities: IntArray) -> BoolArray:
        """Whether some passage is about each."""
        return self.subject_passages.degrees(entities) > 0

    def are_there(self, entities: IntArray) -> BoolArray:
        """Whether any hyperedge joins each."""
        return self.entity_edges.degrees(entities) > 0

    def stored_members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges as stored, and the position in ``hyperedges`` each belongs to."""
        return _gathered(self.edge_members, hyperedges, self.entity_edges.there)[:2]

    def passages(self, hyperedges: IntArray) -> IntArray:
        """The passage of each of some hyperedges."""
        found: IntArray = self.edge_passage.at(hyperedges).astype(np.int64)
        return found

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some passages, and the position in ``passages`` each belongs to."""
        return _gathered(self.passage_edges, passages, self.entity_passages.there)[:2]

    def scores(self, hyperedges: IntArray) -> FloatArray:
        """The score of each of some hyperedges, in (0, 10]."""
        found: FloatArray = self.edge_score.at(hyperedges)
        return found

    # With the names that stand for subjects

    def members(self, hyperedges: IntArray) -> tuple[IntArray, IntArray]:
        """The entities of each of some hyperedges, and for each the position in ``hyperedges`` it belongs to."""
        entities, owners, strengths = _gathered(self.edge_members, hyperedges, self.entity_edges.there)
        subjects = strengths > 0
        names, places = self.names.of_subjects(entities[subjects])
        return _united((entities, owners), (names, owners[subjects][places]))

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """The hyperedges of each of some entities, and for each the position in ``entities`` it belongs to."""
        own, owners, _ = self.entity_edges.get_neighbours(entities)
        named, subjects = self._subjects(entities)
        if not len(named):
            return own, owners
        edges, places, strengths = self.entity_edges.get_neighbours(subjects)
        about = strengths > 0
        return _united((own, owners), (edges[about], named[places[about]]))

    def mentions(self, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The passages that mention each of some entities, the position each belongs to, and how surely it is about it.

        A passage is mentioned in also by what it is about in the name of a subject; of two strengths the higher counts.
        """
        passages, owners, strengths = self.entity_passages.get_neighbours(entities)
        named, subjects = self._subjects(entities)
        if not len(named):
            return passages, owners, strengths
        of_subjects, places, sure = self.subject_passages.get_neighbours(subjects)
        return _surest((passages, owners, strengths), (of_subjects, named[places], sure))

    def passages_about(self, entities: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The passages about each of some entities, the position each belongs to, and how surely it is its subject."""
        passages, owners, strengths = self.subject_passages.get_neighbours(entities)
        named, subjects = self._subjects(entities)
        if not len(named):
            return passages, owners, strengths
        of_subjects, places, sure = self.subject_passages.get_neighbours(subjects)
        return _surest((passages, owners, strengths), (of_subjects, named[places], sure))

    def mention_counts(self, entities: IntArray) -> IntArray:
        """How many passages mention each of some entities, or are about it."""
        found = self.entity_passages.degrees(entities)
        named, _ = self._subjects(entities)
        if len(named):
            found = found.copy()
            found[named] = np.bincount(self.mentions(entities[named])[1], minlength=len(named))
        return found

    def resolve_name_variants(self, names: Sequence[str]) -> dict[str, int]:
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
        first, came = len(self.edge_passage), len(new.passage_of)
        rows = np.arange(first, first + came)
        gone_edges, _ = self.hyperedges(gone)
        lost, owners, strengths = self.edge_members.get_neighbours(gone_edges)
        lost_passages = self.passages(gone_edges)[owners]
        touched = sort_unique(np.concatenate([lost, new.entities]))
        edges_there = self.entity_edges.there.advanced(gone_edges, came)
        passages_there = self.entity_passages.there.advanced(gone, new.passages)
        about, was_about = new.strengths > 0, strengths > 0
        of_incidence = new.passage_of[new.hyperedges - first]
        moved = replace(
            self,
            edge_passage=self.edge_passage.extended(new.passage_of),
            edge_score=self.edge_score.extended(new.scores),
            edge_members=self.edge_members.extended(new.hyperedges, new.entities, new.strengths),
            entity_edges=self.entity_edges.advanced(edges_there, lost, new.entities, new.hyperedges, new.strengths),
            entity_passages=self.entity_passages.advanced(
                passages_there, _pairs(lost, lost_passages), new.entities, of_incidence, new.strengths
            ),
            subject_passages=self.subject_passages.advanced(
                passages_there,
                _pairs(lost[was_about], lost_passages[was_about]),
                *(new.entities[about], of_incidence[about], new.strengths[about]),
            ),
            passage_edges=self.passage_edges.extended(new.passage_of, rows, np.zeros(came, dtype=np.float32)),
        )
        if keys is None:
            return moved, touched
        subjects = touched[moved.are_subjects(touched) != self.are_subjects(touched)]
        others = touched[moved.are_there(touched) != self.are_there(touched)]
        names, renamed = self.names.advanced(keys, subjects, others, moved.are_subjects, moved.are_there)
        return replace(moved, names=names), union([touched, renamed])

    def named(self, keys: EntityKeys) -> Incidences:
        """The same with all names that stand for subjects, told anew; ``keys`` are those of all entities."""
        rows = np.arange(len(keys))
        return replace(self, names=SubjectNames.of(keys, self.are_subjects(rows), self.are_there(rows)))


def _gathered(adjacency: GrowingAdjacency, rows: IntArray, there: Presence) -> tuple[IntArray, IntArray, FloatArray]:
    """The neighbours of those of some rows that have not gone."""
    places = there.at(rows).nonzero()[0]
    neighbours, owners, weights = adjacency.get_neighbours(rows[places])
    return neighbours, places[owners], weights


def _pairs(entities: IntArray, passages: IntArray) -> IntArray:
    """The entity of each pair, of which some may be given more than once."""
    width = int(passages.max(initial=0)) + 1
    return sort_unique(entities * width + passages) // width


def _united(stored: tuple[IntArray, IntArray], of_subjects: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
    """Neighbours and owners of both, by owner, each pair once, those of one owner sorted."""
    if not len(of_subjects[0]):
        return stored
    neighbours, owners = (np.concatenate(both) for both in zip(stored, of_subjects, strict=True))
    order = np.lexsort((neighbours, owners))
    neighbours, owners = neighbours[order], owners[order]
    first = _first(owners, neighbours)
    return neighbours[first], owners[first]


Mentions = tuple[IntArray, IntArray, FloatArray]
"""Passages, the position of the entity that each belongs to, and how surely it is about it."""


def _surest(own: Mentions, of_subjects: Mentions) -> Mentions:
    """Both, by owner, each pair once with its highest strength, the passages of one owner sorted."""
    passages = np.concatenate([own[0], of_subjects[0]])
    owners = np.concatenate([own[1], of_subjects[1]])
    strengths = np.concatenate([own[2], of_subjects[2]])
    order = np.lexsort((-strengths, passages, owners))
    order = order[_first(owners[order], passages[order])]
    return passages[order], owners[order], strengths[order]


def _first(owners: IntArray, neighbours: IntArray) -> BoolArray:
    """Which of some sorted pairs differ from the one before."""
    first = np.ones(len(owners), dtype=bool)
    np.not_equal(owners[1:], owners[:-1], out=first[1:])
    first[1:] |= neighbours[1:] != neighbours[:-1]
    return first
