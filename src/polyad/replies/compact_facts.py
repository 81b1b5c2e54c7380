"""Parses replies of the ``compact`` extraction style: facts as JSON, with their entities described once in a table.

Output tokens cost most, so the format repeats nothing: a fact lists only the names of its members, and the table has
one line for each name, ``name | type | description | importance``, instead of an object whose keys would be as long as
its values. The fixed part of the prompt is short and the same for every passage, so that endpoints can cache it.

Facts come before the table. The model first writes a sentence, then copies its names, so that the table contains only
what the facts need. A reply that is cut short loses descriptions before it loses facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from polyad.errors import SettingError, UnreadableReplyError
from polyad.replies.facts import (
    THOUGHTS,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    attach_unlisted_entities,
    build_entity,
    build_extraction,
    check_record_count,
    clean_value,
    get_identity,
    merge_entities,
    scale_scores,
)
from polyad.replies.loose_json import NOT_JSON, find_json_values, normalize_keys, repair_json
from polyad.replies.schema import NUMBER, STRING, Schema, build_array_schema, build_object_schema
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES
from polyad.replies.thoughts import remove_leading_thoughts
from polyad.text.validity import VALIDITY_KEYS, format_time, parse_interval
from polyad.text.words import collapse_whitespace

_NAMES = build_array_schema(STRING)


def build_compact_schema(*, has_dates: bool = False, relation: Schema | None = None) -> Schema:
    """Return the JSON schema for the facts that a language model extracts in the ``compact`` style.

    Args:
        has_dates: Whether facts have dates of validity.
        relation: Schema of the relation of a fact; None for facts without relations.
    """
    relations = {"relation": relation} if relation else {}
    dates = dict.fromkeys(VALIDITY_KEYS, STRING) if has_dates else {}
    fact = build_object_schema(text=STRING, **relations, score=NUMBER, entities=_NAMES, **dates)
    return build_object_schema(facts=build_array_schema(fact), entities=_NAMES)


_MEMBERS = ("entities", "members", "names")
_RELATION = ("relation", "relationname", "relationtype", "predicate")
_COMPLETENESS = ("score", "completeness", "completenessscore")
_IMPORTANCE = ("score", "importance", "keyscore", "importancescore")
_TYPE = ("type", "entitytype")
_DESCRIPTION = ("description", "entitydescription", "explanation")
_BAR = re.compile(r"(?<!\S)\|(?!\S)")
"""Separates the fields of a line. A bar without spaces around it is part of a name, such as P(A|B)."""

_MAX_BARS = 16
"""Bars at the beginning of a line among which its name may end; names have at most a few, such as P(A|B)."""


def parse_compact_facts(reply: str, max_records: int | None = None) -> Extraction:
    """Return the facts in a language model's reply in the ``compact`` JSON style, even if the JSON is malformed.

    Every complete fact and every complete line of the entity table is returned, even if the JSON around them is broken.
    A name that is missing from the table has no description. An entity that no fact lists joins the facts that mention
    it, or is dropped if there are none.

    Args:
        reply: The model's reply.
        max_records: Highest number of records to accept; None for no limit.

    Raises:
        UnreadableReplyError: the reply has neither a fact, nor an entity, nor an empty list; or none of its facts has a
            text; or it has more than ``max_records`` records.
    """
    facts, notes = parse_json_facts(reply, max_records)
    return build_extraction(facts, notes)


def parse_json_facts(reply: str, max_records: int | None = None) -> tuple[list[ExtractedFact], Counter[str]]:
    """Return the facts in a JSON reply, and how often each kind of repair was necessary.

    See :func:`parse_compact_facts`.
    """
    data = remove_leading_thoughts(reply)
    records = find_records(data)
    names = sum(len(_get_entity_entries(record)) for record in records.facts)
    check_record_count(max_records, len(records.facts) + len(records.entities) + names, reply)
    notes = records.notes
    notes[THOUGHTS] += data != reply.strip()
    table = _build_entity_table(records)
    facts = [fact for record in records.facts if (fact := _parse_fact(record, table, notes))]
    if not records.is_readable or (not facts and _may_miss_facts(records)):
        raise UnreadableReplyError(reply, '{"facts": [{"text": ...}, ...], "entities": [...]}')
    return scale_scores(attach_unlisted_entities(facts, table, notes), notes), notes


# From records to facts


def _build_entity_table(records: Records) -> dict[str, ExtractedEntity]:
    """Return the entities that a reply describes, keyed by normalised name (:func:`get_identity`)."""
    names = (name for record in records.facts for name in _get_entity_entries(record) if isinstance(name, str))
    identities = {get_identity(collapse_whitespace(name)) for name in names if not _BAR.search(name)} - {""}
    entries = (_split_table_line(item, identities) if isinstance(item, str) else item for item in records.entities)
    listed = [entity for entry in entries if (entity := _parse_entity(entry, records.notes))]
    table = {get_identity(entity.name): entity for entity in merge_entities(listed)}
    records.notes["entity described twice"] += len(listed) - len(table)
    return table


def _parse_entity(record: object, problem_counts: Counter[str]) -> ExtractedEntity | None:
    """Return the entity in a JSON list of fields, a JSON object or a name; None, counted, if it has no name."""
    if isinstance(record, list) and record:
        rest = [str(item) if isinstance(item, float) else clean_value(item) for item in record[1:]]
        return build_entity([clean_value(record[0]), *rest], problem_counts)
    keyed = normalize_keys(record) if isinstance(record, dict) else {"name": record}
    name = clean_value(get_first(keyed, NAME))
    if not name:
        problem_counts["entity without a name"] += 1
        return None
    score = ENTITY_SCORES.parse(get_first(keyed, _IMPORTANCE), problem_counts)
    return ExtractedEntity(
        name, clean_value(get_first(keyed, _TYPE)), clean_value(get_first(keyed, _DESCRIPTION)), score
    )


def _parse_fact(record: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedFact | None:
    keyed = normalize_keys(record) if isinstance(record, dict) else {"text": record}
    written = get_first(keyed, TEXT)
    text = clean_value(written) if isinstance(written, str) else ""
    if not text:
        notes["fact without a text"] += 1
        return None
    entities = [entity for member in _get_entity_entries(record) if (entity := _parse_member(member, table, notes))]
    score = FACT_SCORES.parse(get_first(keyed, _COMPLETENESS), notes)
    relation = clean_value(get_first(keyed, _RELATION))
    return ExtractedFact(text, score, tuple(entities), *_parse_validity(keyed, notes), relation)


def _parse_validity(fact: Mapping[str, object], problem_counts: Counter[str]) -> tuple[str, str]:
    """Return the start and end date of a fact's validity; two empty strings, counted, for invalid dates."""
    try:
        interval = parse_interval({name: fact.get(name.replace("_", "")) for name in VALIDITY_KEYS})
    except SettingError:
        problem_counts["dates of facts that cannot be read left out"] += 1
        return "", ""
    return format_time(interval.start), format_time(interval.end)


