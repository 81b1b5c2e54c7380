"""Places the values of form fields, typed texts and notes among the lines of a PDF page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import median, mode
from typing import Any, NamedTuple

from polyad.readers.text.plain_text import to_single_line
from polyad_readers.lines.lines import Line, is_level
from polyad_readers.lines.right_to_left import RIGHT_TO_LEFT
from polyad_readers.pdf.annotations import TICKED, UNTICKED, Annotation

_SPACE = 0.3
"""Gap between a label and its value, as all lengths here a multiple of the type size."""

_BELOW, _DEEP = 0.3, 2.5
"""Distances below a field's lower edge, and below its upper edge, in which the baseline of its label may lie."""

_MAX_LABEL_GAP, _MAX_BOX_GAP = 20.0, 2.0
"""Widest gap between a value and the label at its left, and between a box and the text at its right."""

_MAX_RISE = 1.2
"""Greatest distance of a label above its field."""

_LINE_SPACING, _MIDDLE = 1.2, 0.35
"""Distance of two lines of a value, and distance of its baseline from the middle of the field."""

_ASCENT, _DESCENT = 0.9, 0.2
"""Extent of the letters of a line above and below its baseline."""

_ROW_GAP = 6
"""Points in which a field begins below a field of the same column."""

_NOTE_SIZE = 0.85
"""Type size of a note, which parts it from the paragraph that it follows."""

_MAX_SPACING, _WIDE = 1.6, 0.85
"""Widest line spacing in a paragraph, and width of a line whose paragraph goes on, in widths of the widest line."""

_DEFAULT_SIZE = 10.0
"""Type size, in points, of a value on a page without text."""

_MAX_PAIRS = 2_000_000
"""Pairs of an annotation and a line up to which places are looked for; a form with 500 fields has 500,000."""

_BREAK = "\n"
_ORDER = ("text", "field", "note")
"""Typed texts may be labels of fields, and a note follows a whole paragraph."""

_LEADER = "._\u2026 "
"""Characters of the line that a value is written on."""

_SENTENCE_END = tuple(".!?:;\u2026\u3002\uff01\uff1f")
_WORD = re.compile(r"\w\w")


class _Box(NamedTuple):
    """The edges of an annotation in reading direction, as positions of lines are."""

    left: float
    bottom: float
    right: float
    top: float


class _Place(NamedTuple):
    """The position at which a value is inserted, the line that it is close to, and how the two relate.

    Attributes:
        position: Index in the list of lines.
        neighbour: The line beside or above the field; None on a page without text.
        is_beside: Whether the neighbour stands in the row of the field.
        is_label: Whether the neighbour is the label of the field, or another field of its row or column.
    """

    position: int
    neighbour: Line | None
    is_beside: bool
    is_label: bool


def divide_lines(lines: Sequence[Line], annotations: Sequence[Annotation], text_page: Any) -> list[Line]:
    """Return the lines of a page, divided where a form field or a typed text stands in the gap of a line.

    Args:
        lines: The lines of the page.
        annotations: The annotations of the page.
        text_page: A ``pypdfium2.PdfTextPage``.
    """
    page = _Page(lines)
    if page.turn == 0 and len(annotations) * len(lines) <= _MAX_PAIRS:
        for annotation in annotations:
            if annotation.text and annotation.kind != "note":
                page.divide_lines(annotation, _turn_box(annotation, page.turn), text_page)
    return page.lines


def place_annotations(lines: Sequence[Line], annotations: Sequence[Annotation]) -> list[Line]:
    """Return the lines of a page and its annotations: each after its label, or where it stands on the page.

    Annotations of a page with far more of them than any form has come last.
    """
    if not annotations:
        return list(lines)
    page = _Page(lines)
    boxes = [(_turn_box(annotation, page.turn), annotation) for annotation in annotations]
    if len(boxes) * (len(lines) + len(boxes)) > _MAX_PAIRS:
        nowhere = _Place(0, None, is_beside=False, is_label=False)
        return [*lines, *(line for box, text in boxes if text.text for line in page.build_lines(text, box, nowhere))]
    tops = {(round(box.left), round(box.top)) for box, _ in boxes}
    bottoms = {(round(box.left), round(box.bottom)) for box, _ in boxes}
    for box, annotation in sorted(boxes, key=lambda pair: (_ORDER.index(pair[1].kind), -pair[0].top, pair[0].left)):
        left, top, bottom = round(box.left), round(box.top), round(box.bottom)
        is_cell = any((left, bottom - gap) in tops or (left, top + gap) in bottoms for gap in range(_ROW_GAP))
        if annotation.text:
            page.insert(annotation, box, is_cell=is_cell)
    return page.lines


