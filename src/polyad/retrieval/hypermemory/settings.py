"""Settings of HyperMemory's retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyad.config import require


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperMemorySettings:
    """Beam search guided by a language model (HyperRAG, section 3.2; width and depth of its appendix B.1).

    Attributes:
        width: w, paths kept at each depth, and hyperedges followed from each entity.
        depth: d, hops from the question's entities.
        edge_tokens: Hyperedges shown in one prompt, in tokens; those nearest to the question come first. 2,000: a
            dozen semantic units of average length.
        entity_limit: Entities of one hyperedge that are shown in one prompt. 30: more than nearly any hyperedge joins.
        max_calls: Prompts sent for one question; the search ends there with what it has. 40: a question with one
            entity needs at most (1 + 3 + 1) + (3 + 9 + 1) + (3 + 9) = 30 with the calls of the paper, and mostly far
            fewer; 6 with one prompt a depth.
        calls: ``batched`` scores all texts and entities of one depth in one prompt, each by itself from 0 to 1;
            ``paper`` asks once for each entity and once for each text, for shares that add up to 1 (eqs. 14 and 15).
        composite: Score of a triple: ``product`` of all scores on the path to it, or ``triple``, of its own two alone
            (eq. 16).
        max_seconds: After which nothing more is asked for one question, what is under way apart. 120.
        max_failures: Tries that may fail one after another before nothing more is asked for one question.
    """

    width: int = 3
    depth: int = 3
    edge_tokens: int = 2000
    entity_limit: int = 30
    max_calls: int = 40
    calls: Literal["batched", "paper"] = "batched"
    composite: Literal["product", "triple"] = "product"
    max_seconds: float = 120.0
    max_failures: int = 6

    def __post_init__(self) -> None:
        for name in ("width", "depth", "edge_tokens", "entity_limit", "max_calls", "max_failures"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(self.calls in ("batched", "paper"), "calls", self.calls, "batched or paper")
        require(self.composite in ("product", "triple"), "composite", self.composite, "product or triple")
        require(self.max_seconds > 0, "max_seconds", self.max_seconds, "seconds above 0")
