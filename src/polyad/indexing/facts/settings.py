"""Settings of the construction method ``facts``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from polyad.config import require

ExtractionStyleName = Literal["compact", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSettings:
    """How a language model extracts n-ary facts from a passage (HyperGraphRAG, section 4.1 and appendix A.1).

    Attributes:
        style: ``compact`` asks for JSON, once for each passage; ``paper`` for the records of the published prompt.
        gleaning: Further requests for each passage that ask for missed facts. The published code makes 2.
        language: Language of the extracted texts, in words ("German"); empty for the language of the passage.
        attempts: Requests for a passage before it fails because its reply cannot be parsed.
        max_records: Most facts, entities and names in facts of one reply, taken together; a reply with more counts as
            unreadable. A passage of 1,200 tokens has some 100.
        drop_ungrounded: Whether entities whose name does not occur in the passage are dropped, not only flagged.
        join_subject: Whether the title and headings of a passage are members of its facts; without any, the entity that
        the
            passage defines or begins with. If off, no incidence of a fact has the role subject.
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
