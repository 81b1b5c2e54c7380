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
from typing import NamedTuple

from polyad.errors import UnreadableReplyError
from polyad.indexing.facts.extraction import (
    FACT_SCORES,
    THOUGHTS,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    entity_from_fields,
    extraction,
    is_score,
    one_line,
    require_at_most,
)
from polyad.indexing.facts.style import ExtractionStyle
from polyad.text.thoughts import after_thoughts

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

_FIELDS = {"hyperrelation": 2, "entity": 4}
_QUOTE_PAIRS = {'"': '"', "'": "'", "“": "”", "«": "»"}


class PaperExtractionStyle(ExtractionStyle):
    """Asks for records as HyperGraphRAG does, with a worked example, and reads what models make of them."""

    style = "paper"

    def parse(self, reply: str, most: int | None = None) -> Extraction:
        """Read a reply, whatever its quotes, brackets, line breaks and delimiters, whole or cut short.

        An entity belongs to the nearest fragment before it. Those that come before any belong to the first.

        Raises:
            UnreadableReplyError: there is neither a record in it nor the mark that there is nothing more, or there are
                more than ``most`` records.
        """
        text = after_thoughts(reply)
        records = list(_records(text))
        if not records and not _COMPLETE.search(text):
            raise UnreadableReplyError(reply, 'records such as ("hyper-relation"<|>text<|>score) or <|COMPLETE|>')
        require_at_most(most, len(records), reply)
        reading = _Reading(Counter({THOUGHTS: text != reply.strip()}))
        for record in records:
            reading.add(record)
        return reading.extraction()


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
        self._facts: list[tuple[str, float, list[ExtractedEntity]]] = []
        self._waiting: list[ExtractedEntity] = []
        self._is_dropped = False

    def add(self, record: _Record) -> None:
        """Read the next record."""
        self._notes["record cut off at the end of the reply"] += record.is_cut
        if not record.fields and record.is_cut:
            return
        if record.kind == "hyperrelation":
            self._add_fact(record.fields)
        elif record.kind == "entity":
            self._add_entity(record.fields)
        else:
            self._notes["record of an unknown kind"] += 1

    def extraction(self) -> Extraction:
        """All that was read."""
        self._notes["entity in a reply without facts"] += len(self._waiting)
        return extraction((ExtractedFact(text, score, tuple(own)) for text, score, own in self._facts), self._notes)

    def _add_fact(self, fields: list[str]) -> None:
        text = one_line(fields[0])
        self._is_dropped = not text
        if not text:
            self._notes["fact without a text"] += 1
            return
        rest = fields[1:]
        score = next((field for field in rest if is_score(field)), rest[0] if rest else None)
        self._notes["field too many"] += max(0, len(rest) - 1)
        self._facts.append((text, FACT_SCORES.read(score, self._notes), self._waiting))
        self._waiting = []

    def _add_entity(self, fields: list[str]) -> None:
        if self._is_dropped:
            self._notes["entity of a fact without a text"] += 1
            return
        entity = entity_from_fields(fields, self._notes)
        if entity and self._facts:
            self._facts[-1][2].append(entity)
        elif entity:
            self._notes["entity before any fact"] += 1
            self._waiting.append(entity)


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
    return _Record(kind, [_unquoted(field.strip()) for field in fields], is_cut)


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
