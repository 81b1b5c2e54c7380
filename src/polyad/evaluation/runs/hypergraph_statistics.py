"""Statistics of a hypergraph: arity, degree, sentences per hyperedge, and the neighbourhood of one entity.

HyperGraphRAG, Figure 5 and Table 3; HyperSU, Table 5.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyad.config import SplitSettings
from polyad.engine.catalogue import Catalogue
from polyad.indexing.split import SentenceSplitter
from polyad.text.words import count_words

Histogram = Mapping[int, int]
"""Maps a size to its frequency, in ascending order of sizes."""

_EXAMPLE_DEGREES = range(3, 7)
"""Degrees of entities whose neighbourhood can be plotted."""

_MAX_NEIGHBOURS = 24
"""Most neighbours of the entity whose neighbourhood is plotted."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity and its hyperedges.

    Attributes:
        entity: Name of the entity.
        hyperedges: Names of the members of each of its hyperedges, the entity included.
    """

    entity: str
    hyperedges: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class HypergraphStatistics:
    """Size distributions of a hypergraph.

    Attributes:
        arity: Histogram of the number of entities of a hyperedge.
        degree: Histogram of the number of hyperedges of an entity.
        sentences: Histogram of the number of sentences in the text of a hyperedge.
        words: Number of words in the texts of all hyperedges.
        neighbourhood: Neighbourhood of an entity of small degree; None if there is no such entity.
    """

    arity: Histogram
    degree: Histogram
    sentences: Histogram
    words: int
    neighbourhood: Neighbourhood | None

    @property
    def hyperedges(self) -> int:
        """Number of hyperedges."""
        return sum(self.arity.values())

    @property
    def entities(self) -> int:
        """Number of entities."""
        return sum(self.degree.values())


def compute_statistics(catalogue: Catalogue) -> HypergraphStatistics:
    """Return the statistics of the hypergraph of an index."""
    hyperedges = catalogue.hyperedges()
    names: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for id, incidences in catalogue.incidences([hyperedge.id for hyperedge in hyperedges]).items():
        for incidence in incidences:
            names[incidence.entity_key] = min(names.get(incidence.entity_key, incidence.name), incidence.name)
        members[id] = sorted({incidence.entity_key for incidence in incidences})
    memberships: dict[str, list[str]] = defaultdict(list)
    for id, keys in members.items():
        for key in keys:
            memberships[key].append(id)
    splitter = SentenceSplitter(SplitSettings())
    example = _find_example_entity(memberships, members)
    return HypergraphStatistics(
        arity=_count(len(members.get(hyperedge.id, ())) for hyperedge in hyperedges),
        degree=_count(map(len, memberships.values())),
        sentences=_count(len(splitter.sentences(hyperedge.text)) for hyperedge in hyperedges),
        words=sum(count_words(hyperedge.text) for hyperedge in hyperedges),
        neighbourhood=None
        if example is None
        else Neighbourhood(names[example], [[names[key] for key in members[id]] for id in memberships[example]]),
    )


def compute_mean(histogram: Histogram) -> float:
    """Return the mean of the values in a histogram; 0 for an empty histogram.

    >>> compute_mean({2: 1, 4: 3})
    3.5
    """
    total = sum(histogram.values())
    return sum(size * count for size, count in histogram.items()) / total if total else 0.0


def _count(sizes: Iterable[int]) -> Histogram:
    return dict(sorted(Counter(sizes).items()))


def _find_example_entity(memberships: Mapping[str, Sequence[str]], members: Mapping[str, Sequence[str]]) -> str | None:
    """Return the key of the entity whose neighbourhood is plotted: of highest degree that can be drawn.

    Entities with digits in their key, such as numbers and dates, are skipped.
    """
    neighbours = {
        key: len({member for id in ids for member in members[id]}) - 1
        for key, ids in memberships.items()
        if len(ids) in _EXAMPLE_DEGREES and not any(letter.isdigit() for letter in key)
    }
    candidates = [key for key, count in neighbours.items() if count <= _MAX_NEIGHBOURS]
    return min(candidates, key=lambda key: (-len(memberships[key]), -neighbours[key], key), default=None)
