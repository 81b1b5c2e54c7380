"""Linkability: how reliably names in an index lead to the passage about them.

A passage counts if another document mentions its own, strong subject by name: it counts 1 if one other passage mentions
the subject, and 1/n for n passages. So linkability is 1 for an encyclopaedia, where a name leads to its article, and
near 0 for a novel, whose passages are about nothing in particular. Mentions of headings of manuals in common words
("root directory") do not count, because they need not refer to the heading.
"""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import is_in
from polyad.model import BoolArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.incidences import Incidences

MAX_OWN_PASSAGES = 2
"""Most passages with the same strong subject, of which each counts: more passages share the name of a kind of thing."""

CHANCE = 0.01
"""Highest average count of a passage where equal names rarely mean the same thing: linkability 0."""

SUFFICIENT = 0.045
"""Average count of a passage from which links are fully reliable: linkability 1."""

_UNIT = 2**32
"""The count 1 as an integer: integers have the same sum in any order."""


def compute_linkability(link_count: int, passage_count: int) -> float:
    """Return how reliably names lead to the passage about them, in [0, 1], from the number of links and of passages."""
    average = link_count / _UNIT / max(1, passage_count)
    return min(1.0, max(0.0, (average - CHANCE) / (SUFFICIENT - CHANCE)))


def find_affected_passages(graph: Incidences, entities: IntArray) -> IntArray:
    """Return the passages whose link count may change if the incidences of these entities change, sorted.

    These are the passages with one of the entities as their own strong subject. An entity that is the subject of many
    passages affects no count.
    """
    passages, owners, strengths = graph.passages_about(entities)
    is_strong = strengths >= 1
    is_own = np.bincount(owners[is_strong], minlength=len(entities)) <= MAX_OWN_PASSAGES
    return sort_unique(passages[is_strong & is_own[owners]])


def count_links(graph: Incidences, document: Column, passages: IntArray) -> int:
    """Return how many links by name lead to the passages, as a fixed-point number in units of 2^-32.

    A passage counts by its own strong subject that the fewest other passages mention.

    Args:
        graph: The hypergraph.
        document: The document row of each passage.
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
    is_own, mention_counts, first, last = _count_mentions(graph, document, unique)
    own_document = document.take(passages).astype(np.int64)[owners]
    places = np.searchsorted(unique, subjects)
    is_link = is_own[places] & ((first[places] < own_document) | (last[places] > own_document))
    fewest = np.full(len(passages), np.iinfo(np.int64).max)
    np.minimum.at(fewest, owners[is_link], mention_counts[places[is_link]])
    return int((_UNIT // fewest).sum())


def _count_mentions(
    graph: Incidences, document: Column, entities: IntArray
) -> tuple[BoolArray, IntArray, IntArray, IntArray]:
    """Count how often entities are mentioned by name. A passage about an entity is not a mention.

    Returns:
        For each entity whether it is the strong subject of few passages, the number of passages that mention the
        entity, and the first and the last document that does; arrays ``[entities]``. Without mentions the first
        document is above all documents, and the last one is -1.
    """
    about, owners, strengths = graph.passages_about(entities)
    is_own = np.bincount(owners[strengths >= 1], minlength=len(entities)) <= MAX_OWN_PASSAGES
    passages, mentioned, kinds = graph.entity_passages.get_neighbours(entities)
    width = max(int(passages.max(initial=0)), int(about.max(initial=0))) + 1
    is_mention = (kinds == 0) & ~is_in(mentioned * width + passages, owners * width + about)
    mentioned, documents = mentioned[is_mention], document.take(passages[is_mention]).astype(np.int64)
    first, last = np.full(len(entities), np.iinfo(np.int64).max), np.full(len(entities), -1)
    np.minimum.at(first, mentioned, documents)
    np.maximum.at(last, mentioned, documents)
    return is_own, np.bincount(mentioned, minlength=len(entities)), first, last
