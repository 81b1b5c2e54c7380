"""The ``paper`` extraction style: records between delimiters, as HyperGraphRAG asks for them (appendix A.1).

A fragment of knowledge is ``("hyper-relation"<|>text<|>score)``, an entity of the fragment before it is
``("entity"<|>name<|>type<|>description<|>score)``; ``##`` stands between records and ``<|COMPLETE|>`` after the last.
The prompt is polyad's own. An entity is described anew at each fragment, which costs more than the ``compact`` style
and says of an entity what that fragment says of it.

Models vary every part of the format, so records are found by their heads: what is between two heads belongs to the
first, over as many lines as it takes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from polyad.errors import UnreadableReplyError
from polyad.replies.compact_facts import read_json
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
from polyad.replies.scores import FACT_SCORES, is_score
from polyad.replies.thoughts import after_thoughts
from polyad.text.locate import UNSPACED

_QUOTE = "[\"'`“”„‘’«»*]"  # noqa: RUF001
_DELIMITER = re.compile(r"<[ \t]*+\|[ \t]*+(?:#[ \t]*+)?(?:\|[ \t]*+)?>")
_COMPLETE = re.compile(r"<[ \t]*+(?:\|[ \t]*+)?COMPLETED?[ \t]*+(?:\|[ \t]*+)?>", re.IGNORECASE)
_HEAD = re.compile(
    rf"(?P<bracket>\(\s{{0,9}})?(?P<quote>{_QUOTE}{{0,3}})(?P<kind>[A-Za-z][A-Za-z _-]{{0,30}}){_QUOTE}{{0,3}}\s{{0,9}}"
    rf"{_DELIMITER.pattern}"
)
_BEGINNING = re.compile(r"(?:^|\n|##|\))[ \t,>*`#-]*(?:\d+[.)][ \t]*)?\Z")
_AFTER_RECORD = re.compile(r"(?:^|##|\))[\s,>*`#-]*(?:\d+[.)]\s*)?\Z")
_AFTER_DELIMITER = re.compile(rf"{_DELIMITER.pattern}\s*\Z")
_BOUNDARY = re.compile(rf"(?<=\))\s*##|##(?=[ \t]*(?:\n|\Z))|{_COMPLETE.pattern}", re.IGNORECASE)
_END_OF_LINE = re.compile(r"\)[ \t,;]*(?=\n|```)")
_CUT_MARK = re.compile(r"(?:<[ \t|#]*[A-Za-z]*|(?<=\))\s*#)\Z")

_FACTS = frozenset(
    {
        *("hyperrelation", "hyperrelations", "hyperrelationship", "hyperedge", "hyperedges", "knowledgehyperedge"),
        *("knowledgesegment", "knowledgefragment", "segment", "fragment", "relation", "relationship", "relationships"),
        *("fact", "facts", "statement", "naryrelation", "naryrelationship", "naryfact", "naryrelationalfact"),
    }
)
"""What a fragment is called: as asked for, as in the paper's figures and prose, and what models make of these."""

_RELATIONS = frozenset({"relation", "relationship", "relationships"})
"""Of these other extractors make pairs: source, target, description, strength."""

_FIELDS = {**dict.fromkeys(_FACTS, 2), "entity": 4, "entities": 4, "node": 4}
_FIELD_NAME = re.compile(
    rf"\A{_QUOTE}?(?:entity_(?:name|type|description)|key_score|completeness_score|knowledge_segment){_QUOTE}?\s*[:=]\s*",
    re.IGNORECASE,
)
"""Names of the fields in the published prompt, which some models write out before what stands in them."""

_SENTENCE = re.compile(rf"\S\s+\S+\s+\S|[{UNSPACED}]{{4}}")
"""In a description that says something by itself."""

_QUOTE_PAIRS = {'"': '"', "'": "'", "“": "”", "«": "»"}


