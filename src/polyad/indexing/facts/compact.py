r"""The ``compact`` extraction style: a few facts as JSON, their entities described once in a table.

Output tokens cost most, so nothing is written twice: a fact only names its members, and the table has one line a name,
``name | type | description | importance``, instead of an object whose keys would be as long as its contents. The fixed
part of the prompt is short and the same for every passage, so that endpoints can cache it.

Facts come before the table. A sentence is composed first and its names are copied out of it, so that the table holds
what the facts need and no more; and a reply that is cut short loses descriptions, which an index can do without, before
it loses facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice

from polyad.errors import UnreadableReplyError
from polyad.indexing.facts.extraction import (
    THOUGHTS,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    entity_from_fields,
    extraction,
    identity,
    one_line,
    require_at_most,
    scaled,
    union,
)
from polyad.indexing.facts.joining import with_unlisted
from polyad.indexing.facts.json_records import NAME, TEXT, Records, best_records, first_of
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.reply_scores import ENTITY_SCORES, FACT_SCORES
from polyad.text.json_schema import NUMBER, STRING, array_of, object_of
from polyad.text.loose_json import normal_keys
from polyad.text.thoughts import after_thoughts

_SCHEMA = object_of(
    facts=array_of(object_of(text=STRING, score=NUMBER, entities=array_of(STRING))), entities=array_of(STRING)
)


_MEMBERS = ("entities", "members", "names")
_COMPLETENESS = ("score", "completeness", "completenessscore")
_IMPORTANCE = ("score", "importance", "keyscore", "importancescore")
_TYPE = ("type", "entitytype")
_DESCRIPTION = ("description", "entitydescription", "explanation")
_BAR = re.compile(r"(?<!\S)\|(?!\S)")
"""Stands between the fields of a line. A bar without blanks around it is part of a name, such as P(A|B)."""

_MOST_BARS = 16
"""Bars at the beginning of a line among which its name may end; names have one, such as P(A|B), or two."""


class CompactExtractionStyle(ExtractionStyle):
    """Asks for facts and a table of entities as JSON, and reads what models make of it."""

    style = "compact"
    schema = _SCHEMA

    def parse(self, reply: str, most: int | None = None) -> Extraction:
        """Read a reply: whole, in prose or a fence, not quite JSON, or cut short; objects where lines were asked for.

        Every fact and every line of the table that is there whole is kept, even when the JSON around it is not. A name
        that the table leaves out is kept without a description; a line of the table that no fact names joins the facts
        that mention it, or is dropped where there is none.

        Raises:
            UnreadableReplyError: there is neither a fact nor an entity in it, nor an empty list of them; or its facts
                are there and none has a text; or there are more than ``most`` records.
        """
        facts, notes = read_json(reply, most)
        return extraction(facts, notes)


def read_json(reply: str, most: int | None = None) -> tuple[list[ExtractedFact], Counter[str]]:
    """The facts of a reply in JSON, and what was repaired; see :meth:`CompactExtractionStyle.parse`."""
    said = after_thoughts(reply)
    records = best_records(said)
    names = sum(len(_members(record)) for record in records.facts)
    require_at_most(most, len(records.facts) + len(records.entities) + names, reply)
    notes = records.notes
    notes[THOUGHTS] += said != reply.strip()
    table = _table(records)
    facts = [fact for record in records.facts if (fact := _fact(record, table, notes))]
    if not records.is_readable or (not facts and _says_something(records)):
        raise UnreadableReplyError(reply, '{"facts": [{"text": ...}, ...], "entities": [...]}')
    return scaled(with_unlisted(facts, table, notes), notes), notes


# From records to facts


def _table(records: Records) -> dict[str, ExtractedEntity]:
    """What the reply says of each entity, by the identity of its name."""
    lines = _Lines(name for record in records.facts for name in _members(record) if isinstance(name, str))
    listed = [
        entity
        for record in records.entities
        if (entity := _entity(lines.fields(record) if isinstance(record, str) else record, records.notes))
    ]
    table = {identity(entity.name): entity for entity in union(listed)}
    records.notes["entity described twice"] += len(listed) - len(table)
    return table


def _entity(record: object, notes: Counter[str]) -> ExtractedEntity | None:
    """An entity from a list of its fields, an object or a name; None for what has no name."""
    if isinstance(record, list) and record:
        rest = [str(item) if isinstance(item, float) else one_line(item) for item in record[1:]]
        return entity_from_fields([one_line(record[0]), *rest], notes)
    keyed = normal_keys(record) if isinstance(record, dict) else {"name": record}
    name = one_line(first_of(keyed, NAME))
    if not name:
        notes["entity without a name"] += 1
        return None
    score = ENTITY_SCORES.read(first_of(keyed, _IMPORTANCE), notes)
    return ExtractedEntity(name, one_line(first_of(keyed, _TYPE)), one_line(first_of(keyed, _DESCRIPTION)), score)


def _fact(record: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedFact | None:
    keyed = normal_keys(record) if isinstance(record, dict) else {"text": record}
    written = first_of(keyed, TEXT)
    text = one_line(written) if isinstance(written, str) else ""
    if not text:
        notes["fact without a text"] += 1
        return None
    entities = [entity for member in _members(record) if (entity := _member(member, table, notes))]
    return ExtractedFact(text, FACT_SCORES.read(first_of(keyed, _COMPLETENESS), notes), tuple(entities))


def _says_something(records: Records) -> bool:
    """Whether facts were lost: they are in JSON that is broken, or their texts under keys that nobody knows."""
    if records.is_broken and not records.is_list:
        return True
    dicts = [record for record in records.facts if isinstance(record, dict)]
    return any(value for record in dicts for value in record.values() if not isinstance(value, int | float))


def _members(fact: object) -> list[object]:
    """What a fact lists as its entities."""
    members = first_of(normal_keys(fact), _MEMBERS) if isinstance(fact, dict) else None
    return members if isinstance(members, list) else [] if members is None else [members]


def _member(member: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedEntity | None:
    """An entity that a fact lists: its name there, and what the table says of it."""
    name = one_line(member)
    if name and identity(name) in table:
        return replace(table[identity(name)], name=name)
    written = _BAR.split(member) if isinstance(member, str) and _BAR.search(member) else member
    if isinstance(written, dict | list):
        own = _entity(written, notes)
        entry = table.get(identity(own.name)) if own else None
        return union([own, entry])[0] if own and entry else own
    if not name:
        notes["entity without a name"] += 1
        return None
    notes["name missing from the table"] += 1
    return ExtractedEntity(name)


class _Lines:
    """Tells the fields of the table's lines apart, by the names that the facts list.

    Args:
        listed: What the facts list as names, though some of it may be whole lines.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        names = {" ".join(name.split()) for name in listed if not _BAR.search(name)}
        self._identities = {identity(name) for name in names if name}
        self._with_bars = {name for name in names if "|" in name}

    def fields(self, line: str) -> list[str]:
        """Name, type, description and score, as far as they are there.

        They end at bars with blanks around them, unless only a name without what follows it is one that is listed.
        """
        line = " ".join(line.split())
        spaced = _BAR.split(line)
        if identity(spaced[0].strip()) in self._identities:
            return spaced
        name = self._name(line)
        rest = line[len(name) :].lstrip().removeprefix("|")
        return [name, *(_BAR.split(rest) if _BAR.search(rest) else rest.split("|"))] if name else spaced

    def _name(self, line: str) -> str:
        """The listed name that a line begins with and a bar ends; "" where there is none."""
        bars = islice(re.finditer(r" ?\|", line), _MOST_BARS) if self._with_bars else ()
        for end in sorted((bar.start() for bar in bars), reverse=True):
            if line[:end] in self._with_bars:
                return line[:end]
        head = line.partition("|")[0]
        return head if "|" in line and identity(head.strip()) in self._identities else ""
