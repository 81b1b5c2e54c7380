r"""The ``compact`` extraction style: a few facts as JSON, their entities described once in a table.

Output tokens cost most, so nothing is written twice: a fact only names its members, and the table has one line a name,
``name | type | description | importance``, instead of an object whose keys would be as long as its contents. The fixed
part of the prompt is short and the same for every passage, so that endpoints can cache it.

Facts come before the table. A sentence is composed first and its names are copied out of it, so that the table holds
what the facts need and no more; and a reply that is cut short loses descriptions, which an index can do without, before
it loses facts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from polyad.errors import UnreadableReplyError
from polyad.indexing.facts.extraction import (
    ENTITY_SCORES,
    FACT_SCORES,
    THOUGHTS,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    entity_from_fields,
    extraction,
    identity,
    instructions,
    one_line,
    passage_text,
    union,
)
from polyad.indexing.locate import occurrences
from polyad.model import Passage
from polyad.protocols import Prompt
from polyad.text.thoughts import after_thoughts

_SYSTEM, _MORE = instructions("compact.md")
_STRINGS: Mapping[str, object] = {"type": "array", "items": {"type": "string"}}
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "score": {"type": "number"}, "entities": _STRINGS},
                "required": ["text", "score", "entities"],
                "additionalProperties": False,
            },
        },
        "entities": _STRINGS,
    },
    "required": ["facts", "entities"],
    "additionalProperties": False,
}

_TEXT = ("text", "fact", "sentence")
_MEMBERS = ("entities", "members", "names")
_NAME = ("name", "entity")


class CompactExtractionStyle:
    """Asks for facts and a table of entities as JSON, and reads what models make of it."""

    @property
    def name(self) -> str:
        """Nothing changes the prompt."""
        return "compact"

    def prompt(self, passage: Passage) -> Prompt:
        """The fixed instructions, and the passage alone."""
        return Prompt(user=passage_text(passage), system=_SYSTEM, json_schema=_SCHEMA)

    def more(self, passage: Passage, so_far: str) -> Prompt:
        """The same, followed by the earlier replies and the request for what they missed."""
        request = _MORE.replace("{so_far}", after_thoughts(so_far))
        return Prompt(user=f"{passage_text(passage)}\n\n{request}", system=_SYSTEM, json_schema=_SCHEMA)

    def parse(self, reply: str) -> Extraction:
        """Read a reply: whole, in prose or a fence, not quite JSON, or cut short; objects where lines were asked for.

        Every fact and every line of the table that is there whole is kept, even when the JSON around it is not. A name
        that the table leaves out is kept without a description; a line of the table that no fact names joins the facts
        that mention it, or is dropped where there is none.

        Raises:
            UnreadableReplyError: there is neither a fact nor an entity in it, nor an empty list of them.
        """
        said = after_thoughts(reply)
        records = _best_records(said)
        records.notes[THOUGHTS] += said != reply.strip()
        if not records.is_readable:
            raise UnreadableReplyError(reply, '{"facts": [...], "entities": [...]}')
        table = _table(records)
        facts = [fact for record in records.facts if (fact := _fact(record, table, records.notes))]
        return extraction(_with_unnamed(facts, table, records.notes), records.notes)


# From records to facts


def _table(records: _Records) -> dict[str, ExtractedEntity]:
    """What the reply says of each entity, by the identity of its name."""
    listed = [entity for record in records.entities if (entity := _entity(record, records.notes))]
    table = {identity(entity.name): entity for entity in union(listed)}
    records.notes["entity described twice"] += len(listed) - len(table)
    return table


def _entity(record: object, notes: Counter[str]) -> ExtractedEntity | None:
    """An entity from a line, a list of its fields or an object; None for what has no name."""
    if isinstance(record, str) and record.strip():
        return entity_from_fields(record.split("|"), notes)
    if isinstance(record, list) and record:
        rest = [str(item) if isinstance(item, float) else one_line(item) for item in record[1:]]
        return entity_from_fields([one_line(record[0]), *rest], notes)
    keyed = _lower_keys(record) if isinstance(record, dict) else {"name": record}
    name = one_line(_first(keyed, _NAME))
    if not name:
        notes["entity without a name"] += 1
        return None
    score = ENTITY_SCORES.read(keyed.get("score"), notes)
    return ExtractedEntity(name, one_line(keyed.get("type")), one_line(keyed.get("description")), score)


def _fact(record: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedFact | None:
    keyed = _lower_keys(record) if isinstance(record, dict) else {"text": record}
    written = _first(keyed, _TEXT)
    text = one_line(written) if isinstance(written, str) else ""
    if not text:
        notes["fact without a text"] += 1
        return None
    members = _first(keyed, _MEMBERS)
    listed = members if isinstance(members, list) else [] if members is None else [members]
    entities = [entity for member in listed if (entity := _member(member, table, notes))]
    return ExtractedFact(text, FACT_SCORES.read(keyed.get("score"), notes), tuple(entities))


def _member(member: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedEntity | None:
    """An entity that a fact lists: its name there, and what the table says of it."""
    if isinstance(member, dict | list) or (isinstance(member, str) and "|" in member):
        own = _entity(member, notes)
        entry = table.get(identity(own.name)) if own else None
        return union([own, entry])[0] if own and entry else own
    name = one_line(member)
    if not name:
        notes["entity without a name"] += 1
        return None
    if identity(name) not in table:
        notes["name missing from the table"] += 1
        return ExtractedEntity(name)
    return replace(table[identity(name)], name=name)


def _with_unnamed(
    facts: list[ExtractedFact], table: Mapping[str, ExtractedEntity], notes: Counter[str]
) -> list[ExtractedFact]:
    """Join the entities that no fact lists to the facts that mention them."""
    named = {identity(entity.name) for fact in facts for entity in fact.entities}
    for key, entity in table.items():
        if key in named:
            continue
        mentioning = [
            place for place, fact in enumerate(facts) if occurrences(entity.name, fact.text, ignore_case=True)
        ]
        notes["entity joined to the facts that mention it" if mentioning else "entity in no fact"] += 1
        for place in mentioning:
            facts[place] = replace(facts[place], entities=(*facts[place].entities, entity))
    return facts


def _lower_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key.strip().casefold(): value for key, value in record.items()}


def _first(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if key in record), None)


# From text to records

_Role = Literal["facts", "fact", "entities", "entity", ""]
_ELEMENT: Mapping[_Role, _Role] = {"facts": "fact", "entities": "entity"}
_ELEMENTS = frozenset(_ELEMENT.values())


@dataclass(slots=True)
class _Records:
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
            return self._filed_object(item)
        elif isinstance(item, str) and "|" in item:
            self.entities.append(item)
        return []

    def _filed_object(self, item: Mapping[str, Any]) -> list[tuple[object, _Role]]:
        keyed = _lower_keys(item)
        if "facts" in keyed or ("entities" in keyed and _first(keyed, _TEXT) is None):
            return [(keyed[role], role) for role in _ELEMENT if role in keyed]
        if isinstance(_first(keyed, _TEXT), str):
            self.facts.append(item)
        elif isinstance(_first(keyed, _NAME), str):
            self.entities.append(item)
        else:
            return [(value, "") for value in keyed.values() if isinstance(value, dict | list)]
        return []


_START = re.compile(r'[{\[](?=\s*["{\[}\]])|(?<=[\[,])\s*"(?=(?:[^"\\]|\\.)*\|)', re.DOTALL)
"""Where a value may begin that is worth decoding; in a list that is broken, also a line of the table."""


_MOST_TOO_DEEP = 20
"""Values nested too deep to decode after which a reply is given up: a model that repeats a bracket does not stop."""


def _best_records(text: str) -> _Records:
    """The records in a reply as it is, or with the slips that models make put right, if that brings more to light."""
    records = _records(text)
    if not records.is_broken:
        return records
    repaired = _records(_repaired(text))
    if repaired.worth > records.worth:
        records = repaired
        records.notes["JSON repaired"] += 1
    records.notes["JSON broken or cut off"] += records.is_broken
    return records


def _records(text: str) -> _Records:
    """All records in a text, whether or not what surrounds them is whole."""
    decoder = json.JSONDecoder(strict=False)
    records = _Records()
    position = too_deep = 0
    while too_deep < _MOST_TOO_DEEP and (start := _START.search(text, position)):
        try:
            value, position = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError) as error:
            too_deep += isinstance(error, RecursionError)
            position = start.end()
            records.is_broken = True
        else:
            records.add(value)
    return records


_OUTSIDE = re.compile(r'"|,(?=\s*[}\]])')
_INSIDE = re.compile(r'["\\{\[]')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_END_OF_STRING = re.compile(r'"\s*(?:\Z|[}\]]|[:,]\s*(?:\Z|["{\[}\]]|-?\d|(?:true|false|null|NaN|-?Infinity)\b))')
"""A quote with what JSON allows after a string, or with the end of the reply."""


def _repaired(text: str) -> str:
    """``text`` with the strings of its JSON made whole, and without commas before a closing bracket.

    Quotes that do not end a string, and backslashes that begin no escape, are escaped. So are opening brackets inside a
    string, lest one be taken for the beginning of a value.
    """
    start = _START.search(text)
    return "".join(_repairs(text, start.start() if start else len(text)))


def _repairs(text: str, position: int) -> Iterator[str]:
    inside = False
    while special := (_INSIDE if inside else _OUTSIDE).search(text, position):
        yield text[position : special.start()]
        position = special.end()
        if not inside:
            inside = special.group() == '"'
            yield '"' * inside
        elif special.group() == '"':
            inside = _END_OF_STRING.match(text, special.start()) is None
            yield r"\"" if inside else '"'
        elif escape := _ESCAPE.match(text, special.start()):
            position = escape.end()
            yield escape.group()
        else:
            yield f"\\u{ord(special.group()):04x}"
    yield text[position:]
