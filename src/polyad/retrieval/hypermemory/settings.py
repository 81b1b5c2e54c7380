"""Settings of HyperMemory's beam search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from polyad.config import NOT_IN_FILE, require


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperMemorySettings:
    """Settings of HyperMemory's beam search (HyperRAG, section 3.2; width and depth of its appendix B.1).

    Attributes:
        width: w, paths in the beam at each depth, and hyperedges followed from each entity.
        depth: d, hops from the question's entities.
        edge_tokens: Token budget of the hyperedges in one prompt; the nearest to the question come first. 2,000 tokens
            are a dozen semantic units of average length.
        entity_limit: Entities of one hyperedge in one prompt. Hardly any hyperedge has more than 30.
        max_calls: Prompts for one question; the search then ends with the evidence so far. A question with one entity
            needs at most (1 + 3 + 1) + (3 + 9 + 1) + (3 + 9) = 30 with ``calls = "paper"``, and 6 with "batched".
        calls: ``batched`` scores all texts and entities of one depth in one prompt, each from 0 to 1; ``paper`` sends a
            prompt for each entity and each text, whose scores add up to 1 (equations 14 and 15).
        composite: Score of a triple: the ``product`` of all scores on its path, or of its own two (``triple``,
            equation 16).
        titles: Show the title of a passage before each of its hyperedges that does not contain it: "She was born there"
            says nothing by itself. The paper shows the hyperedge alone.
        dead_ends: Add the best hyperedges without an unvisited entity beside the beam, which may contain the answer. In
            the paper, steps are triples, so these end no path.
        own_knowledge: Whether the evidence suffices if the language model can answer with what it knows (figure 7b).
        max_seconds: Seconds after which no further prompt is sent for one question; requests in progress finish.
        max_failures: Attempts that may fail in a row before no further prompt is sent for one question.
    """

    width: int = 3
    depth: int = 3
    edge_tokens: int = 2000
    entity_limit: int = 30
    max_calls: int = 40
    calls: Literal["batched", "paper"] = "batched"
    composite: Literal["product", "triple"] = field(default="product", metadata=NOT_IN_FILE)
    titles: bool = field(default=True, metadata=NOT_IN_FILE)
    dead_ends: bool = field(default=True, metadata=NOT_IN_FILE)
    own_knowledge: bool = field(default=False, metadata=NOT_IN_FILE)
    max_seconds: float = 120.0
    max_failures: int = field(default=6, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        for name in ("width", "depth", "edge_tokens", "entity_limit", "max_calls", "max_failures"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(self.calls in ("batched", "paper"), "calls", self.calls, "batched or paper")
        require(self.composite in ("product", "triple"), "composite", self.composite, "product or triple")
        require(self.max_seconds > 0, "max_seconds", self.max_seconds, "seconds above 0")
