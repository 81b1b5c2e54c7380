"""Finds the tables of a PDF by pieces of text that stand below each other, and writes each row as one line."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median_high
from typing import NamedTuple

from polyad.readers.text.plain_text import to_single_line
from polyad_readers.lines.gaps import is_beside
from polyad_readers.lines.lines import Line, Piece
from polyad_readers.lines.rules import Rule, find_grids
from polyad_readers.shared.tables import Cell, format_table

_LEVEL = 0.5
"""Largest difference of baselines in one row, as a multiple of the type size."""

_SIZE_CHANGE = 0.15
"""Relative difference of type size between the rows of a table."""

_MAX_DISTANCE, _MAX_CHANGE = 3.5, 1.7
"""Largest distance of two rows, in type sizes and as a multiple of the usual distance."""

_MAX_LEADING, _LEADING_CHANGE = 1.35, 1.2
"""Largest distance of two lines of a cell, in type sizes, and least ratio of the distance of rows."""

_MIN_ROWS, _MIN_COLUMNS = 3, 2
"""Least rows with several cells, and least columns."""

_MAX_BANDS, _MAX_RETRIES = 300, 12
"""Most bands of a table; and most bands of a region without a table in which each band may still begin a table."""

_MAX_JOINED, _MAX_PIECES = 6, 100
"""Most lines of a cell that is drawn before the cell to its right, and most pieces that stand beside each other."""

_MIN_FILLED = 0.4
"""Least share of the cells that have text; the scattered words of a drawing or a bad scan fill less."""

_FILLED, _LONG, _PROSE_SHARE = 0.75, 20, 0.6
"""Share of the column's width that a line of prose fills, its characters, and the share of such lines in prose."""

_MAX_NAME = 50
"""Characters of the longest name of a column."""

_LABEL = re.compile(r"[^\w\s]|\(?(?:\d{1,3}|\w|[ivxlc]{1,5})[.)]|(?:\d+\.)+\d*:?|\[[^\]]+\]")
"""The bullet or number of a list item, a clause or a reference."""

_LEADERS = re.compile(r"(?:[.…·_] ?){4}")
_INDEX_ENTRY = re.compile(r".*[^\W\d].*, ?\d{1,4}(?:[-\u2013]\d+)?,?")
_VALUE = re.compile(r"[^\w\s]?\d[\d\s.,:/%+\u2212\u2013-]*\D{0,4}|[-\u2013\u2014\u2212]|n/?a")
_PAGE_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,7}")
_PAGE_TITLE = re.compile(r"\b(?:page|seite|página|pagina|стр|sida|side|strona|str)s?\b|[頁页]", re.IGNORECASE)
_OPEN_END = re.compile(
    r"(?:[-,(/&]|\b(?:and|or|of|the|a|an|in|on|at|to|for|with|by|from|und|oder|der|die|das|de|la|et|y))$"
)


class _Band(NamedTuple):
    """Consecutive lines of a page that stand beside each other, with their pieces from left to right.

    Attributes:
        lines: The range of the lines' indices.
        pieces: The pieces; none if the lines cannot belong to a table.
        top: Baseline of the highest line.
        bottom: Baseline of the lowest line.
        size: Type size.
        is_bold: Whether all lines are bold.
    """

    lines: range
    pieces: tuple[Piece, ...]
    top: float
    bottom: float
    size: float
    is_bold: bool


def format_tables(page: Sequence[Line], rules: Sequence[Rule] = ()) -> list[Line]:
    """Return the lines of a PDF page, with a line of labelled values for each row of a table.

    A table has two or more columns and three or more rows with several cells. Columns of prose, contents, indexes,
    lists and code have none of these.
    """
    lines: list[Line] = []
    end = 0
    for grid in find_grids(page, rules):
        groups = [[_join_bands([_build_band(page, place) for place in _sort_down(page, row)])] for row in grid]
        region = [band for group in groups for band in group]
        columns = _find_columns(region)
        if _is_grid(region, columns) and not any(_has_rows(page[row.start : row.stop]) for row in grid):
            lines += _format_open(page[end : grid[0].start])
            lines += _format_rows(groups, columns)
            end = grid[-1].stop
    return [*lines, *_format_open(page[end:])]


def _sort_down(page: Sequence[Line], row: range) -> list[int]:
    """Return the indices of some lines from top to bottom."""
    return sorted(row, key=lambda place: -page[place].baseline)


