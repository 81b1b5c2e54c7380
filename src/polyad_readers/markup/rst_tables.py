"""Replaces the tables of a reStructuredText file by a line for each row, with the names of its columns.

A grid table is drawn with ``+``, ``-`` and ``|``, a simple table has borders of ``=``, the directive ``list-table``
contains a list of lists, and ``csv-table`` comma-separated values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from polyad_readers.shared.tables import Cell, format_table

_GRID_BORDER = re.compile(r"([ \t]*)\+(?:-+\+)+[ \t]*$")
_GRID_EDGE = re.compile(r"\+(?=[-=]+\+)|(?<=[-=])\+")
_SIMPLE_BORDER = re.compile(r"([ \t]*)=+(?:[ \t]+=+)+[ \t]*$")
_UNDERLINES = re.compile(r"[ \t]*--+(?:[ \t]+--+)*[ \t]*$")
_TABLE_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+(list|csv)-table::(.*)")
_OPTION = re.compile(r"[ \t]*:([\w-]+):[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*(\*[ \t]+)?-(?:[ \t]+|$)")
_LITERAL = re.compile(r"[ \t]*\.\.[ \t]+(?:code|code-block|sourcecode|parsed-literal|math|raw)::|(?![ \t]*\.\. ).*::$")


def format_tables(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a reStructuredText file with each table row as one line; tables in code stay as they are."""
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place + 1
        if _LITERAL.match(line):
            end = _find_block_end(lines, place)
            yield from lines[place:end]
        elif directive := _TABLE_DIRECTIVE.match(line):
            end = _find_block_end(lines, place)
            yield from (directive[1] + directive[3].strip(), "")
            read_table = _read_list_table if directive[2] == "list" else _read_csv_table
            yield from _format(read_table(lines[place + 1 : end]), directive[1])
        elif border := _GRID_BORDER.match(line):
            end = next((row for row in range(end, len(lines)) if lines[row].strip()[:1] not in ("+", "|")), len(lines))
            yield from _format(_read_grid_table(lines[place:end]), border[1])
        elif (border := _SIMPLE_BORDER.match(line)) and (last := _find_simple_end(lines, place)):
            end = last + 1
            table = lines[place:end]  # one with cells over several columns, above dashes, stays as it is
            is_plain = not any(map(_UNDERLINES.match, table))
            yield from _format(_read_simple_table(table), border[1]) if is_plain else table
        else:
            yield line
        place = end


def _format(rows: list[list[Cell]], indent: str) -> Iterator[str]:
    yield from (indent + line for line in format_table(rows).split("\n"))
    yield ""


def _find_block_end(lines: Sequence[str], first: int) -> int:
    """Return the index after the indented block below the line ``first``."""
    indent = len(lines[first]) - len(lines[first].lstrip())
    end = first + 1
    for place in range(first + 1, len(lines)):
        if lines[place].strip():
            if len(lines[place]) - len(lines[place].lstrip()) <= indent:
                break
            end = place + 1
    return end


def _find_simple_end(lines: Sequence[str], first: int) -> int:
    """Return the index of the last border of a simple table: the second one, or the first before a blank line."""
    borders = 0
    for place in range(first + 1, len(lines)):
        if _SIMPLE_BORDER.match(lines[place]):
            borders += 1
            if borders == 2 or not "".join(lines[place + 1 : place + 2]).strip():
                return place
    return 0


def _read_simple_table(lines: Sequence[str]) -> list[list[Cell]]:
    """Return the rows of a simple table; a line without text in the first column continues the row above it."""
    starts = [match.start() for match in re.finditer("=+", lines[0])]
    rows: list[list[list[str]]] = []
    border_rows: list[int] = []
    for line in lines[1:]:
        texts = [line[start:end].strip() for start, end in pairwise([*starts, None])]
        if _SIMPLE_BORDER.match(line):
            border_rows.append(len(rows))
        elif texts[0] or (line.strip() and not rows):
            rows.append([[text] for text in texts])
        else:
            for cell, text in zip(rows[-1] if rows else [], texts, strict=False):
                cell.append(text)
    return _build_cells(rows, border_rows[0] if len(border_rows) > 1 else 0)


def _build_cells(rows: Sequence[Sequence[Sequence[str]]], header_rows: int) -> list[list[Cell]]:
    """Return the cells of rows of lines; a single backslash is a blank cell."""
    return [
        [Cell("" if texts == ["\\"] else _join(texts), place < header_rows) for texts in row]
        for place, row in enumerate(rows)
    ]


def _join(texts: Sequence[str]) -> str:
    return " ".join(filter(None, texts))


def _read_grid_table(lines: Sequence[str]) -> list[list[Cell]]:
    """Return the rows of a grid table: a cell ends at a border below it, and covers columns without ``|`` between."""
    edges = sorted({match.start() for line in lines for match in _GRID_EDGE.finditer(line)})
    segments = list(pairwise(edges))
    cells: dict[tuple[int, int], list[str]] = {}  # by row and first segment
    ends: dict[tuple[int, int], tuple[int, int]] = {}  # the row and the segment after each cell
    open_cells: dict[int, tuple[int, int]] = {}  # by segment: the cell that covers it in the current line
    row = header_rows = 0
    for line in lines[1:]:
        closed = [not line[start + 1 : end].strip("-=+") for start, end in segments]
        open_cells = {segment: cell for segment, cell in open_cells.items() if not closed[segment]}
        row += any(closed)
        if all(closed) and "=" in line:
            header_rows = row
        for segment, (start, end) in enumerate(segments):
            if closed[segment]:
                continue
            if segment not in open_cells:
                continues = segment and not closed[segment - 1] and line[start : start + 1] not in ("|", "+")
                cell = open_cells[segment - 1] if continues else (row, segment)
                open_cells[segment] = cell
            cell = open_cells[segment]
            cells.setdefault(cell, []).append(f" {line[start + 1 : end]}" if cell[1] == segment else line[start:end])
            ends[cell] = row + 1, segment + 1
    rows: list[list[Cell]] = [[] for _ in range(row + 1)]
    for cell in sorted(cells):
        place, segment = cell
        text = _join("".join(cells[cell]).split())
        rows[place].append(Cell(text, place < header_rows, ends[cell][0] - place, ends[cell][1] - segment))
    return rows


def _read_list_table(lines: Sequence[str]) -> list[list[Cell]]:
    """Return the rows of the directive ``list-table``, whose items ``* -`` begin rows and items ``-`` begin cells."""
    header_rows = 0
    rows: list[list[list[str]]] = []
    for line in lines:
        if item := _ITEM.match(line):
            if item[1] or not rows:
                rows.append([])
            rows[-1].append([line[item.end() :].strip()])
        elif rows:
            rows[-1][-1].append(line.strip())
        elif (option := _OPTION.match(line)) and option[1] == "header-rows":
            header_rows = _parse_count(option[2])
    return _build_cells(rows, header_rows)


def _parse_count(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 4 else 0


def _read_csv_table(lines: Sequence[str]) -> list[list[Cell]]:
    """Return the rows of the directive ``csv-table`` after the row in its option ``header``."""
    options = {option[1]: option[2] for option in filter(None, takewhile(bool, map(_OPTION.match, lines)))}
    mark = options.get("delim", ",")
    texts = [options.get("header", ""), *map(str.strip, lines[len(options) :])]
    rows = csv.reader(filter(None, texts), delimiter=mark if len(mark) == 1 else ",", skipinitialspace=True)
    header_rows = 1 if "header" in options else _parse_count(options.get("header-rows", ""))
    return _build_cells([[cell.split() for cell in row] for row in rows], header_rows)
