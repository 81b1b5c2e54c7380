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
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from polyad.errors import UnreadableReplyError
from polyad.replies.facts import (
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
    with_unlisted,
)
from polyad.replies.loose_json import NOT_JSON, json_values, normal_keys, repaired
from polyad.replies.schema import NUMBER, STRING, array_of, object_of
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES
from polyad.replies.thoughts import after_thoughts
from polyad.text.cleaning import collapse_whitespace

COMPACT_SCHEMA = object_of(
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


def parse_compact_facts(reply: str, most: int | None = None) -> Extraction:
    """Parse a reply in the ``compact`` style: JSON, whole, inside prose or a fence, slightly malformed, or cut short.

    Every complete fact and every complete line of the entity table is returned, even if the JSON around them is broken.
    A name that is missing from the table has no description. An entity that no fact lists joins the facts that mention
    it, or is dropped if there are none.

    Args:
        reply: The model's reply.
        most: Highest number of records to accept; None for no limit.

    Raises:
        UnreadableReplyError: the reply has neither a fact, nor an entity, nor an empty list; or none of its facts has a
            text; or it has more than ``most`` records.
    """
    facts, notes = read_json(reply, most)
    return extraction(facts, notes)


def read_json(reply: str, most: int | None = None) -> tuple[list[ExtractedFact], Counter[str]]:
    """The facts of a reply in JSON, and what was repaired; see :func:`parse_compact_facts`."""
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
        names = {collapse_whitespace(name) for name in listed if not _BAR.search(name)}
        self._identities = {identity(name) for name in names if name}
        self._with_bars = {name for name in names if "|" in name}

    def fields(self, line: str) -> list[str]:
        """Name, type, description and score, as far as they are there.

        They end at bars with blanks around them, unless only a name without what follows it is one that is listed.
        """
        line = collapse_whitespace(line)
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


TEXT = ("text", "fact", "sentence", "knowledgesegment", "hyperrelation", "hyperedge", "statement")
"""Keys of a fact's text."""

NAME = ("name", "entity", "entityname")
"""Keys of an entity's name."""


def first_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of ``keys`` that is there; None where none is."""
    return next((record[key] for key in keys if key in record), None)


_LONGEST_TYPE = 2
"""Blanks in a text that is a type rather than a description."""

_Role = Literal["facts", "fact", "entities", "entity", ""]
_ELEMENT: Mapping[_Role, _Role] = {"facts": "fact", "entities": "entity"}
_ELEMENTS = frozenset(_ELEMENT.values())


@dataclass(slots=True)
class Records:
    """What a reply lists, as decoded and not yet checked.

    Attributes:
        facts: In order.
        entities: In order, the table's.
        is_list: Whether something says what the reply lists, be it nothing.
        is_broken: Whether some of it is not JSON.
        notes: Counted so far.
    """

    facts: list[object] = field(default_factory=list)
    entities: list[object] = field(default_factory=list)
    is_list: bool = False
    is_broken: bool = False
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_readable(self) -> bool:
        """Whether there is a record, or the statement that there is none."""
        return bool(self.facts or self.entities or self.is_list)

    @property
    def worth(self) -> tuple[int, int, bool]:
        """The more the better."""
        return len(self.facts), len(self.entities), not self.is_broken

    def add(self, value: object) -> None:
        """File all that ``value`` holds. Without recursion: the nesting is as deep as the model pleased."""
        self.is_list |= not value and not self.is_broken
        waiting: list[tuple[object, _Role]] = [(value, "")]
        while waiting:
            item, role = waiting.pop()
            waiting += reversed(self._filed(item, role))

    def _filed(self, item: object, role: _Role) -> list[tuple[object, _Role]]:
        """File one item; what is inside it and still to be filed."""
        if role in _ELEMENTS:
            (self.facts if role == "fact" else self.entities).append(item)
        elif isinstance(item, list):
            self.is_list |= role != ""
            inner = _ELEMENT.get(role, "")
            return [(element, inner) for element in item]
        elif isinstance(item, dict):
            return self._filed_table(item, role) if _is_table(item, role) else self._filed_object(item)
        elif isinstance(item, str) and "|" in item:
            self.entities.append(item)
        return []

    def _filed_table(self, table: Mapping[str, Any], role: _Role) -> list[tuple[object, _Role]]:
        """File the entries of an object that is a table: of entities by their names, of facts by numbers or texts."""
        self.is_list = True
        if role == "facts":
            return [(_fact_entry(key, value), "fact") for key, value in table.items()]
        entries: list[tuple[object, _Role]] = []
        for name, value in table.items():
            entries.append((value, "entities") if _is_group(value) else (_entity_entry(name, value), "entity"))
        return entries

    def _filed_object(self, item: Mapping[str, Any]) -> list[tuple[object, _Role]]:
        keyed = normal_keys(item)
        if "facts" in keyed or ("entities" in keyed and first_of(keyed, TEXT) is None):
            return [(keyed[role], role) for role in _ELEMENT if role in keyed]
        if isinstance(first_of(keyed, TEXT), str):
            self.facts.append(item)
        elif isinstance(first_of(keyed, NAME), str) and not any(isinstance(value, dict) for value in keyed.values()):
            self.entities.append(item)
        else:  # also the call of a tool, which has a name as an entity has, and what it is called with
            return [(value, "") for value in keyed.values() if isinstance(value, dict | list)]
        return []


_FIELD_NAMES = frozenset((*TEXT, *NAME, "facts", "entities", "type", "description", "score", "importance"))


def _is_table(item: Mapping[str, Any], role: _Role) -> bool:
    """Whether an object under "facts" or "entities" is a table, and neither one of them nor what holds them."""
    if role not in _ELEMENT or not _FIELD_NAMES.isdisjoint(normal_keys(item)):
        return False
    if role == "entities":
        return True
    return all(key.strip().isdecimal() or " " in key.strip() or isinstance(item[key], Mapping) for key in item)


def _is_group(value: object) -> bool:
    """Whether an entry of a table of entities lists several, under what they have in common."""
    return isinstance(value, list) and not any(isinstance(field, int | float) for field in value)


def _entity_entry(name: str, value: object) -> object:
    if isinstance(value, Mapping):
        return {**value, "name": first_of(normal_keys(value), NAME) or name}
    if isinstance(value, str):
        is_description = "|" not in value and value.count(" ") > _LONGEST_TYPE
        return [name, "", value] if is_description else [name, *(field.strip() for field in value.split("|"))]
    return [name, *(value if isinstance(value, list) else [value])]


def _fact_entry(key: str, value: object) -> object:
    """A fact of a table, whose key is its text or a mere number."""
    if isinstance(value, Mapping):
        return value if first_of(normal_keys(value), TEXT) else {**value, "text": key}
    if key.strip().isdecimal():
        return value
    return {"text": key, ("entities" if isinstance(value, list) else "score"): value}


_START = re.compile(r'[{\[](?=\s*["{\[}\]])|(?<=[\[,])\s*"(?=(?:[^"\\]|\\.)*\|)', re.DOTALL)
"""Where a value may begin that is worth decoding; in a list that is broken, also a line of the table."""


def best_records(text: str) -> Records:
    """The records in a reply as it is, or with the slips that models make put right, if that brings more to light."""
    records = _records(text)
    if records.is_readable and not records.is_broken:
        return records
    mended = _records(repaired(text, _START))
    if mended.worth > records.worth:
        records = mended
        records.notes["JSON repaired"] += 1
    records.notes["JSON broken or cut off"] += records.is_broken
    return records


def _records(text: str) -> Records:
    """All records in a text, whether or not what surrounds them is whole."""
    records = Records()
    for value in json_values(text, _START):
        if value is NOT_JSON:
            records.is_broken = True
        else:
            records.add(value)
    return records
