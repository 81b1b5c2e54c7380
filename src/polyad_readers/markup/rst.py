"""Reads reStructuredText: the source text without markup for programs, divided into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.headings import MAX_HEADING, Heading, build_sections
from polyad.readers.text.metadata import build_metadata
from polyad.readers.text.plain_text import decode, to_single_line
from polyad.readers.text.titles import choose_title
from polyad_readers.markup.rst_tables import format_tables

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}[ \t]*$")
_MIN_ADORNMENT = 4
"""Least characters of an adornment that is shorter than its heading; three could be an ellipsis."""

_MAX_LINE = 2000
"""Characters of the longest line that is searched for markup."""

_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):[ \t]+(\S.*)$")
_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w:+.-]*?)::(?:[ \t]+(.*))?$")
_COMMENT = re.compile(r"([ \t]*)\.\.(?:[ \t]+|$)(?!\[)")  # also link targets; footnotes and citations are text
_NOTE_NAMES = """
admonition attention caution danger deprecated error hint important note seealso tip versionadded versionchanged warning
"""
_NOTES = frozenset(_NOTE_NAMES.split())
_HIDDEN_NAMES = """
autoclass automodule contents currentmodule default-role highlight image include index meta module moduleauthor
only-if raw role sectionauthor sectnum setting tabularcolumns testsetup toctree
"""
_HIDDEN = frozenset(_HIDDEN_NAMES.split())
_DISPLAY_NAMES = """
class code code-block container figure ifconfig math only parsed-literal rst-class sourcecode
"""
_DISPLAY_DIRECTIVES = frozenset(_DISPLAY_NAMES.split())
"""Directives whose argument is an option for displaying their content."""

_OPTION = re.compile(r"[ \t]+:([\w-]+):(?:[ \t]+(.*)|$)")
_SHOWN_OPTIONS = ("alt", "caption")

_SUBSTITUTION = re.compile(r"\.\.[ \t]+\|([^|\n]+)\|[ \t]+(replace|unicode)::[ \t]*(.*)$")
_NAME = re.compile(r"\|([^|\s][^|\n]*)\|(?:__?\b)?")
_CODE_POINT = re.compile(r"(?:0x|x|\\x|U\+|u|\\u)([0-9a-fA-F]{2,5})\b")
_MAX_DEFINITION = 20
"""Lines of the longest text that replaces a name."""

_ROLE = re.compile(r":([A-Za-z][\w+.:-]{0,40}):`([^`\n]+)`")
_LINK = re.compile(r"`([^`<\n]+?)[ \t]*<[^>`\n]*>`__?")
_REFERENCE = re.compile(r"`([^`\n]+)`__?(?!\w)")
_TARGET = re.compile(r"[ \t]*<[^>\n]*>$")


def read_rst(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a reStructuredText file; the title is its first heading.

    Comments, targets and directives that display no text of the file are removed. Roles are replaced by the text that
    they display. Fields before the text become metadata. Each row of a table has the names of its columns.

    Raises:
        ReadError: The file is not text.
    """
    lines = list(_clean_lines(_replace_names(list(format_tables(decode(source.read()).split("\n"))))))
    fields, lines = _split_fields(lines)
    text = "\n".join(lines)
    headings = list(_find_headings(lines))
    names = [heading.name for heading in headings[:1]]
    names += [heading.name for heading in headings[1:] if heading.rank == headings[0].rank]
    return Content(choose_title(names), text, build_sections(headings, text), metadata=build_metadata(fields))


