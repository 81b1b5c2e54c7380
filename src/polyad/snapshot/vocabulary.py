"""The words of an index, and those that are similarly spelt, to correct misspelt words of a question.

Each word has a signature: 64 bits that state which letters it has once, and which more often. One edit changes at most
two bits (a replaced letter), so that a comparison of bits leaves few of a million words, whose edit distance (optimal
string alignment: letters are inserted, deleted, replaced, or swapped with their neighbour) is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyad.snapshot.columns import Column, StringIndex
from polyad.text.words import fold_letters

_LETTER_BITS = 32
"""Letters that the signature distinguishes: all of the Latin alphabet; others share bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The distinct words of all passages, which is immutable; it also has words of deleted passages.

    Attributes:
        words: The words in lower case, with accents.
        signatures: The letters of each word as bits; uint64 ``[words]``.
    """

    words: StringIndex
    signatures: Column

    @classmethod
    def empty(cls) -> Vocabulary:
        """Return the vocabulary of an index without passages."""
        return cls(StringIndex.empty(), Column.empty(np.uint64))

    def append(self, words: Iterable[str]) -> Vocabulary:
        """Return the vocabulary with those of ``words`` added that it lacks, in the order of their first occurrence."""
        unique = list(dict.fromkeys(words))
        rows = self.words.find_rows(unique).tolist()
        new = [word for word, row in zip(unique, rows, strict=True) if row < 0]
        signatures = np.fromiter((_sign(fold_letters(word)) for word in new), dtype=np.uint64, count=len(new))
        return Vocabulary(self.words.append(new), self.signatures.append(signatures)) if new else self

    def find_neighbours(self, word: str, max_edits: int) -> list[tuple[int, str]]:
        """Return (edits, word) for each word within ``max_edits`` of ``word``, not counting accents; fewest first."""
        from rapidfuzz.distance import OSA  # only a question with an unknown word needs the library

        folded = fold_letters(word)
        differing = np.bitwise_count(self.signatures.to_array() ^ np.uint64(_sign(folded)))
        candidates = self.words.strings.take(np.flatnonzero(differing <= 2 * max_edits))
        distances = ((OSA.distance(folded, fold_letters(each), score_cutoff=max_edits), each) for each in candidates)
        return sorted(pair for pair in distances if pair[0] <= max_edits)


def _sign(folded: str) -> int:
    """Return the letters of a word as bits: the lower half for each letter, the upper half for repeated letters."""
    signature = 0
    for letter in folded:
        bit = 1 << ord(letter) % _LETTER_BITS
        signature |= bit << _LETTER_BITS if signature & bit else bit
    return signature
