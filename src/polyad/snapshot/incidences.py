"""The incidences of a snapshot, as stored and with the name variants of subjects.

The subject of a hyperedge is a member also under each of its name variants, as it would be under a title (see
:mod:`polyad.snapshot.name_variants`). Variants are added when neighbours are read; the arrays hold what was stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.hypergraph.sparse import is_in, mark_first_of_equals, sort_unique, union
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.adjacency import PrunedAdjacency
from polyad.snapshot.columns import Column, EntityKeys, LiveRows
from polyad.snapshot.name_variants import NamedEntities, NameVariants
from polyad.snapshot.segments import Neighbours, Segment, SegmentList


@dataclass(frozen=True, slots=True)
class NewIncidences:
    """The hyperedges of newly added documents and their member entities, as parallel arrays.

    Attributes:
        passage_count: Number of new passages, with or without hyperedges.
        passage_of: Passage row of each new hyperedge; ``[hyperedges]``.
        scores: Score of each new hyperedge; ``[hyperedges]``.
        entities: Entity row of each incidence; ``[incidences]``.
        hyperedges: Hyperedge row of each incidence; ``[incidences]``.
        strengths: Subject strength of each incidence; above 0 if the passage is about the entity, below 0 if it
            mentions the entity in common words; ``[incidences]``.
    """

    passage_count: int
    passage_of: IntArray
    scores: FloatArray
    entities: IntArray
    hyperedges: IntArray
    strengths: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Incidences:
    """The hypergraph as adjacency lists: entities and passage of each hyperedge, hyperedges of each entity and passage.

    Implements ``SnapshotGraph``. Immutable.

    Deleted rows have no neighbours and are the neighbours of no row.

    Attributes:
        edge_passage: The passage of each hyperedge.
        edge_score: The score of each hyperedge, in (0, 10].
        edge_members: Entities of each hyperedge, with subject strengths.
        entity_edges: Hyperedges of each entity, with subject strengths.
        entity_passages: Passages that mention each entity, with subject strengths: 0 for a mention by name, below 0 for
            a mention in common words.
        subject_passages: The part of ``entity_passages`` with strengths above 0.
        passage_edges: Hyperedges of each passage.
        variants: The names that stand for a subject in other texts.
    """

    edge_passage: Column
    edge_score: Column
    edge_members: SegmentList
    entity_edges: PrunedAdjacency
    entity_passages: PrunedAdjacency
    subject_passages: PrunedAdjacency
    passage_edges: SegmentList
    variants: NameVariants

    @classmethod
    def empty(cls) -> Incidences:
        """Return the hypergraph of an index without documents."""
        growing, pruned = SegmentList.empty(), PrunedAdjacency.empty()
        passages, scores = Column.empty(np.int32), Column.empty(np.float32)
        return cls(passages, scores, growing, pruned, pruned, pruned, growing, NameVariants.empty())

    @property
    def live_hyperedges(self) -> LiveRows:
        """The boolean mask of hyperedges that are not deleted."""
        return self.entity_edges.live

    @property
    def live_passages(self) -> LiveRows:
        """The boolean mask of passages that are not deleted."""
        return self.entity_passages.live

    # As stored

    def are_subjects(self, entities: IntArray) -> BoolArray:
        """Return whether each entity is the main topic of at least one passage; bool ``[entities]``."""
        return self.subject_passages.degrees(entities) > 0

    def are_live(self, entities: IntArray) -> BoolArray:
        """Return whether each entity is in at least one hyperedge that is not deleted; bool ``[entities]``."""
        return self.entity_edges.degrees(entities) > 0

    def passages(self, hyperedges: IntArray) -> IntArray:
        """Return the row number of the passage that each hyperedge comes from; int64 ``[hyperedges]``."""
        passages: IntArray = self.edge_passage.take(hyperedges).astype(np.int64)
        return passages

    def hyperedges(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of passages as parallel arrays: hyperedge, and index of its passage in ``passages``."""
        edges, owners, _ = _get_live_neighbours(self.passage_edges, passages, self.live_passages)
        is_live = self.live_hyperedges.are_live(edges)  # a filter or a date may exclude a hyperedge of a live passage
        return edges[is_live], owners[is_live]

    def subjects(self, passages: IntArray) -> Neighbours:
        """Return the entities that passages are about, as arrays: entity, index in ``passages``, strength in (0, 1].

        The strength is how certain it is that the passage is about the entity.

        A subject of several hyperedges of a passage is returned for each of them.
        """
        edges, owners = self.hyperedges(passages)
        entities, positions, strengths = self.edge_members.get_neighbours(edges)
        is_subject = strengths > 0
        return entities[is_subject], owners[positions[is_subject]], strengths[is_subject]

    # With name variants

    def members(self, hyperedges: IntArray, *, variants: bool = True) -> tuple[IntArray, IntArray]:
        """Return the entities in hyperedges, with ``variants`` also their short names, and indices in ``hyperedges``.

        The two arrays are parallel. Only subjects have short names (name variants).
        """
        entities, owners, strengths = _get_live_neighbours(self.edge_members, hyperedges, self.live_hyperedges)
        if not variants:
            return entities, owners
        is_subject = strengths > 0
        names, places = self.variants.get_variants(entities[is_subject])
        if self.entity_edges.is_restricted:  # a restricted hypergraph may have the variants of the whole index
            is_live = self.are_live(names)
            names, places = names[is_live], places[is_live]
        if not len(names):
            return entities, owners
        return _merge_neighbours(
            (entities, owners, strengths), (names, owners[is_subject][places], np.zeros(len(names), dtype=np.float32))
        )[:2]

    def memberships(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the hyperedges of the entities as parallel arrays: hyperedge, and index in ``entities``.

        A name variant also has the hyperedges about the subject that it stands for.
        """
        stored = self.entity_edges.get_neighbours(entities)
        names, subjects = self._find_full_names(entities)
        if not len(names):
            return stored[:2]
        edges, places, strengths = self.entity_edges.get_neighbours(subjects)
        is_about = strengths > 0
        return _merge_neighbours(stored, (edges[is_about], names[places[is_about]], strengths[is_about]))[:2]

    def mentions(self, entities: IntArray, *, as_subject: bool = False) -> Neighbours:
        """Return the passages that mention entities; with ``as_subject``, only the passages about entities.

        A variant is mentioned also by the passages about its subject. The higher of two strengths counts. With
        ``as_subject``, only passages about the entity or its subject are returned.

        Returns:
            Three parallel arrays: passage, index in ``entities``, and strength. The strength is how certainly the
            passage is about the entity; it is 0 or below for a passage that only mentions the entity.
        """
        stored = (self.subject_passages if as_subject else self.entity_passages).get_neighbours(entities)
        names, subjects = self._find_full_names(entities)
        if not len(names):
            return stored
        about, places, strengths = self.subject_passages.get_neighbours(subjects)
        return _merge_neighbours(stored, (about, names[places], strengths))

    def mention_counts(self, entities: IntArray) -> IntArray:
        """Return the number of passages that mention each entity or are about it; int ``[entities]``."""
        counts = self.entity_passages.degrees(entities)
        names, _ = self._find_full_names(entities)
        if len(names):
            counts = counts.copy()
            counts[names] = np.bincount(self.mentions(entities[names])[1], minlength=len(names))
        return counts

    def _find_full_names(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """Return the full names of short-named entities, as arrays: index in ``entities``, row of the full name."""
        subjects = self.variants.subject.take(entities)
        positions = (subjects >= 0).nonzero()[0]
        return positions, subjects[positions].astype(np.int64)

    def resolve_name_variants(self, keys: EntityKeys, names: Sequence[str]) -> dict[str, int]:
        """Return a dictionary from short name ("Ed Sullivan") to the row of the only entity with a matching full name.

        Omit names that cannot be resolved.
        """
        rows = self.variants.resolve(names, self._get_named_entities(keys)).tolist()
        return {name: row for name, row in zip(names, rows, strict=True) if row >= 0}

    def restrict(self, passages: BoolArray, hyperedges: BoolArray | None = None) -> Incidences:
        """Return the hypergraph with only the selected passages and hyperedges, for example by a filter.

        Args:
            passages: Mask of the passages; bool ``[passages]``.
            hyperedges: Mask of the hyperedges; None for all of these passages.
        """
        in_passages = passages[self.edge_passage.to_array()]
        live_edges = self.live_hyperedges.restrict(in_passages if hyperedges is None else in_passages & hyperedges)
        live_passages = self.live_passages.restrict(passages)
        return replace(
            self,
            entity_edges=self.entity_edges.restrict(live_edges),
            entity_passages=self.entity_passages.restrict(live_passages),
            subject_passages=self.subject_passages.restrict(live_passages),
        )

    # Advancing

    def with_changes(self, deleted: IntArray, new: NewIncidences) -> tuple[Incidences, IntArray]:
        """Return (hypergraph without ``deleted`` and with ``new`` passages, entities of all deleted and new passages).

        Short names are not resolved again: see :meth:`update_short_names`.

        Args:
            deleted: Rows of passages, sorted.
            new: The hyperedges of new passages.
        """
        first, added = len(self.edge_passage), len(new.passage_of)
        deleted_edges, _ = self.hyperedges(deleted)
        lost, owners, strengths = self.edge_members.get_neighbours(deleted_edges)
        lost_passages = self.passages(deleted_edges)[owners]
        live_edges = self.live_hyperedges.with_changes(deleted_edges, added)
        live_passages = self.live_passages.with_changes(deleted, new.passage_count)
        was_about, is_about = strengths > 0, new.strengths > 0
        passages = new.passage_of[new.hyperedges - first]
        build_pairs = Segment.from_entries
        later = Incidences(
            self.edge_passage.append(new.passage_of),
            self.edge_score.append(new.scores),
            self.edge_members.append(build_pairs(new.hyperedges, new.entities, new.strengths)),
            self.entity_edges.with_changes(
                live_edges,
                deleted=build_pairs(lost, deleted_edges[owners]),
                added=build_pairs(new.entities, new.hyperedges, new.strengths),
            ),
            self.entity_passages.with_changes(
                live_passages,
                deleted=build_pairs(lost, lost_passages),
                added=build_pairs(new.entities, passages, new.strengths),
            ),
            self.subject_passages.with_changes(
                live_passages,
                deleted=build_pairs(lost[was_about], lost_passages[was_about]),
                added=build_pairs(new.entities[is_about], passages[is_about], new.strengths[is_about]),
            ),
            self.passage_edges.append(build_pairs(new.passage_of, np.arange(first, first + added))),
            self.variants,
        )
        return later, union([lost, new.entities])

    def update_short_names(
        self, keys: EntityKeys, earlier: Incidences, changed: IntArray
    ) -> tuple[Incidences, IntArray]:
        """Resolve short names again after entities changed; return (hypergraph, rows of all affected entities).

        Args:
            keys: The keys of all entities.
            earlier: The hypergraph before the change.
            changed: Rows of the entities whose passages changed.
        """
        subjects = changed[self.are_subjects(changed) != earlier.are_subjects(changed)]
        entities = changed[self.are_live(changed) != earlier.are_live(changed)]
        variants, renamed = self.variants.with_changes(self._get_named_entities(keys), subjects, entities)
        return replace(self, variants=variants), union([changed, renamed])

    def resolve_short_names(self, keys: EntityKeys) -> Incidences:
        """Return the hypergraph with the full name of each short name, found among all entity ``keys``."""
        return replace(self, variants=NameVariants.build(self._get_named_entities(keys)))

    def resolve_short_names_in_part(self, keys: EntityKeys) -> Incidences:
        """Return this filtered hypergraph with the full name of each short name, found among the selected entities."""
        entities, _, strengths = self.edge_members.get_neighbours(self.live_hyperedges.to_rows())
        are_live, are_subjects = np.zeros((2, len(keys)), dtype=bool)
        are_live[entities] = True
        are_subjects[entities[strengths > 0]] = True
        selected = NamedEntities(keys, are_subjects.__getitem__, are_live.__getitem__)
        return replace(self, variants=NameVariants.build(selected, is_final=True))

    def _get_named_entities(self, keys: EntityKeys) -> NamedEntities:
        return NamedEntities(keys, self.are_subjects, self.are_live)


def _get_live_neighbours(adjacency: SegmentList, rows: IntArray, live: LiveRows) -> Neighbours:
    """Return the neighbours of the live rows among ``rows``, as arrays: neighbour, index in ``rows``, weight."""
    positions = live.are_live(rows).nonzero()[0]
    neighbours, owners, weights = adjacency.get_neighbours(rows[positions])
    return neighbours, positions[owners], weights


def _merge_neighbours(stored: Neighbours, additional: Neighbours) -> Neighbours:
    """Merge two sorted results of adjacency lookups; a duplicate pair keeps its highest weight."""
    neighbours = np.concatenate([stored[0], additional[0]])
    owners = np.concatenate([stored[1], additional[1]])
    weights = np.concatenate([stored[2], additional[2]])
    pairs = owners * (neighbours.max(initial=0) + 1) + neighbours
    order = np.lexsort((-weights, pairs))
    order = order[mark_first_of_equals(pairs[order])]
    return neighbours[order], owners[order], weights[order]


MAX_OWN_PASSAGES = 2
"""Most passages with the same strong subject, of which each counts: more passages share the name of a kind of thing."""

CHANCE = 0.01
"""Highest average count of a passage where equal names rarely mean the same thing: linkability 0."""

SUFFICIENT = 0.045
"""Average count of a passage from which links are fully reliable: linkability 1."""

_UNIT = 2**32
"""The count 1 as an integer: integers have the same sum in any order."""


def compute_linkability(link_count: int, passage_count: int) -> float:
    """Return the linkability, in [0, 1]: how reliably a name leads to the passage about the named entity."""
    average = link_count / _UNIT / max(1, passage_count)
    return min(1.0, max(0.0, (average - CHANCE) / (SUFFICIENT - CHANCE)))


def find_affected_passages(graph: Incidences, entities: IntArray) -> IntArray:
    """Return the sorted passages whose links to other passages may change when hyperedges of ``entities`` change.

    These passages have one of the entities as a strong subject (certain main topic) that few passages share. An entity
    that is the subject of many passages affects no count.
    """
    passages, owners, strengths = graph.mentions(entities, as_subject=True)
    is_strong = strengths >= 1
    is_own = np.bincount(owners[is_strong], minlength=len(entities)) <= MAX_OWN_PASSAGES
    return sort_unique(passages[is_strong & is_own[owners]])


def count_links(graph: Incidences, document_of_passage: Column, passages: IntArray) -> int:
    """Return the weighted number of links to ``passages``: mentions, in other documents, of their main entities.

    The unit is 2^-32, so that sums are exact.

    A passage counts by its own strong subject that the fewest other passages mention.

    Args:
        graph: The hypergraph.
        document_of_passage: The document row of each passage.
        passages: Unique rows.
    """
    if not len(passages):
        return 0
    edges, owners = graph.hyperedges(passages)
    entities, places, strengths = graph.edge_members.get_neighbours(edges)
    is_strong = strengths >= 1
    subjects, owners = entities[is_strong], owners[places[is_strong]]
    names, places = graph.variants.get_variants(subjects)
    subjects, owners = np.concatenate([subjects, names]), np.concatenate([owners, owners[places]])
    unique = sort_unique(subjects)
    is_own, mention_counts, first, last = _count_mentions(graph, document_of_passage, unique)
    own_document = document_of_passage.take(passages).astype(np.int64)[owners]
    places = np.searchsorted(unique, subjects)
    is_link = is_own[places] & ((first[places] < own_document) | (last[places] > own_document))
    fewest = np.full(len(passages), np.iinfo(np.int64).max)
    np.minimum.at(fewest, owners[is_link], mention_counts[places[is_link]])
    return int((_UNIT // fewest).sum())


def _count_mentions(
    graph: Incidences, document_of_passage: Column, entities: IntArray
) -> tuple[BoolArray, IntArray, IntArray, IntArray]:
    """Return for each entity how many passages mention the entity, and in which documents, to count links.

    Returns:
        For each entity: whether it is the strong subject (main topic) of few passages; the number of passages that
        mention the entity but are not about it; and the first and the last document with such a passage. Without
        mentions the first document is above all documents, and the last is -1.
    """
    about, owners, strengths = graph.mentions(entities, as_subject=True)
    is_own = np.bincount(owners[strengths >= 1], minlength=len(entities)) <= MAX_OWN_PASSAGES
    passages, mentioned, kinds = graph.entity_passages.get_neighbours(entities)
    width = max(int(passages.max(initial=0)), int(about.max(initial=0))) + 1
    is_mention = (kinds == 0) & ~is_in(mentioned * width + passages, owners * width + about)
    mentioned, documents = mentioned[is_mention], document_of_passage.take(passages[is_mention]).astype(np.int64)
    first, last = np.full(len(entities), np.iinfo(np.int64).max), np.full(len(entities), -1)
    np.minimum.at(first, mentioned, documents)
    np.maximum.at(last, mentioned, documents)
    return is_own, np.bincount(mentioned, minlength=len(entities)), first, last
