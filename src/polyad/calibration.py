"""Values that depend on how high an embedder's cosines are: those of the papers, and what was measured in their place.

Encoders differ in how similar they hold two texts that have little to do with each other, so a threshold or a scale
found for one of them is wrong for the next.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceModel:
    """The values for one embedder; the defaults are the papers'.

    Attributes:
        kappa: Semantic reward scale of HyperSU's segmentation, 0 or more (Table 10, for bge-large).
        activation_threshold: delta of HyperSU's clue activation, a cosine in [0, 1) (Table 10, for bge-large).
        entity_threshold: tau_V of HyperGraphRAG, cosine times score, in [0, 100] (section 5.1, for
            text-embedding-3-small; so the next two).
        hyperedge_threshold: tau_H, cosine times score, in [0, 10].
        passage_threshold: tau_C, a cosine in [0, 1].
    """

    kappa: float = 75.0
    activation_threshold: float = 0.5
    entity_threshold: float = 50.0
    hyperedge_threshold: float = 5.0
    passage_threshold: float = 0.5


PAPERS = RelevanceModel()

MEASURED = {
    "all-MiniLM-L6-v2": RelevanceModel(
        kappa=30.0, activation_threshold=0.2, hyperedge_threshold=4.0, passage_threshold=0.3
    )
}
"""By embedder. The cosines of all-MiniLM-L6-v2 between questions and sentences are lower than those the papers' values
are for. This kappa gives units of about the paper's length (HyperSU, Table 16: 3.1 sentences on 2wiki); the paper's
delta would silence nearly every unit. The thresholds are compared in docs/adr/0010."""


def calibration_for(embedder: str) -> RelevanceModel:
    """What was measured for the embedder of that name; the papers' values where nothing was."""
    return MEASURED.get(embedder, PAPERS)
