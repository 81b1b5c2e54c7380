"""Labels the values of a table with the names of their columns, so that each row can be read without the others.

Readers pass the rows as cells with their spans. A passage, an excerpt and a prompt may begin at any row, so each row
repeats the column names: ``Service: Storage``, ``Plus: 40``. A row of a table without column names has an empty text
for each blank cell.
"""

# ruff: noqa: RUF001  signs of numbers that look alike

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from polyad.readers.text.headings import Heading
from polyad.readers.text.plain_text import to_single_line

_LOOKAHEAD = 24
"""Rows that are examined at once. Two columns of texts with fewer rows may be a form of names and values."""

_MAX_LABEL = 80
"""Characters of the column name that each value repeats, and of a merged cell that each row repeats."""

_MAX_COLUMNS = 16_384
_MAX_SLOTS = 1_000_000
"""Slots of rows with merged cells; later spans are ignored, since a few bytes can state a million slots."""

_PERIOD = re.compile(r"(?:19|20)\d\d(?:[-/–]\d{1,4}){0,2}|\d{1,2}[./]\d{1,2}[./](?:\d\d){1,2}")
"""A year, month or date, each of which may also be a column name."""

_VALUE = re.compile(r"[^\w\n]*\d[\d\s.,:/'’+−–TE-]*[^\d\n]{0,5}")
"""A number, date or time with at most a short unit."""

_DIGITS = re.compile(r"[\d\s.,:'’+−–-]+")
_DIGIT = re.compile(r"\d")
_MIN_COLUMNS = 2


class Cell(NamedTuple):
    """A cell of a table: its text, whether it is marked as a header, and how many rows and columns it covers.

    The offsets of ``headings`` are relative to the text.
    """

    text: str
    is_header: bool = False
    rows: int = 1
    columns: int = 1
    headings: Sequence[Heading] = ()


_BLANK = Cell("")


def format_table(rows: Iterable[Sequence[Cell]], *, is_layout: bool = False) -> str:
    r"""Return a table as text: a line for each row, with tabs between the cells.

    >>> format_table([map(Cell, ["Hall", "Mills", "Saws"]), map(Cell, ["North", "", "3"])])
    'Hall\tMills\tSaws\nHall: North\tSaws: 3'
    """
    return "\n".join(
        "\t".join(to_single_line(cell.text) for cell in row) for row in label_rows(rows, is_layout=is_layout)
    )


def label_rows(rows: Iterable[Iterable[Cell]], *, is_layout: bool = False) -> Iterator[list[Cell]]:
    """Yield the rows of a table with column names before the values, and with merged cells in all that they cover.

    Header rows are rows whose cells are marked as headers, or else rows of texts above values. They are yielded only if
    some column has no value. After a blank row, another table with its own header rows may begin.

    Args:
        rows: The cells of each row, as in HTML: no cell for a slot that a cell above or before covers.
        is_layout: Whether the table is part of a page or document, where the first row of texts may be data, so that an
            unmarked header row needs evidence: it stands above values, or above texts of twice its length.
    """
    labeller = _Labeller(is_layout)
    grid = _expand_spans(rows)
    window = deque(islice(grid, _LOOKAHEAD))
    while window:
        may_begin = labeller.may_begin or any(cell.is_header for cell in window[0])
        block = list(takewhile(bool, islice(window, None if may_begin else 1)))
        count = labeller.find_header_rows(block)
        yield from labeller.read(block, count)
        for _ in range(count or 1):
            window.popleft()
            window.extend(islice(grid, 1))


class _Labeller:
    """Puts the current column names before the values of rows."""

    def __init__(self, is_layout: bool) -> None:
        self._is_layout = is_layout
        self._names: list[str] = []
        self._value_columns: set[int] = set()  # columns in which a row had a number or date
        self.may_begin = True  # whether header rows without marks may follow: at the beginning, and after a blank row

    def find_header_rows(self, block: Sequence[list[Cell]]) -> int:
        """Return how many rows at the beginning of ``block``, the rows up to the next blank row, are header rows."""
        if count := _count_marked_rows(block, self.may_begin):
            return _add_group_rows(block, count)
        if not self.may_begin or not block or _count_cells(block[0]) < _MIN_COLUMNS:
            return 0
        count = _count_label_rows(block, self._is_layout)
        if self._names and not self._is_other_table(block, count or 1):
            return 0
        self._names = []
        return count

    def read(self, block: Sequence[list[Cell]], header_rows: int) -> Iterator[list[Cell]]:
        """Yield the first row of ``block`` with column names, or the new column names if some have no value."""
        if header_rows:
            names = _join_names(block[:header_rows])
            body = [row for row in block[header_rows:] if not self._is_shifted(row, names)]
            self._names, self._value_columns, self.may_begin = [_shorten(name) for name in names], set(), False
            values = [any(_get_text(row, column) for row in body) for column in range(len(names))]
            if max(map(len, names)) > _MAX_LABEL or not all(
                has_value for name, has_value in zip(names, values, strict=True) if name
            ):
                yield _strip([Cell(name, is_header=True) for name in names])
        elif block:
            row = block[0]
            self.may_begin = self.may_begin and _count_cells(row) < _MIN_COLUMNS
            columns = (column for column in range(len(row)) if column not in self._value_columns)
            self._value_columns.update(column for column in columns if _VALUE.fullmatch(row[column].text))
            if self.may_begin:
                yield [cell for cell in _strip(row) if cell.text]
            elif self._names and not self._is_shifted(row, self._names):
                yield _label(row, self._names)
            else:
                yield _strip(row)
        else:
            self.may_begin = True

    def _is_shifted(self, row: Sequence[Cell], names: Sequence[str]) -> bool:
        """Return whether a row of a page has too many cells for the columns."""
        return self._is_layout and len(row) > len(names) and _count_cells(row) > 1

    def _is_other_table(self, block: Sequence[Sequence[Cell]], header_rows: int) -> bool:
        """Return whether rows after a blank row do not belong to the columns before: texts are where values were."""
        columns = {column for column, cell in enumerate(block[0]) if cell.text and not _VALUE.fullmatch(cell.text)}
        body = block[header_rows:]
        return (
            not columns.isdisjoint(self._value_columns)
            or any(not name for name in (self._names[c] if c < len(self._names) else "" for c in columns))
            or (header_rows > 0 and _is_label_row(block[0], body) and any(any(_list_kinds(body, c)) for c in columns))
        )


