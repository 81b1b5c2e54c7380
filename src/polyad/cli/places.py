"""Where hits and citations stand, in words for people, and what is shown of a hit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from polyad.model import Location, Origin, Passage, ScoredPassage, Span

_HEADING_MARKS = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)

_BETWEEN = " / "


def named(passage: Passage, origin: Origin) -> str:
    """A passage by its document and its place there: ``R Data Import/Export, p. 36, "9 Reading spreadsheets"``."""
    return place_in_words(origin.title or passage.title or passage.document_id, passage.location)


def place_in_words(title: str, location: Location) -> str:
    """A document's title and the place in it; headings that the title says already are left out."""
    parts = [title]
    if location.page is not None:
        parts.append(f"p. {location.page}")
    if location.slide is not None:
        parts.append(f"slide {location.slide}")
    if location.sheet:
        parts.append(f"sheet {location.sheet}")
    if heading := _beyond(title, location.heading):
        parts.append(f'"{heading}"')
    return ", ".join(parts)


def _beyond(title: str, heading: str) -> str:
    """The headings below those that the title ends or begins with.

    >>> _beyond("Handbook", "Handbook / Pumps"), _beyond("Handbook / Pumps", "Handbook / Pumps"), _beyond("", "Pumps")
    ('Pumps', '', 'Pumps')
    """
    if heading == title:
        return ""
    return heading.removeprefix(f"{title}{_BETWEEN}")


def file_of(origin: Origin) -> str:
    """The name of the file, or else the address; empty where neither is known."""
    return PurePath(origin.source).name or origin.url


def also_in(hit: ScoredPassage) -> Iterator[str]:
    """The other places in which the hit's text stands."""
    for origin, location in hit.copies:
        place = place_in_words(origin.title, location) if origin.title else ""
        yield ", ".join(filter(None, (place, file_of(origin)))) or "another document"


def snippet(hit: ScoredPassage, limit: int) -> str:
    """About so many characters of a hit: its beginning, or what fits the question best where that would not be seen."""
    text, best = hit.passage.text, hit.highlight or Span(0, 0)
    start = _after_headings(hit.passage)
    is_seen = best.end <= limit or best.start <= start
    return shortened(text[start:], limit) if is_seen else f"... {shortened(text[best.start :], limit)}"


def _after_headings(passage: Passage) -> int:
    """The offset from which more is said than the passage's title, which is shown already."""
    text, start = passage.text, 0
    while 0 <= (end := text.find("\n", start)) < len(text) - 1 and text[start:end].strip("#=-*_` ") in passage.title:
        start = end + 1
    return start


def shortened(text: str, limit: int) -> str:
    """``text`` on one line of at most ``limit`` characters, give or take a word, without the marks of its headings."""
    words = " ".join(_HEADING_MARKS.sub("", text).split())
    return words if len(words) <= limit else f"{words[:limit].rsplit(' ', 1)[0]} ..."
