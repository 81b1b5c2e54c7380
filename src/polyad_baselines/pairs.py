"""What LightRAG and PathRAG share: a graph of entity pairs, searched by the keywords of a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from polyad.hypergraph.incidence import Hypergraph
from polyad.model import IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad_baselines.graph import SnapshotCache, build_hypergraph, count_neighbours
from polyad_baselines.questions import KeywordExtractor

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True, slots=True, eq=False)
class PairGraph:
    """The graph of entities, joined if a fact has both.

    Attributes:
        hypergraph: Entities of facts.
        degrees: Number of neighbours of each entity; ``[entities]``.
    """

    hypergraph: Hypergraph
    degrees: IntArray

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> PairGraph:
        """Build the graph of a snapshot."""
        hypergraph = build_hypergraph(snapshot)
        return cls(hypergraph, count_neighbours(hypergraph))


class PairRetriever(Generic[SettingsT]):
    """The base class of retrievers over the graph of entity pairs.

    Args:
        embedder: The embedder of the index.
        keywords: Extracts keywords from the question.
        settings: The parameters of the paper.
    """

    def __init__(self, embedder: Embedder, keywords: KeywordExtractor, settings: SettingsT) -> None:
        self._embedder, self._keywords, self._settings = embedder, keywords, settings
        self._graphs = SnapshotCache(PairGraph.from_snapshot)

    def prepare(self, snapshot: Snapshot) -> PairGraph:
        """Build the graph of a snapshot and cache it."""
        return self._graphs.get(snapshot)