def parse_paper_facts(reply: str, most: int | None = None) -> Extraction:
    """Parse a reply in the ``paper`` style: records with any quotes, brackets and line breaks, cut short, or JSON.

    An entity belongs to the nearest fragment before it. Entities before all fragments, or after all, belong to the
    fragments that mention them.

    Args:
        reply: The model's reply.
        most: Highest number of records to accept; None for no limit.

    Raises:
        UnreadableReplyError: the reply has records but no fragment, or neither a record nor the completion mark; or it
            has more than ``most`` records.
    """
    text = after_thoughts(reply)
    records = list(_records(text))
    if not records and not _COMPLETE.search(text):
        return _from_json(reply, most)
    require_at_most(most, len(records), reply)
    reading = _Reading(Counter({THOUGHTS: text != reply.strip()}))
    for record in records:
        reading.add(record)
    if records and not reading.has_facts:
        raise UnreadableReplyError(reply, f"at least one record {_EXPECTED}")
    return reading.extraction()


_EXPECTED = '("hyper-relation"<|>text<|>score)'


def _from_json(reply: str, most: int | None) -> Extraction:
    """What a reply says in JSON, as some models reply to whatever they are asked."""
    try:
        facts, notes = read_json(reply, most)
    except UnreadableReplyError as error:
        if "max_records" in str(error):
            raise
        raise UnreadableReplyError(reply, f"records such as {_EXPECTED} or <|COMPLETE|>") from None
    notes["JSON in place of records"] += 1
    return extraction(facts, notes)


# From records to facts


class _Record(NamedTuple):
    """The fields after the kind; ``is_cut`` when the reply ends before the record does."""

    kind: str
    fields: list[str]
    is_cut: bool


class _Reading:
    """Puts records together: each entity with the fragment it belongs to."""

    def __init__(self, notes: Counter[str]) -> None:
        self._notes = notes
        self._facts: list[tuple[str, float | None, list[ExtractedEntity]]] = []
        self._first: list[ExtractedEntity] = []  # before any fragment
        self._is_dropped = False

    @property
    def has_facts(self) -> bool:
        """Whether any fragment was read."""
        return bool(self._facts)

    def add(self, record: _Record) -> None:
        """Read the next record."""
        self._notes["record cut off at the end of the reply"] += record.is_cut
        if not record.fields and record.is_cut:
            return
        if record.kind in _FACTS:
            self._add_fact(record.fields, is_relation=record.kind in _RELATIONS)
        elif record.kind in _FIELDS:
            self._add_entity(record.fields)
        else:
            self._notes["record of an unknown kind"] += 1

    def extraction(self) -> Extraction:
        """All that was read."""
        facts = [ExtractedFact(text, score, tuple(own)) for text, score, own in self._facts]
        if len(facts) == 1:
            facts = [replace(facts[0], entities=(*self._first, *facts[0].entities))]
        elif facts:
            facts = self._joined(facts)
        return extraction(scaled(facts, self._notes), self._notes)

    def _joined(self, facts: list[ExtractedFact]) -> list[ExtractedFact]:
        """The facts with the entities that stand in a list of their own, before all of them or after all."""
        listed = list(self._first)
        if not any(fact.entities for fact in facts[:-1]):
            listed += facts[-1].entities
            facts = [*facts[:-1], replace(facts[-1], entities=())]
        return with_unlisted(facts, {identity(entity.name): entity for entity in union(listed)}, self._notes)

    def _add_fact(self, fields: list[str], *, is_relation: bool) -> None:
        texts = [text for field in fields if not _says_how_much(field) and (text := one_line(field))]
        is_pair = is_relation and len(texts) > 1
        if is_pair and not any(map(_SENTENCE.search, texts[2:])):  # two names and a word between them
            self._notes["record of an unknown kind"] += 1
            return
        text = next(filter(_SENTENCE.search, texts[2:])) if is_pair else one_line(fields[0])
        self._is_dropped = not text
        if not text:
            self._notes["fact without a text"] += 1
            return
        rest = fields[1:]
        score = next((field for field in rest if _says_how_much(field)), rest[0] if rest and not is_pair else None)
        self._notes["field too many"] += 0 if is_pair else max(0, len(rest) - 1)
        ends = [ExtractedEntity(name) for name in texts[:2]] if is_pair else []
        self._facts.append((text, FACT_SCORES.read(score, self._notes), ends))

    def _add_entity(self, fields: list[str]) -> None:
        if self._is_dropped:
            self._notes["entity of a fact without a text"] += 1
            return
        entity = entity_from_fields(fields, self._notes)
        if entity:
            (self._facts[-1][2] if self._facts else self._first).append(entity)