def _may_miss_facts(records: Records) -> bool:
    """Return whether a reply may contain facts that were not parsed: broken JSON, or texts under unexpected keys."""
    if records.is_broken and not records.is_list:
        return True
    dicts = [record for record in records.facts if isinstance(record, dict)]
    return any(value for record in dicts for value in record.values() if not isinstance(value, int | float))


def _get_entity_entries(fact_record: object) -> list[object]:
    """Return the unparsed list of entities in the JSON record of a fact; empty if the record has none."""
    members = get_first(normalize_keys(fact_record), _MEMBERS) if isinstance(fact_record, dict) else None
    return members if isinstance(members, list) else [] if members is None else [members]


def _parse_member(
    member: object, table: Mapping[str, ExtractedEntity], problem_counts: Counter[str]
) -> ExtractedEntity | None:
    """Return an entity of a fact, with type and description from ``table``, the entities that the reply describes."""
    name = clean_value(member)
    if name and get_identity(name) in table:
        return replace(table[get_identity(name)], name=name)
    written = _BAR.split(member) if isinstance(member, str) and _BAR.search(member) else member
    if isinstance(written, dict | list):
        inline = _parse_entity(written, problem_counts)
        entry = table.get(get_identity(inline.name)) if inline else None
        return merge_entities([inline, entry])[0] if inline and entry else inline
    if not name:
        problem_counts["entity without a name"] += 1
        return None
    problem_counts["name missing from the table"] += 1
    return ExtractedEntity(name)


