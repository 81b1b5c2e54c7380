"""Finds paragraphs by lines: blank lines, list marks, indentation and short lines; and joins headings.

Texts are wrapped at some column, have one paragraph on a line, or are lists and tables without full stops. A line that
ends because it is full continues on the next line; a line with room for the next word was ended by its writer.
"""

# ruff: noqa: RUF001  the signs of lists look alike

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

_MIN_WIDTH = 40
"""Columns to which no text is wrapped: in a run of shorter lines, each line is short on purpose."""

_MAX_BLANK = 16
"""Characters of white space that are examined before an offset: blank lines with a few spaces."""

_FULL_SHARE = 0.75
"""Share of the longest line of a run that a wrapped line fills, including the next word. Below 1, because lines of a
PDF
are equally wide, but do not have equally many characters."""

_MARGIN = re.compile(r"[^\S\n]*(?:>[^\S\n]*)*")
"""Indentation, and the signs that e-mail programs put before quoted lines."""

BULLETS = (
    "•‣⁃⁌⁍▪▫■□▢▶▷▸▹►▻◆◇◈◉○◌●◘◙◦❍❏❐❑❒★☆✓✔✗✘✦✧❖➔➜➢➣➤➥⮚∎∙⦁⦿"
    "\uf02d\uf06e\uf071\uf075\uf076\uf0a7\uf0a8\uf0b7\uf0d8\uf0e8\uf0fc"
)
"""Characters that only begin an item of a list; those of Word's symbol fonts are for private use."""

_STARTS_PARAGRAPH = re.compile(rf"[{BULLETS}]|#{{1,6}}\s|[A-Z][A-Z .'’-]{{1,30}}:\s")
"""The beginning of a line that always begins a paragraph: a bullet, a Markdown heading, or a speaker in capitals."""

_HEADING = re.compile(r"#{1,6}\s")

_NUMBER = r"(?:\d{1,3}(?:\.\d{1,3}){0,5}|[ivxlcIVXLC]{1,6}|[A-Za-z])"
OPENING = re.compile(
    rf"(?:[-–—―*+·o]|(?:§|§§|Art\.|Sec\.)\s?\d+[a-z]?\.?|\({_NUMBER}\)|\[\d{{1,4}}\]|{_NUMBER}[.)])(?=\s)"
)
"""A list mark or clause number: it begins a paragraph unless a sentence continues with it on a new line."""

_SENTENCE_END = re.compile(r"(?:[.!?:;…。！？：；][\"'”’»)\]」』）]*|\b(?:and|or)|[-–—])$")
_ROW = re.compile(r"\t|    | \| |\.\.\.\.| \. \. \.|\|$")
"""Text that only occurs in a line with columns."""


class _Line(NamedTuple):
    """A line without its margin.

    Attributes:
        start: Offset of the line in the text, margin included.
        indent: Columns of its margin.
        depth: Quotation signs in the margin.
        text: The text after the margin; empty for a blank line.
        row: Whether the line has columns, as a row of a table or of a table of contents.
    """

    start: int
    indent: int
    depth: int
    text: str
    row: bool


def find_paragraphs(text: str) -> list[int]:
    r"""Return the offsets at which paragraphs begin, in order.

    A line that was ended short of the margin ends a paragraph too, so a row of a table, a heading and a line of a list
    are paragraphs. Each offset is of the beginning of a line. Time is linear in the length of the text.

    >>> find_paragraphs("A line that is wrapped since it is full\nends here.\n\n• One.\n• Two.")
    [0, 52, 59]
    """
    starts: list[int] = []
    run: list[_Line] = []
    for line in [*_split_lines(text), _Line(len(text), 0, 0, "", row=False)]:
        if line.text:
            run.append(line)
        else:
            starts.extend(_find_starts(run))
            run = []
    return starts


