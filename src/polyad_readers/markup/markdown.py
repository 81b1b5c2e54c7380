"""Reads Markdown: the source text without invisible parts, divided into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.headings import Heading, build_sections
from polyad.readers.text.plain_text import decode, to_single_line
from polyad.readers.text.titles import choose_title, is_generic_name
from polyad_readers.markup.front_matter import parse_front_matter
from polyad_readers.shared.tables import Cell, format_table

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(?:(=)=*|-{2,})[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")

_MAX_HEADING_LINE = 500
"""Characters of the longest line that may be a heading: more than a heading has, for links and markup."""

_MAX_CLEANED_LINE = 2000
"""Characters of the longest line that is searched for invisible parts."""

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
_DELIMITER_ROW = re.compile(r"[ \t>]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_ROW_PREFIX = re.compile(r"[ \t>]*")
_PIPE = re.compile(r"(?<!\\)\|")
_MIN_ENTRIES = 3
"""Least consecutive items with links within the same text that are a table of contents."""


def read_markdown(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a Markdown file, with the title in the front matter or else in the first heading.

    Front matter (a block of metadata before the text) becomes metadata. Comments, badges, anchors and tables of
    contents are removed. The marker of a note becomes a word. Each row of a table has the names of its columns.
    """
    text = decode(source.read())
    matter = parse_front_matter(text)
    text = "\n".join(_format_tables(list(_remove_contents(_clean_lines(text[matter.end :]))))) if text.strip() else text
    headings = list(find_headings(text))
    title = matter.title or find_title(headings)
    return Content(title, text, build_sections(headings, text), metadata=matter.metadata, url=matter.url)


def find_title(headings: list[Heading]) -> str:
    """Return the first heading as title; if it is generic ("Introduction"), the first specific heading of rank 1."""
    nonempty = [heading for heading in headings if heading.name]
    return choose_title(
        [heading.name for heading in [*nonempty[:1], *(later for later in nonempty if later.rank == 1)]]
    )


def _clean_lines(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown text without comments and other invisible parts; fenced code is unchanged."""
    fence = ""
    last_end, is_comment, place = text.rfind("-->"), False, 0
    for line in text.split("\n"):
        start, place = place, place + len(line) + 1
        mark = None if is_comment else _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and len(line) <= _MAX_CLEANED_LINE:
            visible, is_comment = _remove_comments(line, is_comment, start < last_end)
            if visible == line or visible.strip():
                yield from _clean_line(visible)
            continue
        if not is_comment:
            yield line


def _remove_comments(line: str, is_comment: bool, may_open: bool) -> tuple[str, bool]:
    """Return two results: ``line`` without HTML comments, and whether a comment continues on the next line.

    ``is_comment`` states whether the line starts inside a comment, and ``may_open`` whether a comment may start in the
    line.
    """
    parts = []
    while True:
        if is_comment:
            _, delimiter, line = line.partition("-->")
        else:
            visible, delimiter, line = line.partition("<!--") if may_open else (line, "", "")
            parts.append(visible)
        if not delimiter:
            return "".join(parts), is_comment
        is_comment = not is_comment


def _clean_line(line: str) -> Iterator[str]:
    """Yield a Markdown line without badges, anchors and other invisible markup; nothing if no text remains."""
    if line.startswith(("    ", "\t")) or not line.strip():
        yield line
        return
    if heading := _HTML_HEADING.match(line):
        line = f"{'#' * int(heading[1])} {_TAG.sub('', heading[2]).strip()}"
    cleaned = _ANCHOR.sub("", _BADGE.sub("", line))
    if note := _NOTE.match(cleaned):
        kind = (note["alert"] or note["fenced"] or note["marked"]).capitalize()
        title = note["title"].strip("[]{}\"' \t")
        cleaned = f"{note['indent']}{kind}: {title}".rstrip()
    if (cleaned == line or cleaned.strip()) and not any(
        pattern.match(cleaned) for pattern in (_ONLY_TAGS, _END_OF_NOTE, _CONTENTS_MARK)
    ):
        yield cleaned


def _remove_contents(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a Markdown text without tables of contents (lists of links into the same text)."""
    pending: list[str] = []
    entries = 0
    for line in lines:
        if _ENTRY.match(line[:_MAX_HEADING_LINE]):
            pending.append(line)
            entries += 1
        elif not line.strip() and pending:
            pending.append(line)
        elif (
            not entries
            and (heading := _HEADING.match(line[:_MAX_HEADING_LINE]))
            and is_generic_name(_strip_markup(heading[2]))
        ):
            yield from pending
            pending = [line]
        else:
            yield from pending if entries < _MIN_ENTRIES else pending[:0]
            pending, entries = [], 0
            yield line
    yield from pending if entries < _MIN_ENTRIES else pending[:0]


def _format_tables(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a Markdown text with each row of a table as ``column: value`` with tabs; see ``tables``."""
    fence = ""
    end = 0
    for place, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if place < end:
            continue
        delimiter = "" if fence else "".join(lines[place + 1 : place + 2])
        names = _split_cells(line) if "|" in delimiter and _DELIMITER_ROW.match(delimiter) else []
        if not names or len(names) != len(_split_cells(delimiter)):
            yield line
            continue
        end = next((row for row in range(place + 2, len(lines)) if "|" not in lines[row]), len(lines))
        has_names = any(names)
        rows = [[Cell(_strip_markup(name), is_header=True) for name in names]] if has_names else []
        for row in lines[place + 2 : end]:
            rows.append([Cell(text, not has_names and not column) for column, text in enumerate(_split_cells(row))])
        prefix = "".join(_ROW_PREFIX.findall(line)[:1])
        yield from (prefix + row for row in format_table(rows).split("\n"))


def _split_cells(row: str) -> list[str]:
    """Return the texts between the pipes of a table row, without the escapes of other pipes."""
    row = row.strip(" \t>")
    cells = _PIPE.split(row.removeprefix("|"))
    cells = cells[:-1] if len(cells) > 1 and not cells[-1] else cells
    return [cell.strip().replace("\\|", "|") for cell in cells]


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings outside fenced code: lines after number signs, and underlined lines."""
    start = 0
    fence = previous = ""
    for line in text.split("\n"):
        end = start + len(line)
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        elif not fence and len(line) <= _MAX_HEADING_LINE:
            if heading := _HEADING.match(line):
                yield Heading(len(heading[1]), _strip_markup(_CLOSING.sub("", heading[2].rstrip(" \t"))), start, end)
                line = ""  # an underline below it is a rule
            elif previous.strip() and (underline := _UNDERLINE.match(line)):
                yield Heading(1 if underline[1] else 2, _strip_markup(previous), start - len(previous) - 1, end)
                line = ""
        previous = line if len(line) <= _MAX_HEADING_LINE else ""
        start = end + 1


def _strip_markup(heading: str) -> str:
    """Return the text of a heading without the markup of links and emphasis."""
    return to_single_line(_EMPHASIS.sub("", _LINK.sub(r"\1", heading)))