def _split_fields(lines: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return two results: the (name, value) pairs at the beginning of a reStructuredText file, and all other lines."""
    fields: list[tuple[str, str]] = []
    other_lines: list[str] = []
    for place, line in enumerate(lines):
        if field := _FIELD.match(line):
            fields.append((field[1], to_single_line(_remove_roles(field[2]))))
        elif line.strip() and (fields or not _belongs_to_title(lines, place)):
            return fields, [*other_lines, *lines[place:]]
        else:
            other_lines.append(line)
    return fields, other_lines


def _belongs_to_title(lines: Sequence[str], line_index: int) -> bool:
    """Return whether a line belongs to the document title, the only text allowed before (name, value) fields."""
    near = lines[max(0, line_index - 1) : line_index + 2]
    return len(lines[line_index]) <= MAX_HEADING and any(_ADORNMENT.match(line) for line in near)


def _replace_names(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with the texts that the file defines for ``|names|``, and without these definitions."""
    texts: dict[str, str] = {}
    for place, line in enumerate(lines):
        if len(line) <= _MAX_LINE and (definition := _SUBSTITUTION.match(line)):
            more = takewhile(lambda line: line[:1].isspace() and line.strip(), lines[place + 1 :][:_MAX_DEFINITION])
            text = " ".join([definition[3], *map(str.strip, more)])
            if definition[2] == "unicode":
                text = _CODE_POINT.sub(lambda code: chr(int(code[1], 16)), text.partition(" .. ")[0])
            texts[definition[1].casefold()] = text
    for line in lines:
        is_text = texts and len(line) <= _MAX_LINE and not _SUBSTITUTION.match(line)
        yield _NAME.sub(lambda name: texts.get(name[1].casefold(), name[0]), line) if is_text else line


def _clean_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a reStructuredText file without comments and markup."""
    hidden_indent: int | None = None  # indent of the directive or comment whose block is skipped
    has_options = False
    for line in lines:
        indent = len(line) - len(line.lstrip(" \t"))
        option = _OPTION.match(line) if has_options and len(line) <= _MAX_LINE else None
        has_options = option is not None
        if option:
            if option[1] in _SHOWN_OPTIONS and option[2]:
                yield " " * indent + _remove_roles(option[2])
            continue
        if hidden_indent is not None and (not line.strip() or indent > hidden_indent):
            continue
        hidden_indent = None
        if len(line) > _MAX_LINE:
            yield line
        elif directive := _DIRECTIVE.match(line):
            name = directive[2].rpartition(":")[2].lower()
            has_options = True
            if name in _HIDDEN or _SUBSTITUTION.match(line):
                hidden_indent = indent
            else:
                yield _format_directive(directive[1], name, directive[3] or "")
        elif _COMMENT.match(line):
            hidden_indent = indent
            yield ""
        else:
            yield _remove_roles(line)


def _format_directive(indent: str, name: str, argument: str) -> str:
    """Return the text that replaces a reStructuredText directive; an empty string for code."""
    argument = _remove_roles(argument).strip()
    if name in _NOTES:
        return f"{indent}{name.capitalize()}: {argument}".rstrip()
    return "" if name in _DISPLAY_DIRECTIVES else f"{indent}{argument}"


def _remove_roles(line: str) -> str:
    line = _ROLE.sub(_format_role, line)
    return _REFERENCE.sub(r"\1", _LINK.sub(r"\1", line))


def _format_role(match: re.Match[str]) -> str:
    """Return the text that a reStructuredText role displays: its label, or "PEP 8" for ``:pep:`8```.

    For example, ``:pep:`8``` becomes "PEP 8".
    """
    label = _TARGET.sub("", match[2]).lstrip("~!") or match[2]
    return f"{match[1].upper()} {label}" if match[1].lower() in ("pep", "rfc") and label.isdigit() else label


def _find_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the headings of a reStructuredText file; each new underline style is one rank lower."""
    ranks: dict[tuple[str, bool], int] = {}
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    last_used = -1
    for place in range(1, len(lines)):
        name, underline = lines[place - 1].strip(), lines[place]
        if place - 1 <= last_used or not _is_underline(underline, name):
            continue
        is_indented = lines[place - 1][:1] in (" ", "\t")
        has_overline = place > 1 and place - 2 > last_used and lines[place - 2].rstrip() == underline.rstrip()
        if is_indented and not has_overline:
            continue
        rank = ranks.setdefault((underline[0], has_overline), len(ranks) + 1)
        yield Heading(
            min(rank, 6),
            to_single_line(name.replace("``", "")),
            starts[place - (2 if has_overline else 1)],
            starts[place] + len(underline),
        )
        last_used = place


def _is_underline(line: str, name: str) -> bool:
    """Return whether a line is the underline of the heading ``name``: one repeated character of similar length."""
    if not name or len(name) > MAX_HEADING or _ADORNMENT.match(name) or not _ADORNMENT.match(line):
        return False
    signs = len(line.rstrip())
    return signs >= len(name) or (signs >= _MIN_ADORNMENT and signs + 3 >= len(name))
