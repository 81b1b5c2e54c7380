"""Builds text from pieces and tracks the breaks between lines, paragraphs and words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyad.readers.headings import Heading
from polyad.readers.plain_text import clean

_SPACES = re.compile(r"\s+")
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
    """

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    headings: list[Heading] = field(default_factory=list)
    gap: int = 0
    space: str = ""
    bullet: str = ""
    is_continued: bool = False

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