def _turn_box(annotation: Annotation, turn: int) -> _Box:
    """Return the edges of an annotation as text with this rotation, in degrees, sees them."""
    cosine, sine = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    corners = [(x, y) for x in (annotation.left, annotation.right) for y in (annotation.bottom, annotation.top)]
    across = [x * cosine + y * sine for x, y in corners]
    upwards = [y * cosine - x * sine for x, y in corners]
    return _Box(min(across), min(upwards), max(across), max(upwards))


class _Page:
    """The lines of a page, among which values of fields are inserted.

    Attributes:
        lines: The lines, with the values so far.
        turn: Rotation of most lines, in degrees.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = list(lines)
        self.turn = mode(line.turn for line in lines) if lines else 0
        self._size = median(line.size for line in lines) if lines else _DEFAULT_SIZE
        self._values: set[Line] = set()

    def divide_lines(self, annotation: Annotation, box: _Box, text_page: Any) -> None:
        """Divide lines with an annotation in their middle; without text in the row of a field, the line over it."""
        row = self._find_row(box)
        for index in reversed(row):
            self._divide_line(index, box.left, min(box.right, self.lines[index].right), text_page)
        if not row and annotation.kind == "field" and (label := self._find_label_over(box)) is not None:
            size = self.lines[label].size
            self._divide_line(label, box.left - size, box.left - 1, text_page)
            self._divide_line(label, box.right, box.right + size, text_page)

    def _divide_line(self, index: int, start: float, end: float, text_page: Any) -> None:
        """Divide a line at a gap from ``start`` to ``end`` in points, unless the line has words there."""
        line = self.lines[index]
        if not line.left < start < line.right - _SPACE * line.size:
            return
        bottom, top = line.baseline - _DESCENT * line.size, line.baseline + _ASCENT * line.size
        before = to_single_line(text_page.get_text_bounded(line.left, bottom, start, top))
        after = line.text[len(before) :]
        is_word = _WORD.search(before[-1:] + after[:1]) or _WORD.search(
            text_page.get_text_bounded(start, bottom, end, top)
        )
        if before and line.text.startswith(before) and not is_word:
            after = after.strip()
            label = before if before[-2:].strip(_LEADER) else before.rstrip(_LEADER)
            after = after if after[:2].strip(_LEADER) else after.lstrip(_LEADER)
            left = min(end + _SPACE * line.size, line.right)
            style = (line.baseline, line.size, line.turn, line.is_bold, line.is_fixed)
            parts = [Line(label, line.left, start, *style), Line(after, left, line.right, *style)]
            self.lines[index : index + 1] = [part for part in parts if part.text]

    def insert(self, annotation: Annotation, box: _Box, *, is_cell: bool) -> None:
        """Insert the value of a field, unless it is an empty box without text beside it.

        Args:
            annotation: The value.
            box: Edges of the field in reading direction.
            is_cell: Whether another field stands directly above or below, as in a table.
        """
        is_box = annotation.text in (TICKED, UNTICKED)
        place = self._find_place_beside(box, is_box=is_box, is_cell=is_cell) or self._find_place_near(box)
        is_over_words = place.neighbour is not None and place.neighbour.right > box.left + place.neighbour.size
        if annotation.kind == "note" or (annotation.kind == "text" and place.is_beside and is_over_words):
            place = self._find_place_of_note(box)
        elif (is_cell or annotation.kind == "text") and not place.is_beside:
            place = place._replace(position=self._find_row_end(place.position - 1))
        if not self._join_label(annotation.text, box, place, is_box=is_box) and (
            place.is_label or annotation.text != UNTICKED
        ):
            lines = self.build_lines(annotation, box, place)
            self.lines[place.position : place.position] = lines
            self._values.update(lines if annotation.kind != "text" else ())

    def _join_label(self, text: str, box: _Box, place: _Place, *, is_box: bool) -> bool:
        """Write a value into the line of its label if that ends in a colon or so, or is close to a box.

        Returns:
            Whether that was done.
        """
        label = place.neighbour
        if label is None or label in self._values or not (place.is_beside and place.is_label) or "\n" in text:
            return False
        if label.left >= box.left and is_box:
            place, joined = place._replace(position=place.position + 1), f"{text} {label.text}"
        elif label.left < box.left and (
            not label.text[-1].isalnum() or (is_box and _measure_gap(label.right, box.left, label) <= _MAX_BOX_GAP)
        ):
            joined = f"{label.text} {text}"
        else:
            return False
        left, right = min(label.left, box.left), max(label.right, box.right)
        style = (label.baseline, label.size, label.turn, False, label.is_fixed)
        self.lines[place.position - 1] = Line(to_single_line(joined), left, right, *style)
        return True

    def build_lines(self, annotation: Annotation, box: _Box, place: _Place) -> list[Line]:
        """Return the lines of an annotation, with the field's name if it has no label.

        They have the type size of the neighbour, but are not larger than usual, which would make them a title.
        """
        neighbour = place.neighbour
        size = min(neighbour.size, self._size) if neighbour else self._size
        left, right, baseline = box.left, box.right, (box.bottom + box.top) / 2 - _MIDDLE * size
        if neighbour and place.is_beside:
            baseline = neighbour.baseline
            if neighbour.left < box.left:
                left = max(left, neighbour.right + _SPACE * size)
            else:
                right = min(right, neighbour.left - _SPACE * size)
        elif neighbour and place.is_label and neighbour not in self._values:
            baseline = max(baseline, neighbour.baseline - _LINE_SPACING * size)
        texts = [text for text in map(to_single_line, annotation.text.splitlines()) if text]
        if annotation.kind == "note":
            texts = f"[Note: {_BREAK.join(texts)}]".split(_BREAK)
            size = _NOTE_SIZE * self._size
            if neighbour:
                left, baseline = neighbour.left, neighbour.baseline - _LINE_SPACING * size
        elif annotation.name and not place.is_label:
            texts[0] = f"{texts[0]} {annotation.name}" if texts == [TICKED] else f"{annotation.name}: {texts[0]}"
        return [
            Line(text, left, max(left, right), baseline - number * _LINE_SPACING * size, size, self.turn, False, False)
            for number, text in enumerate(texts)
        ]

    def _find_place_beside(self, box: _Box, *, is_box: bool, is_cell: bool) -> _Place | None:
        """Return the place before the text of a box, or after the text or field at the left."""
        row = self._find_row(box)
        left, right = self._find_left(row, box), self._find_right(row, box)
        left_gap = math.inf if left is None else _measure_gap(self.lines[left].right, box.left, self.lines[left])
        if (
            right is not None
            and is_box
            and _measure_gap(box.right, self.lines[right].left, self.lines[right]) <= min(_MAX_BOX_GAP, left_gap)
        ):
            return _Place(right, self.lines[right], is_beside=True, is_label=True)
        has_text = any(self.lines[index] not in self._values for index in row)
        if left is not None and left_gap <= _MAX_LABEL_GAP and (has_text or is_cell):
            return _Place(left + 1, self.lines[left], is_beside=True, is_label=True)
        return None

    def _find_place_near(self, box: _Box) -> _Place:
        """Return the place below the label over a field, else in its row, else below the next line above it."""
        label = self._find_label_over(box)
        if label is not None:
            return _Place(label + 1, self.lines[label], is_beside=False, is_label=True)
        row = self._find_row(box)
        left, right = self._find_left(row, box), self._find_right(row, box)
        if left is not None:
            return _Place(left + 1, self.lines[left], is_beside=True, is_label=False)
        if right is not None and _measure_gap(box.right, self.lines[right].left, self.lines[right]) <= _MAX_BOX_GAP:
            is_after = bool(RIGHT_TO_LEFT.search(self.lines[right].text))
            return _Place(right + is_after, self.lines[right], is_beside=True, is_label=is_after)
        last = self._find_line_above(box)
        neighbour = self.lines[max(last, 0)] if self.lines else None
        return _Place(self._find_row_end(last), neighbour, is_beside=False, is_label=False)

    def _find_place_of_note(self, box: _Box) -> _Place:
        """Return the place after the paragraph at a note, or before one that goes on on the next page."""
        start = self._find_line_above(box)
        for index in (*range(max(start, 0), len(self.lines)), *range(start - 1, -1, -1)):
            if self._ends_paragraph(index):
                return _Place(index + 1, self.lines[index], is_beside=False, is_label=True)
        return _Place(0, self.lines[0] if self.lines else None, is_beside=False, is_label=False)

    def _ends_paragraph(self, index: int) -> bool:
        """Return whether a line ends a sentence, or the next line does not continue its paragraph."""
        line = self.lines[index]
        if line.text.rstrip("\"'\u201d\u2019\xbb)]").endswith(_SENTENCE_END):
            return True
        if index + 1 < len(self.lines):
            return not self._is_continued(index)
        width = max(other.right - other.left for other in self.lines)
        return index == 0 or not self._is_continued(index - 1) or line.right - line.left < _WIDE * width

    def _is_continued(self, index: int) -> bool:
        """Return whether the next line has the style and distance of a line of the same paragraph."""
        line, following = self.lines[index : index + 2]
        is_same_style = line.turn == following.turn and abs(line.size - following.size) < (1 - _NOTE_SIZE) * line.size
        return is_same_style and line.baseline - following.baseline <= _MAX_SPACING * line.size

    def _find_line_above(self, box: _Box) -> int:
        """Return the index of the next line above the lower edge of an annotation; -1 without."""
        higher = [index for index, line in self._enumerate() if line.baseline >= box.bottom - line.size / 2]
        return min(higher, key=lambda at: (not _overlaps(self.lines[at], box), self.lines[at].baseline), default=-1)

    def _enumerate(self) -> Iterator[tuple[int, Line]]:
        """Yield index and line of each line in the usual rotation."""
        return ((index, line) for index, line in enumerate(self.lines) if line.turn == self.turn)

    def _find_row(self, box: _Box) -> list[int]:
        """Return the indices of the lines in the row of a field; of a tall field, in its first row."""
        return [
            index
            for index, line in self._enumerate()
            if max(box.bottom - _BELOW * line.size, box.top - _DEEP * line.size) <= line.baseline <= box.top
        ]

    def _find_left(self, row: Iterable[int], box: _Box) -> int | None:
        starts = [index for index in row if self.lines[index].left < box.left]
        return max(starts, key=lambda index: self.lines[index].left, default=None)

    def _find_right(self, row: Iterable[int], box: _Box) -> int | None:
        starts = [index for index in row if self.lines[index].left >= box.left]
        return min(starts, key=lambda index: self.lines[index].left, default=None)

    def _find_label_over(self, box: _Box) -> int | None:
        """Return the index of the lowest line in the upper half of a field or close above it; None without."""
        middle = (box.bottom + box.top) / 2
        lines = [
            index
            for index, line in self._enumerate()
            if _overlaps(line, box) and middle <= line.baseline <= box.top + _MAX_RISE * line.size
        ]
        return min(lines, key=lambda index: self.lines[index].baseline, default=None)

    def _find_row_end(self, index: int) -> int:
        """Return the index after the last line in the row of a line; 0 for the index -1."""
        while 0 <= index < len(self.lines) - 1 and is_level(self.lines[index], self.lines[index + 1]):
            index += 1
        return index + 1


def _measure_gap(left: float, right: float, line: Line) -> float:
    """Return the distance of two positions as a multiple of the type size of a line."""
    return (right - left) / (line.size or 1)


def _overlaps(line: Line, box: _Box) -> bool:
    return line.left < box.right and line.right > box.left
