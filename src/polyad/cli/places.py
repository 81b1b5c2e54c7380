"""Descriptions of locations for people, and excerpts of passages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from polyad.model import Location, Origin, Passage, ScoredPassage, Span

_HEADING_MARKS = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)

_BETWEEN = " / "


def describe_passage(passage: Passage, origin: Origin) -> str:
    """Return document, page and heading of a passage: ``R Data Import/Export, p. 36, "9 Reading spreadsheets"``."""
    return describe_location(origin.title or passage.title or passage.document_id, passage.location)


def describe_location(title: str, location: Location) -> str:
    """Return a document's title with page, slide, sheet and the headings that the title does not contain."""
    parts = [title]
    if location.page is not None:
        parts.append(f"p. {location.page}")
    if location.slide is not None:
        parts.append(f"slide {location.slide}")
    if location.sheet:
        parts.append(f"sheet {location.sheet}")
    if heading := _remove_title(title, location.heading):
        parts.append(f'"{heading}"')
    return ", ".join(parts)


def _remove_title(title: str, heading: str) -> str:
    """Return a path of headings without the title at its beginning.

    >>> _remove_title("Handbook", "Handbook / Pumps"), _remove_title("Pumps", "Pumps"), _remove_title("", "Pumps")
    ('Pumps', '', 'Pumps')
    """
    if heading == title:
        return ""
    return heading.removeprefix(f"{title}{_BETWEEN}")


def get_file_name(origin: Origin) -> str:
    """Return the name of a document's file, otherwise its URL; empty if the document has neither."""
    return PurePath(origin.source).name or origin.url


def describe_copies(hit: ScoredPassage) -> Iterator[str]:
    """Yield the other locations in which the text of a hit appears."""
    for origin, location in hit.copies:
        place = describe_location(origin.title, location) if origin.title else ""
        yield ", ".join(filter(None, (place, get_file_name(origin)))) or "another document"


def build_excerpt(hit: ScoredPassage, limit: int) -> str:
    """Return about ``limit`` characters of a hit.

    The excerpt is the beginning of the passage, or begins at the highlight if the beginning does not contain it.
    """
    text, best = hit.passage.text, hit.highlight or Span(0, 0)
    start = _skip_headings(hit.passage)
    is_visible = best.end <= limit or best.start <= start
    return shorten(text[start:], limit) if is_visible else f"... {shorten(text[best.start :], limit)}"


def _skip_headings(passage: Passage) -> int:
    """Return the offset of the first line that is no heading in the passage's title."""
    text, start = passage.text, 0
    while 0 <= (end := text.find("\n", start)) < len(text) - 1 and text[start:end].strip("#=-*_` ") in passage.title:
        start = end + 1
    return start


def shorten(text: str, limit: int) -> str:
    """Return text on one line of at most ``limit`` characters, cut between words, without Markdown heading marks."""
    words = " ".join(_HEADING_MARKS.sub("", text).split())
    return words if len(words) <= limit else f"{words[:limit].rsplit(' ', 1)[0]} ..."
