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
        cosine_origin: Cosine that counts as 0 for relevance, on the scale of all-MiniLM-L6-v2.
        cosine_factor: Factor of the cosine above ``cosine_origin``, on the same scale.
        score_share: Least share of its weight with which the score counts for relevance, in [0, 1].
        name_cosines: Cosine of a question to the question without its unknown names, as two values: at and below the
            first they are its subject; from the second on they hardly change the meaning.
        languages: ISO 639-1 codes of the languages that the embedder was trained on, where it need not be measured;
            None for all.
        depends_on_index: Whether retrievers measure the four thresholds on the index, in place of these values.
    """

    kappa: float = 75.0
    activation_threshold: float = 0.5
    entity_threshold: float = 50.0
    hyperedge_threshold: float = 5.0
    passage_threshold: float = 0.5
    cosine_origin: float = 0.0
    cosine_factor: float = 1.0
    score_share: float = 0.0
    name_cosines: tuple[float, float] = (0.93, 0.97)
    languages: frozenset[str] | None = frozenset()
    depends_on_index: bool = True

    def rescale_cosine(self, cosine: float) -> float:
        """Return a cosine of the embedder on the scale of all-MiniLM-L6-v2."""
        return (cosine - self.cosine_origin) * self.cosine_factor


PAPER_VALUES = EmbedderCalibration()

MEASURED_VALUES = {
    "hashing": EmbedderCalibration(languages=None, depends_on_index=False),
    "all-MiniLM-L6-v2": EmbedderCalibration(
        kappa=30.0,
        activation_threshold=0.2,
        hyperedge_threshold=4.0,
        passage_threshold=0.3,
        languages=frozenset({"en"}),
        depends_on_index=False,
    ),
    "multilingual-e5-small": EmbedderCalibration(
        activation_threshold=0.79,
        entity_threshold=90.0,
        hyperedge_threshold=8.2,
        passage_threshold=0.81,
        cosine_origin=0.783,
        cosine_factor=8.5,
        score_share=0.7,
        name_cosines=(0.971, 0.987),
        languages=None,
    ),
}
"""Parameters by embedder name. all-MiniLM-L6-v2 has lower cosines between questions and sentences than the embedders of
the papers. This kappa gives units of about the paper's length (HyperSU, Table 16: 3.1 sentences on 2wiki); the paper's
delta would silence nearly every unit. The thresholds are compared in docs/adr/0010. Those of multilingual-e5-small are
passed by as many pairs of unrelated texts as those of all-MiniLM-L6-v2 (docs/adr/0026), and hold for an index of a few
passages; on others they are measured, since its cosines differ between languages.
Its highest cosines to questions that XQuAD answers, and to everyday questions in the same language, differ by 0.06,
those of all-MiniLM-L6-v2 by 0.36. An infantry manual never says "American", but a question about American soldiers has
a name cosine of 0.98 with all-MiniLM-L6-v2."""


def get_embedder_calibration(embedder: str) -> EmbedderCalibration:
    """Return the thresholds and scales measured for an embedder, or the papers' values if none were measured."""
    return MEASURED_VALUES.get(embedder.partition(":")[0], PAPER_VALUES)
