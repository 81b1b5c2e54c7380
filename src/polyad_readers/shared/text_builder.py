"""Builds text from pieces and tracks the breaks between lines, paragraphs and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from polyad.readers.text.headings import MAX_HEADING, Heading
from polyad.readers.text.plain_text import clean, to_single_line
from polyad_readers.shared.numbering import BULLET
from polyad_readers.shared.tables import Cell, label_rows

_SPACES = re.compile(r"\s+")
TICKED, UNTICKED = "[x]", "[ ]"
"""States of a check box."""

_MAX_INDENT = 8
"""Deepest list that is indented further than the list around it."""

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


@dataclass(slots=True)
class TextBuilder:
    """Builds a plain text from pieces, with line and paragraph breaks between the pieces.

    Attributes:
        pieces: The text so far, in pieces.
        length: Characters of the text so far.
        headings: The headings in the text so far.
        gap: Line endings to write before the next piece.
        space: Separator to write before the next word if ``gap`` is 0.
        bullet: Bullet or number of a list item that is still to be written.
        is_continued: Whether the next piece continues the preceding line, so that no paragraph may start there.
        item_level: Level of the list item that :meth:`write_paragraph` wrote last; -1 after other text.
    """

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    headings: list[Heading] = field(default_factory=list)
    gap: int = 0
    space: str = ""
    bullet: str = ""
    is_continued: bool = False
    item_level: int = -1

    def end_line(self, line_breaks: int) -> None:
        """End the current line (1 line break) or paragraph (2 line breaks) before the next piece of text."""
        if not self.is_continued:
            self.gap = max(self.gap, line_breaks)
            self.space = ""

    def continue_after(self, line_breaks: int, bullet: str = "") -> None:
        """Continue the paragraph after a number of line breaks, with ``bullet`` before the next piece of text."""
        self.gap, self.space, self.bullet, self.is_continued = line_breaks, "", bullet, True

    def write_words(self, text: str) -> None:
        """Write running text, with one space in place of consecutive white space."""
        collapsed = _SPACES.sub(" ", _INVISIBLE.sub("", clean(text)))
        body = collapsed.strip(" ")
        if collapsed.startswith(" "):
            self.space = self.space or " "
        if body:
            self._write_break()
            self._write(body)
            self.space = " " if collapsed.endswith(" ") else ""

    def write_verbatim(self, text: str) -> None:
        """Write text unchanged, including white space."""
        if text := clean(text):
            self._write_break()
            self._write(text)

    def write_paragraph(self, text: str, *, rank: int = 0, label: str = "", level: int = 0) -> None:
        """Write a paragraph of running text, in which line endings separate lines.

        A list item stands in a line of its own; a blank line precedes a list and the items of a deeper level.

        Args:
            text: The text.
            rank: Rank of the paragraph as a heading, from 1; 0 if the paragraph is not a heading.
            label: Number or bullet; a heading has its name without the number, and no bullet.
            level: Depth of the list of which the paragraph is an item, from 0.
        """
        is_item = bool(label) and not rank
        self.end_line(1 if is_item else 2)
        if is_item:
            mark = "  " * min(level + 1, _MAX_INDENT) + f"{label} "
            self.continue_after(1 if level <= self.item_level else 2, mark)
        elif label and label != BULLET:
            text = f"{label} {text}"
        piece_count = len(self.pieces)
        for place, line in enumerate(text.split("\n")):
            if place:
                self.end_line(min(2, self.gap + 1))
            self.write_words(line)
        if rank:
            self._add_heading(rank, "".join(self.pieces[piece_count:]).lstrip("\n"), label)
        self.end_line(1 if is_item else 2)
        self.item_level = level if is_item else -1

    def write_code(self, text: str, *, is_continued: bool) -> None:
        """Write lines of code unchanged, in a paragraph of their own unless they continue code."""
        if is_continued:
            self.gap = min(self.gap, 1)
        self.end_line(1 if is_continued else 2)
        self.write_verbatim(text)
        self.end_line(2)
        self.item_level = -1

    def write_table(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write a table of a word processor: a line for each row, with tabs between values with their column names.

        A row with one cell, and a cell with headings or a table, keep their paragraphs. A blank cell leaves an empty
        place unless most rows have merged cells, as in a form.
        """
        self.end_line(2)
        is_form = 2 * sum(any(cell.columns > 1 for cell in row) for row in rows) > len(rows)
        labelled = list(label_rows(map(_join_lines, rows), is_layout=is_form))
        columns = sorted({column for row in labelled for column, cell in enumerate(row) if cell.text})
        for row in labelled:
            cells = [row[column] for column in columns if column < len(row)]
            filled = [cell for cell in cells if cell.text]
            if any(cell.headings or "\n" in cell.text or "\t" in cell.text for cell in filled):
                for cell in filled:
                    self.end_line(2)
                    self.insert(cell.text, list(cell.headings))
                self.end_line(2)
            elif filled:
                self.end_line(1)
                self.insert("\t".join(cell.text for cell in (filled if is_form or len(filled) == 1 else cells)), [])
                self.end_line(1)
        self.end_line(2)
        self.item_level = -1

    def insert(self, text: str, headings: list[Heading]) -> None:
        """Append the text and headings of another TextBuilder; the offsets of the headings are shifted."""
        self._write_break()
        self.headings += [
            heading._replace(start=heading.start + self.length, end=heading.end + self.length) for heading in headings
        ]
        self._write(text)

    def strip_end(self) -> None:
        """Remove white space at the end of the text."""
        while self.pieces and (stripped := self.pieces[-1].rstrip()) != self.pieces[-1]:
            self.length -= len(self.pieces[-1]) - len(stripped)
            if stripped:
                self.pieces[-1] = stripped
            else:
                self.pieces.pop()

    def _add_heading(self, rank: int, text: str, label: str) -> None:
        """Add the heading that was just written."""
        title = text.removeprefix(label).strip()
        name = to_single_line(title if len(title) <= MAX_HEADING else title.partition("\n")[0])
        self.headings.append(Heading(rank, name, self.length - len(text), self.length))

    def _write_break(self) -> None:
        """Write the pending line breaks, space and bullet before the next piece of text."""
        if self.gap or not self.length:
            if self.length:
                self._write("\n" * self.gap)
            self._write(self.bullet)
        else:
            self._write(self.space)
        self.gap, self.space, self.bullet, self.is_continued = 0, "", "", False

    def _write(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self.length += len(text)


def _join_lines(row: Sequence[Cell]) -> Sequence[Cell]:
    """Return a table row whose cells are single lines, except a cell that is alone, or that has headings or a table."""
    if sum(bool(cell.text) for cell in row) < 2:
        return row
    return [
        cell if cell.headings or "\t" in cell.text else cell._replace(text=to_single_line(cell.text)) for cell in row
    ]
