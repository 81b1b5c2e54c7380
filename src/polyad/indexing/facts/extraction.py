"""What a language model extracts from a passage: n-ary facts, each with the entities it joins.

HyperGraphRAG, section 4.1: a hyperedge is a sentence with a score in (0, 10], an entity a name with a type, an
explanation and a score in (0, 100]. How they are asked for, and how a reply is read, is a style's affair; what the
readers have in common is here. Every one of them keeps two rules. What is returned stands in the reply, name by name
and sentence by sentence, but for white space and for what would drive a terminal. What is dropped or repaired is
counted, with the reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.errors import UnreadableReplyError
from polyad.text.keys import entity_key
from polyad.text.outside import harmless_line

_NUMBER = r"\d+(?:[.,]\d+)?"
_SCORE = re.compile(
    rf"""[\s"'“”*(\[]*(?:score\b[\s:=]*)?(?P<number>[-+]?{_NUMBER})"""
    rf"""(?:\s*(?:(?P<percent>%)|(?:/|(?:out\s+)?of\b)\s*(?P<whole>{_NUMBER})))?[\s"'“”*)\].,;]*""",
    re.IGNORECASE,
)

THOUGHTS = "thoughts in front of a reply left out"


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as a reply names it in one fact.

    Attributes:
        name: As the reply writes it, on one line. Not checked against the passage.
        type: Empty, or what kind of thing it is, in the model's own labels.
        description: Empty, or what the passage says of it.
        score: Importance in (0, 100].
    """

    name: str
    type: str = ""
    description: str = ""
    score: float = 100.0


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A sentence that joins entities.

    Attributes:
        text: As the reply writes it, on one line.
        score: Completeness in (0, 10].
        entities: Its members in the reply's order, no two of one entity key. May be empty.
    """

    text: str
    score: float = 10.0
    entities: tuple[ExtractedEntity, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that one reply says.

    Attributes:
        facts: In the reply's order, no two of one text.
        notes: How often something was dropped or repaired, by reason, in words for a report.
    """

    facts: tuple[ExtractedFact, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of scores, open at 0 where models are asked for 0 to ``highest``.

    Attributes:
        highest: The best score, and the one taken where there is none.
        lowest: What 0, and all else below it, counts as: a low score, yet one that a product of scores survives.
    """

    highest: float
    lowest: float

    def read(self, value: object, notes: Counter[str]) -> float:
        """The score that ``value`` stands for, in ``[lowest, highest]``: a number, "8", "8/10", "8 out of 10", "80%".

        What is missing or no number counts as ``highest``; what is out of range, as the nearer end of the range.
        """
        if value is None or value == "":
            notes["score missing"] += 1
            return self.highest
        number = self._in_words(value, notes) if isinstance(value, str) else _as_float(value)
        if math.isnan(number):
            notes["score that is not a number"] += 1
            return self.highest
        notes["score out of range"] += not 0 <= number <= self.highest
        return min(max(number, self.lowest), self.highest)

    def _in_words(self, text: str, notes: Counter[str]) -> float:
        match = _SCORE.match(text)
        if match is None:
            return math.nan
        number = float(match["number"].replace(",", "."))
        whole = 100.0 if match["percent"] else float((match["whole"] or "0").replace(",", "."))
        if whole == 0:
            return number
        notes["score given as a share"] += 1
        return number / whole * self.highest


FACT_SCORES = Scale(10.0, 0.5)
ENTITY_SCORES = Scale(100.0, 1.0)


def _as_float(value: object) -> float:
    """NaN for what is no number; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_score(text: str) -> bool:
    """Whether a field holds a score and nothing else."""
    return _SCORE.fullmatch(text) is not None


def one_line(value: object) -> str:
    r"""A text, harmless, with its runs of white space as single spaces; "" for what is no text and no whole number.

    This is the door for what JSON and its escapes can spell. Whole numbers are names of years and models. A text with
    half of a surrogate pair, which a broken escape leaves behind, cannot be stored and counts as none.

    >>> one_line(" Ada\n Lovelace "), one_line(1815), one_line(None), one_line("\ud83d")
    ('Ada Lovelace', '1815', '', '')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        return ""
    return harmless_line(value)


def entity_from_fields(fields: Sequence[str], notes: Counter[str]) -> ExtractedEntity | None:
    """The entity of a record with the fields name, type, description and score; all but the name may be missing."""
    name = one_line(fields[0])
    if not name:
        notes["entity without a name"] += 1
        return None
    rest = list(fields[1:])
    scores = [place for place, text in enumerate(rest) if is_score(text)]
    place = scores[-1] if scores else 2
    score = ENTITY_SCORES.read(rest.pop(place) if place < len(rest) else None, notes)
    notes["field too many"] += max(0, len(rest) - 2)
    kind, description, *_ = *map(one_line, rest), "", ""
    return ExtractedEntity(name, kind, description, score)


def identity(name: str) -> str:
    """What two spellings of one name have in common: the entity key, or the name in lower case where it has none."""
    return entity_key(name) or name.casefold()


def union(entities: Iterable[ExtractedEntity]) -> tuple[ExtractedEntity, ...]:
    """Each entity once, by its first spelling: first type, all descriptions, highest score."""
    known: dict[str, list[ExtractedEntity]] = {}
    for entity in entities:
        known.setdefault(identity(entity.name), []).append(entity)
    return tuple(_joined(same) for same in known.values())


def _joined(same: Sequence[ExtractedEntity]) -> ExtractedEntity:
    """One of what is said of an entity; all at once, lest a description grow line by line."""
    if len(same) == 1:
        return same[0]
    said = dict.fromkeys(entity.description for entity in same)  # the same again and again, where one fact is repeated
    lines = dict.fromkeys(line for description in said for line in description.split("\n") if line)
    return replace(
        same[0],
        type=next((entity.type for entity in same if entity.type), ""),
        description="\n".join(lines),
        score=max(entity.score for entity in same),
    )


def extraction(facts: Iterable[ExtractedFact], notes: Counter[str]) -> Extraction:
    """What a reply says, with each fact once, and each entity once in a fact."""
    known: dict[str, list[ExtractedFact]] = {}
    for fact in facts:
        entities = union(fact.entities)
        notes["entity named twice in a fact"] += len(fact.entities) - len(entities)
        notes["fact given twice"] += fact.text in known
        known.setdefault(fact.text, []).append(replace(fact, entities=entities))
    distinct = tuple(same[0] if len(same) == 1 else _one_fact(same) for same in known.values())
    return Extraction(distinct, {reason: notes[reason] for reason in sorted(notes) if notes[reason]})


def _one_fact(same: Sequence[ExtractedFact]) -> ExtractedFact:
    members = union(entity for fact in same for entity in fact.entities)
    return replace(same[0], score=max(fact.score for fact in same), entities=members)


def require_at_most(most: int | None, records: int, reply: str) -> None:
    """Raise UnreadableReplyError for a reply of more records than ``most``: a model that repeats itself has no end."""
    if most is not None and records > most:
        raise UnreadableReplyError(reply, f"at most {most:,} facts, entities and names in facts (max_records)")


def merged(first: Extraction, addition: Extraction) -> Extraction:
    """What two replies about one passage say together."""
    return extraction([*first.facts, *addition.facts], Counter(first.notes) + Counter(addition.notes))
