"""Settings of HyperRetriever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyad.config import require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRetrieverSettings:
    """Search along triples that a trained scorer holds plausible (HyperRAG, section 3.1; values of its appendix B.1).

    What the scorer reads and learns is decided in training (:class:`HyperRetrieverTraining`); at search its file says
    which it was. Where a value is not the paper's, or the paper gives none, the
    points named are of Recall@5: on questions of 2WikiMultiHopQA that were not trained on, and, as transfer, the mean
    of those on musique and hotpotqa (docs/adr/0011).

    Attributes:
        weights: A file written by ``polyad train hyperretriever``; empty for the weights that come with polyad, which
            were trained on 244 questions of 2WikiMultiHopQA.
        threshold: tau_0, plausibility from which a triple is kept and its tail expanded, in (0, 1].
        decay: c, by which the threshold is lowered.
        reductions: N_max, how often at most.
        minimum_hyperedges: M, hyperedges to keep.
        minimum_over: What M is counted over. ``hop``: at each hop the threshold is lowered by itself (section 3.1.5).
            ``question`` (appendix B.1): the search goes on at tau_0 until nothing new is plausible, and only where all
            that it kept is too little is the threshold lowered for what was discarded, as in the published code.
        low_density: Delta_lo, hyperedges an entity. Up to here, what a lowered threshold lets in is not expanded.
        high_density: Delta_up. Above it at most ``triples_kept`` are kept at each hop.
        triples_kept: See there. 1,000; the paper gives none.
        depth: Hops from the question's entities, in training and in search; 0 for as many as there are plausible
            triples, as in the paper. 2: a third hop lets in more that is wrong than right (3: 4 points less, in
            transfer none).
        triples_per_hop: Triples scored at one hop, those of the hyperedges nearest to the question first: the bound
            on what a hub costs. 8,000: above what nearly any hop of the benchmarks has.
        hyperedges_per_passage: The mean of so many best hyperedges is the passage's plausibility (2).
        dense_weight: Share of the passage's cosine in its score, in [0, 1]. 0.4, best on the questions for validation;
            the paper ranks hyperedges only (0: as good, in transfer 4 points less).
        path_weight: What the way to a triple counts for in its score: the plausibility of the best way to its head,
            which is 1 for the question's entities, to this power; 0 or more. 0.5; the paper ranks by the triple alone
            (0: as good on passages; of answers among given facts, 5 to 7 points of Hits@10 less).
        adaptive: Off, the threshold stays at tau_0 and only what reaches it is kept (2 points less).
        binary: Search the pairs of entities that share a hyperedge, each a hyperedge of its own. The triples are the
            same, so weights serve both; density and counts of hyperedges are not (3 points less, in transfer 2).
        signals: The scorer also reads the signals of the default retriever; takes weights trained that way (5 points
            more, in transfer 1).
    """

    weights: str = ""
    threshold: float = 0.5
    decay: float = 0.1
    reductions: int = 5
    minimum_hyperedges: int = 50
    minimum_over: Literal["hop", "question"] = "hop"
    low_density: float = 2.35
    high_density: float = 5.0
    triples_kept: int = 1000
    depth: int = 2
    triples_per_hop: int = 8000
    hyperedges_per_passage: int = 2
    dense_weight: float = 0.4
    path_weight: float = 0.5
    adaptive: bool = True
    binary: bool = False
    signals: bool = False

    def __post_init__(self) -> None:
        if not self.adaptive:
            require_idle(self, ["decay", "reductions", "minimum_hyperedges", "minimum_over"], "adaptive")
        require(self.minimum_over in ("hop", "question"), "minimum_over", self.minimum_over, "hop or question")
        require(self.depth >= 0, "depth", self.depth, "0 or more")
        require(0 < self.threshold <= 1, "threshold", self.threshold, "above 0, at most 1")
        require(0 <= self.decay <= 1, "decay", self.decay, "0 to 1")
        require(0 <= self.dense_weight <= 1, "dense_weight", self.dense_weight, "0 to 1")
        require(self.path_weight >= 0, "path_weight", self.path_weight, "0 or more")
        require(self.low_density >= 0, "low_density", self.low_density, "0 or more")
        require(
            self.high_density >= self.low_density,
            "high_density",
            self.high_density,
            f"low_density ({self.low_density}) or more",
        )
        for name in ("minimum_hyperedges", "triples_kept", "triples_per_hop", "hyperedges_per_passage"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(self.reductions >= 0, "reductions", self.reductions, "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRetrieverTraining:
    """What HyperRetriever's scorer reads, and what it learns; points as for :class:`HyperRetrieverSettings`.

    Attributes:
        rounds: L of the directional distance encoding; 0 or more. 2; the paper gives none, the published code takes 3.
        directions: ``separate`` has forward and backward flow by themselves (eqs. 5 and 6); ``mixed`` lets each round
            send what both brought, in both directions, as the published code does: twice as many numbers each round.
        distance_starts: Where that encoding starts: the question's ``topics``, as the published code does, or every
            one of the ``heads`` (eq. 4; 0 to 5 points less). Training expands only what is right, so an encoding that
            shows which entities were heads gives the labels away.
        closeness: The scorer also reads the cosines of the question to head, hyperedge and tail, beyond eq. 9. From a
            few hundred questions it does not learn to multiply two vectors (off: 1 to 5 points less in transfer).
        positives: Triples that training calls right. ``answers``: those on shortest paths to the answer, as in the
            paper. ``evidence``: those whose hyperedge is in a gold passage (19 points more, in transfer 8): the paths
            to an answer pass by evidence that it does not stand in, such as the other side of a comparison.
        negatives: Wrong triples taken at a hop: ``hop`` takes up to 96 of those that were met, ``equal`` as many as
            there are right ones, as the published code does.
    """

    rounds: int = 2
    directions: Literal["separate", "mixed"] = "separate"
    distance_starts: Literal["heads", "topics"] = "topics"
    closeness: bool = True
    positives: Literal["evidence", "answers"] = "evidence"
    negatives: Literal["hop", "equal"] = "hop"

    def __post_init__(self) -> None:
        require(self.rounds >= 0, "rounds", self.rounds, "0 or more")
        for name, allowed in (
            ("distance_starts", ("heads", "topics")),
            ("directions", ("separate", "mixed")),
            ("positives", ("evidence", "answers")),
            ("negatives", ("hop", "equal")),
        ):
            require(getattr(self, name) in allowed, name, getattr(self, name), " or ".join(allowed))