def _split_table_line(line: str, fact_names: Collection[str]) -> list[str]:
    """Split a line of a reply's entity list at its bars into name, type, description and score.

    A bar separates fields if it has spaces around it, or if the text before it is a name that a fact lists.

    Args:
        line: The line.
        fact_names: Identities of the names that the facts list.
    """
    line = collapse_whitespace(line)
    spaced = _BAR.split(line)
    if get_identity(spaced[0].strip()) not in fact_names:
        for bar in reversed(list(islice(re.finditer(r"\|", line), _MAX_BARS))):
            name, rest = line[: bar.start()].strip(), line[bar.end() :]
            if name and get_identity(name) in fact_names:
                return [name, *(_BAR.split(rest) if _BAR.search(rest) else rest.split("|"))]
    return spaced


TEXT = ("text", "fact", "sentence", "knowledgesegment", "hyperrelation", "hyperedge", "statement")
"""Keys for a fact's text."""

NAME = ("name", "entity", "entityname")
"""Keys for an entity's name."""


def get_first(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first key in ``keys`` that a JSON object has; None if it has none of the keys."""
    return next((record[key] for key in keys if key in record), None)


_MAX_TYPE_SPACES = 2
"""Most spaces in a type; a text with more spaces is a description."""

_Role = Literal["facts", "fact", "entities", "entity", ""]
_ELEMENT: Mapping[_Role, _Role] = {"facts": "fact", "entities": "entity"}
_ELEMENTS = frozenset(_ELEMENT.values())


@dataclass(slots=True)
class Records:
    """The JSON records of facts and entities in a language model's reply, before validation.

    Attributes:
        facts: The fact records, in order.
        entities: The entity records of the table, in order.
        is_list: Whether the reply contains a list, even an empty one.
        is_broken: Whether parts of the reply are invalid JSON.
        notes: Counts of repairs.
    """

    facts: list[object] = field(default_factory=list)
    entities: list[object] = field(default_factory=list)
    is_list: bool = False
    is_broken: bool = False
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_readable(self) -> bool:
        """Whether the reply contains a record of a fact or entity, or an explicitly empty list."""
        return bool(self.facts or self.entities or self.is_list)

    @property
    def quality(self) -> tuple[int, int, bool]:
        """A sort key that is higher for a better parse of a reply: more facts, more entities, valid JSON."""
        return len(self.facts), len(self.entities), not self.is_broken

    def add(self, value: object) -> None:
        """Add all fact and entity records in a decoded JSON value, at any depth of nesting."""
        self.is_list |= not value and not self.is_broken
        waiting: list[tuple[object, _Role]] = [(value, "")]
        while waiting:
            item, role = waiting.pop()
            waiting += reversed(self._add_or_open(item, role))

    def _add_or_open(self, item: object, role: _Role) -> list[tuple[object, _Role]]:
        """Add a JSON item that is a record; return an empty list, or the (item, role) pairs nested in another item."""
        if role in _ELEMENTS:
            (self.facts if role == "fact" else self.entities).append(item)
        elif isinstance(item, list):
            self.is_list |= role != ""
            inner = _ELEMENT.get(role, "")
            return [(element, inner) for element in item]
        elif isinstance(item, dict):
            return self._list_table_items(item, role) if _is_table(item, role) else self._list_object_items(item)
        elif isinstance(item, str) and "|" in item:
            self.entities.append(item)
        return []

    def _list_table_items(self, table: Mapping[str, Any], role: _Role) -> list[tuple[object, _Role]]:
        """Return (item, role) pairs of a JSON object whose keys are entity names or fact numbers."""
        self.is_list = True
        if role == "facts":
            return [(_build_fact_entry(key, value), "fact") for key, value in table.items()]
        return [
            (value, "entities") if _is_group(value) else (_build_entity_entry(name, value), "entity")
            for name, value in table.items()
        ]

    def _list_object_items(self, item: Mapping[str, Any]) -> list[tuple[object, _Role]]:
        keyed = normalize_keys(item)
        if "facts" in keyed or ("entities" in keyed and get_first(keyed, TEXT) is None):
            return [(keyed[role], role) for role in _ELEMENT if role in keyed]
        if isinstance(get_first(keyed, TEXT), str):
            self.facts.append(item)
        elif isinstance(get_first(keyed, NAME), str) and not any(isinstance(value, dict) for value in keyed.values()):
            self.entities.append(item)
        else:  # also the call of a tool, which has a name as an entity has, and what it is called with
            return [(value, "") for value in keyed.values() if isinstance(value, dict | list)]
        return []


_FIELD_NAMES = frozenset((*TEXT, *NAME, "facts", "entities", "type", "description", "score", "importance"))


def _is_table(item: Mapping[str, Any], role: _Role) -> bool:
    """Return whether a JSON object holds many records, keyed by name or number, rather than being one record."""
    if role not in _ELEMENT or not _FIELD_NAMES.isdisjoint(normalize_keys(item)):
        return False
    if role == "entities":
        return True
    return all(key.strip().isdecimal() or " " in key.strip() or isinstance(item[key], Mapping) for key in item)


def _is_group(value: object) -> bool:
    """Return whether a value in a reply's entity table is a list of entities under a heading, such as "people"."""
    return isinstance(value, list) and not any(isinstance(field, int | float) for field in value)


def _build_entity_entry(name: str, value: object) -> object:
    if isinstance(value, Mapping):
        return {**value, "name": get_first(normalize_keys(value), NAME) or name}
    if isinstance(value, str):
        is_description = "|" not in value and value.count(" ") > _MAX_TYPE_SPACES
        return [name, "", value] if is_description else [name, *(field.strip() for field in value.split("|"))]
    return [name, *(value if isinstance(value, list) else [value])]


def _build_fact_entry(key: str, value: object) -> object:
    """Return a fact record for a JSON key-value pair whose key is the fact's text or number."""
    if isinstance(value, Mapping):
        return value if get_first(normalize_keys(value), TEXT) else {**value, "text": key}
    if key.strip().isdecimal():
        return value
    return {"text": key, ("entities" if isinstance(value, list) else "score"): value}


_START = re.compile(r'[{\[](?=\s*["{\[}\]])|(?<=[\[,])\s*"(?=(?:[^"\\]|\\.)*\|)', re.DOTALL)
"""The beginning of a value; inside a broken list, also the beginning of a line of the entity table."""


def find_records(text: str) -> Records:
    """Return the unparsed fact and entity records of a reply; JSON is repaired if that yields more records."""
    records = _parse_records(text)
    if records.is_readable and not records.is_broken:
        return records
    mended = _parse_records(repair_json(text, _START))
    if mended.quality > records.quality:
        records = mended
        records.notes["JSON repaired"] += 1
    records.notes["JSON broken or cut off"] += records.is_broken
    return records


def _parse_records(text: str) -> Records:
    """Return the fact and entity records in a text whose JSON may be incomplete."""
    records = Records()
    for value in find_json_values(text, _START):
        if value is NOT_JSON:
            records.is_broken = True
        else:
            records.add(value)
    return records
