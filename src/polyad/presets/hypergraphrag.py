"""HyperGraphRAG: n-ary facts by a language model, entities and hyperedges by vector, expanded both ways."""

from __future__ import annotations

from polyad.presets.preset import Line, Part, Preset

_NONE = "the public code; the paper gives none"
_SHARES = "what one part leaves over goes to the next"

PRESET = Preset(
    "hypergraphrag",
    "HyperGraphRAG: Retrieval-Augmented Generation via Hypergraph-Structured Knowledge Representation (Luo et al.)",
    "github.com/LHRLAB/HyperGraphRAG",
    (
        Line("method", "facts", "section 4.1", why="semantic units need no language model"),
        Line("retriever", "hypergraphrag", "section 4.2", why="weights learned from questions rank better"),
        Line("split.passage_tokens", 1200, _NONE, why="shorter passages are found better; 1,200 for facts too"),
        Line("split.overlap_tokens", 100, _NONE, why="100 for facts too"),
        Line(
            "split.section_tokens",
            1200,
            "the public code: cut by length, whatever the headings",
            why="what stands under a heading is found better by itself",
        ),
        Line("facts.style", "paper", "appendix A.1", why="the compact style takes little more than half the tokens"),
        Line("facts.gleaning", 2, _NONE, why="one call a passage; each round costs as much again"),
        Line(
            "facts.join_subject",
            False,
            "section 4.1: V_e is recognised in the hyperedge",
            why='a fact that says "the film" is about the title above it',
        ),
        Line(
            "embedding.hyperedge_titles",
            False,
            "section 4.1: h_e = f(e)",
            why='a title says what "it" refers to',
        ),
        Line(
            "question.names",
            "found",
            "section 4.2: V_q is what the model extracts",
            why="the vocabulary of the index knows its names",
        ),
        Line("hypergraphrag.top_k_entities", 60, "section 5.1: k_V"),
        Line("hypergraphrag.top_k_hyperedges", 60, "section 5.1: k_H"),
        Line("hypergraphrag.top_k_passages", 5, "section 5.1: k_C"),
        Line(
            "hypergraphrag.names",
            "together",
            "section 4.2: h_Vq is of all names concatenated",
            why="each name by itself as well finds more",
        ),
        Line(
            "hypergraphrag.thresholds",
            "paper",
            "section 5.1: tau_V = 50, tau_H = 5, tau_C = 0.5",
            code="none are applied",
            why="cosines of other encoders are lower",
        ),
        Line(
            "hypergraphrag.max_listed_hyperedges",
            0,
            "section 4.3: all hyperedges of F_V*",
            code="as many as 4,000 tokens hold",
            why="what everything names is in thousands",
        ),
        Line(
            "hypergraphrag.passage_source",
            "chunks",
            "section 4.3: K* = K_H and K_chunk",
            code="the source passages of what was retrieved",
            why="passages are ranked so that they can be shown and measured",
        ),
        Line("answer.budget", "fixed", _NONE, why=_SHARES),
        Line("answer.hyperedge_tokens", 4000, _NONE),
        Line("answer.entity_tokens", 4000, _NONE),
        Line("answer.passage_tokens", 4000, _NONE),
        Line("answer.prompt", "think-answer", "appendix E, figure 10", why="shorter, and a claim is cited"),
        Line("answer.max_answer_tokens", 32768, "appendix G: at most 32k", why="an answer is a few sentences"),
        Line("answer.temperature", 1.0, "appendix G", why="the same question gives the same answer"),
    ),
    (
        Part("encoder", "text-embedding-3-small (section 5.1)", "--embedder openai:text-embedding-3-small"),
        Part("language model", "gpt-4o-mini (section 5.1)", "--model"),
        Part(
            "score of an entity",
            "its own, 0 to 100 (section 4.1)",
            "the highest of those its passages give it",
            code="the sum over its facts, not used in retrieval",
        ),
        Part(
            "expansion of R_H",
            "every entity of a retrieved hyperedge (section 4.3)",
            "shown with its hyperedge; its own hyperedges are not fetched",
        ),
        Part("first version", "k_C = 3; markdown with headings (appendix C.3)", "passages = 3 and prompt = sections"),
    ),
    (
        ("facts_paper", "appendix A.1"),
        ("question_names", "appendix A.2"),
        ("answer_evidence", "appendix E, figure 10, with the next two"),
        ("answer_text", "appendix E"),
        ("answer_think-answer", "appendix E"),
    ),
)
