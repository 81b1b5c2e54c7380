"""What the passages of a document with headings are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from polyad.model import Document, Section, Span
from polyad.text.headings import BETWEEN, MOST, joined_headings

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
