from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from polyad.adapters.sqlite import SqliteStore
from polyad.model import (
    SUBJECT,
    Document,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols import TextKind
from polyad.retrieval.snapshot import Snapshot

Vector = Sequence[float]
Unit = tuple[Sequence[str], Vector]
"""The members of a hyperedge, and its vector."""

Spec = Mapping[str, tuple[Vector, Sequence[Unit]]]
"""Each passage by its title (which is also its document's id): its vector and its hyperedges."""


class TableEmbedder:
    """Vectors as a table gives them."""

    name = "table"

    def __init__(self, table: Mapping[str, Vector], dimension: int) -> None:
        self.table = table
        self.dimension = dimension
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.asked += texts
        return np.array([self.table[text] for text in texts], dtype=np.float32).reshape(-1, self.dimension)


def indexed(title: str, vector: Vector, units: Sequence[Unit]) -> IndexedDocument:
    text = " ".join(f"Unit {position} of {title}." for position in range(len(units))) or title
    passage = Passage(f"{title}#0000", title, title, text, 0, len(text))
    edges = []
    for position, (members, unit_vector) in enumerate(units):
        id = f"{passage.id}/{position:03}"
        edge = Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, f"Unit {position} of {title}.", passage.id, 0, 1)
        incidences = tuple(
            Incidence(key, id, key.title(), SUBJECT if key == title.lower() else "") for key in sorted(members)
        )
        edges.append(IndexedHyperedge(edge, incidences, np.array(unit_vector, dtype=np.float32)))
    return IndexedDocument(
        Document(title, title, text),
        "digest",
        1,
        (IndexedPassage(passage, "digest", np.array(vector, dtype=np.float32), tuple(edges)),),
    )


@pytest.fixture
def snapshot_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Spec, int], Snapshot]:
    """Makes a snapshot of an index with the given contents, whose vectors have the given dimension."""

    def make(spec: Spec, dimension: int) -> Snapshot:
        folder: Path = tmp_path_factory.mktemp("index")
        store = SqliteStore.create(folder, "table", dimension, "rules")
        for title, (vector, units) in spec.items():
            store.put(indexed(title, vector, units))
        return Snapshot(store)

    return make


@pytest.fixture
def embedder_of() -> Callable[[Mapping[str, Vector], int], TableEmbedder]:
    """Makes an embedder from a table of vectors."""
    return TableEmbedder