def begins_paragraph(text: str, offset: int) -> bool:
    r"""Return whether the text before an offset is a blank line, or empty.

    >>> begins_paragraph("One.\n\nTwo. Three.", 6), begins_paragraph("One.\n\nTwo. Three.", 11)
    (True, False)
    """
    before = text[max(0, offset - _MAX_BLANK) : offset]
    blank = before[len(before.rstrip()) :]
    return blank.count("\n") > 1 or (blank == before and offset <= _MAX_BLANK)


def _split_lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        margin = _MARGIN.match(line)
        body = margin.end() if margin else 0
        rest = line[body:].strip()
        row = _ROW.search(rest) is not None
        yield _Line(start, len(line[:body].expandtabs()), line.count(">", 0, body), rest, row)
        start += len(line)


def _find_starts(run: Sequence[_Line]) -> Iterator[int]:
    """Yield the beginnings of paragraphs in lines without a blank line among them."""
    if not run:
        return
    width = max(_MIN_WIDTH, *(line.indent + len(line.text) for line in run))
    base = min(line.indent for line in run)
    yield run[0].start
    sign = run[0].text[:2]  # of the list that the paragraph is an item of, if it is one
    for before, line in pairwise(run):
        opening = OPENING.match(line.text) is not None
        if (
            _STARTS_PARAGRAPH.match(line.text)
            or (opening and (line.text[:2] == sign or _ends_sentence(before.text) or _is_short(before, line, width)))
            or _is_deliberate_break(before, line, width, base)
        ):
            yield line.start
            sign = line.text[:2]


def _ends_sentence(line: str) -> bool:
    """Return whether a sentence or clause ends at the end of the line."""
    return _SENTENCE_END.search(line[-20:]) is not None


def _is_short(before: _Line, line: _Line, width: int) -> bool:
    """Return whether the first word of a line had room in the line before."""
    word = line.text.split(maxsplit=1)[0]
    return before.indent + len(before.text) + 1 + len(word) <= _FULL_SHARE * width


def _is_deliberate_break(before: _Line, line: _Line, width: int, base: int) -> bool:
    """Return whether the writer began a new line, rather than the margin forcing it."""
    if before.depth != line.depth or before.row or _HEADING.match(before.text):
        return True
    if line.indent > base and before.indent != line.indent and _ends_sentence(before.text):
        return True
    goes_on = line.text[0].islower() and before.indent == line.indent
    return not goes_on and (line.row or (not before.text.endswith(",") and _is_short(before, line, width)))


HEADING_SEPARATOR = " / "
"""Separates a heading from a heading one level below."""

SIBLING_SEPARATOR = "; "
"""Separates headings on the same level."""

MAX_HEADINGS = 4
"""Most headings of one level that are shown; further headings are replaced by an ellipsis."""

_ELLIPSIS = "..."


def join_headings(paths: Iterable[Iterable[str]]) -> str:
    """Join the heading paths of the parts of a text: the common headings, then the remaining headings of each part.

    If a path is the beginning of the next path, only the longer path is used.

    Args:
        paths: The headings above each part of the text, the highest level first.

    >>> join_headings([["Pump manual", "Safety"], ["Pump manual", "Oil change"]])
    'Pump manual / Safety; Oil change'
    >>> join_headings([["Pump manual"], ["Pump manual", "Safety"]])
    'Pump manual'
    """
    distinct = list(dict.fromkeys(map(tuple, paths)))
    leaves = [path for path, after in pairwise([*distinct, ("",)]) if after[: len(path)] != path]
    if len(leaves) < 2:
        return HEADING_SEPARATOR.join(distinct[0]) if distinct else ""
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*leaves, strict=False))]
    joined = [HEADING_SEPARATOR.join(path[len(common) :]) for path in leaves]
    siblings = [name for path in joined for name in path.split(SIBLING_SEPARATOR)]
    names = [name for name in dict.fromkeys(siblings) if name not in ("", _ELLIPSIS)]
    if len(names) > MAX_HEADINGS or _ELLIPSIS in siblings:
        names = [*names[:MAX_HEADINGS], _ELLIPSIS]
    return HEADING_SEPARATOR.join([*common, SIBLING_SEPARATOR.join(names)])
