"""The facts in a reply of a language model: n-ary facts, each with the entities that it joins.

HyperGraphRAG, section 4.1: a hyperedge is a sentence with a score in (0, 10]; an entity is a name with a type, a
description and a score in (0, 100]. Each extraction style has its own parser; this module has their common parts. All
parsers follow two rules. They return only names and sentences of the reply, except for white space and control
characters. They count all that they drop or repair, by reason.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.errors import UnreadableReplyError
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES, are_fractions, is_score
from polyad.text.keys import build_entity_key
from polyad.text.locate import UNSPACED, find_name_spans
from polyad.text.words import sanitize_line

THOUGHTS = "thoughts in front of a reply left out"


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity in an extracted fact, with the language model's type, description and score.

    Attributes:
        name: The name in the reply's spelling, on one line. Not checked against the passage.
        type: The type, in the model's own words; empty if there is none.
        description: The passage's statements about the entity; empty if there are none.
        score: Importance in (0, 100]; None if the reply has none.
    """

    name: str
    type: str = ""
    description: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact that a language model extracted from a passage: a sentence about any number of entities.

    Attributes:
        text: The sentence, on one line.
        score: Completeness in (0, 10]; None if the reply has none.
        entities: The members in the reply's order, with distinct entity keys. May be empty.
        valid_from, valid_to: Times between which the fact holds, as of :func:`polyad.text.validity.format_time`; empty
            if unbounded.
        relation: The relation that the sentence states; empty if the reply has none.
    """

    text: str
    score: float | None = None
    entities: tuple[ExtractedEntity, ...] = ()
    valid_from: str = ""
    valid_to: str = ""
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts that a language model extracted from one passage, with counts of parsing problems.

    Attributes:
        facts: The facts in the reply's order, with distinct texts.
        notes: Number of dropped or repaired items, by reason.
    """

    facts: tuple[ExtractedFact, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)


def clean_value(value: object) -> str:
    r"""Return a string on one line, or an integer as a string; an empty string for any other value.

    This is the door for what JSON and its escapes can spell. Whole numbers are names of years and models. A text with
    half of a surrogate pair, which a broken escape leaves behind, cannot be stored and counts as none.

    >>> clean_value(" Ada\n Lovelace "), clean_value(1815), clean_value(None), clean_value("\ud83d")
    ('Ada Lovelace', '1815', '', '')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        return ""
    return sanitize_line(value)


def build_entity(fields: Sequence[str], notes: Counter[str]) -> ExtractedEntity | None:
    """Build an entity from the fields name, type, description and score; only the name is required.

    Args:
        fields: The fields of a record.
        notes: Counts problems.
    """
    name = clean_value(fields[0])
    if not name:
        notes["entity without a name"] += 1
        return None
    rest = list(fields[1:])
    scores = [place for place, text in enumerate(rest) if is_score(text)]
    place = scores[-1] if scores else 2
    score = ENTITY_SCORES.parse(rest.pop(place) if place < len(rest) else None, notes)
    notes["field too many"] += max(0, len(rest) - 2)
    kind, description, *_ = *map(clean_value, rest), "", ""
    return ExtractedEntity(name, kind, description, score)


def get_identity(name: str) -> str:
    """Return a key that is the same for all spellings of an entity's name."""
    return build_entity_key(name) or name.casefold()


def merge_entities(entities: Iterable[ExtractedEntity]) -> tuple[ExtractedEntity, ...]:
    """Merge entities with the same identity (normalised name), with all descriptions and the highest score."""
    groups: dict[str, list[ExtractedEntity]] = {}
    for entity in entities:
        groups.setdefault(get_identity(entity.name), []).append(entity)
    return tuple(_merge_spellings(duplicates) for duplicates in groups.values())


def _merge_spellings(duplicates: Sequence[ExtractedEntity]) -> ExtractedEntity:
    """Merge records of the same entity into one record with all their descriptions."""
    if len(duplicates) == 1:
        return duplicates[0]
    descriptions = dict.fromkeys(
        entity.description for entity in duplicates
    )  # the same again and again, where one fact is repeated
    lines = dict.fromkeys(line for description in descriptions for line in description.split("\n") if line)
    return replace(
        duplicates[0],
        type=next((entity.type for entity in duplicates if entity.type), ""),
        description="\n".join(lines),
        score=_get_highest(entity.score for entity in duplicates),
    )


