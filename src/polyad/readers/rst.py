"""Reads reStructuredText: the source text without marks for programs, divided into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from polyad.readers.headings import LONGEST, Heading, build_sections
from polyad.readers.metadata import build_metadata
from polyad.readers.plain_text import Content, decode, single_line
from polyad.readers.titles import choose_title

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}[ \t]*$")
_SHORTEST = 4
"""Signs of an adornment that is shorter than its heading; three are an ellipsis."""

_LONGEST_LINE = 2000
"""Characters of a line that is looked through for marks."""

_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):[ \t]+(\S.*)$")
_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w:+.-]*?)::(?:[ \t]+(.*))?$")
_COMMENT = re.compile(r"([ \t]*)\.\.(?:[ \t]+|$)(?!\[)")  # with explicit targets; footnotes and citations are text
_NOTE_NAMES = """
admonition attention caution danger deprecated error hint important note seealso tip versionadded versionchanged warning
"""
_NOTES = frozenset(_NOTE_NAMES.split())
_UNSEEN_NAMES = """
autoclass automodule contents currentmodule default-role highlight image include index meta module moduleauthor
only-if raw role sectionauthor sectnum setting tabularcolumns testsetup toctree
"""
_UNSEEN = frozenset(_UNSEEN_NAMES.split())
_MARKED = frozenset({"code", "code-block", "figure", "math", "parsed-literal", "sourcecode"})
"""Directives whose argument says how to show what follows."""

_ROLE = re.compile(r":([A-Za-z][\w+.:-]{0,40}):`([^`\n]+)`")
_LINK = re.compile(r"`([^`<\n]+?)[ \t]*<[^>`\n]*>`__?")
_REFERENCE = re.compile(r"`([^`\n]+)`__?(?!\w)")
_TARGET = re.compile(r"[ \t]*<[^>\n]*>$")


def read_rst(data: bytes) -> Content:
    """Return the content of a reStructuredText file; the title is its first heading.

    Comments, targets and directives that show no text of the file are left out, and roles are reduced to what they
    show. Fields before the text become metadata.

    Raises:
        ReadError: It is not text.
    """
    lines = list(_as_read(decode(data).split("\n")))
    fields, lines = _fields(lines)
    text = "\n".join(lines)
    headings = list(_headings(lines))
    named = [heading.name for heading in headings[:1]]
    named += [heading.name for heading in headings[1:] if heading.rank == headings[0].rank]
    return Content(choose_title(named), text, build_sections(headings, text), metadata=build_metadata(fields))


def _fields(lines: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split the lines into fields at the beginning (or directly below the first heading) and the other lines."""
    found: list[tuple[str, str]] = []
    kept: list[str] = []
    for place, line in enumerate(lines):
        if field := _FIELD.match(line):
            found.append((field[1], single_line(_without_roles(field[2]))))
        elif line.strip() and (found or not _may_come_before_fields(lines, place)):
            return found, [*kept, *lines[place:]]
        else:
            kept.append(line)
    return found, kept


def _may_come_before_fields(lines: Sequence[str], place: int) -> bool:
    """Whether a line is of a heading."""
    near = lines[max(0, place - 1) : place + 2]
    return len(lines[place]) <= LONGEST and any(_ADORNMENT.match(line) for line in near)


def _as_read(lines: Sequence[str]) -> Iterator[str]:
    """Return the lines without comments and marks."""
    hidden: int | None = None  # how far in the mark stands whose block is left out
    for line in lines:
        indent = len(line) - len(line.lstrip(" \t"))
        if hidden is not None and (not line.strip() or indent > hidden):
            continue
        hidden = None
        if len(line) > _LONGEST_LINE:
            yield line
        elif directive := _DIRECTIVE.match(line):
            name = directive[2].rpartition(":")[2].lower()
            if name in _UNSEEN:
                hidden = indent
            else:
                yield _shown(directive[1], name, directive[3] or "")
        elif _COMMENT.match(line):
            hidden = indent
            yield ""
        else:
            yield _without_roles(line)


def _shown(indent: str, name: str, argument: str) -> str:
    """What a directive shows in place of its mark: the kind of a note, or what is defined; nothing for code."""
    argument = _without_roles(argument).strip()
    if name in _NOTES:
        return f"{indent}{name.capitalize()}: {argument}".rstrip()
    return "" if name in _MARKED else f"{indent}{argument}"


def _without_roles(line: str) -> str:
    line = _ROLE.sub(_role, line)
    return _REFERENCE.sub(r"\1", _LINK.sub(r"\1", line))


def _role(found: re.Match[str]) -> str:
    """What a role shows: its text without a target, and the series of a standard before its number."""
    shown = _TARGET.sub("", found[2]).lstrip("~!") or found[2]
    return f"{found[1].upper()} {shown}" if found[1].lower() in ("pep", "rfc") and shown.isdigit() else shown


def _headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Return underlined and overlined headings; ranks follow the order in which adornments first occur."""
    ranks: dict[tuple[str, bool], int] = {}
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    last = -1
    for place in range(1, len(lines)):
        name, under = lines[place - 1].strip(), lines[place]
        if place - 1 <= last or not _underlines(under, name):
            continue
        is_indented = lines[place - 1][:1] in (" ", "\t")
        over = place > 1 and place - 2 > last and lines[place - 2].rstrip() == under.rstrip()
        if is_indented and not over:
            continue
        rank = ranks.setdefault((under[0], over), len(ranks) + 1)
        yield Heading(
            min(rank, 6),
            single_line(name.replace("``", "")),
            starts[place - (2 if over else 1)],
            starts[place] + len(under),
        )
        last = place


def _underlines(line: str, name: str) -> bool:
    """Return whether a line underlines a heading: one repeated character, about as long as the heading."""
    if not name or len(name) > LONGEST or _ADORNMENT.match(name) or not _ADORNMENT.match(line):
        return False
    signs = len(line.rstrip())
    return signs >= len(name) or (signs >= _SHORTEST and signs + 3 >= len(name))
