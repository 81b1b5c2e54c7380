"""Settings of the method `facts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from polyad.config import require

ExtractionStyleName = Literal["compact", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSettings:
    """How a language model extracts n-ary facts from a passage (HyperGraphRAG, section 4.1 and appendix A.1).

    Attributes:
        style: ``compact`` asks for JSON in one call a passage; ``paper`` for the tuple records of the published prompt.
        gleaning: Further calls a passage that ask for what was missed. The published code makes 2.
        language: Of the extracted texts, in words ("German"); empty for that of the passage.
        attempts: Times a passage is asked about whose reply cannot be read.
        max_records: Facts, entities and names in facts that one reply may have, taken together; a reply with more
            counts as one that cannot be read. 10,000: a passage of 1,200 tokens has some 100.
        drop_ungrounded: Whether entities whose name does not occur in the passage are left out, not only flagged.
        join_subject: Whether what a fact stands under, the title and headings of its passage, are members of it; where
            there are none, what the passage defines or begins with. Off, nothing is marked as a fact's subject either.
    """

    style: ExtractionStyleName = "compact"
    gleaning: int = 0
    language: str = ""
    attempts: int = 2
    max_records: int = 10_000
    drop_ungrounded: bool = False
    join_subject: bool = True

    def __post_init__(self) -> None:
        require(self.style in get_args(ExtractionStyleName), "style", self.style, "compact or paper")
        require(self.gleaning >= 0, "gleaning", self.gleaning, "0 or more")
        require(self.attempts >= 1, "attempts", self.attempts, "1 or more")
        require(self.max_records >= 1, "max_records", self.max_records, "1 or more")
