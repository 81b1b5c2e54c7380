"""Entity vectors: embeddings of an entity's name and descriptions (HyperGraphRAG, section 4.1, Psi).

An entity is derived from all passages that name it, and so is its vector. The store caches vectors with a digest of the
embedded text; a vector is computed again when the text has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.model import Entity, FloatArray, IntArray
from polyad.protocols.components import Embedder, Progress, silent
from polyad.protocols.store import ENTITY_VECTORS, Store
from polyad.snapshot.columns import Column, LiveRows
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.records import read_entities
from polyad.snapshot.vectors import Vectors
from polyad.text.words import collapse_whitespace

MAX_DESCRIPTION = 600
"""Characters of the descriptions that are embedded: encoders read a limited length, and frequent entities have more."""

_BATCH = 4096
"""Entities embedded between two commits."""

_DIGEST_BYTES = 32
"""A stored value is the SHA-256 digest of the embedded text, followed by the vector."""


@dataclass(frozen=True, slots=True)
class OutdatedEntities:
    """The entities of a snapshot without a vector, or with a vector of an earlier name or description.

    Attributes:
        rows: Sorted.
        entities: The entities, at the version of the snapshot.
    """

    rows: IntArray
    entities: Sequence[Entity]

    @classmethod
    def from_snapshot(cls, snapshot: MappedSnapshot) -> OutdatedEntities:
        """Return the entities of a snapshot whose vectors are missing or outdated.

        Call this inside a read transaction of the snapshot's version.

        Raises:
            StaleSnapshotError: An incidence of an entity has been deleted since.
        """
        columns = snapshot.entities
        rows = np.arange(len(columns.keys)) if columns.vectors is None else columns.outdated
        rows = rows[snapshot.graph.are_live(rows)]
        return cls(rows, read_entities(snapshot, rows.tolist()))


@dataclass(frozen=True, slots=True)
class EntityEmbedder:
    """Computes the vectors of entities from their names and descriptions; a store caches the vectors.

    Attributes:
        embedder: The embedder of the index.
        store: Caches vectors.
        progress: Called with the number of embedded entities.
        is_read_only: Whether new vectors are not stored.
    """

    embedder: Embedder
    store: Store
    progress: Progress = silent
    is_read_only: bool = False

    def encode(self, entities: Sequence[Entity]) -> FloatArray:
        """Return entity vectors, float32 ``[entities, dimension]``, from the store or, if missing there, computed."""
        cached = self.store.get_values(ENTITY_VECTORS, [entity.key for entity in entities])
        vectors = np.zeros((len(entities), self.embedder.dimension), dtype=np.float32)
        stored_type = self.store.manifest.number_type
        missing = []
        for row, entity in enumerate(entities):
            value = cached.get(entity.key, b"")
            if value[:_DIGEST_BYTES] == _compute_digest(format_entity_text(entity)):
                vectors[row] = np.frombuffer(value[_DIGEST_BYTES:], dtype=stored_type)
            else:
                missing.append(row)
        for start in range(0, len(missing), _BATCH):
            rows = missing[start : start + _BATCH]
            texts = [format_entity_text(entities[row]) for row in rows]
            vectors[rows] = stored = self.embedder.encode(texts, "passage").astype(stored_type)
            values = {
                entities[row].key: _compute_digest(text) + vector.tobytes()
                for row, text, vector in zip(rows, texts, stored, strict=True)
            }
            if not self.is_read_only:
                self.store.put_values(ENTITY_VECTORS, values, is_optional=True)
            self.progress(start + len(rows), len(missing), "entities embedded")
        return vectors


def add_entity_vectors(
    snapshot: MappedSnapshot, outdated: OutdatedEntities, embedder: EntityEmbedder
) -> MappedSnapshot:
    """Return the snapshot with vectors and scores of all entities; ``embedder`` computes those of ``outdated`` ones.

    Args:
        snapshot: The snapshot.
        outdated: Its entities without a current vector.
        embedder: Computes vectors of entities.
    """
    if snapshot.has_entity_vectors:
        return snapshot
    embedded = embedder.encode(outdated.entities)
    before = snapshot.entities.vectors or Vectors.empty(embedded.shape[1])
    scores = snapshot.entities.scores or Column.empty(np.float32)
    rows, first = outdated.rows, len(before)
    is_new = rows >= first
    entity_scores = np.array([entity.score for entity in outdated.entities], dtype=np.float32)
    new_vectors = np.zeros((len(snapshot.entities.keys) - first, embedded.shape[1]), dtype=np.float32)
    new_scores = np.zeros(len(new_vectors), dtype=np.float32)
    new_vectors[rows[is_new] - first], new_scores[rows[is_new] - first] = embedded[is_new], entity_scores[is_new]
    live = LiveRows.from_mask(snapshot.graph.are_live(np.arange(len(snapshot.entities.keys))))
    entities = replace(
        snapshot.entities,
        vectors=before.with_changes(live, new_vectors).replace(rows[~is_new], embedded[~is_new]),
        scores=scores.append(new_scores).replace(rows[~is_new], entity_scores[~is_new]),
        outdated=rows[:0],
    )
    return replace(snapshot, entities=entities)


def format_entity_text(entity: Entity) -> str:
    """Return the text to embed for an entity: its name and the beginning of its descriptions.

    >>> format_entity_text(Entity("ada lovelace", "Ada Lovelace", description="wrote the first program"))
    'Ada Lovelace: wrote the first program'
    """
    description = collapse_whitespace(entity.description)[:MAX_DESCRIPTION]
    return f"{entity.name}: {description}" if description else entity.name


def _compute_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