def _expand_spans(rows: Iterable[Iterable[Cell]]) -> Iterator[list[Cell]]:
    """Yield the slots of each row, with a merged cell in each slot that it covers; a blank row is empty.

    The text of a long merged cell is in its first slot only.
    """
    covered: dict[int, tuple[Cell, int]] = {}  # by column: a cell and the number of following rows that it covers
    slots = 0
    for row in map(list, rows):
        is_blank = not any(cell.text for cell in row)
        if slots < _MAX_SLOTS and (covered or any(cell.rows > 1 or cell.columns > 1 for cell in row)):
            row, covered = _place_cells(row, covered)
            slots += len(row)
        yield [] if is_blank else row


def _place_cells(
    cells: Sequence[Cell], covered: Mapping[int, tuple[Cell, int]]
) -> tuple[list[Cell], dict[int, tuple[Cell, int]]]:
    """Return two results: the slots of a row, and the cells that cover slots of the next row, by column.

    Args:
        cells: The cells of the row.
        covered: The cells from above that cover slots of this row, with the number of rows that they still cover.
    """
    row = {column: cell for column, (cell, _) in covered.items()}
    below = {column: (cell, count - 1) for column, (cell, count) in covered.items() if count > 1}
    column = 0
    for cell in cells:
        while column in covered:
            column += 1
        label = _BLANK if len(cell.text) > _MAX_LABEL or "\n" in cell.text or cell.headings else cell
        columns = range(column, column + min(cell.columns, _MAX_COLUMNS))
        row.update(dict.fromkeys(columns, label) | {column: cell})
        if cell.rows > 1:
            below.update(dict.fromkeys(columns, (label, cell.rows - 1)))
        column = columns.stop
    return [row.get(column, _BLANK) for column in range(max(row, default=-1) + 1)], below


def _count_marked_rows(block: Sequence[list[Cell]], may_begin: bool) -> int:
    """Return how many rows at the beginning of ``block`` are header rows by their marks; 0 if all rows have marks.

    Within a table, a marked row with values is a total rather than a header row.
    """
    count = 0
    while count < len(block) and _is_marked(block[count], may_begin and not count):
        count += 1
    return count if count < len(block) or count == 1 else 0


def _is_marked(row: Sequence[Cell], has_values: bool) -> bool:
    cells = [cell for cell in row if cell.text]
    return (
        _count_cells(row) >= _MIN_COLUMNS
        and all(cell.is_header for cell in cells)
        and (has_values or all(_PERIOD.fullmatch(cell.text) or not _VALUE.fullmatch(cell.text) for cell in cells))
    )


def _count_label_rows(block: Sequence[list[Cell]], is_layout: bool) -> int:
    """Return how many rows at the beginning of a table are header rows by their texts; 0 in a form or if in doubt."""
    count = _add_group_rows(block, 1)
    body = block[count:]
    has_row_names = block[0][0].is_header and any(row[0].is_header for row in body)
    if not body or has_row_names or _is_form(block) or not all(_is_label_row(row, body) for row in block[:count]):
        return 0
    kinds = [of_column for column in range(max(map(len, block))) if (of_column := _list_kinds(body, column))]
    lengths = [sum(len(cell.text) for cell in row) for row in block]
    is_short = 2 * lengths[0] * len(body) <= sum(lengths[count:])  # names are shorter than texts below them
    if max(map(_count_cells, block)) > _MIN_COLUMNS:
        has_values = any(2 * sum(map(bool, of_column)) > len(of_column) for of_column in kinds)
        return count if has_values or is_short or not is_layout else 0
    has_one_kind = len(set(kinds[-1])) == 1 and kinds[-1][0] != ""
    return count if has_one_kind or (is_short and len(block) >= _LOOKAHEAD) else 0


