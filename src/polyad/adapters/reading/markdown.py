"""Markdown, kept as its author wrote it, with the sections that its headings make."""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyad.adapters.reading.headings import Heading, sections_of
from polyad.adapters.reading.plain_text import Content, decode, single_line

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(?:(=)=*|-{2,})[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")

_LONGEST_LINE = 500
"""Characters of a line that is looked at as a heading: more than a heading may have, for its links and marks."""


def read_markdown(data: bytes) -> Content:
    """A Markdown file; the title is that of its front matter, or its first heading."""
    text = decode(data)
    front_matter = _FRONT_MATTER.match(text)
    headings = list(_headings(text, front_matter.end() if front_matter else 0))
    title = front_matter and _FRONT_MATTER_TITLE.search(front_matter[1])
    named = single_line(title[1].strip("\"' \t")) if title else ""
    return Content(
        named or next((heading.name for heading in headings if heading.name), ""), text, sections_of(headings, text)
    )


def _headings(text: str, start: int) -> Iterator[Heading]:
    """Lines behind number signs, and lines that are underlined; none of fenced code."""
    fence = previous = ""
    for line in text[start:].split("\n"):
        end = start + len(line)
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        elif not fence and len(line) <= _LONGEST_LINE:
            if heading := _HEADING.match(line):
                yield Heading(len(heading[1]), _name(_CLOSING.sub("", heading[2].rstrip(" \t"))), start, end)
                line = ""  # an underline below it is a rule
            elif previous.strip() and (underline := _UNDERLINE.match(line)):
                yield Heading(1 if underline[1] else 2, _name(previous), start - len(previous) - 1, end)
                line = ""
        previous = line if len(line) <= _LONGEST_LINE else ""
        start = end + 1


def _name(heading: str) -> str:
    return single_line(_EMPHASIS.sub("", _LINK.sub(r"\1", heading)))