def _is_grid(region: Sequence[_Band], columns: Sequence[Piece]) -> bool:
    """Return whether rows between ruling lines are those of a table, and none of them is several rows."""
    counts = [len({_get_column(piece, columns) for piece in band.pieces}) for band in region]
    values = [
        column
        for band in region
        for column, count in Counter(
            _get_column(piece, columns) for piece in band.pieces if _VALUE.fullmatch(piece.text)
        ).items()
        if count > 1
    ]
    return (
        len(columns) >= _MIN_COLUMNS
        and sum(count > 1 for count in counts) > 1
        and not values
        and all(band.pieces for band in region)
    )


def _has_rows(lines: Sequence[Line]) -> bool:
    """Return whether lines between two rules are several rows: three times, several cells begin at one height."""
    starts = (band.pieces for band in _group_bands(lines))
    return sum(len(row) > 1 and not any(piece.text[0].islower() for piece in row) for row in starts) > _MIN_COLUMNS


def _format_open(page: Sequence[Line]) -> list[Line]:
    """Return the lines of a part of a page without ruling lines, with the rows of its tables."""
    lines: list[Line] = []
    end = 0
    for stretch in _find_stretches(page):
        lines += page[end : stretch.start]
        lines += _format_stretch(page[stretch.start : stretch.stop])
        end = stretch.stop
    return [*lines, *page[end:]]


def _find_stretches(page: Sequence[Line]) -> Iterator[range]:
    """Yield the ranges of lines with several lines that have wide gaps or stand beside the line before."""
    places = [
        place for place, line in enumerate(page) if len(line.pieces) > 1 or (place and is_beside(page[place - 1], line))
    ]
    groups: list[list[int]] = []
    for place in places:
        if groups and place - groups[-1][-1] <= 2 * _MAX_JOINED:
            groups[-1].append(place)
        else:
            groups.append([place])
    for group in groups:
        if len(group) >= _MIN_COLUMNS:
            yield range(max(0, group[0] - _MAX_JOINED), min(len(page), group[-1] + _MAX_JOINED + 1))


