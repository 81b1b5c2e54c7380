"""Builds sections from headings: a section ends at the next heading of the same or higher rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from polyad.model import Section

LONGEST = 200
"""Characters of a heading. What is longer is a paragraph that is marked as one."""


class Heading(NamedTuple):
    """A heading: its rank, name and character span.

    Attributes:
        rank: 1 for the highest, such as ``# One`` or ``<h1>``, to 6.
        name: Its text, on one line, without marks.
        start: Offset of its first character in the text.
        end: Offset past its last, marks and underline included.
    """

    rank: int
    name: str
    start: int
    end: int


def build_sections(headings: Sequence[Heading], text: str) -> tuple[Section, ...]:
    """Return the sections of a text, ordered by start; sections of lower rank are nested.

    One that stands directly below its heading begins where that begins, so that the two are not taken apart. A text may
    begin with a heading that has nothing under it and is followed by others of the same rank: that is the heading of
    them all.

    Args:
        headings: In the order of the text.
        text: That they stand in.
    """
    named = [heading for heading in headings if heading.name and len(heading.name) <= LONGEST]
    is_below = [not text[above.end : heading.start].strip() for above, heading in pairwise(named)]
    ranks = [heading.rank for heading in named]
    if any(is_below[:1]) and ranks[0] == ranks[1]:
        ranks[0] -= 1
    starts = [heading.start for heading in named]
    for place, follows_heading in enumerate(is_below, 1):
        if follows_heading and ranks[place - 1] < ranks[place]:
            starts[place] = starts[place - 1]
    ends = [len(text)] * len(named)
    open_ones: list[int] = []
    for place, heading in enumerate(named):
        while open_ones and ranks[open_ones[-1]] >= ranks[place]:
            ends[open_ones.pop()] = heading.start
        open_ones.append(place)
    return tuple(Section(heading.name, start, end) for heading, start, end in zip(named, starts, ends, strict=True))
