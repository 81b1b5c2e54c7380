"""Settings of HyperGraphRAG's retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyad.config import require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperGraphRAGSettings:
    """Dual retrieval and fusion (HyperGraphRAG, section 5.1).

    Attributes:
        entities: k_V, entities retrieved (60).
        hyperedges: k_H, hyperedges retrieved (60).
        passages: k_C, passages added by similarity (5; 3 in the paper's first version).
        expanded: Hyperedges of K_H in the evidence, best first; 0 for all, as in the paper, which for entities that
            everything names are thousands. 200.
        passage_source: Passages in the evidence: ``ranked``, the best of K* and where these are too few the most
        similar; or
            ``chunks``, K_chunk alone, the k_C most similar of those above tau_C, as the paper has it (section 4.3).
        thresholds: ``measured`` takes those found for the embedder, ``paper`` those of the paper (50, 5 and 0.5), which
            are also taken for an embedder that was not measured. Encoders differ in how high their cosines are.
        entity_threshold: tau_V, cosine times score (0, 100]. None takes that of ``thresholds``; so do the next two.
        hyperedge_threshold: tau_H, cosine times score (0, 10].
        passage_threshold: tau_C, cosine.
        names: How the names in a question meet the entities: ``together`` as one text (the paper), or ``each`` by
            itself as well, the better counting: on the benchmarks that finds more.
        use_entities: Off, no entity is retrieved (the ablation "w/o ER").
        use_hyperedges: Off, no hyperedge is retrieved ("w/o HR").
        use_passages: Off, no passage is added by similarity ("w/o CR").
    """

    entities: int = 60
    hyperedges: int = 60
    passages: int = 5
    expanded: int = 200
    passage_source: Literal["ranked", "chunks"] = "ranked"
    names: Literal["together", "each"] = "each"
    thresholds: Literal["measured", "paper"] = "measured"
    entity_threshold: float | None = None
    hyperedge_threshold: float | None = None
    passage_threshold: float | None = None
    use_entities: bool = True
    use_hyperedges: bool = True
    use_passages: bool = True

    def __post_init__(self) -> None:
        for one, threshold in (
            ("entities", "entity_threshold"),
            ("hyperedges", "hyperedge_threshold"),
            ("passages", "passage_threshold"),
        ):
            if not getattr(self, f"use_{one}"):
                require_idle(self, [one, threshold], f"use_{one}")
        require(self.names in ("together", "each"), "names", self.names, "together or each")
        require(self.thresholds in ("measured", "paper"), "thresholds", self.thresholds, "measured or paper")
        require(self.passage_source in ("ranked", "chunks"), "passage_source", self.passage_source, "ranked or chunks")
        require(self.expanded >= 0, "expanded", self.expanded, "0 or more")
        for name in ("entities", "hyperedges", "passages"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name, highest in (("entity_threshold", 100), ("hyperedge_threshold", 10), ("passage_threshold", 1)):
            value = getattr(self, name)
            require(value is None or 0 <= value <= highest, name, value, f"0 to {highest}")
