"""Reads AsciiDoc, and plain text with underlined headings: the text without markup for programs, and its sections.

Markup that Markdown has too is rewritten as Markdown: headings, and fences around code. So the rest of polyad knows one
form of each. Files of the extension ``.txt`` are AsciiDoc if they begin with a title and have macros, blocks or
labelled lists of AsciiDoc, as the manuals of git.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.headings import Heading, build_sections
from polyad.readers.text.plain_text import decode, read_text
from polyad.readers.text.titles import choose_document_title
from polyad_readers.markup.markdown import find_headings, find_title

# Files of up to 1 MB are read in this process, so that no pattern may take the square of a long line's length.
_HEADING = re.compile(r"(={1,6})[ \t]+(\S(?:.*?\S)??)(?:[ \t]++\1)?[ \t]*+$")
_UNDERLINE = re.compile(r"([=~^+*#-])\1{2,}[ \t]*$")
_UNDERLINES = "=-~^+"
"""Signs under headings of AsciiDoc, from the highest rank to the lowest."""

_MAX_NAME = 120
"""Characters of the longest underlined heading."""

_MAX_LINE = 2000
"""Characters of the longest line that is searched for markup, also with the values of its attributes."""

_MAX_VALUE = 500
"""Characters of the longest value of an attribute; values of values could otherwise fill the memory."""

_CODE = re.compile(r"(?:-{4,}|\.{4,}|`{3,})[ \t]*$")
_COMMENT_BLOCK = re.compile(r"/{4,}[ \t]*$")
_DELIMITER = re.compile(r"(?:={4,}|\*{4,}|_{4,}|\+{4,}|--|[|,:!]={3,}|\+|'{3,}|<{3,})[ \t]*$")
"""Lines around blocks of text, between blocks of one item, and rules."""

_ATTRIBUTE = re.compile(r":!?([\w-]+)!?:(?:[ \t]+(.*))?$")
_REFERENCE = re.compile(r"\{([a-z][\w-]*)\}")
_SIGNS = {"asterisk": "*", "plus": "+", "tilde": "~", "caret": "^", "lt": "<", "gt": ">", "amp": "&", "nbsp": " ",
          "apostrophe": "'", "startsb": "[", "endsb": "]", "litdd": "--", "empty": "", "sp": " "}  # fmt: skip
_HIDDEN = re.compile(r"//(?!/)|(?:ifn?def|endif|ifeval|include|toc)::[^\s\[]*+\[.*\][ \t]*+$|\[\[[^\]]*\]\][ \t]*$")
_NOTE = re.compile(r"\[(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\b[^\]]*\][ \t]*$")
_BLOCK_ATTRIBUTES = re.compile(r"\[[^\[\]]*\][ \t]*$")
_BLOCK_TITLE = re.compile(r"\A\.(?=[^\s.])")
_TERM = re.compile(r"([ \t]*\S.*?)(?:(?<!:)::++|;;)(?:[ \t]++(\S.*))?$")
_AUTHOR = re.compile(r"[^<>]+<[^<>]+>(?:\[.*\])?(?:;.*)?$|v?\d+[\d.]*(?:,.*)?$")
_LINK = re.compile(r"(?:link:|xref:|mailto:|image::?)?([a-z]++://[^\s\[\]]++|(?<=[:])[^\s\[\]]++)\[([^\]\n]*)\]")
_MANUAL = re.compile(r"\blink(?:git|man):([\w-]+)\[(\d\w*)\]")
_CROSS_REFERENCE = re.compile(r"<<([^<>,\n]+)(?:,([^<>\n]+))?>>")
_MACRO = re.compile(r"\b(?:kbd|btn|footnote|pass|latexmath|stem):\w*\[([^\]\n]*)\]")
_ANCHOR = re.compile(r"\[\[[\w:.-]+\]\]|(?<!\S)\[#[\w.-]+\](?=[#`*_])")
_HARD_BREAK = re.compile(r"[ \t]\+$")

_ASCIIDOC = re.compile(
    r"^\[(?:verse|source|NOTE|\[[\w-]+\])|^(?:include|ifn?def)::\S*\[|\blinkgit:[\w-]+\[|^(?:link|xref):"
    r"|^\S.{0,200}::\n[ \t]*\S",  # a labelled list; a blank line follows in reStructuredText
    re.MULTILINE,
)
_START_CHARACTERS = 20_000
"""Characters at the beginning of a text file in which markup of AsciiDoc is looked for."""


def read_asciidoc(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of an AsciiDoc file; the title is its first heading that is not generic.

    Comments, attributes, conditions and delimiters are removed. Macros are replaced by the text that they display, and
    attributes such as ``{version}`` by their values.

    Raises:
        ReadError: The file is not text.
    """
    return _build_content(decode(source.read()))


