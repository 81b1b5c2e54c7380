"""Text that is written piece by piece: which lines, paragraphs and words the pieces make."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyad.readers.headings import Heading
from polyad.readers.plain_text import clean

_SPACES = re.compile(r"\s+")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


@dataclass(slots=True)
class Flow:
    """Text that is being written, on from where a line, a paragraph or a word may have to begin.

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
        """End the line; 2 for the paragraph too."""
        if not self.is_fresh:
            self.gap = max(self.gap, gap)
            self.space = ""

    def continue_after(self, gap: int, mark: str = "") -> None:
        """Begin what belongs to what is before it: an item to its list, a definition to its term."""
        self.gap, self.space, self.mark, self.is_fresh = gap, "", mark, True

    def words(self, text: str) -> None:
        """Write running text, whose white space separates words and means no more."""
        collapsed = _SPACES.sub(" ", _INVISIBLE.sub("", clean(text)))
        body = collapsed.strip(" ")
        if collapsed.startswith(" "):
            self.space = self.space or " "
        if body:
            self._begin()
            self._write(body)
            self.space = " " if collapsed.endswith(" ") else ""

    def verbatim(self, text: str) -> None:
        """Write text as it stands."""
        if text := clean(text):
            self._begin()
            self._write(text)

    def insert(self, text: str, headings: list[Heading]) -> None:
        """Write what was laid out by itself."""
        self._begin()
        self.headings += [
            heading._replace(start=heading.start + self.length, end=heading.end + self.length) for heading in headings
        ]
        self._write(text)

    def strip_end(self) -> None:
        """Take back white space at the end."""
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
