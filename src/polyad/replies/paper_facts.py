"""Parses replies of the ``paper`` extraction style: records between delimiters (HyperGraphRAG, appendix A.1).

A fragment of knowledge is ``("hyper-relation"<|>text<|>score)``, an entity of the preceding fragment is
``("entity"<|>name<|>type<|>description<|>score)``. ``##`` separates records, and ``<|COMPLETE|>`` follows the last. The
prompt is polyad's own. An entity is described again for each fragment, which costs more than the ``compact`` style.

Models vary every part of the format. So records are found by their heads, and all text between two heads belongs to the
first head, on any number of lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from polyad.errors import UnreadableReplyError
from polyad.replies.compact_facts import parse_json_facts
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
from polyad.replies.scores import FACT_SCORES, is_score
from polyad.replies.thoughts import remove_leading_thoughts
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
"""Names of a fragment's record: the requested name, the names in the paper, and variants that models write."""

_RELATIONS = frozenset({"relation", "relationship", "relationships"})
"""Record names that other extractors use for pairs: source, target, description, strength."""

_FIELDS = {**dict.fromkeys(_FACTS, 2), "entity": 4, "entities": 4, "node": 4}
_FIELD_NAME = re.compile(
    rf"\A{_QUOTE}?(?:entity_(?:name|type|description)|key_score|completeness_score|knowledge_segment){_QUOTE}?\s*[:=]\s*",
    re.IGNORECASE,
)
"""Field names of the published prompt, which some models write before the values."""

_SENTENCE = re.compile(rf"\S\s+\S+\s+\S|[{UNSPACED}]{{4}}")
"""Part of a description that is a sentence of its own."""

_QUOTE_PAIRS = {'"': '"', "'": "'", "“": "”", "«": "»"}


def parse_paper_facts(reply: str, max_records: int | None = None, *, relations: bool = False) -> Extraction:
    """Return the facts in HyperGraphRAG's format, such as ``("entity"<|>"Ada"<|>"person")``, even if malformed.

    An entity belongs to the nearest fragment before it. Entities before all fragments, or after all, belong to the
    fragments that mention them.

    Args:
        reply: The model's reply.
        max_records: Highest number of records to accept; None for no limit.
        relations: Whether a fragment's record has a field for its relation.

    Raises:
        UnreadableReplyError: the reply has records but no fragment, or neither a record nor the completion mark; or it
            has more than ``max_records`` records.
    """
    text = remove_leading_thoughts(reply)
    records = list(_find_records(text))
    if not records and not _COMPLETE.search(text):
        return _parse_as_json(reply, max_records)
    check_record_count(max_records, len(records), reply)
    collector = _RecordCollector(Counter({THOUGHTS: text != reply.strip()}), relations=relations)
    for record in records:
        collector.add(record)
    if records and not collector.has_facts:
        raise UnreadableReplyError(reply, f"at least one record {_EXPECTED}")
    return collector.build()


_EXPECTED = '("hyper-relation"<|>text<|>score)'


def _parse_as_json(reply: str, max_records: int | None) -> Extraction:
    """Return the facts in a reply that is JSON, although the prompt requested HyperGraphRAG's format."""
    try:
        facts, notes = parse_json_facts(reply, max_records)
    except UnreadableReplyError as error:
        if "max_records" in str(error):
            raise
        raise UnreadableReplyError(reply, f"records such as {_EXPECTED} or <|COMPLETE|>") from None
    notes["JSON in place of records"] += 1
    return build_extraction(facts, notes)


# From records to facts


class _Record(NamedTuple):
    """One fact or entity of a reply in HyperGraphRAG's format: ``("kind"<|>field<|>field)``."""

    kind: str
    fields: list[str]
    is_cut: bool


