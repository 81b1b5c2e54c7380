"""The room that a section of the prompt may fill."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Room:
    """How long a section may become.

    Attributes:
        before: What it is laid out behind and is counted with; empty for a section counted alone.
        limit: Longest text, in tokens.
        count_tokens: Length of a text in tokens. A text is never shorter than its beginning.
    """

    before: str
    limit: int
    count_tokens: CountTokens

    def fits(self, section: str) -> bool:
        """Whether ``section`` may be put here."""
        return self.count_tokens((self.before + section).rstrip()) <= self.limit

    def most(self, items: int, lay_out: Callable[[int], str]) -> int:
        """How many of so many ``items``, taken from the first, fit; ``lay_out`` shows the first so many of them."""
        return bisect_left(range(1, items + 1), True, key=lambda count: not self.fits(lay_out(count)))
