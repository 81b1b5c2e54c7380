"""How far names lead to what is about them: a statistic of an index that says how much links count.

It is 1 where at least a tenth of the passages have a strong subject, of their own, that another document mentions, as
articles of an encyclopaedia do, and falls to 0 where none has, as in a novel. The headings of a manual are mentioned by
the manual itself, or, as "Options", are those of many places.
"""

from __future__ import annotations

import numpy as np

from polyad.embedded.columns import Column
from polyad.embedded.incidences import Incidences
from polyad.hypergraph.incidence import distinct
from polyad.hypergraph.sparse import among
from polyad.model import BoolArray, IntArray

OWN = 2
"""Most passages that a subject is the strong one of to be their own: the name of a place, not of a kind of place."""

ENOUGH = 0.1
"""Share of the passages that names lead to from elsewhere, from which on links are as telling as they get."""


def linkability(linkable: int, passages: int) -> float:
    """In [0, 1], from the number of passages that names lead to from elsewhere, and of all."""
    return min(1.0, linkable / max(1, passages) / ENOUGH)


def passages_touched(graph: Incidences, entities: IntArray) -> IntArray:
    """The passages whose links may depend on the incidences of some entities; sorted.

    Those whose own, strong subject one of them is: of an entity that is the subject of many nothing depends.
    """
    passages, owners, strengths = graph.about(entities)
    sure = strengths >= 1
    few = np.bincount(owners[sure], minlength=len(entities)) <= OWN
    return distinct(passages[sure & few[owners]])


def count_linkable(graph: Incidences, document: Column, passages: IntArray) -> int:
    """How many of some passages have a strong subject of their own that another document mentions.

    Args:
        graph: The hypergraph.
        document: A number for the document of each passage.
        passages: Rows, each once.
    """
    edges, owners = graph.hyperedges(passages)
    entities, places, strengths = graph.edge_members.gather(edges)
    sure = strengths >= 1
    subjects, owners = entities[sure], owners[places[sure]]
    names, of_subject, _ = graph.names.names.gather(subjects)
    subjects, owners = np.concatenate([subjects, names]), np.concatenate([owners, owners[of_subject]])
    unique = distinct(subjects)
    telling, elsewhere = _mentioned_elsewhere(graph, document, unique)
    own_document = document.at(passages).astype(np.int64)[owners]
    first, last = elsewhere
    places = np.searchsorted(unique, subjects)
    links = telling[places] & ((first[places] < own_document) | (last[places] > own_document))
    return len(distinct(owners[links]))


def _mentioned_elsewhere(
    graph: Incidences, document: Column, entities: IntArray
) -> tuple[BoolArray, tuple[IntArray, IntArray]]:
    """Which of some entities are the strong subject of few passages, and the first and last document that mention each.

    Passages about an entity do not count as mentions; where none mentions it, no document is before the first, or after
    the last.
    """
    about, owners, strengths = graph.about(entities)
    telling = np.bincount(owners[strengths >= 1], minlength=len(entities)) <= OWN
    mentioned, mentioning = graph.mentions(entities)
    width = max(int(mentioned.max(initial=0)), int(about.max(initial=0))) + 1
    only = ~among(mentioning * width + mentioned, owners * width + about)
    documents = document.at(mentioned[only]).astype(np.int64)
    first, last = np.full(len(entities), np.iinfo(np.int64).max), np.full(len(entities), -1)
    np.minimum.at(first, mentioning[only], documents)
    np.maximum.at(last, mentioning[only], documents)
    return telling, (first, last)
