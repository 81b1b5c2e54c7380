"""Small random indexes, and what an independent computation reads of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx
import numpy as np

from polyad.embedders.hashing import HashingEmbedder
from polyad.model import (
    Document,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Mention,
    Passage,
)
from polyad.protocols.components import TextKind
from polyad.protocols.store import Manifest
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore

NAMES = ("aldby", "bell", "corven", "isk", "moreau", "old bell", "old isk", "tarn", "the bell", "ut")
QUESTION = "Who cast the bell of tarn by the old isk?"

Fact = tuple[str, tuple[str, ...]]
"""Text of a fact and its entities, sorted."""


class Vectors:
    """The vectors of texts by words and word pairs; those of names are close if they share words."""

    dimension = 32
    name = "hashing:32"

    def __init__(self) -> None:
        self._embedder = HashingEmbedder(32)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        return self._embedder.encode(texts, kind)

    def cosine(self, text: str, question: str) -> float:
        one, two = self.encode([text, question], "passage")
        return float(np.round(one @ two, 6))


class NamesOf:
    """Extracts the listed names from a text."""

    name = "names"

    def __init__(self, *names: str) -> None:
        self._names = names

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return [
            [Mention(name, start, start + len(name)) for name in self._names if (start := text.find(name)) >= 0]
            for text in texts
        ]


@dataclass(frozen=True)
class Case:
    """A small index: the facts of each passage by the passage's id."""

    facts: Mapping[str, Sequence[Fact]]
    snapshot: MappedSnapshot
    vectors: Vectors

    def get_text(self, passage: str) -> str:
        return " ".join(text for text, _ in self.facts[passage])

    def list_facts(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Passage, text and entities of each fact."""
        return [(passage, text, members) for passage, facts in self.facts.items() for text, members in facts]

    def scale(self, texts: Mapping[str, str]) -> dict[str, float]:
        """The cosines of texts with the question, scaled to [0, 1]."""
        cosines = {id: self.vectors.cosine(text, QUESTION) for id, text in texts.items()}
        low, high = min(cosines.values()), max(cosines.values())
        return {id: (cosine - low) / (high - low) if high > low else 1.0 for id, cosine in cosines.items()}


def build_case(folder: Path, seed: int) -> Case:
    """Return an index of 3 to 7 passages with up to three facts each, of two to four entities."""
    rng = random.Random(seed)
    facts: Mapping[str, Sequence[Fact]] = {
        f"p{number}#0000": [
            (f"{rng.choice(['cast', 'flows', 'rings', 'stands'])} {number} {' '.join(members)}", members)
            for _ in range(rng.randint(1, 3))
            for members in [tuple(sorted(rng.sample(NAMES, rng.randint(2, 4))))]
        ]
        for number in range(rng.randint(3, 7))
    }
    return build_case_of_facts(folder, facts)


def build_case_of_facts(folder: Path, facts: Mapping[str, Sequence[Fact]]) -> Case:
    """Return an index of facts by the id of their passage."""
    vectors = Vectors()
    store = SqliteStore.open(folder / "kb", Manifest(vectors.name, vectors.dimension, "rules:1"))
    for passage, stated in facts.items():
        store.put(_build_document(passage, stated, vectors))
    return Case(facts, SnapshotProvider(store, vectors.dimension).get_with_entity_vectors(vectors), vectors)


def _build_document(id: str, facts: Sequence[Fact], vectors: Vectors) -> IndexedDocument:
    name, text = id.partition("#")[0], " ".join(text for text, _ in facts)
    edges = []
    for position, (fact, members) in enumerate(facts):
        edge_id = f"{id}/{position:03}"
        incidences = tuple(Incidence(key, edge_id, key) for key in members)
        edge = Hyperedge(edge_id, HyperedgeKind.FACT, fact, id, 0, 1)
        edges.append(IndexedHyperedge(edge, incidences, vectors.encode([fact], "passage")[0]))
    passage = Passage(id, name, "", text, 0, len(text))
    indexed = IndexedPassage(passage, "digest", vectors.encode([text], "passage")[0], tuple(edges))
    return IndexedDocument(Document(name, "", text), "digest", 1, (indexed,))


def rank_with_networkx(
    edges: Mapping[frozenset[str], float], reset: Mapping[str, float], damping: float
) -> dict[str, float]:
    """Return the PageRank of the passages, by id."""
    graph = networkx.Graph()
    graph.add_nodes_from(reset)
    for edge, weight in edges.items():
        graph.add_edge(*edge, weight=weight)
    ranks = networkx.pagerank(graph, damping, personalization=dict(reset), tol=1e-12, max_iter=1000)
    return {node: rank for node, rank in ranks.items() if "#" in node}


def assert_same_ranks(retrieved: Mapping[str, float], expected: Mapping[str, float]) -> None:
    assert retrieved.keys() == expected.keys()
    for passage, rank in expected.items():
        assert abs(retrieved[passage] - rank) < 1e-8, passage


BuildCase = Callable[[int], Case]
