"""HyperRAG's HyperRetriever: triples that a trained network holds plausible."""

from __future__ import annotations

from polyad.presets.preset import Line, Preset

PAPER = "HyperRAG: Reasoning N-ary Facts over Hypergraphs for Retrieval Augmented Generation (Lien et al.)"

PRESET = Preset(
    "hyperretriever",
    f"{PAPER}, HyperRetriever",
    (
        Line("method", "facts", "section 3.1.6: hypergraphs as HyperGraphRAG makes them"),
        Line("retriever", "hyperretriever", "section 3.1"),
        Line("facts.style", "paper", "the public code: HyperGraphRAG's prompt"),
        Line("facts.join_subject", False, "definition 2.1: a fact is the set of its entities"),
        Line("facts.gleaning", 2, "the public code, which is HyperGraphRAG's"),
        Line("split.passage_tokens", 1200, "the public code, which is HyperGraphRAG's"),
        Line("split.overlap_tokens", 100, "the public code, which is HyperGraphRAG's"),
        Line("split.section_tokens", 1200, "the public code, which is HyperGraphRAG's"),
        Line("embedding.hyperedge_titles", False, "section 3.1.4: phi(f) is of the hyperedge's text"),
        Line("question.names", "found", "section 3.1.1: E_q is what the model identifies"),
        Line("hyperretriever.threshold", 0.5, "appendix B.1: tau_0"),
        Line("hyperretriever.decay", 0.1, "appendix B.1: c"),
        Line("hyperretriever.reductions", 5, "appendix B.1: N_max"),
        Line("hyperretriever.minimum_hyperedges", 50, "appendix B.1: M"),
        Line("hyperretriever.minimum_over", "question", "appendix B.1: M per question; section 3.1.5 says per hop"),
        Line("hyperretriever.adaptive", True, "section 3.1.5, eq. 11"),
        Line("hyperretriever.depth", 0, "section 3.1.5: until no new triples satisfy the threshold"),
        Line("hyperretriever.low_density", 2.35, "appendix B.1: Delta_lo"),
        Line("hyperretriever.high_density", 5.0, "appendix B.1: Delta_up"),
        Line("hyperretriever.dense_weight", 0.0, "section 3.1.5: triples are ranked by plausibility alone"),
        Line("hyperretriever.path_weight", 0.0, "section 3.1.5: a triple's score is its own"),
        Line("hyperretriever_training.rounds", 3, "the public code; the paper gives no L"),
        Line("hyperretriever_training.directions", "separate", "section 3.1.3, eqs. 5 to 7", code="mixed"),
        Line("hyperretriever_training.distance_starts", "heads", "section 3.1.3, eq. 4", code="topics"),
        Line("hyperretriever_training.closeness", False, "eq. 9"),
        Line("hyperretriever_training.negatives", "equal", "the public code; section 3.1.4: all others of the head"),
        Line("hyperretriever_training.positives", "answers", "section 3.1.4"),
        Line("answer.budget", "shares", "section 3.1.6"),
        Line("answer.max_context_tokens", 127_000, "the public code; the paper gives none"),
        Line("answer.hyperedge_share", 0.5, "section 3.1.6"),
        Line("answer.entity_share", 0.3, "section 3.1.6"),
        Line("answer.form", "entity", "appendix D, figure 5a"),
    ),
)
