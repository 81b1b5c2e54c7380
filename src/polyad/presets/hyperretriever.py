"""HyperRAG's HyperRetriever: triples that a trained network holds plausible."""

from __future__ import annotations

from polyad.presets.hyperrag import ANSWERED, BUILT, CODE, MODELS, PAPER, PROMPTS
from polyad.presets.preset import Line, Part, Preset

PRESET = Preset(
    "hyperretriever",
    f"{PAPER}, HyperRetriever",
    CODE,
    (
        *BUILT,
        Line("retriever", "hyperretriever", "section 3.1", why="weights of a few signals rank better"),
        Line("hyperretriever.threshold", 0.5, "appendix B.1: tau_0"),
        Line("hyperretriever.decay", 0.1, "appendix B.1: c"),
        Line("hyperretriever.reductions", 5, "appendix B.1: N_max"),
        Line("hyperretriever.minimum_hyperedges", 50, "appendix B.1: M"),
        Line(
            "hyperretriever.minimum_over",
            "question",
            "appendix B.1: M for each question; section 3.1.5 says for each hop",
            why="as section 3.1.5 has it",
        ),
        Line("hyperretriever.adaptive", True, "section 3.1.5, eq. 11"),
        Line("hyperretriever.low_density", 2.35, "appendix B.1: Delta_lo"),
        Line("hyperretriever.high_density", 5.0, "appendix B.1: Delta_up"),
        Line(
            "hyperretriever.max_triples",
            100,
            "the public code; section 3.1.5 gives no bound",
            why="the bound is on what a hub costs, not on what is found",
        ),
        Line(
            "hyperretriever.depth",
            0,
            "section 3.1.5: until no new triples satisfy the threshold",
            why="a third hop lets in more that is wrong than right",
        ),
        Line(
            "hyperretriever.dense_weight",
            0.0,
            "section 3.1.6: ordered by plausibility",
            why="the passage's own similarity helps on data that was not trained on",
        ),
        Line(
            "hyperretriever.path_weight",
            0.0,
            "section 3.1.6: a triple's score is f_theta",
            why="what an implausible way leads to is less likely",
        ),
        Line("hyperretriever_training.rounds", 3, "the public code; the paper gives no L", why="enough for two hops"),
        Line(
            "hyperretriever_training.directions",
            "mixed",
            "the public code; section 3.1.3, eqs. 5 to 7 keep them apart",
            why="eqs. 5 to 7, and half the numbers",
        ),
        Line(
            "hyperretriever_training.distance_starts",
            "topics",
            "the public code; section 3.1.3, eq. 4 starts from every head, which gives the labels of training away",
        ),
        Line(
            "hyperretriever_training.closeness",
            False,
            "section 3.1.4, eq. 9",
            why="a few hundred questions do not teach a network to multiply two vectors",
        ),
        Line(
            "hyperretriever_training.negatives",
            "hop",
            "section 3.1.4: all others of the head; at most 96 a hop",
            code="as many as there are right ones",
        ),
        Line(
            "hyperretriever_training.positives",
            "answers",
            "section 3.1.4",
            why="paths to an answer pass by evidence that it does not stand in",
        ),
        *ANSWERED,
    ),
    (
        *MODELS,
        Part(
            "training",
            "50 epochs, patience 10, batch 32, rate 1e-4 (appendix B.1); 640, 160 and 200 questions (Table 5)",
            "the same by default; polyad bench train hyperretriever BENCH --preset hyperretriever, and its file as "
            "weights: without one the weights that come with polyad are used, which were trained with its defaults",
            code="a hidden layer of 256, as here",
        ),
        Part(
            "source passages",
            "linked to the chosen entities and hyperedges (section 3.1.6)",
            "ranked by the mean of their two most plausible hyperedges",
            code="by the sum of the scores that lead to them",
        ),
        Part(
            "triples of a hop",
            "all (section 3.1.2)",
            "at most 8,000, those of the hyperedges nearest to the question (triples_per_hop)",
        ),
    ),
    PROMPTS,
)
