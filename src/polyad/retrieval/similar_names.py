"""Entities whose names resemble a mention that is no entity's name (HyperSU, section 4.2: linking by similarity).

Only entities that share the mention's rarest known word are compared, a few names for each mention, embedded when they
are needed: an index need not hold a vector for each of its entities.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyad.hypergraph.sparse import compute_cosines
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot

MAX_CANDIDATES = 32
"""Entity names compared with a mention; a word of more entities is too frequent."""


class SimilarNames:
    """Finds the entity of an index whose name is most similar to a name that no entity has exactly.

    Args:
        snapshot: The index.
        embedder: Embeds the names.
        threshold: Lowest cosine of two names for the same thing, in (0, 1].
    """

    def __init__(self, snapshot: Snapshot, embedder: Embedder, threshold: float) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._threshold = threshold

    def find_nearest(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the row of the most similar entity name for each key; omit keys below the threshold."""
        candidates = {key: rows for key in keys if (rows := self._find_candidates(key))}
        if not candidates:
            return {}
        names = list(
            dict.fromkeys([*candidates, *(self._get_key(row) for rows in candidates.values() for row in rows)])
        )
        vectors = dict(zip(names, self._embedder.encode(names, "query"), strict=True))
        linked = {}
        for key, rows in candidates.items():
            ranked = [
                (-float(compute_cosines(vectors[self._get_key(row)][None], vectors[key])[0]), self._get_key(row), row)
                for row in rows
            ]
            negative_cosine, _, row = min(ranked)
            if -negative_cosine >= self._threshold:
                linked[key] = row
        return linked

    def _find_candidates(self, key: str) -> list[int]:
        """Return the entities whose names contain the rarest word of a key; none if the word is too frequent."""
        postings = self._snapshot.find_entities("word", key.split())
        rarest = min(postings.values(), key=len, default=[])
        return rarest if len(rarest) <= MAX_CANDIDATES else []

    def _get_key(self, row: int) -> str:
        return self._snapshot.ids("entity", [row])[0]
