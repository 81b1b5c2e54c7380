"""Reads Markdown: the source text without invisible parts, divided into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyad.readers.front_matter import front_matter
from polyad.readers.headings import Heading, build_sections
from polyad.readers.plain_text import Content, decode, single_line
from polyad.readers.titles import choose_title, is_generic_name

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(?:(=)=*|-{2,})[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")

_LONGEST_LINE = 500
"""Characters of a line that is looked at as a heading: more than a heading may have, for its links and marks."""

_LONGEST_CLEANED = 2000
"""Characters of a line that is looked through for what a reader never sees."""

_BADGE = re.compile(r"\[!\[[^\]\n]*\]\([^)\n]*\)\]\([^)\n]*\)|!\[[^\]\n]*\]\([^)\n]*(?:badge|shields\.io)[^)\n]*\)")
_ANCHOR = re.compile(
    r"\s*\{:?\s*#[\w.-]+[^}\n]*\}|<a\s+(?:name|id)=[^<>\n]*>\s*</a>|\s*\[[¶#§🔗]?\]\(#[^)\n]*\)", re.IGNORECASE
)
_HTML_HEADING = re.compile(r" {0,3}<h([1-6])[^<>\n]*>(.*)</h\1>[ \t]*$", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
_ONLY_TAGS = re.compile(r" {0,3}(?:</?[A-Za-z][^<>\n]*>[ \t]*)+$")
_KINDS = "note|tip|info|important|warning|caution|danger|hint|attention|error|abstract|example|question|success|seealso"
_NOTE = re.compile(
    rf"(?P<indent>[ \t>]*)(?:\[!(?P<alert>{_KINDS})\]|:::+[ \t]*\{{?(?P<fenced>{_KINDS})\}}?"
    rf"|(?:!!!|\?\?\?\+?)[ \t]+(?P<marked>{_KINDS}))(?!\w)[ \t]*(?P<title>.*)$",
    re.IGNORECASE,
)
_END_OF_NOTE = re.compile(r"[ \t]*:::+[ \t]*$")
_CONTENTS_MARK = re.compile(r"[ \t]*(?:\[TOC\]|\[\[_TOC_\]\]|\{:?toc\}|\{:\s*toc[^}]*\})[ \t]*$", re.IGNORECASE)
_ENTRY = re.compile(r"[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\[[^\]\n]*\]\(#[^)\n]*\)[ \t]*$")
_FEWEST_ENTRIES = 3
"""Items that lead to places of the same text, one after another, which make a table of contents."""


def read_markdown(data: bytes) -> Content:
    """Return the content of a Markdown file; the title is that of the front matter, or the first heading.

    Front matter becomes metadata. Comments, badges, anchors and tables of contents are left out, a note's mark becomes
    a word.
    """
    text = decode(data)
    known = front_matter(text)
    text = "\n".join(_without_contents(_cleaned(text[known.end :]))) if text.strip() else text
    headings = list(_headings(text))
    title = known.title or find_title(headings)
    return Content(title, text, build_sections(headings, text), metadata=known.metadata, url=known.url)


def find_title(headings: list[Heading]) -> str:
    """Return the first heading; if it is generic, the first specific heading of the highest rank."""
    named = [heading for heading in headings if heading.name]
    return choose_title([heading.name for heading in [*named[:1], *(later for later in named if later.rank == 1)]])


def _cleaned(text: str) -> Iterator[str]:
    """Return the lines without comments and other invisible parts; fenced code is unchanged."""
    fence = ""
    last_end, is_comment, place = text.rfind("-->"), False, 0
    for line in text.split("\n"):
        start, place = place, place + len(line) + 1
        mark = None if is_comment else _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and len(line) <= _LONGEST_CLEANED:
            shown, is_comment = _without_comments(line, is_comment, start < last_end)
            if shown == line or shown.strip():
                yield from _as_read(shown)
            continue
        if not is_comment:
            yield line


def _without_comments(line: str, is_comment: bool, may_open: bool) -> tuple[str, bool]:
    """Return the parts of a line outside comments, and whether a comment continues on the next line."""
    kept = []
    while True:
        if is_comment:
            _, found, line = line.partition("-->")
        else:
            before, found, line = line.partition("<!--") if may_open else (line, "", "")
            kept.append(before)
        if not found:
            return "".join(kept), is_comment
        is_comment = not is_comment


def _as_read(line: str) -> Iterator[str]:
    """Return a line without marks for programs; an empty string if nothing remains."""
    if line.startswith(("    ", "\t")) or not line.strip():
        yield line
        return
    if heading := _HTML_HEADING.match(line):
        line = f"{'#' * int(heading[1])} {_TAG.sub('', heading[2]).strip()}"
    shown = _ANCHOR.sub("", _BADGE.sub("", line))
    if note := _NOTE.match(shown):
        kind = (note["alert"] or note["fenced"] or note["marked"]).capitalize()
        title = note["title"].strip("[]{}\"' \t")
        shown = f"{note['indent']}{kind}: {title}".rstrip()
    if (shown == line or shown.strip()) and not any(
        only.match(shown) for only in (_ONLY_TAGS, _END_OF_NOTE, _CONTENTS_MARK)
    ):
        yield shown


def _without_contents(lines: Iterator[str]) -> Iterator[str]:
    """Remove tables of contents: lists that consist of links within the same text, and their heading."""
    held: list[str] = []
    entries = 0
    for line in lines:
        if _ENTRY.match(line[:_LONGEST_LINE]):
            held.append(line)
            entries += 1
        elif not line.strip() and held:
            held.append(line)
        elif not entries and (heading := _HEADING.match(line[:_LONGEST_LINE])) and is_generic_name(_name(heading[2])):
            yield from held
            held = [line]
        else:
            yield from held if entries < _FEWEST_ENTRIES else held[:0]
            held, entries = [], 0
            yield line
    yield from held if entries < _FEWEST_ENTRIES else held[:0]


def _headings(text: str) -> Iterator[Heading]:
    """Return the headings: lines after number signs and underlined lines, outside fenced code."""
    start = 0
    fence = previous = ""
    for line in text.split("\n"):
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
