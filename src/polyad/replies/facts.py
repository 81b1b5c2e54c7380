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
    """An entity of a fact, as a language model named, classified, described and scored it.

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
    r"""Return a string without line breaks, or an integer as a string; an empty string for any other value.

    All strings from JSON pass through this function. Whole numbers are names of years and models. A text with an
    unpaired surrogate, which a broken escape leaves behind, cannot be stored and counts as missing.

    >>> clean_value(" Ada\n Lovelace "), clean_value(1815), clean_value(None), clean_value("\ud83d")
    ('Ada Lovelace', '1815', '', '')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        return ""
    return sanitize_line(value)


def build_entity(fields: Sequence[str], problem_counts: Counter[str]) -> ExtractedEntity | None:
    """Return an entity from the text fields name, type, description and score; None if the name is missing.

    Args:
        fields: The fields of a record.
        problem_counts: Number of problems of each kind, updated by the call.
    """
    name = clean_value(fields[0])
    if not name:
        problem_counts["entity without a name"] += 1
        return None
    rest = list(fields[1:])
    scores = [place for place, text in enumerate(rest) if is_score(text)]
    place = scores[-1] if scores else 2
    score = ENTITY_SCORES.parse(rest.pop(place) if place < len(rest) else None, problem_counts)
    problem_counts["field too many"] += max(0, len(rest) - 2)
    kind, description, *_ = *map(clean_value, rest), "", ""
    return ExtractedEntity(name, kind, description, score)


def get_identity(name: str) -> str:
    """Return a key that is equal for all spellings of an entity's name: the entity key, or the name in lower case."""
    return build_entity_key(name) or name.casefold()


def merge_entities(entities: Iterable[ExtractedEntity]) -> tuple[ExtractedEntity, ...]:
    """Merge entities whose names are spellings of each other, with all descriptions and the highest score."""
    groups: dict[str, list[ExtractedEntity]] = {}
    for entity in entities:
        groups.setdefault(get_identity(entity.name), []).append(entity)
    return tuple(_merge_spellings(duplicates) for duplicates in groups.values())


def _merge_spellings(duplicates: Sequence[ExtractedEntity]) -> ExtractedEntity:
    """Return one entity for several records of the same entity, with all their descriptions."""
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


def build_extraction(facts: Iterable[ExtractedFact], problem_counts: Counter[str]) -> Extraction:
    """Build the extraction of a passage; equal facts, and equal entities of a fact, are merged."""
    groups: dict[str, list[ExtractedFact]] = {}
    for fact in facts:
        entities = merge_entities(fact.entities)
        problem_counts["entity named twice in a fact"] += len(fact.entities) - len(entities)
        problem_counts["fact given twice"] += fact.text in groups
        groups.setdefault(fact.text, []).append(replace(fact, entities=entities))
    distinct = tuple(
        duplicates[0] if len(duplicates) == 1 else _merge_facts(duplicates) for duplicates in groups.values()
    )
    return Extraction(
        distinct, {reason: problem_counts[reason] for reason in sorted(problem_counts) if problem_counts[reason]}
    )


def _merge_facts(duplicates: Sequence[ExtractedFact]) -> ExtractedFact:
    return replace(
        duplicates[0],
        score=_get_highest(fact.score for fact in duplicates),
        entities=merge_entities(entity for fact in duplicates for entity in fact.entities),
        relation=next((fact.relation for fact in duplicates if fact.relation), ""),
    )


def _get_highest(scores: Iterable[float | None]) -> float | None:
    return max((score for score in scores if score is not None), default=None)


def scale_scores(facts: Sequence[ExtractedFact], problem_counts: Counter[str]) -> list[ExtractedFact]:
    """Return the facts with scores in the requested ranges; fractions between 0 and 1 are scaled up."""
    of_facts = [fact.score for fact in facts]
    of_entities = [entity.score for fact in facts for entity in fact.entities]
    factors = []
    for scores, others, scale in ((of_facts, of_entities, FACT_SCORES), (of_entities, of_facts, ENTITY_SCORES)):
        is_share = are_fractions(scores, others)
        problem_counts["scores from 0 to 1 taken as shares"] += is_share
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


def check_record_count(max_records: int | None, record_count: int, reply: str) -> None:
    """Raise UnreadableReplyError if a reply has over ``max_records`` records, a sign of endless repetition."""
    if max_records is not None and record_count > max_records:
        raise UnreadableReplyError(reply, f"at most {max_records:,} facts, entities and names in facts (max_records)")


def merge_extractions(first: Extraction, second: Extraction) -> Extraction:
    """Return the facts of two replies for the same passage as one extraction."""
    return build_extraction([*first.facts, *second.facts], Counter(first.notes) + Counter(second.notes))


_WORD = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_PAIR = re.compile(rf"(?=([{UNSPACED}]{{2}}))")


def attach_unlisted_entities(
    facts: Sequence[ExtractedFact], described_entities: Mapping[str, ExtractedEntity], problem_counts: Counter[str]
) -> list[ExtractedFact]:
    """Return the facts; each described entity that no fact lists joins the facts whose text contains its name.

    Args:
        facts: Facts with their listed entities.
        described_entities: Entities in the reply's entity list, by :func:`polyad.replies.facts.get_identity`.
        problem_counts: Number of problems of each kind, updated by the call.
    """
    listed = {get_identity(entity.name) for fact in facts for entity in fact.entities}
    unlisted = [entity for key, entity in described_entities.items() if key not in listed]
    places = _index_words(facts) if unlisted else {}
    joined: dict[int, list[ExtractedEntity]] = defaultdict(list)
    for entity in unlisted:
        mentioning = [
            place
            for place in _find_candidate_facts(entity.name, places)
            if find_name_spans(entity.name, facts[place].text)
        ]
        problem_counts["entity joined to the facts that mention it" if mentioning else "entity in no fact"] += 1
        for place in mentioning:
            joined[place].append(entity)
    return [replace(fact, entities=(*fact.entities, *joined[place])) for place, fact in enumerate(facts)]


def _index_words(facts: Sequence[ExtractedFact]) -> Mapping[str, set[int]]:
    """Return an inverted index of the facts: for each word, the indices of the facts that contain the word."""
    places: dict[str, set[int]] = defaultdict(set)
    for place, fact in enumerate(facts):
        for word in _split_words(fact.text):
            places[word].add(place)
    return places


def _find_candidate_facts(name: str, fact_indices: Mapping[str, set[int]]) -> Iterable[int]:
    """Return the indices of the facts that contain every word of a name; ``fact_indices`` is keyed by word."""
    postings = [fact_indices.get(word, set()) for word in _split_words(name)]
    return sorted(set.intersection(*sorted(postings, key=len))) if postings else ()


def _split_words(text: str) -> set[str]:
    """Return the words of a text in lower case; in scripts without spaces, each character and each pair."""
    return {word.casefold() for word in (*_WORD.findall(text), *_PAIR.findall(text))}