def read_text_file(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a text file: AsciiDoc if it looks like that, otherwise with its underlined headings.

    Raises:
        ReadError: The file is not text.
    """
    content = read_text(source.read())
    lines = content.text.split("\n")
    headings = list(_find_underlined(lines))
    start = next((line.strip() for line in lines if line.strip()), "")
    is_titled = bool(headings) and headings[0].name == start
    if (is_titled or _HEADING.match(start[:_MAX_LINE])) and _ASCIIDOC.search(content.text, 0, _START_CHARACTERS):
        return replace(_build_content(content.text), metadata=content.metadata)
    if len(headings) < 2:  # a single one may be a rule
        return content
    title = content.title or (choose_document_title(headings) if is_titled else "")
    return replace(content, title=title, sections=build_sections(headings, content.text))


def _build_content(text: str) -> Content:
    text = "\n".join(_Converter(text.split("\n")).convert())
    headings = list(find_headings(text))
    return Content(find_title(headings), text, build_sections(headings, text))


class _Converter:
    """Converts the lines of an AsciiDoc text to lines with headings and fences of Markdown, and without other markup.

    Args:
        lines: The lines of the text.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._block = ""  # delimiter of the code block or the comment at the current line
        self._has_title = self._is_header = False
        self._attributes = dict(_SIGNS)
        for line in takewhile(str.strip, lines):  # the title may have an attribute that the lines below it define
            self._set_attribute(line)

    def convert(self) -> Iterator[str]:
        """Yield the converted lines."""
        for place, line in enumerate(self._lines):
            if self._block:
                yield from self._continue_block(line)
            elif heading := self._find_heading(place):
                self._is_header, self._has_title = not self._has_title, True
                yield f"{'#' * heading[0]} {_display(heading[1], self._attributes)}"
            elif not self._is_underline(place):
                yield from self._convert_outside_blocks(place, line)

    def _continue_block(self, line: str) -> Iterator[str]:
        is_comment = self._block.startswith("/")
        if line.rstrip() == self._block:
            self._block, line = "", "```"
        if not is_comment:
            yield line

    def _find_heading(self, place: int) -> tuple[int, str] | None:
        """Return the rank and the name of the heading that starts at a line."""
        line = self._lines[place]
        if heading := _HEADING.match(line[:_MAX_LINE]):
            return len(heading[1]), heading[2]
        following, previous = (
            "".join(self._lines[place + 1 : place + 2]),
            "".join(self._lines[max(0, place - 1) : place]),
        )
        if following[:1] in _UNDERLINES and _is_heading(line, following, previous):
            return _UNDERLINES.index(following[0]) + 1, line.strip()
        return None

    def _is_underline(self, place: int) -> bool:
        has_sign = place > 0 and _UNDERLINE.match(self._lines[place])
        return bool(has_sign) and self._find_heading(place - 1) is not None

    def _convert_outside_blocks(self, place: int, line: str) -> Iterator[str]:
        if _CODE.match(line) or _COMMENT_BLOCK.match(line):
            self._block = line.rstrip()
            if not line.startswith("/"):
                yield "```"
        elif len(line) > _MAX_LINE:
            yield line
        elif not self._set_attribute(line) and not self._is_hidden(place, line):
            self._is_header = self._is_header and bool(line.strip())
            yield _convert_line(line, self._attributes)

    def _is_hidden(self, place: int, line: str) -> bool:
        """Return whether a line is a comment, a condition, an author, or the delimiter of a note."""
        is_author = self._is_header and _AUTHOR.match(line)
        begins_note = place > 0 and _NOTE.match(self._lines[place - 1]) and _DELIMITER.match(line)
        return bool(is_author or begins_note or _HIDDEN.match(line))

    def _set_attribute(self, line: str) -> bool:
        """Record the attribute that a line defines, such as ``:release: 7``; return whether it defines one."""
        if attribute := _ATTRIBUTE.match(line[:_MAX_LINE]):
            value = _replace_attributes(attribute[2] or "", self._attributes)
            if len(value) <= _MAX_VALUE:
                self._attributes[attribute[1]] = value
        return attribute is not None


def _convert_line(line: str, attributes: Mapping[str, str]) -> str:
    """Return a line of text, a label or the attributes of a block as a line without markup."""
    if note := _NOTE.match(line):
        return f"{note[1].capitalize()}:"
    if _DELIMITER.match(line) or _BLOCK_ATTRIBUTES.match(line):
        return ""
    if term := _TERM.match(line):
        line = f"{term[1]}: {term[2]}" if term[2] else term[1]
    return _display(_HARD_BREAK.sub("", _BLOCK_TITLE.sub("", line)), attributes)


def _display(text: str, attributes: Mapping[str, str]) -> str:
    """Return the text that a line of AsciiDoc displays: labels of links, and values of attributes."""
    text = _replace_attributes(text, attributes)
    if "[" in text:  # every macro has its label in brackets
        text = _MACRO.sub(r"\1", _MANUAL.sub(r"\1(\2)", text))
        text = _LINK.sub(lambda link: link[2].split(",")[0].strip('"^') or link[1], text)
    return _ANCHOR.sub("", _CROSS_REFERENCE.sub(lambda link: (link[2] or link[1].lstrip("#")).strip(), text))


def _replace_attributes(text: str, attributes: Mapping[str, str]) -> str:
    """Return a text with the values of its attributes; the text itself if it would be too long."""
    expansion = _REFERENCE.sub(lambda name: attributes.get(name[1], name[0]), text)
    return expansion if len(expansion) <= _MAX_LINE else text


def _is_heading(name: str, underline: str, previous: str) -> bool:
    """Return whether a line is the heading ``name``, underlined by one repeated sign of the same length."""
    sign = _UNDERLINE.match(underline)
    return bool(
        sign
        and len(name) <= _MAX_NAME
        and abs(len(underline.rstrip()) - len(name.rstrip())) <= 1
        and (name[:1].isalnum() or name[:1] in "`'\"(:.$_")
        and any(map(str.isalpha, name))
        and (
            not previous.strip()
            or (len(previous) <= _MAX_LINE and (_HIDDEN.match(previous) or _BLOCK_ATTRIBUTES.match(previous)))
        )
    )


def _find_underlined(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the underlined headings of a plain text; each new sign is one rank lower."""
    ranks: dict[str, int] = {}
    start = 0
    for place, (name, underline) in enumerate(pairwise(lines)):
        end = start + len(name)
        if _is_heading(name, underline, lines[place - 1] if place else ""):
            rank = ranks.setdefault(underline[0], len(ranks) + 1)
            yield Heading(min(rank, 6), name.strip(), start, end + 1 + len(underline))
        start = end + 1
