"""HyperRAG's HyperMemory: a beam search that a language model steers."""

from __future__ import annotations

from polyad.presets.hyperrag import ANSWERED, BUILT, CODE, MODELS, PAPER, PROMPTS
from polyad.presets.preset import Line, Part, Preset

_NONE = "the public code; the paper gives none"

PRESET = Preset(
    "hypermemory",
    f"{PAPER}, HyperMemory",
    CODE,
    (
        *BUILT,
        Line("retriever", "hypermemory", "section 3.2", why="needs no language model"),
        Line("hypermemory.width", 3, "appendix B.1: w"),
        Line("hypermemory.depth", 3, "appendix B.1: d"),
        Line(
            "hypermemory.calls",
            "paper",
            "section 3.2.1, eqs. 14 and 15: p_edge for each entity, p_entity for each hyperedge",
            why="one prompt a depth takes 5 to 7 calls in place of 26",
        ),
        Line(
            "hypermemory.composite",
            "triple",
            "section 3.2.1, eq. 16",
            why="what an unlikely way leads to is less likely",
        ),
        Line("hypermemory.edge_tokens", 127_000, _NONE, why="local models hold less"),
        Line(
            "hypermemory.entity_limit",
            10_000,
            "the public code: what 127,000 tokens hold",
            why="local models hold less",
        ),
        Line(
            "hypermemory.max_calls",
            1000,
            "section 3.2.1: bounded by w and d alone",
            why="a question should not cost more than it may",
        ),
        *ANSWERED,
    ),
    (
        *MODELS,
        Part(
            "scores",
            "written as text beside each candidate (figures 4 and 7a)",
            "as JSON by number; texts and numbers in other forms are read too",
        ),
        Part(
            "a lone candidate",
            "scored (eqs. 14 and 15)",
            "not asked about: of shares that add up to 1 it has all",
        ),
        Part(
            "time",
            "no limit",
            "max_seconds = 120 and max_failures = 6 for a question, as without a preset",
        ),
    ),
    (
        *PROMPTS,
        ("hypermemory_hyperedges", "appendix D, figure 7a, p_edge"),
        ("hypermemory_entities", "appendix B, figure 4, p_entity"),
        ("hypermemory_sufficiency", "appendix D, figure 7b, p_ctx"),
    ),
)
