"""Vectors of entities: of their name with what the index says of them (HyperGraphRAG, section 4.1, Psi).

An entity is a view over all passages that name it, so its vector is derived too: it is kept in the store as a cache,
with a digest of the text it was made from, and made again when that text has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from polyad.model import Entity, FloatArray
from polyad.protocols import Embedder, Progress, Store, silent

LONGEST = 600
"""Characters of description that are embedded: what encoders read of a text is limited, and a name known to many
passages has more descriptions than that."""

_BATCH = 4096  # entities embedded between two commits


def entity_vectors(
    store: Store, embedder: Embedder, entities: Sequence[Entity], progress: Progress = silent
) -> FloatArray:
    """The vector of each entity, float32 ``[entities, dimension]``; what is missing or out of date is made and kept.

    Args:
        store: Keeps them.
        embedder: The one the index was built with.
        entities: Views of entities.
        progress: Told how many have been embedded.
    """
    kept = store.entity_vectors()
    vectors = np.zeros((len(entities), embedder.dimension), dtype=np.float32)
    missing = []
    for row, entity in enumerate(entities):
        digest, vector = kept.get(entity.key, ("", None))
        if vector is not None and digest == _digest(entity_text(entity)):
            vectors[row] = vector
        else:
            missing.append(row)
    for start in range(0, len(missing), _BATCH):
        rows = missing[start : start + _BATCH]
        texts = [entity_text(entities[row]) for row in rows]
        vectors[rows] = embedder.encode(texts, "passage")
        store.keep_entity_vectors(
            {entities[row].key: (_digest(text), vectors[row]) for row, text in zip(rows, texts, strict=True)}
        )
        progress(start + len(rows), len(missing), "entities embedded")
    return vectors


def entity_text(entity: Entity) -> str:
    """What is embedded for an entity: its name, and its descriptions as far as they are short.

    >>> entity_text(Entity("ada lovelace", "Ada Lovelace", description="wrote the first program"))
    'Ada Lovelace: wrote the first program'
    """
    described = " ".join(entity.description.split())[:LONGEST]
    return f"{entity.name}: {described}" if described else entity.name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
