"""Entities as answers, for questions whose answers are entities: read off the evidence, without a language model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from polyad.model import Evidence
from polyad.text.keys import entity_key


def ranked_entities(evidence: Evidence, members: Mapping[str, Sequence[str]], question: str) -> list[str]:
    """Keys of the entities in the evidence, best first, without those that the question names.

    An entity is as good as the first piece of evidence that holds it: the hyperedges in their order, and behind them
    the passages in theirs. Among those of one piece the retriever's own score of the entity decides, then the key.

    Args:
        evidence: What was found.
        members: Keys of the entities in each passage, by passage id; of the passages of the evidence at least.
        question: As asked.
    """
    named = f" {entity_key(question)} "
    pieces: list[Collection[str]] = [[member.key for member in edge.members] for edge in evidence.hyperedges]
    pieces += [members.get(hit.passage.id, ()) for hit in evidence.passages]
    scores = {scored.entity.key: scored.score for scored in evidence.entities}
    ranked: dict[str, None] = {}
    for piece in pieces:
        for key in sorted(piece, key=lambda key: (-scores.get(key, 0.0), key)):
            if f" {key} " not in named:
                ranked.setdefault(key)
    return list(ranked)
