"""HyperRAG's HyperMemory: a beam search that a language model steers."""

from __future__ import annotations

from polyad.presets.hyperretriever import PAPER
from polyad.presets.preset import Line, Preset

PRESET = Preset(
    "hypermemory",
    f"{PAPER}, HyperMemory",
    (
        Line("method", "facts", "section 3.1.6: hypergraphs as HyperGraphRAG makes them"),
        Line("retriever", "hypermemory", "section 3.2"),
        Line("facts.style", "paper", "the public code: HyperGraphRAG's prompt"),
        Line("facts.join_subject", False, "definition 2.1: a fact is the set of its entities"),
        Line("facts.gleaning", 2, "the public code, which is HyperGraphRAG's"),
        Line("split.passage_tokens", 1200, "the public code, which is HyperGraphRAG's"),
        Line("split.overlap_tokens", 100, "the public code, which is HyperGraphRAG's"),
        Line("split.section_tokens", 1200, "the public code, which is HyperGraphRAG's"),
        Line("embedding.hyperedge_titles", False, "section 3.1.4: phi(f) is of the hyperedge's text"),
        Line("question.names", "found", "section 3.1.1: E_q is what the model identifies"),
        Line("hypermemory.width", 3, "appendix B.1: w"),
        Line("hypermemory.depth", 3, "appendix B.1: d"),
        Line("hypermemory.calls", "paper", "eqs. 14 and 15: a prompt for each entity and each hyperedge"),
        Line("hypermemory.composite", "triple", "eq. 16"),
        Line("hypermemory.edge_tokens", 127_000, "the public code; the paper gives none"),
        Line("hypermemory.entity_limit", 10_000, "the public code: as many as 127,000 tokens hold"),
        Line("hypermemory.max_calls", 1000, "section 3.2.1: none but by width and depth"),
        Line("answer.budget", "shares", "section 3.1.6"),
        Line("answer.max_context_tokens", 127_000, "the public code; the paper gives none"),
        Line("answer.hyperedge_share", 0.5, "section 3.1.6"),
        Line("answer.entity_share", 0.3, "section 3.1.6"),
        Line("answer.form", "entity", "appendix D, figure 5a"),
    ),
)