def build_extraction(facts: Iterable[ExtractedFact], notes: Counter[str]) -> Extraction:
    """Build the extraction of a passage; equal facts, and equal entities of a fact, are merged."""
    groups: dict[str, list[ExtractedFact]] = {}
    for fact in facts:
        entities = merge_entities(fact.entities)
        notes["entity named twice in a fact"] += len(fact.entities) - len(entities)
        notes["fact given twice"] += fact.text in groups
        groups.setdefault(fact.text, []).append(replace(fact, entities=entities))
    distinct = tuple(
        duplicates[0] if len(duplicates) == 1 else _merge_facts(duplicates) for duplicates in groups.values()
    )
    return Extraction(distinct, {reason: notes[reason] for reason in sorted(notes) if notes[reason]})


def _merge_facts(duplicates: Sequence[ExtractedFact]) -> ExtractedFact:
    return replace(
        duplicates[0],
        score=_get_highest(fact.score for fact in duplicates),
        entities=merge_entities(entity for fact in duplicates for entity in fact.entities),
        relation=next((fact.relation for fact in duplicates if fact.relation), ""),
    )


def _get_highest(scores: Iterable[float | None]) -> float | None:
    return max((score for score in scores if score is not None), default=None)


def scale_scores(facts: Sequence[ExtractedFact], notes: Counter[str]) -> list[ExtractedFact]:
    """Return the facts with scores in the requested range; scores between 0 and 1 are scaled up."""
    of_facts = [fact.score for fact in facts]
    of_entities = [entity.score for fact in facts for entity in fact.entities]
    factors = []
    for scores, others, scale in ((of_facts, of_entities, FACT_SCORES), (of_entities, of_facts, ENTITY_SCORES)):
        is_share = are_fractions(scores, others)
        notes["scores from 0 to 1 taken as shares"] += is_share
        factors.append(scale.highest if is_share else 1.0)
    return [
        replace(
            fact,
            score=FACT_SCORES.clip(fact.score, factors[0]),
            entities=tuple(
                replace(entity, score=ENTITY_SCORES.clip(entity.score, factors[1])) for entity in fact.entities
            ),
        )
        for fact in facts
    ]


def check_record_count(max_records: int | None, records: int, reply: str) -> None:
    """Raise UnreadableReplyError if a reply has more than ``max_records`` records, a sign of endless repetition."""
    if max_records is not None and records > max_records:
        raise UnreadableReplyError(reply, f"at most {max_records:,} facts, entities and names in facts (max_records)")


def merge_extractions(first: Extraction, addition: Extraction) -> Extraction:
    """Merge the facts from two replies for the same passage."""
    return build_extraction([*first.facts, *addition.facts], Counter(first.notes) + Counter(addition.notes))


_WORD = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_PAIR = re.compile(rf"(?=([{UNSPACED}]{{2}}))")


def attach_unlisted_entities(
    facts: Sequence[ExtractedFact], table: Mapping[str, ExtractedEntity], notes: Counter[str]
) -> list[ExtractedFact]:
    """Add each entity of ``table`` (a reply's entity list) that no fact lists to the facts that contain its name.

    Args:
        facts: With the entities that each lists.
        table: All entities, by :func:`polyad.replies.facts.get_identity`.
        notes: Counts what is joined, and what no fact mentions.
    """
    listed = {get_identity(entity.name) for fact in facts for entity in fact.entities}
    unlisted = [entity for key, entity in table.items() if key not in listed]
    places = _index_words(facts) if unlisted else {}
    joined: dict[int, list[ExtractedEntity]] = defaultdict(list)
    for entity in unlisted:
        mentioning = [
            place
            for place in _find_candidate_facts(entity.name, places)
            if find_name_spans(entity.name, facts[place].text)
        ]
        notes["entity joined to the facts that mention it" if mentioning else "entity in no fact"] += 1
        for place in mentioning:
            joined[place].append(entity)
    return [replace(fact, entities=(*fact.entities, *joined[place])) for place, fact in enumerate(facts)]


def _index_words(facts: Sequence[ExtractedFact]) -> Mapping[str, set[int]]:
    """Build an inverted index from each word to the indices of the facts that contain the word."""
    places: dict[str, set[int]] = defaultdict(set)
    for place, fact in enumerate(facts):
        for word in _split_words(fact.text):
            places[word].add(place)
    return places


def _find_candidate_facts(name: str, places: Mapping[str, set[int]]) -> Iterable[int]:
    """Return the indices of the facts that contain every word of a name; ``places`` is the inverted index."""
    postings = [places.get(word, set()) for word in _split_words(name)]
    return sorted(set.intersection(*sorted(postings, key=len))) if postings else ()


def _split_words(text: str) -> set[str]:
    """Return the case-folded words of a text; for scripts without spaces, all characters and pairs of characters."""
    return {word.casefold() for word in (*_WORD.findall(text), *_PAIR.findall(text))}
