"""Settings of HyperGraphRAG's retriever."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from polyad.config import NOT_IN_FILE, require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperGraphRAGSettings:
    """Settings of HyperGraphRAG's retriever, which combines similar entities and hyperedges (section 5.1).

    Attributes:
        top_k_entities: k_V, the number of entities retrieved; 0 for none (the ablation "w/o ER").
        top_k_hyperedges: k_H, the number of hyperedges retrieved; 0 for none ("w/o HR").
        top_k_passages: k_C, the number of passages added by similarity (3 in the paper's first version); 0 for none
            ("w/o CR"). If all three are 0, the language model answers from its own knowledge.
        max_listed_hyperedges: Hyperedges of K_H in the evidence, best first; 0 for all, as in the paper. An entity that
            many passages mention brings thousands.
        passage_source: Passages in the evidence: ``ranked``, the best of K* (and the most similar others if K* has too
            few), or ``chunks``, only the k_C most similar passages above tau_C, as in the paper (section 4.3).
        entity_threshold: tau_V, a cosine times a score, in [0, 100] (paper: 50). None takes the value calibrated for
            the embedder, or measures one on the index; the paper's in an index of fewer than 20 passages.
        hyperedge_threshold: tau_H, a cosine times a score, in [0, 10] (paper: 5); None as above.
        passage_threshold: tau_C, a cosine in [0, 1] (paper: 0.5); None as above.
        names: Compare entities with all names of the question ``together`` as one text (the paper), or with ``each``
            name as well, the higher cosine counting, which finds more on the benchmarks.
    """

    top_k_entities: int = 60
    top_k_hyperedges: int = 60
    top_k_passages: int = 5
    max_listed_hyperedges: int = field(default=200, metadata=NOT_IN_FILE)
    passage_source: Literal["ranked", "chunks"] = field(default="ranked", metadata=NOT_IN_FILE)
    names: Literal["together", "each"] = "each"
    entity_threshold: float | None = None
    hyperedge_threshold: float | None = None
    passage_threshold: float | None = None

    def __post_init__(self) -> None:
        for kind, threshold in (
            ("entities", "entity_threshold"),
            ("hyperedges", "hyperedge_threshold"),
            ("passages", "passage_threshold"),
        ):
            if not getattr(self, f"top_k_{kind}"):
                require_idle(self, [threshold], f"top_k_{kind}")
        require(self.names in ("together", "each"), "names", self.names, "together or each")
        require(self.passage_source in ("ranked", "chunks"), "passage_source", self.passage_source, "ranked or chunks")
        for name in ("max_listed_hyperedges", "top_k_entities", "top_k_hyperedges", "top_k_passages"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        for name, highest in (("entity_threshold", 100), ("hyperedge_threshold", 10), ("passage_threshold", 1)):
            value = getattr(self, name)
            require(value is None or 0 <= value <= highest, name, value, f"0 to {highest}")
