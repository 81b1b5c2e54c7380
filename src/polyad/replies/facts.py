"""What a language model extracts from a passage: n-ary facts, each with the entities it joins.

HyperGraphRAG, section 4.1: a hyperedge is a sentence with a score in (0, 10], an entity a name with a type, an
explanation and a score in (0, 100]. How they are asked for, and how a reply is read, is a style's affair; what the
readers have in common is here. Every one of them keeps two rules. What is returned stands in the reply, name by name
and sentence by sentence, but for white space and for what would drive a terminal. What is dropped or repaired is
counted, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.errors import UnreadableReplyError
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES, are_shares, is_score
from polyad.text.cleaning import sanitize_line
from polyad.text.keys import build_entity_key
from polyad.text.locate import UNSPACED, find_name_spans

THOUGHTS = "thoughts in front of a reply left out"


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as a reply names it in one fact.

    Attributes:
        name: As the reply writes it, on one line. Not checked against the passage.
        type: Empty, or what kind of thing it is, in the model's own labels.
        description: Empty, or what the passage says of it.
        score: Importance in (0, 100]; None where the reply does not say.
    """

    name: str
    type: str = ""
    description: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A sentence that joins entities.

    Attributes:
        text: As the reply writes it, on one line.
        score: Completeness in (0, 10]; None where the reply does not say.
        entities: Its members in the reply's order, no two of one entity key. May be empty.
    """

    text: str
    score: float | None = None
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
    return sanitize_line(value)


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
    return build_entity_key(name) or name.casefold()


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
        score=_highest(entity.score for entity in same),
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
    return replace(same[0], score=_highest(fact.score for fact in same), entities=members)


def _highest(scores: Iterable[float | None]) -> float | None:
    return max((score for score in scores if score is not None), default=None)


def scaled(facts: Sequence[ExtractedFact], notes: Counter[str]) -> list[ExtractedFact]:
    """The facts of one reply with the scores in their ranges; those from 0 to 1 are shares of their scale."""
    of_facts = [fact.score for fact in facts]
    of_entities = [entity.score for fact in facts for entity in fact.entities]
    factors = []
    for scores, others, scale in ((of_facts, of_entities, FACT_SCORES), (of_entities, of_facts, ENTITY_SCORES)):
        is_share = are_shares(scores, others)
        notes["scores from 0 to 1 taken as shares"] += is_share
        factors.append(scale.highest if is_share else 1.0)
    return [
        replace(
            fact,
            score=FACT_SCORES.within(fact.score, factors[0]),
            entities=tuple(
                replace(entity, score=ENTITY_SCORES.within(entity.score, factors[1])) for entity in fact.entities
            ),
        )
        for fact in facts
    ]


def require_at_most(most: int | None, records: int, reply: str) -> None:
    """Raise UnreadableReplyError for a reply of more records than ``most``: a model that repeats itself has no end."""
    if most is not None and records > most:
        raise UnreadableReplyError(reply, f"at most {most:,} facts, entities and names in facts (max_records)")


def merged(first: Extraction, addition: Extraction) -> Extraction:
    """What two replies about one passage say together."""
    return extraction([*first.facts, *addition.facts], Counter(first.notes) + Counter(addition.notes))


_WORD = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_PAIR = re.compile(rf"(?=([{UNSPACED}]{{2}}))")


def with_unlisted(
    facts: Sequence[ExtractedFact], table: Mapping[str, ExtractedEntity], notes: Counter[str]
) -> list[ExtractedFact]:
    """Join the entities that no fact lists to the facts that mention them.

    Args:
        facts: With the entities that each lists.
        table: All entities, by :func:`polyad.replies.facts.identity`.
        notes: Counts what is joined, and what no fact mentions.
    """
    listed = {identity(entity.name) for fact in facts for entity in fact.entities}
    unlisted = [entity for key, entity in table.items() if key not in listed]
    places = _places_by_word(facts) if unlisted else {}
    joined: dict[int, list[ExtractedEntity]] = defaultdict(list)
    for entity in unlisted:
        mentioning = [
            place for place in _places(entity.name, places) if find_name_spans(entity.name, facts[place].text)
        ]
        notes["entity joined to the facts that mention it" if mentioning else "entity in no fact"] += 1
        for place in mentioning:
            joined[place].append(entity)
    return [replace(fact, entities=(*fact.entities, *joined[place])) for place, fact in enumerate(facts)]


def _places_by_word(facts: Sequence[ExtractedFact]) -> Mapping[str, set[int]]:
    """In which facts each word occurs."""
    places: dict[str, set[int]] = defaultdict(set)
    for place, fact in enumerate(facts):
        for word in _words(fact.text):
            places[word].add(place)
    return places


def _places(name: str, places: Mapping[str, set[int]]) -> Iterable[int]:
    """The facts that hold every word of a name, and so may mention it."""
    found = [places.get(word, set()) for word in _words(name)]
    return sorted(set.intersection(*sorted(found, key=len))) if found else ()


def _words(text: str) -> set[str]:
    """The words of a text in any case; of scripts without spaces, each character and each two in a row."""
    return {word.casefold() for word in (*_WORD.findall(text), *_PAIR.findall(text))}