class _RecordCollector:
    """Collects the fact and entity records of a reply; an entity record belongs to the preceding fact record."""

    def __init__(self, notes: Counter[str], *, relations: bool = False) -> None:
        self._notes = notes
        self._has_relations = relations
        self._facts: list[tuple[ExtractedFact, list[ExtractedEntity]]] = []
        self._first: list[ExtractedEntity] = []  # before any fragment
        self._is_dropped = False

    @property
    def has_facts(self) -> bool:
        """Whether any record of a fact was added."""
        return bool(self._facts)

    def add(self, record: _Record) -> None:
        """Add the next fact or entity record of the reply."""
        self._notes["record cut off at the end of the reply"] += record.is_cut
        if not record.fields and record.is_cut:
            return
        if record.kind in _FACTS:
            self._add_fact(record.fields, is_relation=record.kind in _RELATIONS)
        elif record.kind in _FIELDS:
            self._add_entity(record.fields)
        else:
            self._notes["record of an unknown kind"] += 1

    def build(self) -> Extraction:
        """Return the facts of all added records with their entities."""
        facts = [replace(fact, entities=tuple(entities)) for fact, entities in self._facts]
        if len(facts) == 1:
            facts = [replace(facts[0], entities=(*self._first, *facts[0].entities))]
        elif facts:
            facts = self._attach_list(facts)
        return build_extraction(scale_scores(facts, self._notes), self._notes)

    def _attach_list(self, facts: list[ExtractedFact]) -> list[ExtractedFact]:
        """Return the facts with the entities that the reply lists before or after all facts and their texts name."""
        listed = list(self._first)
        if not any(fact.entities for fact in facts[:-1]):
            listed += facts[-1].entities
            facts = [*facts[:-1], replace(facts[-1], entities=())]
        return attach_unlisted_entities(
            facts, {get_identity(entity.name): entity for entity in merge_entities(listed)}, self._notes
        )

    def _add_fact(self, fields: list[str], *, is_relation: bool) -> None:
        texts = [text for field in fields if not _is_score_like(field) and (text := clean_value(field))]
        is_pair = is_relation and len(texts) > 1
        if is_pair and not any(map(_SENTENCE.search, texts[2:])):  # two names and a word between them
            self._notes["record of an unknown kind"] += 1
            return
        text = next(filter(_SENTENCE.search, texts[2:])) if is_pair else clean_value(fields[0])
        self._is_dropped = not text
        if not text:
            self._notes["fact without a text"] += 1
            return
        rest = fields[1:]
        fallback = rest[0] if rest and not is_pair and not self._has_relations else None
        score = next((field for field in rest if _is_score_like(field)), fallback)
        self._notes["field too many"] += 0 if is_pair else max(0, len(rest) - 1 - self._has_relations)
        ends = [ExtractedEntity(name) for name in texts[:2]] if is_pair else []
        others = (texts[2:] if is_pair else texts) if self._has_relations else []
        relation = next((other for other in others if other != text), "")
        fact = ExtractedFact(text, FACT_SCORES.parse(score, self._notes), relation=relation)
        self._facts.append((fact, ends))

    def _add_entity(self, fields: list[str]) -> None:
        if self._is_dropped:
            self._notes["entity of a fact without a text"] += 1
            return
        entity = build_entity(fields, self._notes)
        if entity:
            (self._facts[-1][1] if self._facts else self._first).append(entity)


def _is_score_like(field: str) -> bool:
    return FACT_SCORES.parse(field, Counter()) is not None and (is_score(field) or len(field.split()) < 3)


# From text to records


def _find_records(text: str) -> Iterator[_Record]:
    """Yield the records ``("kind"<|>field<|>field)`` of facts and entities in a reply."""
    heads = [head for head in _HEAD.finditer(text) if _is_record_start(head)]
    ends = [head.start() for head in heads[1:]] + [len(text)] * bool(heads)
    for head, end in zip(heads, ends, strict=True):
        body = text[head.end() : end]
        boundary = _BOUNDARY.search(body)
        after = body[boundary.end() :] if boundary else ""
        body = body[: boundary.start()] if boundary else body
        yield _parse_record(_normalize_kind(head["kind"]), body, is_last=head is heads[-1] and boundary is None)
        if _DELIMITER.search(after):
            yield _Record("", [], False)


def _is_record_start(match: re.Match[str]) -> bool:
    """Return whether a match such as ``("entity"`` begins a record, rather than being text inside a field."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    if _normalize_kind(match["kind"]) not in _FIELDS:
        return bool(match["bracket"] and match["quote"] and _AFTER_RECORD.search(before))
    return match["bracket"] is not None or bool(_BEGINNING.search(before) and not _AFTER_DELIMITER.search(before))


def _normalize_kind(written: str) -> str:
    return re.sub(r"[ _-]", "", written).casefold()


def _parse_record(kind: str, body: str, *, is_last: bool) -> _Record:
    fields = _DELIMITER.split(body)
    last, is_closed = _split_last_field(fields[-1])
    is_whole = is_closed or (len(fields) >= _FIELDS.get(kind, 0) and is_score(last))
    is_cut = is_last and not is_whole
    # Where a reply is cut short, its last field may be half a name; what is before the last delimiter is whole.
    fields = fields[:-1] if is_cut else [*fields[:-1], last]
    return _Record(kind, [_remove_quotes(_FIELD_NAME.sub("", field.strip(), count=1)) for field in fields], is_cut)


def _split_last_field(text: str) -> tuple[str, bool]:
    """Return the last field of a record without the text behind it, and whether ``)`` closes the record."""
    first, bracket, _ = text.partition(")")
    if bracket and is_score(first):
        return first, True
    end = _END_OF_LINE.search(text)
    field = text[: end.start() + 1] if end else _CUT_MARK.sub("", text.rstrip("` \t\r\n"))
    field = field.rstrip(", \t\r\n")
    is_closed = field.endswith(")") and field.count(")") > field.count("(")
    return field.removesuffix(")") if is_closed else field, is_closed


def _remove_quotes(field: str) -> str:
    """Return a field without surrounding quotation marks.

    >>> [_remove_quotes(field) for field in ('"Ada"', '"Weird Al" Yankovic', '"Up" and "Down"', '"The "Up" Tour"')]
    ['Ada', '"Weird Al" Yankovic', '"Up" and "Down"', 'The "Up" Tour']
    """
    closing = _QUOTE_PAIRS.get(field[:1])
    if closing is None or len(field) < 2 or not field.endswith(closing):
        return field
    inner = field[1:-1]
    place = inner.find(closing)
    is_pair = place < 0 or (field[0] == closing and (place == 0 or inner[place - 1].isspace()))
    return inner.strip() if is_pair else field
