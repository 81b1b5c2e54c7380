"""Settings of segmentation into semantic units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from polyad.config import require, require_idle

Segmentation = Literal["mdl", "mdl-no-entities", "mdl-no-semantics", "sentence", "window", "semantic-chunking"]
Semantics = Literal["words", "embedder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """How a passage's sentences are grouped into semantic units (HyperSU, section 4.1 and Table 11).

    Attributes:
        method: ``mdl`` is the paper's; the others are its Table 11.
        semantics: How alike sentences are: by their ``words``, which costs nothing, or by the ``embedder``'s vectors of
            each sentence, as in the paper, which is a third of all that is embedded.
        kappa: Semantic reward scale. None takes what suits the words or the embedder: the paper's 75 is for bge-large,
            where units average 3 to 6 sentences; with lower cosines it cuts almost each of them apart.
        effective_dimension: d_eff of the complexity term (Table 10: 32).
        min_words: Shortest unit, in words (20).
        max_words: Longest unit, in words (200).
        window: Sentences in a unit of method ``window`` (Table 11: 3).
        percentile: For ``semantic-chunking``: cut where the distance of neighbours is above this percentile, 0-100.
        one_entity: What makes mentions one entity: the normalised ``name``; or ``name-and-label`` as in the paper, for
            an extractor that tells Washington the person from the place. Its label is then part of an entity's key;
            a title has none, so this goes with ``join_subject = false``.
        join_subject: Whether what a unit stands under, the title and headings of its passage, is a member of it, and
            what its sentences define is marked as its subject. Off, V_u is what appears in the unit (definition 3).
    """

    method: Segmentation = "mdl"
    semantics: Semantics = "words"
    kappa: float | None = None
    effective_dimension: int = 32
    min_words: int = 20
    max_words: int = 200
    window: int = 3
    percentile: float = 80.0
    one_entity: Literal["name", "name-and-label"] = "name"
    join_subject: bool = True

    def __post_init__(self) -> None:
        require(self.method in get_args(Segmentation), "method", self.method, f"one of {get_args(Segmentation)}")
        require(self.semantics in get_args(Semantics), "semantics", self.semantics, f"one of {get_args(Semantics)}")
        require(self.kappa is None or self.kappa >= 0, "kappa", self.kappa, "0 or more")
        require(self.effective_dimension >= 1, "effective_dimension", self.effective_dimension, "1 or more")
        require(self.min_words >= 0, "min_words", self.min_words, "0 or more")
        require(
            self.max_words >= max(1, self.min_words),
            "max_words",
            self.max_words,
            f"min_words ({self.min_words}) or more",
        )
        one_entity = ("name", "name-and-label")
        require(self.one_entity in one_entity, "one_entity", self.one_entity, " or ".join(one_entity))
        if self.join_subject:
            require_idle(self, ["one_entity"], "join_subject = false: a title has no label to be joined by")
        require(self.window >= 1, "window", self.window, "1 or more")
        require(0 <= self.percentile <= 100, "percentile", self.percentile, "0 to 100")
        for key, method in (("window", "window"), ("percentile", "semantic-chunking")):
            if self.method != method:
                require_idle(self, [key], f'method = "{method}"')
