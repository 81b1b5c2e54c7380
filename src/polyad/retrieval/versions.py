"""Ranks the version of a document that a question is about before other versions, and the newest of what is current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyad.model import Evidence, ScoredPassage
from polyad.retrieval.postprocessing import NEAR_TIE
from polyad.text.versions import Level, VersionFamily, VersionReference

_MIN_SHARE: Mapping[Level, float] = {"version": 0.2, "edition": 0.5, "issue": 0.8}
"""Least relevance of a passage of the right version, as a share of that of another version, to overtake it.

It is low among versions, because a superseded text misleads however well it fits, and stays next to the right one.
"""

_SWAP_SHARE = 0.8
"""Share from which the two change places; below, the other version may state what the right one does not."""

Families = Mapping[str, tuple[str, VersionFamily]]
"""For each passage with other versions, by id: its document or file, and the family."""


def rank_versions(evidence: Evidence, families: Families, reference: VersionReference, now: float) -> Evidence:
    """Return the evidence with passages of the right version of a document before those of its other versions.

    The right version is the one that the question names by number or time, and else the one in force. One of its
    passages overtakes those of other versions if it is nearly as relevant. The order is otherwise unchanged.

    Args:
        evidence: Passages, best first.
        families: The versions of the passages' documents.
        reference: The version or time that the question names.
        now: The time of the question, in seconds since 1970.
    """
    passages = list(evidence.passages)
    choices = {id(family): reference.choose(family, now) for _, family in families.values()}
    is_right = {
        passage_id: None if (right := choices[id(family)]) is None else family.is_same(unit, right)
        for passage_id, (unit, family) in families.items()
    }
    for place, hit in enumerate(passages):
        if is_right.get(hit.passage.id) is False:
            _, family = families[hit.passage.id]
            right_places = (
                rank
                for rank, other in enumerate(passages)
                if is_right.get(other.passage.id) and families[other.passage.id][1] is family
            )
            if (rank := next(right_places, 0)) > place:
                level: Level = "edition" if family.level == "issue" and reference.periods else family.level
                _overtake(passages, rank, place, _MIN_SHARE[level])
    described = {passage_id: family.describe(unit, now) for passage_id, (unit, family) in families.items()}
    return replace(evidence, passages=tuple(replace(hit, version=described.get(hit.passage.id)) for hit in passages))


def _overtake(passages: list[ScoredPassage], rank: int, place: int, min_share: float) -> None:
    """Move the passage at ``rank`` up to ``place`` if it is nearly as relevant as the one there, or ranked near it."""
    relevance, other = passages[rank].relevance, passages[place].relevance
    share = (place + 1) / (rank + 1) if relevance is None or other is None else relevance / max(other, 1e-9)
    if relevance is None:
        share *= 2  # of the first ten passages, those up to the fourth may take the first place
    if share >= _SWAP_SHARE:
        passages[place], passages[rank] = passages[rank], passages[place]
    elif share >= min_share:
        passages.insert(place, passages.pop(rank))


def rank_latest(evidence: Evidence, starts: Sequence[float | None]) -> Evidence:
    """Sort the dated passages that are nearly as relevant as the best by date, the newest first.

    Args:
        evidence: Passages with relevance, best first.
        starts: Date of the document of each passage, in seconds since 1970; None if unknown.
    """
    passages = evidence.passages
    relevances = [hit.relevance for hit in passages if hit.relevance is not None]
    if len(relevances) < len(passages):
        return evidence
    least = NEAR_TIE * max(relevances, default=0.0)
    dated = {place: start for place, start in enumerate(starts) if start is not None and relevances[place] >= least}
    newest = iter(sorted(dated, key=lambda place: (-dated[place], place)))
    order = [next(newest) if place in dated else place for place in range(len(passages))]
    return replace(evidence, passages=tuple(passages[place] for place in order))
