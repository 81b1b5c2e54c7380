"""HyperSU: semantic units by minimum description length, clue-guided expansion from both ends."""

from __future__ import annotations

from polyad.presets.preset import Line, Preset

PRESET = Preset(
    "hypersu",
    "HyperSU: Corpus-Driven Semantic-Unit Hypergraph for Retrieval-Augmented Generation (Liu et al.)",
    (
        Line("method", "semantic-units", "section 4.1"),
        Line("retriever", "hypersu", "section 4.2"),
        Line("k", 5, "Table 10: reader context, top-5 passages"),
        Line("segmentation.method", "mdl", "section 4.1, eq. 3"),
        Line("segmentation.semantics", "embedder", "section 4.1: L2-normalised sentence embeddings"),
        Line("segmentation.kappa", 75.0, "Table 10"),
        Line("segmentation.effective_dimension", 32, "Table 10"),
        Line("segmentation.min_words", 20, "the public code; the paper gives no w_min"),
        Line("segmentation.max_words", 200, "the public code; the paper gives no w_max"),
        Line("segmentation.join_subject", False, "definition 3: V_u is what appears in u"),
        Line("split.passage_tokens", 1200, "the public code; the paper gives none"),
        Line("split.overlap_tokens", 100, "the public code; the paper gives none"),
        Line("split.section_tokens", 1200, "section 4.1: passages are spans of a text, whatever its headings"),
        Line("embedding.hyperedge_titles", False, "section 4.2: sim(c, u) is of the unit"),
        Line("question.names", "found", "appendix C.2: extracted entities, normalised exact matching"),
        Line("hypersu.use_clues", True, "section 4.2, Clue Agent"),
        Line("hypersu.use_remainder", False, "section 4.2: without a planner the question is the single clue"),
        Line("hypersu.max_clues", 3, "Table 10: M"),
        Line("hypersu.activation_threshold", 0.5, "Table 10: delta"),
        Line("hypersu.sharpening", 1.0, "Table 10: gamma"),
        Line("hypersu.forward_depth", 4, "Table 10: T_fwd"),
        Line("hypersu.backward_depth", 2, "Table 10: T_bwd"),
        Line("hypersu.width", 30, "Table 10: candidates per hop"),
        Line("hypersu.decay", 0.5, "Table 10: beta"),
        Line("hypersu.anchors", 10, "Table 10: dense seeds"),
        Line("hypersu.convergence_bonus", 2.0, "Table 10: mu"),
        Line("hypersu.units_per_passage", 3, "Table 10: L"),
        Line("hypersu.dense_weight", 0.0, "section 4.2, g(p): dense retrieval only anchors", code="0.5"),
        Line("hypersu.link_threshold", 1.0, "appendix C.2: normalised exact matching"),
        Line("answer.temperature", 0.0, "Table 10"),
    ),
)
