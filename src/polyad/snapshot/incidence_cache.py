"""The cached hyperedge memberships of entities that are members of many hyperedges."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from polyad.errors import StaleSnapshotError
from polyad.hypergraph.sparse import expand_ranges, sort_unique
from polyad.model import IntArray, LabelCount
from polyad.protocols.store import EntityIncidence
from polyad.snapshot.columns import StringColumn

_MAX_ADDED = 4096
"""Entities of which incidences are cached that are not saved."""


@dataclass(frozen=True, slots=True, eq=False)
class IncidenceCache:
    """A cache of the hyperedge memberships (incidences) of entities that are members of many hyperedges.

    Each incidence has the name, type, description and score that the hyperedge states for the entity.

    Attributes:
        entities: Entity row of each saved incidence, sorted; int32 ``[incidences]``.
        hyperedges: Primary key of the hyperedge of each saved incidence, ascending for each entity; int64
            ``[incidences]``.
        labels: Place of the label of each saved incidence in ``texts``; int32 ``[incidences]``.
        texts: Name, type, description and score of each label, as JSON; each label belongs to one entity.
        added: The incidences of an entity in later hyperedges, by entity row; searches add to it.
    """

    entities: npt.NDArray[np.int32]
    hyperedges: IntArray
    labels: npt.NDArray[np.int32]
    texts: StringColumn
    added: dict[int, Sequence[EntityIncidence]] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> IncidenceCache:
        """Return a cache without incidences (hyperedge memberships)."""
        nothing = np.empty(0, dtype=np.int32)
        return cls(nothing, nothing.astype(np.int64), nothing, StringColumn.from_strings([]))

    def get_last_saved(self, entities: IntArray) -> IntArray:
        """Return the primary key of each entity's newest hyperedge in the saved snapshot; 0 if there is none."""
        starts, ends = self._find_ranges(entities)
        last = np.zeros(len(entities), dtype=np.int64)
        is_saved = ends > starts
        last[is_saved] = self.hyperedges[ends[is_saved] - 1]
        return last

    def count_labels(self, entities: IntArray, hyperedges: IntArray) -> dict[int, list[LabelCount]]:
        """Return for each entity the (name, type, description, score) tuples in ``hyperedges``, with their counts.

        ``entities`` (rows) and ``hyperedges`` (primary keys) are parallel and select the incidences.

        Raises:
            StaleSnapshotError: A pair has no saved incidence.
        """
        unique = sort_unique(entities)
        starts, ends = self._find_ranges(unique)
        places, owners = expand_ranges(starts, ends - starts), np.arange(len(unique)).repeat(ends - starts)
        base = int(max(self.hyperedges.take(places).max(initial=0), hyperedges.max(initial=0))) + 1
        saved_pairs = owners * base + self.hyperedges.take(places)
        pairs = unique.searchsorted(entities) * base + hyperedges
        firsts, lasts = saved_pairs.searchsorted(pairs), saved_pairs.searchsorted(pairs, side="right")
        if (firsts == lasts).any():
            raise StaleSnapshotError
        selected = expand_ranges(firsts, lasts - firsts)
        labels, firsts, counts = np.unique(self.labels.take(places[selected]), return_index=True, return_counts=True)
        rows = unique[owners[selected[firsts]]].tolist()
        texts = json.loads(f"[{','.join(self.texts.take(labels.tolist()))}]")
        counted: defaultdict[int, list[LabelCount]] = defaultdict(list)
        for row, label, count in zip(rows, texts, counts.tolist(), strict=True):
            counted[row].append((*label, count))
        return counted

    def add(self, row: int, incidences: Sequence[EntityIncidence]) -> None:
        """Cache newer incidences (hyperedge memberships) of the frequent entity ``row`` in memory."""
        if len(self.added) >= _MAX_ADDED:
            self.added.clear()
        self.added[row] = incidences

    def _find_ranges(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        needles = entities.astype(self.entities.dtype)  # searchsorted converts the large array if types differ
        return self.entities.searchsorted(needles), self.entities.searchsorted(needles, side="right")
