"""What a way to build hyperedges makes of documents, in numbers.

How many entities a hyperedge joins, how many hyperedges join an entity, how many sentences a hyperedge is of, and what
the surroundings of one entity are like (HyperGraphRAG, Figure 5 and Table 3; HyperSU, Table 5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyad.config import SplitSettings
from polyad.engine.catalogue import Catalogue
from polyad.indexing.split import SentenceSplitter
from polyad.text.counting import count_words

Counts = Mapping[int, int]
"""How many have each number, the numbers ascending."""

_AROUND = range(3, 7)
"""Hyperedges of the entity whose surroundings are drawn."""

_MOST_DRAWN = 24
"""Entities around it."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity with all that its hyperedges join it to.

    Attributes:
        entity: Its name.
        hyperedges: The names of the members of each of its hyperedges, its own among them.
    """

    entity: str
    hyperedges: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class HypergraphStatistics:
    """A hypergraph in numbers.

    Attributes:
        arity: How many hyperedges join so many entities.
        degree: How many entities are joined by so many hyperedges.
        sentences: How many hyperedges have a text of so many sentences.
        words: In all texts of hyperedges.
        neighbourhood: Of an entity with a few hyperedges; None where there is none.
    """

    arity: Counts
    degree: Counts
    sentences: Counts
    words: int
    neighbourhood: Neighbourhood | None

    @property
    def hyperedges(self) -> int:
        """How many there are."""
        return sum(self.arity.values())

    @property
    def entities(self) -> int:
        """How many there are."""
        return sum(self.degree.values())

    def to_json(self) -> dict[str, Any]:
        """As ``construction.json`` holds it."""
        near = self.neighbourhood
        return {
            "arity": dict(self.arity),
            "degree": dict(self.degree),
            "sentences": dict(self.sentences),
            "words": self.words,
            "neighbourhood": {"entity": near.entity, "hyperedges": [list(one) for one in near.hyperedges]}
            if near
            else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HypergraphStatistics:
        """What :meth:`to_json` gave, also when it went through a file, where all keys are texts.

        Raises:
            KeyError, TypeError, ValueError: it did not give that.
        """
        near = value["neighbourhood"]
        return cls(
            _counts_from(value["arity"]),
            _counts_from(value["degree"]),
            _counts_from(value["sentences"]),
            int(value["words"]),
            Neighbourhood(near["entity"], [list(one) for one in near["hyperedges"]]) if near else None,
        )


def compute_statistics(catalogue: Catalogue) -> HypergraphStatistics:
    """The hypergraph of an index in numbers."""
    hyperedges = catalogue.hyperedges()
    names: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for id, incidences in catalogue.incidences([one.id for one in hyperedges]).items():
        for one in incidences:
            names[one.entity_key] = min(names.get(one.entity_key, one.name), one.name)
        members[id] = sorted({one.entity_key for one in incidences})
    of_entity: dict[str, list[str]] = {}
    for id, keys in members.items():
        for key in keys:
            of_entity.setdefault(key, []).append(id)
    splitter = SentenceSplitter(SplitSettings())
    near = _typical(of_entity, members)
    return HypergraphStatistics(
        arity=_counted([len(members.get(one.id, ())) for one in hyperedges]),
        degree=_counted([len(ids) for ids in of_entity.values()]),
        sentences=_counted([len(splitter.sentences(one.text)) for one in hyperedges]),
        words=sum(count_words(one.text) for one in hyperedges),
        neighbourhood=Neighbourhood(names[near], [[names[key] for key in members[id]] for id in of_entity[near]])
        if near is not None
        else None,
    )


def compute_mean(counts: Counts) -> float:
    """Of what is counted; 0 for nothing.

    >>> compute_mean({2: 1, 4: 3})
    3.5
    """
    total = sum(counts.values())
    return sum(size * count for size, count in counts.items()) / total if total else 0.0


def _counted(sizes: Sequence[int]) -> Counts:
    return dict(sorted(Counter(sizes).items()))


def _counts_from(value: Mapping[str, int]) -> Counts:
    return {int(size): int(count) for size, count in value.items()}


def _typical(of_entity: Mapping[str, Sequence[str]], members: Mapping[str, Sequence[str]]) -> str | None:
    """The key of an entity with a few hyperedges, and around it as many as can be drawn; no number or date."""
    around = {
        key: len({other for id in ids for other in members[id]}) - 1
        for key, ids in of_entity.items()
        if len(ids) in _AROUND and not any(letter.isdigit() for letter in key)
    }
    drawable = [key for key, others in around.items() if others <= _MOST_DRAWN]
    return min(drawable, key=lambda key: (-len(of_entity[key]), -around[key], key), default=None)
