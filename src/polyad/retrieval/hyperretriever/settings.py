"""Settings of HyperRetriever's search and training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from polyad.config import NOT_IN_FILE, require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRetrieverSettings:
    """Settings of HyperRetriever's search along plausible triples: head entity, hyperedge, tail entity.

    The search is that of HyperRAG, section 3.1. Defaults are from appendix B.1 unless noted.

    Training decides which features the scorer reads (:class:`HyperRetrieverTraining`); its file states them. For a
    default that is not the paper's, the cost of the paper's value is given in points of Recall@5: on questions of
    2WikiMultiHopQA without training questions and, as "transfer", the mean over musique and hotpotqa (docs/adr/0011).

    Attributes:
        weights: A file written by ``polyad bench train hyperretriever``; empty for the bundled weights, which were
            trained on 1,836 questions of MuSiQue, HotpotQA and 2WikiMultiHopQA that are in no benchmark of the results.
        threshold: tau_0, plausibility from which a triple is accepted and its tail followed, in (0, 1].
        decay: c, by which the threshold is lowered.
        reductions: N_max, how often the threshold is lowered at most; with 0 it stays at tau_0 (-2 points).
        minimum_hyperedges: M, hyperedges (or triples, by ``minimum_counts``) to accept.
        minimum_over: M counts ``hop`` by hop, each with a threshold of its own (section 3.1.5), or over the whole
            ``question`` (appendix B.1): the search continues at tau_0 until no new triple is plausible, and only then
            is the threshold lowered for the rejected triples, as in the published code.
        minimum_counts: M counts distinct ``hyperedges``, as the text of section 3.1.5 says, or ``triples``, as its
            formula before equation 11 does.
        low_density: Delta_lo, hyperedges per entity, up to which triples below tau_0 are not followed.
        high_density: Delta_up, above which at most ``max_triples`` are accepted at each hop.
        max_triples: Triples accepted at each hop of a dense hypergraph. The paper gives no value.
        depth: Hops from the question's entities, in training and in search; 0 for no limit, as in the paper. A third
            hop adds more wrong triples than right ones (3: -4 points, transfer 0).
        triples_per_hop: Triples scored at one hop; hyperedges nearest to the question come first. Nearly no hop of the
            benchmarks has 8,000.
        hyperedges_per_passage: Number of best hyperedges whose mean is the passage's plausibility.
        max_listed: Hyperedges in the evidence whose passages are not among the best, and entities; 3 hyperedges of each
            best passage are added. 0 lists all, as in the paper: only the token budget of the prompt limits them.
        dense_weight: Share of the passage's cosine in its score, in [0, 1]. 0.4 is the best on the validation
            questions; the paper ranks hyperedges only (0: equal, transfer -4).
        path_weight: Exponent, 0 or more, of the plausibility of the path to a triple in its score. The paper uses the
            triple alone (0: equal on passages; -5 to -7 points of Hits@10 of answers among tuples).
        binary: Split each hyperedge into the pairs of its entities. The triples are the same, so the weights serve
            both; density and hyperedge counts differ (-3 points, transfer -2).
        signals: Let the scorer read the signals of the default retriever; needs weights trained that way (+5 points,
            transfer +1).
    """

    weights: str = ""
    threshold: float = 0.5
    decay: float = 0.1
    reductions: int = 5
    minimum_hyperedges: int = 50
    minimum_over: Literal["hop", "question"] = field(default="hop", metadata=NOT_IN_FILE)
    minimum_counts: Literal["hyperedges", "triples"] = field(default="hyperedges", metadata=NOT_IN_FILE)
    low_density: float = 2.35
    high_density: float = 5.0
    max_triples: int = 1000
    depth: int = 2
    triples_per_hop: int = field(default=8000, metadata=NOT_IN_FILE)
    hyperedges_per_passage: int = 2
    max_listed: int = field(default=30, metadata=NOT_IN_FILE)
    dense_weight: float = 0.4
    path_weight: float = 0.5
    binary: bool = field(default=False, metadata=NOT_IN_FILE)
    signals: bool = field(default=False, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        if not self.reductions:
            require_idle(self, ["decay", "minimum_hyperedges", "minimum_over", "minimum_counts"], "reductions")
        require(self.minimum_over in ("hop", "question"), "minimum_over", self.minimum_over, "hop or question")
        counted = self.minimum_counts
        require(counted in ("hyperedges", "triples"), "minimum_counts", counted, "hyperedges or triples")
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
        for name in ("minimum_hyperedges", "max_triples", "triples_per_hop", "hyperedges_per_passage"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("depth", "reductions", "max_listed"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRetrieverTraining:
    """Settings of the training of HyperRetriever's triple scorer, a small neural network that ranks triples.

    Costs in points are explained in :class:`HyperRetrieverSettings`.

    Attributes:
        rounds: L of the directional distance encoding, 0 or more. The paper gives no value; the published code uses 3.
        directions: ``separate`` propagates forward and backward distances by themselves (eqs. 5 and 6); ``mixed``
            propagates both in both directions, as in the published code, and doubles the features each round.
        distance_starts: Start of the encoding: every one of the ``heads`` (eq. 4), or the question's ``topics``, as in
            the published code (transfer -1, within noise, from 972 questions). Training follows positive triples only,
            so the heads of a hop give away labels of the hop before; with 244 questions that cost 0 to 5 points.
        closeness: Add the cosines of the question to head, hyperedge and tail to the features of eq. 9. From a few
            hundred questions the scorer does not learn to multiply two vectors (off: -1 to -5 points in transfer).
        positives: Positive triples: ``answers``, on shortest paths to the answer, as in the paper; ``evidence``, whose
            hyperedge is in a gold passage (+19 points, transfer +8). Paths to an answer miss evidence without the
            answer, such as the other side of a comparison.
        negatives: Negative triples of a hop: up to 96 of the ``hop``, or as many as positives (``equal``, as in the
            published code).
        epochs: Most epochs (appendix B.1: 50).
        patience: Epochs without a lower validation loss after which training stops (10).
        batch: Triples per step (32).
        rate: Learning rate of Adam (1e-4).
        dropout: Share of the features dropped at random, in [0, 1). 0, as in the paper, for its rate and batch; with
            1e-3 and 128, which take half the time and cost 3 points of Recall@5, 0.2 gives back 2 of them.
        units: Width of the hidden layer (256).
        device: Name of the torch device.
        seed: Seed of the sampled triples, the initial weights, the order of the triples and dropout.
    """

    rounds: int = field(default=2, metadata=NOT_IN_FILE)
    directions: Literal["separate", "mixed"] = field(default="separate", metadata=NOT_IN_FILE)
    distance_starts: Literal["heads", "topics"] = field(default="heads", metadata=NOT_IN_FILE)
    closeness: bool = field(default=True, metadata=NOT_IN_FILE)
    positives: Literal["evidence", "answers"] = field(default="evidence", metadata=NOT_IN_FILE)
    negatives: Literal["hop", "equal"] = field(default="hop", metadata=NOT_IN_FILE)
    epochs: int = field(default=50, metadata=NOT_IN_FILE)
    patience: int = field(default=10, metadata=NOT_IN_FILE)
    batch: int = field(default=32, metadata=NOT_IN_FILE)
    rate: float = field(default=1e-4, metadata=NOT_IN_FILE)
    dropout: float = field(default=0.0, metadata=NOT_IN_FILE)
    units: int = field(default=256, metadata=NOT_IN_FILE)
    device: str = field(default="cpu", metadata=NOT_IN_FILE)
    seed: int = field(default=0, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        for name in ("rounds", "seed"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        for name in ("epochs", "patience", "batch", "units"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(self.rate > 0, "rate", self.rate, "a learning rate above 0")
        require(0 <= self.dropout < 1, "dropout", self.dropout, "0 or more, below 1")
        for name, allowed in (
            ("distance_starts", ("heads", "topics")),
            ("directions", ("separate", "mixed")),
            ("positives", ("evidence", "answers")),
            ("negatives", ("hop", "equal")),
        ):
            require(getattr(self, name) in allowed, name, getattr(self, name), " or ".join(allowed))


CODE_VARIANT: Mapping[str, str] = {"directions": "mixed", "distance_starts": "topics", "negatives": "equal"}
"""Settings of training in the published code, where it differs from the paper."""