def _says_how_much(field: str) -> bool:
    return FACT_SCORES.read(field, Counter()) is not None and (is_score(field) or len(field.split()) < 3)


# From text to records


def _records(text: str) -> Iterator[_Record]:
    """The records in a text, in order."""
    heads = [head for head in _HEAD.finditer(text) if _begins_record(head)]
    ends = [head.start() for head in heads[1:]] + [len(text)] * bool(heads)
    for head, end in zip(heads, ends, strict=True):
        body = text[head.end() : end]
        boundary = _BOUNDARY.search(body)
        after = body[boundary.end() :] if boundary else ""
        body = body[: boundary.start()] if boundary else body
        yield _record(_kind(head["kind"]), body, is_last=head is heads[-1] and boundary is None)
        if _DELIMITER.search(after):
            yield _Record("", [], False)


def _begins_record(head: re.Match[str]) -> bool:
    """Whether a kind and a delimiter begin a record, and are not a field within one."""
    before = head.string[max(0, head.start() - 40) : head.start()]
    if _kind(head["kind"]) not in _FIELDS:
        return bool(head["bracket"] and head["quote"] and _AFTER_RECORD.search(before))
    return head["bracket"] is not None or bool(_BEGINNING.search(before) and not _AFTER_DELIMITER.search(before))


def _kind(written: str) -> str:
    return re.sub(r"[ _-]", "", written).casefold()


def _record(kind: str, body: str, *, is_last: bool) -> _Record:
    fields = _DELIMITER.split(body)
    last, is_closed = _last_field(fields[-1])
    is_whole = is_closed or (len(fields) >= _FIELDS.get(kind, 0) and is_score(last))
    is_cut = is_last and not is_whole
    # Where a reply is cut short, its last field may be half a name; what is before the last delimiter is whole.
    fields = fields[:-1] if is_cut else [*fields[:-1], last]
    return _Record(kind, [_unquoted(_FIELD_NAME.sub("", field.strip(), count=1)) for field in fields], is_cut)


def _last_field(text: str) -> tuple[str, bool]:
    """A record's last field without what follows it, and whether the record's bracket is closed."""
    first, bracket, _ = text.partition(")")
    if bracket and is_score(first):
        return first, True
    end = _END_OF_LINE.search(text)
    field = text[: end.start() + 1] if end else _CUT_MARK.sub("", text.rstrip("` \t\r\n"))
    field = field.rstrip(", \t\r\n")
    is_closed = field.endswith(")") and field.count(")") > field.count("(")
    return field.removesuffix(")") if is_closed else field, is_closed


def _unquoted(field: str) -> str:
    """A field without the quotes around it, where they are a pair around all of it.

    >>> _unquoted('"Ada"'), _unquoted('"Weird Al" Yankovic'), _unquoted('"Up" and "Down"'), _unquoted('"The "Up" Tour"')
    ('Ada', '"Weird Al" Yankovic', '"Up" and "Down"', 'The "Up" Tour')
    """
    closing = _QUOTE_PAIRS.get(field[:1])
    if closing is None or len(field) < 2 or not field.endswith(closing):
        return field
    inner = field[1:-1]
    place = inner.find(closing)
    is_pair = place < 0 or (field[0] == closing and (place == 0 or inner[place - 1].isspace()))
    return inner.strip() if is_pair else field
