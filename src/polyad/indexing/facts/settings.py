"""Settings of the construction method ``facts``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from polyad.config import NOT_IN_FILE, require

ExtractionStyleName = Literal["compact", "paper"]

_NAME = re.compile(r"[^\s,|](?:[^\r\n,|]*[^\s,|])?")
"""A name of an entity type or relation. Commas separate names in prompts, and bars separate fields in replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSettings:
    """Settings for extracting n-ary facts with a language model (HyperGraphRAG, section 4.1 and appendix A.1).

    Attributes:
        style: ``compact`` asks for JSON, once for each passage; ``paper`` for the records of the published prompt.
        gleaning: Further requests for each passage that ask for missed facts. The published code makes 2.
        language: Language of the extracted texts, in words ("German"); empty for the language of the passage.
        dates: Whether facts state from when to when they hold, if the passage does. Only with the style ``compact``.
        attempts: Requests for a passage before it fails because its reply cannot be parsed.
        max_records: Maximum number of facts, entities and names in facts of one reply; a reply with more counts as
            unreadable. A passage of 1,200 tokens has some 100.
        drop_ungrounded: Whether entities whose name does not occur in the passage are dropped, not only flagged.
        join_subject: Whether the title and headings of a passage are members of its facts, or, without headings, the
            entity that the passage defines or begins with. If false, no incidence of a fact has the role subject.
        entity_types: Types that entities may have, such as ``["person", "company"]``; empty for any. In a variable,
            commas separate them.
        relations: Relations that facts may have, such as ``["employs", "owns"]``. The language model names the relation
            of each fact. Empty for facts without relations. In a variable, commas separate them.
        examples: Text file with examples of passages and their facts for the language model; empty for none. In a
            settings file, the path is relative to the folder of that file, and inside that folder.
        strict: Whether entities and facts that do not fit ``entity_types`` and ``relations`` are dropped. If false,
            they are retained. Reports count them in both cases.
    """

    style: ExtractionStyleName = "compact"
    gleaning: int = 0
    language: str = ""
    dates: bool = False
    attempts: int = field(default=2, metadata=NOT_IN_FILE)
    max_records: int = field(default=10_000, metadata=NOT_IN_FILE)
    drop_ungrounded: bool = False
    join_subject: bool = field(default=True, metadata=NOT_IN_FILE)
    entity_types: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    examples: str = ""
    strict: bool = True

    def __post_init__(self) -> None:
        require(self.style in get_args(ExtractionStyleName), "style", self.style, "compact or paper")
        require(self.style == "compact" or not self.dates, "dates", self.dates, "false with the style paper")
        require(self.gleaning >= 0, "gleaning", self.gleaning, "0 or more")
        require(self.attempts >= 1, "attempts", self.attempts, "1 or more")
        require(self.max_records >= 1, "max_records", self.max_records, "1 or more")
        for key in ("entity_types", "relations"):
            names = getattr(self, key)
            is_valid = all(_NAME.fullmatch(name) for name in names)
            require(is_valid, key, names, "names of one line, without commas and bars")
