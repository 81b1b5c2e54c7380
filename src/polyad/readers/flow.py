"""Builds text piece by piece and tracks the breaks between lines, paragraphs and words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyad.readers.headings import Heading
from polyad.readers.plain_text import clean

_SPACES = re.compile(r"\s+")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


@dataclass(slots=True)
class Flow:
    """A text under construction, with the break that is due before the next piece.

    Attributes:
        gap: Line endings to write before what comes next.
        space: What separates the next word from the last, if no line ending does.
        mark: What an item of a list begins with, until it is written.
        is_fresh: Whether what comes next belongs directly behind what was written: no paragraph begins there.
    """

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    headings: list[Heading] = field(default_factory=list)
    gap: int = 0
    space: str = ""
    mark: str = ""
    is_fresh: bool = False

    def end_line(self, gap: int) -> None:
        """End the current line (``gap`` 1) or paragraph (2)."""
        if not self.is_fresh:
            self.gap = max(self.gap, gap)
            self.space = ""

    def continue_after(self, gap: int, mark: str = "") -> None:
        """Start a line that belongs to the preceding text, such as a list item or a definition."""
        self.gap, self.space, self.mark, self.is_fresh = gap, "", mark, True

    def words(self, text: str) -> None:
        """Write running text, collapsing its white space."""
        collapsed = _SPACES.sub(" ", _INVISIBLE.sub("", clean(text)))
        body = collapsed.strip(" ")
        if collapsed.startswith(" "):
            self.space = self.space or " "
        if body:
            self._begin()
            self._write(body)
            self.space = " " if collapsed.endswith(" ") else ""

    def verbatim(self, text: str) -> None:
        """Write text unchanged, white space included."""
        if text := clean(text):
            self._begin()
            self._write(text)

    def insert(self, text: str, headings: list[Heading]) -> None:
        """Write text that was laid out separately, and add its headings."""
        self._begin()
        self.headings += [
            heading._replace(start=heading.start + self.length, end=heading.end + self.length) for heading in headings
        ]
        self._write(text)

    def strip_end(self) -> None:
        """Remove white space at the end of the text."""
        while self.pieces and (kept := self.pieces[-1].rstrip()) != self.pieces[-1]:
            self.length -= len(self.pieces[-1]) - len(kept)
            if kept:
                self.pieces[-1] = kept
            else:
                self.pieces.pop()

    def _begin(self) -> None:
        if self.gap or not self.length:
            if self.length:
                self._write("\n" * self.gap)
            self._write(self.mark)
        else:
            self._write(self.space)
        self.gap, self.space, self.mark, self.is_fresh = 0, "", "", False

    def _write(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self.length += len(text)
