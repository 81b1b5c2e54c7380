"""Vectors of entities: of their name with what the index says of them (HyperGraphRAG, section 4.1, Psi).

An entity is a snapshot over all passages that name it, so its vector is derived too: it is kept in the store as a
cache, with a digest of the text it was made from, and made again when that text has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyad.model import Entity, FloatArray, IntArray
from polyad.protocols.components import Embedder, Progress, silent
from polyad.protocols.store import ENTITY_VECTORS, ValueStore
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import Presence
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.vectors import Vectors

LONGEST = 600
"""Characters of description that are embedded: what encoders read of a text is limited, and a name known to many
passages has more descriptions than that."""

_BATCH = 4096  # entities embedded between two commits

_DIGEST_BYTES = 32  # a stored value is the SHA-256 digest of the embedded text and the vector


@dataclass(frozen=True, slots=True)
class Undescribed:
    """Entities of a snapshot that have no vector yet, or an old one, as they were at its moment; by row, sorted."""

    rows: IntArray
    entities: Sequence[Entity]

    @classmethod
    def of(cls, snapshot: MappedSnapshot) -> Undescribed:
        """Those of a snapshot; the store is held in its moment.

        Raises:
            StaleSnapshotError: what an entity was made of has been removed since.
        """
        rows = np.arange(len(snapshot.keys)) if snapshot.entity_vectors is None else snapshot.undescribed
        rows = rows[snapshot.graph.are_there(rows)]
        return cls(rows, snapshot.entities_made(rows.tolist()))


def described(
    snapshot: MappedSnapshot, missing: Undescribed, kept: ValueStore, embedder: Embedder, progress: Progress = silent
) -> MappedSnapshot:
    """The snapshot with a vector and a score for every entity.

    Args:
        snapshot: Of the index.
        missing: What it lacks.
        kept: Keeps what was made.
        embedder: The one the index was built with.
        progress: Told how many have been embedded.
    """
    if snapshot.is_described:
        return snapshot
    known = snapshot.entity_vectors or Vectors.none(embedder.dimension)
    scores = snapshot.entity_scores or Column.of(np.empty(0, dtype=np.float32))
    made = _vectors(missing.entities, kept, embedder, progress)
    scored = np.array([entity.score for entity in missing.entities], dtype=np.float32)
    first, rows = len(known), missing.rows
    new, came = len(snapshot.keys) - first, rows >= first
    vectors = np.zeros((new, embedder.dimension), dtype=np.float32)
    vectors[rows[came] - first] = made[came]
    there = Presence.of(snapshot.graph.are_there(np.arange(len(snapshot.keys))))
    return replace(
        snapshot,
        entity_vectors=known.advanced(there, vectors).replaced(rows[~came], made[~came]),
        entity_scores=scores.extended(np.zeros(new, dtype=np.float32)).replaced(rows, scored),
        undescribed=rows[:0],
    )


def _vectors(entities: Sequence[Entity], kept: ValueStore, embedder: Embedder, progress: Progress) -> FloatArray:
    """The vector of each entity, float32 ``[entities, dimension]``; what is missing or out of date is made and kept."""
    known = kept.get_values(ENTITY_VECTORS, [entity.key for entity in entities])
    vectors = np.zeros((len(entities), embedder.dimension), dtype=np.float32)
    missing = []
    for row, entity in enumerate(entities):
        value = known.get(entity.key, b"")
        if value[:_DIGEST_BYTES] == _digest(entity_text(entity)):
            vectors[row] = np.frombuffer(value[_DIGEST_BYTES:], dtype="<f4")
        else:
            missing.append(row)
    for start in range(0, len(missing), _BATCH):
        rows = missing[start : start + _BATCH]
        texts = [entity_text(entities[row]) for row in rows]
        vectors[rows] = embedder.encode(texts, "passage")
        values = {
            entities[row].key: _digest(text) + vectors[row].astype("<f4").tobytes()
            for row, text in zip(rows, texts, strict=True)
        }
        kept.put_values(ENTITY_VECTORS, values, is_optional=True)
        progress(start + len(rows), len(missing), "entities embedded")
    return vectors


def entity_text(entity: Entity) -> str:
    """What is embedded for an entity: its name, and its descriptions as far as they are short.

    >>> entity_text(Entity("ada lovelace", "Ada Lovelace", description="wrote the first program"))
    'Ada Lovelace: wrote the first program'
    """
    described = " ".join(entity.description.split())[:LONGEST]
    return f"{entity.name}: {described}" if described else entity.name


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
