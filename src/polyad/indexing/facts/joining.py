"""Joins entities that a reply lists by themselves to the facts that mention them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from polyad.indexing.facts.extraction import ExtractedEntity, ExtractedFact, identity
from polyad.indexing.locate import UNSPACED, name_spans

_WORD = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_PAIR = re.compile(rf"(?=([{UNSPACED}]{{2}}))")


def with_unlisted(
    facts: Sequence[ExtractedFact], table: Mapping[str, ExtractedEntity], notes: Counter[str]
) -> list[ExtractedFact]:
    """Join the entities that no fact lists to the facts that mention them.

    Args:
        facts: With the entities that each lists.
        table: All entities, by :func:`polyad.indexing.facts.extraction.identity`.
        notes: Counts what is joined, and what no fact mentions.
    """
    listed = {identity(entity.name) for fact in facts for entity in fact.entities}
    unlisted = [entity for key, entity in table.items() if key not in listed]
    places = _places_by_word(facts) if unlisted else {}
    joined: dict[int, list[ExtractedEntity]] = defaultdict(list)
    for entity in unlisted:
        mentioning = [place for place in _places(entity.name, places) if name_spans(entity.name, facts[place].text)]
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
