"""Which subject a name stands for that no passage is about: one text's "Christopher Nolan" is another's full name.

A passage without a title is about what its text defines, in full: "Christopher Edward Nolan (born 1970) is ...". Others
say "Christopher Nolan", or "director Christopher Nolan". Whether such a name tells which subject is meant depends on
all subjects there are, so it is found anew for each version of an index and never stored.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from polyad.model import BoolArray, IntArray

_LONGEST = 12
"""Words of a subject that shorter names are looked for of; longer ones are hardly names."""

_MOST_ENDING = 100
"""Words at the end of a name among which one that it ends in is looked for."""

_FEWEST = 2
"""Words by which a subject is known again; a single one is too little to go by."""

_MOST = 100
"""Subjects compared with one name; a name that resembles more is not telling enough."""


class SubjectNames:
    """Finds the subject that a name stands for: one that it ends in, or the only one that it is short for.

    Args:
        keys: Of all entities.
        are_subjects: Whether some passage is about each, ``[entities]``.
    """

    def __init__(self, keys: Sequence[str], are_subjects: BoolArray) -> None:
        self._keys = keys
        self._are_subjects = are_subjects
        self._subjects = {keys[row]: row for row in np.flatnonzero(are_subjects).tolist()}
        codes, rows = array("q"), array("q")  # as arrays: a sixth of the memory of a dictionary
        for key, row in self._subjects.items():
            ends = _ends(key.split(" "))
            codes.extend(ends)
            rows.extend([row] * len(ends))
        order = np.lexsort((rows, codes))
        self._codes, self._rows = (
            array("q", np.array(column, dtype=np.int64)[order].tobytes()) for column in (codes, rows)
        )

    def subject_of(self, key: str) -> int | None:
        """The row of the subject that a name stands for which is no subject itself; None where none can be told.

        A name that ends in a subject is that one, "watchman piet adler" Piet Adler, whom extractors do not tell from
        his office; of several it is the longest. A name is short for a subject when its words stand in it in the same
        order and the first or the last of both is the same: "jeffrey smart" for "frank jeffrey edson smart". If it is
        for none, its first word and initials may be the beginnings of words: "ed sullivan", "ann b davis".
        """
        words = key.split(" ")
        for start in range(max(1, len(words) - _MOST_ENDING), len(words) - _FEWEST + 1):
            ending = self._subjects.get(" ".join(words[start:]))
            if ending is not None:
                return ending
        if len(words) < _FEWEST:
            return None
        for first, is_short_for in ((words[0], _leaves_out), (words[0][0], _shortens)):
            similar = self._similar(_code(first, words[-1]))
            if len(similar) > _MOST:
                return None
            longer = [row for row in similar if is_short_for(words, self._keys[row].split(" "))]
            if longer:
                return longer[0] if len(longer) == 1 else None
        return None

    def _similar(self, code: int) -> array[int]:
        """Rows of the subjects that a name with these ends may be short for, and by chance of others."""
        return self._rows[bisect_left(self._codes, code) : bisect_right(self._codes, code)]

    def pairs(self) -> tuple[IntArray, IntArray]:
        """The rows of all entities that stand for a subject, and of the subject that each stands for."""
        others = np.flatnonzero(~self._are_subjects).tolist()
        found = [(row, subject) for row in others if (subject := self.subject_of(self._keys[row])) is not None]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def _ends(words: Sequence[str]) -> set[int]:
    """Codes of the first and last word, or first letter and last word, of all that a name may be shortened to."""
    if not _FEWEST <= len(words) <= _LONGEST:
        return set()
    ends = {(words[0], word) for word in words[1:]} | {(word, words[-1]) for word in words[:-1]}
    return {_code(first, last) for word, last in ends for first in (word, word[0])}


def _code(first: str, last: str) -> int:
    return crc32(f"{first} {last}".encode("utf-8", "surrogatepass"))


def _leaves_out(short: Sequence[str], long: Sequence[str]) -> bool:
    """Whether a name is another without some of its words."""
    rest = iter(long)
    return all(word in rest for word in short)


def _shortens(short: Sequence[str], long: Sequence[str]) -> bool:
    """The same where the first word, and single letters, stand for any word that begins with them."""
    rest = iter(long)
    return all(
        any(other == word or ((place == 0 or len(word) == 1) and other.startswith(word)) for other in rest)
        for place, word in enumerate(short)
    )
