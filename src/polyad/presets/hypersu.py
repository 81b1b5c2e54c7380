"""HyperSU: semantic units by minimum description length, clue-guided expansion from both ends."""

from __future__ import annotations

from polyad.presets.preset import Line, Part, Preset

_NONE = "the public code; the paper gives none"

PRESET = Preset(
    "hypersu",
    "HyperSU: Corpus-Driven Semantic-Unit Hypergraph for Retrieval-Augmented Generation (Liu, Chen et al.)",
    "github.com/Sonnet1219/HyperSU",
    (
        Line("method", "semantic-units", "section 4.1"),
        Line("retriever", "hypersu", "section 4.2", why="weights learned from questions rank better"),
        Line("k", 5, "Table 10: reader context, top-5 passages"),
        Line("split.passage_tokens", 1200, _NONE, why="shorter passages are found better"),
        Line("split.overlap_tokens", 100, _NONE, why="a tenth of the passage"),
        Line(
            "split.section_tokens",
            1200,
            "section 4.1: a passage is a run of sentences, whatever the headings",
            why="what stands under a heading is found better by itself",
        ),
        Line(
            "segmentation.method", "mdl", "section 4.1, eq. 3", code="cuts at the 60th percentile of cosine distances"
        ),
        Line(
            "segmentation.semantics",
            "embedder",
            "section 4.1: L2-normalised sentence embeddings",
            why="words cost nothing and give the same recall; a third less is embedded",
        ),
        Line("segmentation.kappa", 75.0, "Table 10", why="suits the words or the encoder; 75 is for bge-large"),
        Line("segmentation.effective_dimension", 32, "Table 10"),
        Line("segmentation.min_words", 20, "the public code; the paper gives no w_min"),
        Line("segmentation.max_words", 200, "the public code; the paper gives no w_max"),
        Line(
            "segmentation.one_entity",
            "name-and-label",
            "section 4.1: exact matching over normalised names and entity labels",
            code="names within a cosine of 0.9",
            why="rules find names without saying of what",
        ),
        Line(
            "segmentation.join_subject",
            False,
            "definition 3: V_u is what appears in u",
            why='a unit that says "it" is about the title above it; worth 6 points of recall on hotpotqa',
        ),
        Line(
            "embedding.hyperedge_titles",
            False,
            "section 4.2: sim(c_i, u) is of the unit",
            why='a title says what "it" refers to',
        ),
        Line(
            "question.names",
            "found",
            "section 4.2 and appendix C.2: extracted entities, normalised exact matching",
            code="embedding similarity to the nearest entity",
            why="questions are badly capitalised, and the vocabulary of the index knows its names",
        ),
        Line("hypersu.link_threshold", 1.0, "appendix C.2: normalised exact matching"),
        Line("hypersu.use_clues", True, "section 4.2, Clue Agent", code="off"),
        Line("hypersu.max_clues", 3, "Table 10: M"),
        Line(
            "hypersu.use_remainder",
            False,
            "section 4.2: without a planner the question is the single clue",
            why="what is sought is nearer to the question without the names that are known",
        ),
        Line(
            "hypersu.activation_threshold",
            0.5,
            "Table 10: delta",
            why="suits the encoder; 0.5 is for bge-large, and silences nearly every unit with all-MiniLM-L6-v2 (0.2)",
        ),
        Line("hypersu.sharpening", 1.0, "Table 10: gamma"),
        Line("hypersu.forward_depth", 4, "Table 10: T_fwd"),
        Line("hypersu.backward_depth", 2, "Table 10: T_bwd", code="3"),
        Line("hypersu.width", 30, "Table 10: candidates per hop"),
        Line("hypersu.decay", 0.5, "Table 10: beta"),
        Line("hypersu.anchors", 10, "Table 10: dense seeds"),
        Line("hypersu.convergence_bonus", 2.0, "Table 10: mu"),
        Line("hypersu.units_per_passage", 3, "Table 10: L", code="the sum over 3, also where there are fewer"),
        Line("hypersu.dense_weight", 0.0, "section 4.2: dense retrieval only initialises the anchors", code="0.5"),
        Line("answer.temperature", 0.0, "Table 10"),
    ),
    (
        Part(
            "names",
            "urchade/gliner_large-v2.1 at 0.3, labels of Table 9 (appendix C.2)",
            "--mention-extractor gliner (general) or gliner:medical, where the extra is installed; else rules",
            code="gpt-4o-mini",
        ),
        Part("encoder", "BAAI/bge-large-en-v1.5 (Table 10)", "--embedder BAAI/bge-large-en-v1.5"),
        Part("language model", "gpt-4o-mini (Table 10)", "--model"),
        Part(
            "titles",
            "a passage is text; the data sets have the title in it",
            "a passage is embedded under its title, its units are not",
        ),
        Part(
            "passages with g(p) = 0",
            "all equal (section 4.2)",
            "the nearest to the question first, below all others",
            code="dense retrieval alone where nothing is linked",
        ),
    ),
    (("hypersu_clues", "appendix C.4"),),
)
