"""Settings of HyperSU's retrieval."""

from __future__ import annotations

from dataclasses import dataclass

from polyad.config import require, require_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSUSettings:
    """Clue-guided bidirectional expansion (HyperSU, section 4.2; values of its Table 10 unless noted).

    Attributes:
        max_clues: M, clues taken from the language model; without one, clues come from the question itself.
        activation_threshold: delta, in [0, 1). None takes the default for the embedder: 0.5 for bge-large.
        sharpening: gamma.
        forward_depth: Hops from the question's entities.
        backward_depth: Hops from the entities of the nearest passages; 0 switches backward anchoring off.
        width: K, new entities kept at each hop.
        decay: beta, in (0, 1].
        anchors: Nearest passages whose entities the backward walk starts from.
        convergence_bonus: mu, for hyperedges reached both ways.
        units_per_passage: L, hyperedges whose mean is the passage's score.
        dense_weight: In [0, 1]. The published code mixes the passage's cosine in with 0.5; the paper does not (0).
        link_threshold: Lowest cosine at which a name in the question is taken for an entity of another name, in (0, 1];
            1 links exact names only, as in the paper's experiments (C.2): on the benchmarks a lower one gains nothing.
        use_remainder: Whether, without a language model, the question without the names it links to is a further clue.
            Off, the question is the only one, as in the paper where no planner is used (section 4.2).
        use_clues: Off, the question is the only clue (the paper's ablation "w/o clue agent").
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
    link_threshold: float = 1.0
    use_remainder: bool = True
    use_clues: bool = True

    def __post_init__(self) -> None:
        if not self.use_clues:
            require_idle(self, ["max_clues", "use_remainder"], "use_clues")
        if not self.backward_depth:
            require_idle(self, ["anchors", "convergence_bonus"], "backward_depth")
        threshold = self.activation_threshold
        require(threshold is None or 0 <= threshold < 1, "activation_threshold", threshold, "0 or more, below 1")
        require(0 < self.link_threshold <= 1, "link_threshold", self.link_threshold, "above 0, at most 1")
        require(0 < self.decay <= 1, "decay", self.decay, "above 0, at most 1")
        require(0 <= self.dense_weight <= 1, "dense_weight", self.dense_weight, "0 to 1")
        require(self.sharpening > 0, "sharpening", self.sharpening, "above 0")
        require(self.convergence_bonus >= 1, "convergence_bonus", self.convergence_bonus, "1 or more")
        for name in ("max_clues", "width", "units_per_passage"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("forward_depth", "backward_depth", "anchors"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
