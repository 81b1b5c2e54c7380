r"""The ``compact`` extraction style: a few facts as JSON, their entities described once in a table.

Output tokens cost most, so nothing is written twice: a fact only names its members, and the table has one line a name,
``name | type | description | importance``, instead of an object whose keys would be as long as its contents. The fixed
part of the prompt is short and the same for every passage, so that endpoints can cache it.

Facts come before the table. A sentence is composed first and its names are copied out of it, so that the table holds
what the facts need and no more; and a reply that is cut short loses descriptions, which an index can do without, before
it loses facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

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
from polyad.indexing.facts.json_records import NAME, TEXT, Records, best_records, first_of, normal_keys
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

_MEMBERS = ("entities", "members", "names")


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
        records = best_records(said)
        records.notes[THOUGHTS] += said != reply.strip()
        if not records.is_readable:
            raise UnreadableReplyError(reply, '{"facts": [...], "entities": [...]}')
        table = _table(records)
        facts = [fact for record in records.facts if (fact := _fact(record, table, records.notes))]
        return extraction(_with_unnamed(facts, table, records.notes), records.notes)


# From records to facts


def _table(records: Records) -> dict[str, ExtractedEntity]:
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
    keyed = normal_keys(record) if isinstance(record, dict) else {"name": record}
    name = one_line(first_of(keyed, NAME))
    if not name:
        notes["entity without a name"] += 1
        return None
    score = ENTITY_SCORES.read(keyed.get("score"), notes)
    return ExtractedEntity(name, one_line(keyed.get("type")), one_line(keyed.get("description")), score)


def _fact(record: object, table: Mapping[str, ExtractedEntity], notes: Counter[str]) -> ExtractedFact | None:
    keyed = normal_keys(record) if isinstance(record, dict) else {"text": record}
    written = first_of(keyed, TEXT)
    text = one_line(written) if isinstance(written, str) else ""
    if not text:
        notes["fact without a text"] += 1
        return None
    members = first_of(keyed, _MEMBERS)
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
