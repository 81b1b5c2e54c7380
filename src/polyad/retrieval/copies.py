"""The same text twice: a manual as .html and as .txt, a licence on every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from polyad.text.counting import terms

_RUN = 5
"""Words that are compared at a time (shingles)."""

_SHARE = 0.9
"""Of a text's runs of words that another text holds too, from which on it says nothing new."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says, whatever its white space, case and punctuation.

    Attributes:
        runs: Every five words that follow one another; all words of a shorter text.
        numbers: Words with a digit in them.
    """

    runs: frozenset[tuple[str, ...]]
    numbers: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """The wording of ``text``."""
        words = terms(text)
        runs = zip(*(words[start:] for start in range(_RUN)), strict=False) if len(words) >= _RUN else [tuple(words)]
        numbers = (word for word in words if not word.isalpha() and any(map(str.isdigit, word)))
        return cls(frozenset(runs), frozenset(numbers))

    def repeats(self, other: Wording) -> bool:
        """Whether all but a little of it stands in ``other`` too; never where it has a number that is not there.

        >>> Wording.of("Pump P-17 -- see the MANUAL.").repeats(Wording.of("Pump P-17: see the manual, or ask."))
        True
        >>> Wording.of("Open in 2023 as well.").repeats(Wording.of("Open in 2024 as well."))
        False
        """
        return self.numbers <= other.numbers and len(self.runs & other.runs) >= _SHARE * len(self.runs)
