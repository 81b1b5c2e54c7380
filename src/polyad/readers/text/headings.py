"""Builds sections from headings: a section ends at the next heading of the same or higher rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from polyad.model import Section

MAX_HEADING = 200
"""Characters of the longest heading; a longer one is a paragraph that was marked up as a heading."""


class Heading(NamedTuple):
    """A heading with its rank, name and character span.

    Attributes:
        rank: From 1, the highest (``# One``, ``<h1>``), to 6.
        name: Text of the heading on one line, without markup.
        start: Offset of the heading's first character in the text.
        end: Offset past the heading's last character, markup and underline included.
    """

    rank: int
    name: str
    start: int
    end: int


def build_sections(headings: Sequence[Heading], text: str) -> tuple[Section, ...]:
    """Return the sections of a text that start at ``headings``, in text order; a lower heading starts a nested section.

    A section directly below the heading of its parent starts where the parent starts, so that no passage separates the
    two headings. If the text starts with a heading without text of its own, followed by headings of the same rank, the
    first heading is the parent of all others.

    Args:
        headings: The headings in text order.
        text: The text that the spans refer to.
    """
    usable = [heading for heading in headings if heading.name and len(heading.name) <= MAX_HEADING]
    is_below = [not text[upper.end : heading.start].strip() for upper, heading in pairwise(usable)]
    ranks = [heading.rank for heading in usable]
    if any(is_below[:1]) and ranks[0] == ranks[1]:
        ranks[0] -= 1
    starts = [heading.start for heading in usable]
    for place, follows_heading in enumerate(is_below, 1):
        if follows_heading and ranks[place - 1] < ranks[place]:
            starts[place] = starts[place - 1]
    ends = [len(text)] * len(usable)
    open_places: list[int] = []
    for place, heading in enumerate(usable):
        while open_places and ranks[open_places[-1]] >= ranks[place]:
            ends[open_places.pop()] = heading.start
        open_places.append(place)
    return tuple(Section(heading.name, start, end) for heading, start, end in zip(usable, starts, ends, strict=True))
