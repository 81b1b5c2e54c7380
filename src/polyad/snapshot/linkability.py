"""How far names lead to what is about them: a statistic of an index that says how much links count.

A passage counts that has a strong subject, of its own, which another document mentions by name: it counts whole where
one other passage mentions the subject, and the less, the more do. So it is 1 for articles of an encyclopaedia, where a
name that is mentioned once leads to its article, and falls to 0 for a novel, where no passage is about anything. The
headings of manuals are mentioned by others too, but in common words ("root directory"), which need not mean them.
"""

from __future__ import annotations

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import is_in
from polyad.model import BoolArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.incidences import Incidences

OWN = 2
"""Most passages that a subject is the strong one of to be their own: the name of a place, not of a kind of place."""

BY_CHANCE = 0.01
"""What passages count on average at most where names that are the same hardly ever mean the same."""

ENOUGH = 0.045
"""From which average on links are as telling as they get."""

_WHOLE = 2**32
"""What a passage counts at most: whole numbers have the same sum in any order."""


def linkability(linkable: int, passages: int) -> float:
    """In [0, 1], from what all passages count together, and how many there are."""
    average = linkable / _WHOLE / max(1, passages)
    return min(1.0, max(0.0, (average - BY_CHANCE) / (ENOUGH - BY_CHANCE)))


def passages_touched(graph: Incidences, entities: IntArray) -> IntArray:
    """The passages whose links may depend on the incidences of some entities; sorted.

    Those whose own, strong subject one of them is: of an entity that is the subject of many nothing depends.
    """
    passages, owners, strengths = graph.passages_about(entities)
    sure = strengths >= 1
    few = np.bincount(owners[sure], minlength=len(entities)) <= OWN
    return sort_unique(passages[sure & few[owners]])


def count_linkable(graph: Incidences, document: Column, passages: IntArray) -> int:
    """What some passages count together: each by its own, strong subject that the fewest others mention.

    Args:
        graph: The hypergraph.
        document: A number for the document of each passage.
        passages: Rows, each once.
    """
    if not len(passages):
        return 0
    edges, owners = graph.hyperedges(passages)
    entities, places, strengths = graph.edge_members.get_neighbours(edges)
    sure = strengths >= 1
    subjects, owners = entities[sure], owners[places[sure]]
    names, of_subject = graph.names.of_subjects(subjects)
    subjects, owners = np.concatenate([subjects, names]), np.concatenate([owners, owners[of_subject]])
    unique = sort_unique(subjects)
    telling, count, first, last = _mentioned_elsewhere(graph, document, unique)
    own_document = document.at(passages).astype(np.int64)[owners]
    places = np.searchsorted(unique, subjects)
    links = telling[places] & ((first[places] < own_document) | (last[places] > own_document))
    fewest = np.full(len(passages), np.iinfo(np.int64).max)
    np.minimum.at(fewest, owners[links], count[places[links]])
    return int((_WHOLE // fewest).sum())


def _mentioned_elsewhere(
    graph: Incidences, document: Column, entities: IntArray
) -> tuple[BoolArray, IntArray, IntArray, IntArray]:
    """How some entities are mentioned by name, ``[entities]`` each.

    Passages about an entity do not count as mentions; where none mentions it, no document is before the first, or after
    the last.

    Returns:
        Which are the strong subject of few passages, how many passages mention each, and the first and the last
        document that does.
    """
    about, owners, strengths = graph.passages_about(entities)
    telling = np.bincount(owners[strengths >= 1], minlength=len(entities)) <= OWN
    mentioned, mentioning, written = graph.entity_passages.get_neighbours(entities)
    width = max(int(mentioned.max(initial=0)), int(about.max(initial=0))) + 1
    only = (written == 0) & ~is_in(mentioning * width + mentioned, owners * width + about)
    documents = document.at(mentioned[only]).astype(np.int64)
    first, last = np.full(len(entities), np.iinfo(np.int64).max), np.full(len(entities), -1)
    np.minimum.at(first, mentioning[only], documents)
    np.maximum.at(last, mentioning[only], documents)
    return telling, np.bincount(mentioning[only], minlength=len(entities)), first, last