def _is_form(block: Sequence[Sequence[Cell]]) -> bool:
    """Return whether every second column, from the first, holds names, and the columns between hold their values."""
    width = max(map(len, block))
    names, values = ([_get_text(row, column) for row in block for column in range(first, width, 2)] for first in (0, 1))
    if width < 2 * _MIN_COLUMNS or width % 2 or any(map(_VALUE.fullmatch, names)):
        return False
    if all(name.endswith(":") for name in filter(None, names)):
        return not any(value.endswith(":") for value in values)
    is_distinct = all(names) and len(set(names)) == len(names) and not any(_DIGIT.search(name) for name in names)
    first_values, others = values[: width // 2], values[width // 2 :]
    has_number = any(_DIGIT.search(value) for value in first_values)
    return is_distinct and has_number and not all(map(_VALUE.fullmatch, filter(None, others)))


def _add_group_rows(block: Sequence[list[Cell]], header_rows: int) -> int:
    """Return the number of header rows including those below names of groups of columns."""
    count = header_rows
    while count + 1 < len(block) and _is_group_row(block[count - 1], block[count], block[count + 1 :]):
        count += 1
    return count


def _is_group_row(row: Sequence[Cell], following: Sequence[Cell], body: Sequence[Sequence[Cell]]) -> bool:
    """Return whether a header row names groups of columns: its cells are merged, or blank above the names below."""
    is_merged = any(cell.text and cell is after for cell, after in pairwise(row))
    is_open = not following[0].text or following[0] is row[0]
    has_gaps = any(cell.text and not _get_text(row, column) for column, cell in enumerate(following) if column > 1)
    has_values = any(any(_list_kinds(body, column)) for column in range(1, len(following)))
    return _is_label_row(following, body) and (
        (is_merged and (is_open or has_values)) or (has_gaps and is_open and has_values)
    )


def _is_label_row(row: Sequence[Cell], body: Sequence[Sequence[Cell]]) -> bool:
    """Return whether a row has several short texts, or years and dates above rows with other values."""
    texts = [(column, cell.text) for column, cell in enumerate(row) if cell.text]
    periods = [column for column, text in texts if _PERIOD.fullmatch(text)]
    below = [text for column in periods for line in body if (text := _get_text(line, column))]
    return (
        _count_cells(row) >= _MIN_COLUMNS
        and not any(cell.headings or len(cell.text) > _MAX_LABEL or "\n" in cell.text for cell in row)
        and not any(_VALUE.fullmatch(text) for column, text in texts if column not in periods)
        and (not periods or not all(map(_PERIOD.fullmatch, below)))
    )


def _list_kinds(body: Sequence[Sequence[Cell]], column: int) -> list[str]:
    """Return the kind of each text in a column: the unit of a number, ``date``, or an empty string for words."""
    texts = [text for row in body if any(map(str.isalnum, text := _get_text(row, column)))]
    return [
        "date" if _PERIOD.fullmatch(text) else f"number {_DIGITS.sub('', text)}" if _VALUE.fullmatch(text) else ""
        for text in texts
    ]


def _join_names(rows: Sequence[list[Cell]]) -> list[str]:
    """Return the name of each column: the different texts of its header cells, from top to bottom."""
    width = max(map(len, rows))
    for above, below in pairwise(rows):
        for column in range(2, len(below)):  # a name of several columns that are not merged
            if column < len(above) and below[column].text and not above[column].text:
                above[column] = above[column - 1]
    return [
        " ".join(dict.fromkeys(name for row in rows if (name := to_single_line(_get_text(row, column)))))
        for column in range(width)
    ]


def _label(row: Sequence[Cell], names: Sequence[str]) -> list[Cell]:
    """Return the cells of a row that have text, each with its column name; a cell over the whole row has no name."""
    cells: list[Cell] = []
    if len(row) > 1 and all(cell is row[0] for cell in row):
        return [row[0]]
    previous: tuple[str, Cell] | None = None
    for column, cell in enumerate(row):
        name = names[column] if column < len(names) else ""
        if cell.text and (previous is None or previous[0] != name or previous[1] is not cell):
            cells.append(_prefix_name(name, cell))
        previous = name, cell
    return cells


def _prefix_name(name: str, cell: Cell) -> Cell:
    if not name or name == cell.text:
        return cell
    size = len(name) + 2
    headings = [heading._replace(start=heading.start + size, end=heading.end + size) for heading in cell.headings]
    return Cell(f"{name}: {cell.text}", headings=headings)


def _shorten(name: str) -> str:
    return name.rstrip(" :") if len(name) <= _MAX_LABEL else name[: _MAX_LABEL - 1].rstrip() + "…"


def _strip(row: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a row without names: a merged cell once, and no blank cells at the end."""
    cells = [_BLANK if column and cell is row[column - 1] else cell for column, cell in enumerate(row)]
    while cells and not cells[-1].text:
        cells.pop()
    return cells


def _count_cells(row: Sequence[Cell]) -> int:
    """Return the number of cells with text; a merged cell counts once."""
    return len({id(cell) for cell in row if cell.text})


def _get_text(row: Sequence[Cell], column: int) -> str:
    return row[column].text if column < len(row) else ""
