"""What the two retrievers of the HyperRAG paper share: its hypergraphs and its generator."""

from __future__ import annotations

from polyad.presets.preset import Line, Part

PAPER = "HyperRAG: Reasoning N-ary Facts over Hypergraphs for Retrieval Augmented Generation (Lien et al.)"
CODE = "github.com/Vincent-Lien/HyperRAG"

_INHERITED = "the public code, which is HyperGraphRAG's"

BUILT = (
    Line("method", "facts", "section 3.1.6: as HyperGraphRAG", why="semantic units need no language model"),
    Line("split.passage_tokens", 1200, _INHERITED, why="shorter passages are found better; 1,200 for facts too"),
    Line("split.overlap_tokens", 100, _INHERITED, why="100 for facts too"),
    Line("split.section_tokens", 1200, _INHERITED, why="what stands under a heading is found better by itself"),
    Line("facts.style", "paper", _INHERITED, why="the compact style takes little more than half the tokens"),
    Line("facts.gleaning", 2, _INHERITED, why="one call a passage; each round costs as much again"),
    Line(
        "facts.join_subject",
        False,
        "definition 2.1: a fact is the set of its entities",
        why='a fact that says "the film" is about the title above it',
    ),
    Line(
        "embedding.hyperedge_titles",
        False,
        "section 3.1.4: phi(f) maps the hyperedge's text",
        why='a title says what "it" refers to',
    ),
    Line(
        "question.names",
        "found",
        "section 3.1.1: E_q is what the model identifies",
        why="the vocabulary of the index knows its names",
    ),
)
"""Construction, and where a question begins."""

ANSWERED = (
    Line("answer.budget", "shares", "section 3.1.6"),
    Line(
        "answer.max_context_tokens",
        127_000,
        "the public code; the paper gives none",
        why="most local models hold less, and 6,000 are five passages",
    ),
    Line("answer.hyperedge_share", 0.5, "section 3.1.6"),
    Line("answer.entity_share", 0.3, "section 3.1.6"),
    Line(
        "answer.form",
        "entity",
        "appendix D, figure 5a; entities for closed domains, figure 5b",
        why="most questions are not about one name",
    ),
)
"""The generator."""

MODELS = (
    Part("language model", "not named", "--model", code="gpt-4o-mini"),
    Part("encoder", "not named", "--embedder"),
)

PROMPTS = (
    ("facts_paper", "HyperGraphRAG, appendix A.1"),
    ("question_names", "section 3.1.1, p_topic"),
    ("answer_entity", "appendix D, figure 5a"),
    ("answer_entities", "appendix D, figure 5b"),
)
