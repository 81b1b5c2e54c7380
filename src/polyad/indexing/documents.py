"""What may be known of a document beside its text: looked at where documents enter, so that nothing fails later."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile

from polyad.model import METADATA_KEYS, Argument, Document, Failure, MetadataValue, Section, Span
from polyad.text.cleaning import sanitize, writable
from polyad.text.paragraphs import BETWEEN, MOST, joined_headings

LONGEST = 1000
"""Characters of a string, or of a list of strings together, that are kept."""

_SHOWN = 40
_EXPECTED = "expected a string, a number of 64 bits, true or false, or a list of strings"


def checked(document: Document) -> Document | Failure:
    """The document with what is known of it as it is kept, or a failure that names what cannot be kept.

    Lists become tuples. Strings beyond :data:`LONGEST` characters are cut, and say so at their end. Metadata, title,
    address and the roles of arguments lose what drives a terminal or turns letters around; the text and the values of
    arguments keep all they say.
    """
    given: object = document.metadata
    if not isinstance(given, Mapping):
        return Failure(document.id, f"its metadata is {_shown(given)}; expected a mapping from strings")
    if len(given) > METADATA_KEYS:
        return Failure(document.id, f"its metadata has {len(given):,} keys; expected at most {METADATA_KEYS}")
    url: object = document.url
    if not isinstance(url, str):
        return Failure(document.id, f"its url is {_shown(url)}; expected a string")
    kept: dict[str, MetadataValue] = {}
    for key, value in given.items():
        if not isinstance(key, str):
            return Failure(document.id, f"a key of its metadata is {_shown(key)}; expected a string")
        found = _kept(value)
        if found is None:
            return Failure(document.id, f"its metadata {_shown(key)} is {_shown(value)}; {_EXPECTED}")
        kept[_cut(key)] = found
    clean = replace(
        document,
        title=sanitize(document.title),
        url=sanitize(url),
        arguments=tuple(map(_checked_argument, document.arguments)),
        relation=sanitize(document.relation),
        metadata=kept,
    )
    return document if clean == document else clean


def _checked_argument(argument: Argument) -> Argument:
    names = tuple(map(sanitize, argument.names))
    role, unit = sanitize(argument.role), sanitize(argument.unit)
    return replace(argument, role=role, value=writable(argument.value), unit=unit, names=names)


def _kept(value: object) -> MetadataValue | None:
    """The value as it is kept; None where it cannot be."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, bool | int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
        return _fitting(value)
    return None


def _cut(text: str) -> str:
    text = sanitize(text)
    if len(text) <= LONGEST:
        return text
    note = f" ... (cut; {len(text):,} characters)"
    return text[: LONGEST - len(note)] + note


def _fitting(items: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """As many of the first items as fit, and a last one that counts the others."""
    room, kept = LONGEST, list[str]()
    for item in map(_cut, items):
        room -= len(item) + 1
        if room < 0:
            return (*kept, f"... ({len(items) - len(kept):,} more)")
        kept.append(item)
    return tuple(kept)


def _shown(value: object) -> str:
    """A value for a message, cut short; nothing that it is may fail here."""
    try:
        text = ascii(value)
    except Exception:  # a value's own way to show itself
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


TITLE_FROM, FILE_NAME = "title_from", "file name"
"""The key of a document's metadata that says where its title is from, and what it says of one that is a file's name."""

CONTINUED = 0.5
"""How surely a passage is about a section that began in an earlier one."""

NAMED_BY_FILE = 0.0
"""How surely a passage is about what its file is called."""

_BLANK = 16
"""Characters of white space that may stand before a passage in its section; more are looked at as text."""


def sections_in(document: Document, spans: Sequence[Span]) -> Iterator[tuple[Section, ...]]:
    """The sections that each passage stands in or holds, as spans of its own text, the widest first.

    The document's title is one of them. A title that is also a heading is about what stands under it alone, and about
    what stands under no heading. What goes on in a further passage is less surely about it than what begins there: the
    names of a manual and of its chapters stand above hundreds of passages, and lead to where they begin. A title that
    is only the name of a file is shown and searched with the passage, which is not taken to be about it.

    Args:
        document: With its title and sections; those that hold nothing are passed over.
        spans: Of its passages, by where they start.
    """
    sections = [section for section in document.sections if section.start < section.end]
    coming = sorted(sections, key=lambda section: (section.start, -section.end))[::-1]
    headings = {section.name for section in coming}
    title = Section(document.title, 0, len(document.text), NAMED_BY_FILE if _is_file_name(document) else 1.0)
    near: list[Section] = []
    for span in spans:
        while coming and coming[-1].start < span.end:
            near.append(coming.pop())
        near = [section for section in near if section.end > span.start]
        inside = [_within(section, span, document.text) for section in near]
        if document.title and not (document.title in headings and _names_of_all(inside, span.end - span.start)):
            inside.insert(0, _within(title, span, document.text))
        yield tuple(inside)


def _within(section: Section, span: Span, text: str) -> Section:
    """The part of a section that lies in a passage, as a span of the passage's text."""
    start, end = max(section.start, span.start), min(section.end, span.end)
    before = start - section.start
    goes_on = before > _BLANK or text[section.start : start].strip()
    name = " ".join(section.name.split())
    return Section(name, start - span.start, end - span.start, section.strength * (CONTINUED if goes_on else 1.0))


def _is_file_name(document: Document) -> bool:
    return document.metadata.get(TITLE_FROM) == FILE_NAME


def _names_of_all(sections: Sequence[Section], length: int) -> list[str]:
    """The names of the sections that hold all of a passage.

    Args:
        sections: In it.
        length: Of its text.
    """
    return [section.name for section in sections if section.start == 0 and section.end == length]


def headings_in(document: Document, spans: Sequence[Span]) -> Iterator[str]:
    """The headings that each passage stands under and holds, as they are shown; empty where there are none.

    Args:
        document: With its sections.
        spans: Of its passages, by where they start.
    """
    coming = sorted(document.sections, key=lambda section: (section.start, -section.end))[::-1]
    above: list[Section] = []
    for span in spans:
        while coming and coming[-1].start <= span.start:
            above.append(coming.pop())
        above = [section for section in above if section.end > span.start]
        yield joined_headings(_paths(above, reversed(coming), span))


def _paths(above: Sequence[Section], coming: Iterable[Section], span: Span) -> Iterator[Iterable[str]]:
    """The headings above the beginning of a passage, then above each section that begins in it; a few more than shown.

    Args:
        above: What holds the beginning.
        coming: The sections that begin later.
        span: Of the passage.
    """
    yield _names(above)
    for section in islice(takewhile(lambda section: section.start < span.end, coming), MOST + 1):
        above = [*(one for one in above if one.end > section.start), section]
        yield _names(above)


def _names(sections: Iterable[Section]) -> Iterable[str]:
    return dict.fromkeys(" ".join(section.name.split()) for section in sections)


def title_of(sections: Sequence[Section], length: int) -> str:
    """The title of a passage: the names of what holds all of it, the widest first, each once; see above."""
    return BETWEEN.join(dict.fromkeys(_names_of_all(sections, length)))
