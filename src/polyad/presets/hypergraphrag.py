"""HyperGraphRAG: n-ary facts by a language model, entities and hyperedges by vector, expanded both ways."""

from __future__ import annotations

from polyad.presets.preset import Line, Preset

PRESET = Preset(
    "hypergraphrag",
    "HyperGraphRAG: Retrieval-Augmented Generation via Hypergraph-Structured Knowledge Representation (Luo et al.)",
    (
        Line("method", "facts", "section 4.1"),
        Line("retriever", "hypergraphrag", "section 4.2"),
        Line("facts.style", "paper", "appendix A.1"),
        Line("facts.join_subject", False, "section 4.1: the entities of a fact are those in its text"),
        Line("facts.gleaning", 2, "the public code; the paper gives none"),
        Line("split.passage_tokens", 1200, "the public code; the paper gives none"),
        Line("split.overlap_tokens", 100, "the public code; the paper gives none"),
        Line("split.section_tokens", 1200, "section 4.1: documents are cut by length, whatever their headings"),
        Line("embedding.hyperedge_titles", False, "section 4.1: h_e = f(e)"),
        Line("question.names", "found", "section 4.2: V_q is what the model extracts"),
        Line("hypergraphrag.entities", 60, "section 5.1: k_V"),
        Line("hypergraphrag.hyperedges", 60, "section 5.1: k_H"),
        Line("hypergraphrag.passages", 5, "section 5.1: k_C"),
        Line("hypergraphrag.names", "together", "section 4.2: one vector of all names"),
        Line("hypergraphrag.thresholds", "paper", "section 5.1: tau_V = 50, tau_H = 5, tau_C = 0.5"),
        Line("hypergraphrag.expanded", 0, "section 4.3: F_V* is all hyperedges that connect them"),
        Line("hypergraphrag.handed_on", "chunks", "section 4.3: K* = K_H and K_chunk"),
        Line("answer.budget", "fixed", "the public code; the paper gives none"),
        Line("answer.hyperedge_tokens", 4000, "the public code; the paper gives none"),
        Line("answer.entity_tokens", 4000, "the public code; the paper gives none"),
        Line("answer.passage_tokens", 4000, "the public code; the paper gives none"),
        Line("answer.prompt", "think-answer", "appendix E, figure 10"),
        Line("answer.max_answer_tokens", 32768, "appendix G: maximum generation length of 32k"),
        Line("answer.temperature", 1.0, "appendix G"),
    ),
)
