"""Settings of HyperSU's retriever."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyad.config import NOT_IN_FILE, require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSUSettings:
    """Settings of HyperSU's walk along hyperedges similar to clues (section 4.2; defaults from Table 10 unless noted).

    Attributes:
        max_clues: M, the maximum number of clues from the language model. 0 uses the question as the only clue (the
            paper's ablation "w/o clue agent").
        activation_threshold: delta, in [0, 1) (paper: 0.5, for bge-large). None takes the value calibrated for the
            embedder, or measures one on the index; the paper's in an index of fewer than 20 passages.
        sharpening: gamma, above 0.
        forward_depth: Hops from the question's entities.
        backward_depth: Hops from the entities of the nearest passages; 0 disables backward anchoring.
        width: K, new entities added at each hop.
        decay: beta, in (0, 1].
        anchors: Nearest passages whose entities start the backward walk.
        convergence_bonus: mu, the factor of hyperedges reached by both walks.
        units_per_passage: L, hyperedges whose mean is the passage's score.
        dense_weight: Share of the passage's cosine in its score, in [0, 1]. The published code uses 0.5; the paper 0.
        link_threshold: Lowest cosine at which a name in the question links to an entity of another name, in (0, 1];
            1 links exact names only, as in the paper's experiments (C.2). On the benchmarks lower values gain nothing.
        use_remainder: Without a language model, add the question without its linked names as a further clue. The
            paper without a planner uses the question alone (section 4.2).
        hub_degree: Passages of an entity, above which only its 2,000 hyperedges nearest to each clue are read; 0 reads
            all of them, as in the paper. The result differs if a clue activates more than 2,000.
    """

    max_clues: int = 3
    activation_threshold: float | None = None
    sharpening: float = 1.0
    forward_depth: int = 4
    backward_depth: int = 2
    width: int = 30
    decay: float = 0.5
    anchors: int = 10
    convergence_bonus: float = 2.0
    units_per_passage: int = 3
    dense_weight: float = 0.0
    link_threshold: float = field(default=1.0, metadata=NOT_IN_FILE)
    use_remainder: bool = field(default=True, metadata=NOT_IN_FILE)
    hub_degree: int = field(default=5000, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        if not self.max_clues:
            require_idle(self, ["use_remainder"], "max_clues")
        if not self.backward_depth:
            require_idle(self, ["anchors", "convergence_bonus"], "backward_depth")
        threshold = self.activation_threshold
        require(threshold is None or 0 <= threshold < 1, "activation_threshold", threshold, "0 or more, below 1")
        require(0 < self.link_threshold <= 1, "link_threshold", self.link_threshold, "above 0, at most 1")
        require(0 < self.decay <= 1, "decay", self.decay, "above 0, at most 1")
        require(0 <= self.dense_weight <= 1, "dense_weight", self.dense_weight, "0 to 1")
        require(self.sharpening > 0, "sharpening", self.sharpening, "above 0")
        require(self.convergence_bonus >= 1, "convergence_bonus", self.convergence_bonus, "1 or more")
        for name in ("width", "units_per_passage"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("max_clues", "forward_depth", "backward_depth", "anchors", "hub_degree"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