def _format_stretch(page: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines of a part of a page, with the rows of its tables."""
    bands = list(_group_bands(page))
    place = 0
    while place < len(bands):
        region = _find_region(bands, place)
        columns = _find_columns(region) if len(region) >= _MIN_ROWS else []
        if _is_table(region, columns):
            yield from _format_rows(list(_group_rows(region)), columns)
        else:
            region = region[:1] if len(region) <= _MAX_RETRIES else region
            yield from page[region[0].lines.start : region[-1].lines.stop]
        place += len(region)


def _group_bands(page: Sequence[Line]) -> Iterator[_Band]:
    """Yield the bands of a page: lines in drawing order, those together that a line to their right joins."""
    bands: list[_Band] = []
    for index, line in enumerate(page):
        band = _build_band(page, index)
        first = len(bands)
        if band.pieces and index and is_beside(page[index - 1], line):
            while first and len(bands) - first < _MAX_JOINED and _is_left(bands[first - 1], band):
                first -= 1
        bands[first:] = [_join_bands([*bands[first:], band]) if first < len(bands) else band]
    yield from bands


def _build_band(page: Sequence[Line], index: int) -> _Band:
    """Return the band of one line; turned lines and code have no pieces."""
    line = page[index]
    pieces = _join_label(line.pieces) or (Piece(line.text, line.left, line.right),)
    is_apart = line.turn != 0 or line.is_fixed
    places = range(index, index + 1)
    return _Band(places, () if is_apart else pieces, line.baseline, line.baseline, line.size, line.is_bold)


def _join_label(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Return the pieces of a line, with the bullet or number of a list item in the item."""
    if len(pieces) < _MIN_COLUMNS or not _LABEL.fullmatch(pieces[0].text):
        return pieces
    label, item, *others = pieces
    return Piece(f"{label.text} {item.text}", label.left, item.right), *others


def _is_left(band: _Band, after: _Band) -> bool:
    """Return whether a band stands left of a piece, and not above it."""
    return (
        0 < len(band.pieces) < _MAX_PIECES
        and band.top < after.top + _LEVEL * after.size
        and max(piece.right for piece in band.pieces) < after.pieces[0].left
    )


def _join_bands(bands: Sequence[_Band]) -> _Band:
    return bands[0]._replace(
        lines=range(bands[0].lines.start, bands[-1].lines.stop),
        pieces=tuple(piece for band in bands for piece in band.pieces),
        top=max(band.top for band in bands),
        bottom=min(band.bottom for band in bands),
        is_bold=all(band.is_bold for band in bands),
    )


def _find_region(bands: Sequence[_Band], start: int) -> list[_Band]:
    """Return the bands from ``start`` that may be a table: white space separates the same columns in all of them."""
    region = [bands[start]]
    spans = _merge_spans(region[0].pieces)
    distances: list[float] = []
    for place in range(start + 1, min(len(bands), start + _MAX_BANDS) if len(spans) >= _MIN_COLUMNS else 0):
        band, above = bands[place], region[-1]
        distance = above.bottom - band.top
        is_far = len(distances) > 1 and distance > _MAX_CHANGE * median_high(distances)
        if not _is_below(above, band) or (is_far and not _is_aligned(region, band.pieces)):
            break
        joined = _merge_spans([*spans, *band.pieces])
        if len(joined) >= _MIN_COLUMNS:
            spans = joined
        elif len(band.pieces) > 1 or not _is_title(spans, band, bands[place + 1 : place + 2]):
            break
        distances.append(distance)
        region.append(band)
    while (
        len(region) > 1 and len(region[-1].pieces) < _MIN_COLUMNS and not _continues(region[-2], region[-1], math.inf)
    ):
        region.pop()
    return region


def _is_below(above: _Band, band: _Band) -> bool:
    """Return whether a band stands below another, in letters of about the same size."""
    is_equal = bool(band.pieces) and abs(band.size - above.size) <= _SIZE_CHANGE * above.size
    return is_equal and 0 < above.bottom - band.top <= _MAX_DISTANCE * band.size


def _is_title(spans: Iterable[Piece], band: _Band, following: Sequence[_Band]) -> bool:
    """Return whether a line across the columns is the title of the next rows of a table."""
    return any(
        len(after.pieces) > 1 and _is_below(band, after) and len(_merge_spans([*spans, *after.pieces])) >= _MIN_COLUMNS
        for after in following
    )


def _is_aligned(region: Iterable[_Band], pieces: Sequence[Piece]) -> bool:
    """Return whether all pieces, two or more, begin or end where pieces of the region do."""
    lefts = {round(piece.left) for above in region for piece in above.pieces}
    rights = {round(piece.right) for above in region for piece in above.pieces}
    aligned = [piece for piece in pieces if round(piece.left) in lefts or round(piece.right) in rights]
    return len(aligned) == len(pieces) >= _MIN_COLUMNS


def _merge_spans(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces, from left to right, that cover what the given pieces cover together; their texts mean nothing."""
    spans: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.left):
        if spans and piece.left < spans[-1].right:
            if piece.right > spans[-1].right:
                spans[-1] = Piece("", spans[-1].left, piece.right)
        else:
            spans.append(piece)
    return spans


def _find_columns(region: Sequence[_Band]) -> list[Piece]:
    """Return the left and right end of each column, without regard to pieces above several columns."""
    spans = [_merge_spans(band.pieces) for band in region]
    most = max(map(len, spans))
    widest = [of_band for of_band in spans if len(of_band) == most][:_MIN_ROWS]
    return _merge_spans(
        piece
        for of_band in spans
        for piece in of_band
        if not any(sum(_overlap(piece, other) for other in full) > 1 for full in widest)
    )


def _overlap(piece: Piece, span: Piece) -> bool:
    return piece.left < span.right and span.left < piece.right


def _is_table(region: Sequence[_Band], columns: Sequence[Piece]) -> bool:
    """Return whether a region has the rows and columns of a table, and is none of the things that look alike."""
    rows = [band.pieces for band in region if len(band.pieces) > 1]
    if len(columns) < _MIN_COLUMNS:
        return False
    if len(rows) < _MIN_ROWS:  # two rows with wrapped cells
        return len(columns) > _MIN_COLUMNS and len(rows) > 1 and all(_is_aligned(region[:1], row) for row in rows)
    by_column = [[piece for row in rows for piece in row if _overlap(piece, column)] for column in columns]
    if sum(len(pieces) >= _MIN_ROWS for pieces in by_column) < _MIN_COLUMNS:
        return False
    is_prose = sum(_is_prose(*pair) for pair in zip(by_column, columns, strict=True)) > 1
    is_scattered = sum(map(len, rows)) < _MIN_FILLED * len(rows) * len(columns)
    return not (is_scattered or is_prose or _is_listing(rows, by_column))


def _are_most(conditions: Iterable[object], share: float = 0.5) -> bool:
    values = [bool(condition) for condition in conditions]
    return sum(values) >= share * len(values)


def _is_prose(pieces: Sequence[Piece], column: Piece) -> bool:
    """Return whether most pieces fill the width of their column, as lines of prose do."""
    width = _FILLED * (column.right - column.left)
    return _are_most((len(piece.text) > _LONG and piece.right - piece.left >= width for piece in pieces), _PROSE_SHARE)


def _is_listing(rows: Sequence[Sequence[Piece]], by_column: Sequence[Sequence[Piece]]) -> bool:
    """Return whether rows are a contents list or an index: leaders, entries with pages, or growing page numbers."""
    if _are_most(any(_LEADERS.search(piece.text) for piece in row) for row in rows):
        return True
    if all(_are_most(map(_INDEX_ENTRY.fullmatch, (piece.text for piece in column))) for column in by_column):
        return True
    last = [piece.text for piece in by_column[-1]][1:]
    numbers = [int(text) for text in last if text.isdigit()]
    is_growing = _are_most((first <= second for first, second in pairwise(numbers)), 0.9)
    is_titled = _PAGE_NUMBER.fullmatch(by_column[-1][0].text) or _PAGE_TITLE.search(by_column[-1][0].text)
    is_narrow = len(by_column) == _MIN_COLUMNS
    return is_narrow and is_growing and is_titled is not None and all(map(_PAGE_NUMBER.fullmatch, last))


def _format_rows(groups: Sequence[Sequence[_Band]], columns: Sequence[Piece]) -> Iterator[Line]:
    """Yield a line for each row of a table, with the names of the columns before the values."""
    is_marked = groups[0][0].is_bold and not all(band.is_bold for group in groups for band in group)
    rows = [_build_cells(group, columns, is_marked and not place) for place, group in enumerate(groups)]
    if _has_names(rows, len(columns)):
        texts = format_table(rows, is_layout=True).split("\n")
    else:
        texts = ["\t".join(cell.text for cell in row).rstrip("\t") for row in rows]
    for number, (text, group) in enumerate(zip(texts, groups[len(groups) - len(texts) :], strict=True), 1):
        left, right = columns[0].left, columns[-1].right
        yield Line(text, left, right, group[0].top, group[0].size, 0, False, False, row=number)


def _has_names(rows: Sequence[Sequence[Cell]], column_count: int) -> bool:
    """Return whether the first row, or the first two without values, have a text above each column but the first."""
    names: set[int] = set()
    for row in rows[:2]:
        starts = accumulate((cell.columns for cell in row), initial=0)
        if any(len(cell.text) > _MAX_NAME for cell in row):
            return False
        if not any(_VALUE.fullmatch(cell.text) for cell in row):
            names.update(
                column
                for start, cell in zip(starts, row, strict=False)
                if cell.text
                for column in range(start, start + cell.columns)
            )
        if names.issuperset(range(1, column_count)):
            return True
    return False


def _group_rows(region: Sequence[_Band]) -> Iterator[list[_Band]]:
    """Yield the bands of each row, of which wrapped cells have several."""
    distances = sorted(first.bottom - second.top for first, second in pairwise(region))
    leading = distances[-(len(distances) // 3) - 1] / _LEADING_CHANGE
    row = [region[0]]
    for band in region[1:]:
        if _continues(_join_bands(row), band, leading):
            row.append(band)
        else:
            yield row
            row = [band]
    yield row


def _continues(row: _Band, band: _Band, leading: float) -> bool:
    """Return whether a band continues cells of the row above: it has fewer pieces, all below pieces of the row.

    Lines of a cell are nearer to each other than rows, by ``leading`` or less, or the text of each piece continues.
    """
    pairs = [
        (next((above for above in reversed(row.pieces) if _overlap(above, piece)), None), piece)
        for piece in band.pieces
    ]
    if any(above is None or _VALUE.fullmatch(piece.text) for above, piece in pairs):
        return False
    is_close = row.bottom - band.top <= min(leading, _MAX_LEADING * band.size)
    is_partial = len(pairs) < len({piece.left for piece in row.pieces})
    is_text = all(piece.text[0].islower() or (above and _OPEN_END.search(above.text)) for above, piece in pairs)
    return (is_close and is_partial) or (is_text and (is_close or is_partial))


def _build_cells(row: Sequence[_Band], columns: Sequence[Piece], is_header: bool) -> list[Cell]:
    """Return the cells of a row; the pieces of a wrapped cell become one text."""
    pieces_by_column: defaultdict[int, list[Piece]] = defaultdict(list)
    for piece in (piece for band in row for piece in band.pieces):
        pieces_by_column[_get_column(piece, columns)].append(piece)
    cells: list[Cell] = []
    place = 0
    while place < len(columns):
        pieces = pieces_by_column[place]
        is_spanning = len(pieces) == 1 and pieces[0].left < columns[place].left
        span = sum(_overlap(pieces[0], column) for column in columns[place:]) if is_spanning else 1
        text = to_single_line(" ".join(piece.text for piece in pieces))
        cells.append(Cell(text, is_header=is_header, columns=max(1, span)))
        place += max(1, span)
    return cells


def _get_column(piece: Piece, columns: Sequence[Piece]) -> int:
    """Return the index of the column in which a piece begins."""
    return min(bisect_left(columns, piece.left, key=lambda column: column.right), len(columns) - 1)
