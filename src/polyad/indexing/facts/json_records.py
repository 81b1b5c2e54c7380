"""The records in a ``compact`` reply: JSON as asked for, or what models make of it, whole, broken or cut short."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from polyad.text.json_repair import repaired
from polyad.text.loose_json import NOT_JSON, json_values, normal_keys

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
