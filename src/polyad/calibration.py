"""Parameters that depend on how high an embedder's cosines are: the papers' values and measured ones.

Embedders differ in the cosine of unrelated texts, so a threshold or scale found for one embedder is wrong for another.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderCalibration:
    """Thresholds and scales that depend on how high the cosines of an embedding model are.

    The defaults are the papers' values.

    Attributes:
        kappa: Semantic reward scale of HyperSU's segmentation, 0 or more (Table 10, for bge-large).
        activation_threshold: delta of HyperSU's clue activation, a cosine in [0, 1) (Table 10, for bge-large).
        entity_threshold: tau_V of HyperGraphRAG, cosine times score, in [0, 100] (section 5.1, for
            text-embedding-3-small; so the next two).
        hyperedge_threshold: tau_H, cosine times score, in [0, 10].
        passage_threshold: tau_C, a cosine in [0, 1].
        languages: ISO 639-1 codes of the languages that the embedder was trained on, where it need not be measured;
            None for all.
    """

    kappa: float = 75.0
    activation_threshold: float = 0.5
    entity_threshold: float = 50.0
    hyperedge_threshold: float = 5.0
    passage_threshold: float = 0.5
    languages: frozenset[str] | None = frozenset()


PAPER_VALUES = EmbedderCalibration()

MEASURED_VALUES = {
    "hashing": EmbedderCalibration(languages=None),
    "all-MiniLM-L6-v2": EmbedderCalibration(
        kappa=30.0,
        activation_threshold=0.2,
        hyperedge_threshold=4.0,
        passage_threshold=0.3,
        languages=frozenset({"en"}),
    ),
    "multilingual-e5-small": EmbedderCalibration(
        activation_threshold=0.79,
        entity_threshold=90.0,
        hyperedge_threshold=8.2,
        passage_threshold=0.81,
        languages=None,
    ),
}
"""Parameters by embedder name. all-MiniLM-L6-v2 has lower cosines between questions and sentences than the embedders of
the papers. This kappa gives units of about the paper's length (HyperSU, Table 16: 3.1 sentences on 2wiki); the paper's
delta would silence nearly every unit. The thresholds are compared in docs/adr/0010. Those of multilingual-e5-small are
passed by as many pairs of unrelated texts as those of all-MiniLM-L6-v2 (docs/adr/0026)."""


def get_embedder_calibration(embedder: str) -> EmbedderCalibration:
    """Return the thresholds and scales measured for an embedder, or the papers' values if none were measured."""
    return MEASURED_VALUES.get(embedder.partition(":")[0], PAPER_VALUES)
