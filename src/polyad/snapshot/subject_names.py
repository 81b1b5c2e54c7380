"""Which subject a name stands for that no passage is about: one text's "Christopher Nolan" is another's full name.

A passage without a title is about what its text defines, in full: "Christopher Edward Nolan (born 1970) is ...". Others
say "Christopher Nolan", or "director Christopher Nolan". Whether such a name tells which subject is meant depends on
all subjects there are. It is kept for every name, and found again for those that a new or a lost subject may change.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from polyad.hypergraph.incidence import WeightedAdjacency, rank_in_group, sort_unique
from polyad.hypergraph.sparse import union
from polyad.model import BoolArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import GrowingAdjacency, grown
from polyad.snapshot.ids import EntityKeys
from polyad.snapshot.string_table import Lookup

_LONGEST = 12
"""Words of a subject that shorter names are looked for of; longer ones are hardly names."""

_MOST_ENDING = 100
"""Words at the end of a name among which one that it ends in is looked for."""

_FEWEST = 2
"""Words by which a subject is known again; a single one is too little to go by."""

_MOST = 100
"""Subjects compared with one name; a name that resembles more is not telling enough."""

_TOLD = 1 << 15
"""Names at a time of which the subjects are told, where all are: their words are in memory meanwhile."""

_NO_ENTRIES = Lookup.of([], np.empty(0, dtype=np.int64))

Test = Callable[[IntArray], BoolArray]
"""Tells of some entities which pass it."""


@dataclass(frozen=True, slots=True, eq=False)
class SubjectNames:
    """Finds the subject that a name stands for: one that it ends in, or the only one that it is short for.

    Attributes:
        keys: Of all entities.
        long: Rows of subjects, by the codes of what each may be shortened to; one that no longer is a subject may
            still be among them.
        short: Rows of names, by the codes under which a subject finds them.
        subject: For each entity the row of the subject it stands for, -1 where it stands for none.
        names: For each entity the names that stand for it, and perhaps others that no longer do.
    """

    keys: EntityKeys
    long: tuple[Lookup, ...]
    short: tuple[Lookup, ...]
    subject: Column
    names: GrowingAdjacency

    @classmethod
    def none(cls) -> SubjectNames:
        """Of an index without entities."""
        return cls(EntityKeys.none(), (), (), Column.of(np.empty(0, dtype=np.int32)), GrowingAdjacency.none())

    @classmethod
    def of(cls, keys: EntityKeys, are_subjects: BoolArray, are_there: BoolArray) -> SubjectNames:
        """Of entities that are subjects, or that any hyperedge joins, as is said of each; ``[entities]``."""
        long = _extended((), _coded(keys, np.flatnonzero(are_subjects), _ends))
        short = _extended((), _coded(keys, np.arange(len(keys)), _beginnings))
        names = replace(cls.none(), keys=keys, long=long, short=short)
        telling = replace(names, long=tuple(map(_with_few, long)))
        subjects, others = np.full(len(keys), -1, dtype=np.int32), np.flatnonzero(are_there & ~are_subjects)
        for start in range(0, len(others), _TOLD):
            some = others[start : start + _TOLD]
            subjects[some] = telling.subjects_of(keys.ids.take(some), are_subjects.__getitem__)
        told = np.flatnonzero(subjects >= 0)
        weights = np.zeros(len(told), dtype=np.float32)
        of_subject = WeightedAdjacency.from_pairs(subjects[told].astype(np.int64), told, weights, len(keys))
        return replace(names, subject=Column.of(subjects), names=GrowingAdjacency(of_subject))

    def subjects_of(self, names: Sequence[str], is_subject: Test) -> IntArray:
        """The row of the subject that each of some names stands for which are no subjects; -1 where none can be told.

        A name that ends in a subject is that one, "watchman piet adler" Piet Adler, whom extractors do not tell from
        his office; of several it is the longest. A name is short for a subject when its words stand in it in the same
        order and the first or the last of both is the same: "jeffrey smart" for "frank jeffrey edson smart". If it is
        for none, its first word and initials may be the beginnings of words: "ed sullivan", "ann b davis".
        """
        words = [name.split(" ") for name in names]
        found = self._that_end(words, is_subject)
        left = [place for place in np.flatnonzero(found < 0).tolist() if len(words[place]) >= _FEWEST]
        for beginning, is_short_for in ((_whole, _leaves_out), (_letter, _shortens)):
            codes = [_code(beginning(words[place]), words[place][-1]) for place in left]
            similar = self._similar(codes, is_subject)
            undecided = []
            for place, code in zip(left, codes, strict=True):
                subjects = similar.get(code, ())
                if len(subjects) > _MOST:
                    continue
                longer = [row for row, of_subject in subjects if is_short_for(words[place], of_subject)]
                if len(longer) == 1:
                    found[place] = longer[0]
                elif not longer:
                    undecided.append(place)
            left = undecided
        return found

    def of_subjects(self, subjects: IntArray) -> tuple[IntArray, IntArray]:
        """The names that stand for each of some subjects, sorted, and the position in ``subjects`` each belongs to."""
        names, owners, _ = self.names.get_neighbours(subjects)
        stands = self.subject.at(names) == subjects[owners]
        width = len(self.keys)
        owners, names = np.divmod(sort_unique(owners[stands] * width + names[stands]), max(1, width))
        return names, owners

    def _that_end(self, names: Sequence[Sequence[str]], is_subject: Test) -> IntArray:
        """The longest subject that each name ends in; -1 where there is none."""
        found = np.full(len(names), -1)
        endings = [
            (place, " ".join(words[start:]))
            for place, words in enumerate(names)
            for start in range(max(1, len(words) - _MOST_ENDING), len(words) - _FEWEST + 1)
        ]
        rows = self.keys.rows([ending for _, ending in endings])
        known = [(place, row) for (place, _), row in zip(endings, rows, strict=True) if row >= 0]
        are = is_subject(np.array([row for _, row in known], dtype=np.int64)).tolist()
        for (place, row), is_one in zip(known, are, strict=True):
            if is_one and found[place] < 0:
                found[place] = row
        return found

    def _similar(self, codes: Sequence[int], is_subject: Test) -> dict[int, list[tuple[int, list[str]]]]:
        """The subjects that names with some ends may be short for, and by chance others: row and words of each.

        Of a code that more than :data:`_MOST` have, these and one more.
        """
        unique = sorted(set(codes))
        places, rows = self._like(unique, is_subject)
        few = rank_in_group(places) <= _MOST
        places, rows = places[few], rows[few]
        known = sort_unique(rows)
        words = {row: key.split(" ") for row, key in zip(known.tolist(), self.keys.ids.take(known), strict=True)}
        found: defaultdict[int, list[tuple[int, list[str]]]] = defaultdict(list)
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            found[unique[place]].append((row, words[row]))
        return found

    def _like(self, codes: Sequence[int], is_subject: Test) -> tuple[IntArray, IntArray]:
        """The place in ``codes`` and the row of each subject with any of some codes, each pair once, sorted."""
        places, rows = _pairs(self.long, codes)
        known = sort_unique(rows)
        stands = is_subject(known)[known.searchsorted(rows)]
        width = max(1, len(self.keys))
        return np.divmod(sort_unique(places[stands] * width + rows[stands]), width)

    def advanced(
        self, keys: EntityKeys, subjects: IntArray, others: IntArray, is_subject: Test, is_there: Test
    ) -> tuple[SubjectNames, IntArray]:
        """The same after some entities came or went, or became subjects or ceased to be; and whose subject changed.

        Args:
            keys: Of all entities; new ones at the end.
            subjects: Rows of those that became subjects or ceased to be.
            others: Rows of those that came, came again or went altogether.
            is_subject: Tells which of some entities are subjects now.
            is_there: Tells which of them any hyperedge joins now.
        """
        new = np.arange(len(self.keys), len(keys))
        extended = SubjectNames(
            keys,
            _extended(self.long, _coded(keys, subjects, _ends)),
            _extended(self.short, _coded(keys, new, _beginnings)),
            self.subject.extended(np.full(len(new), -1, dtype=np.int32)),
            self.names,
        )
        affected = union([subjects, others, extended._names_for(subjects, is_subject)])
        names = affected[is_there(affected) & ~is_subject(affected)]
        subjects_now = np.full(len(affected), -1)
        stands = np.searchsorted(affected, names)
        subjects_now[stands] = extended.subjects_of(keys.ids.take(names), is_subject)
        return extended._standing_for(affected, subjects_now)

    def _names_for(self, subjects: IntArray, is_subject: Test) -> IntArray:
        """The names that may stand for another subject since some became subjects or ceased to be; not sorted.

        They end in one of these, or are short for it; or so many subjects are like it that one more decides whether
        any of them is compared.
        """
        changed: defaultdict[int, list[list[str]]] = defaultdict(list)
        known = tuple(self.keys.ids.take(subjects))
        for words in (key.split(" ") for key in known):
            for code in _shortened(words):
                changed[code].append(words)
        codes = sorted(changed)
        like = np.bincount(self._like(codes, is_subject)[0], minlength=len(codes))
        more = np.array([len(changed[code]) for code in codes], dtype=np.int64)
        is_decided = ((like + more <= _MOST) | (like - more > _MOST)).tolist()
        begun = {word[:end] for key in known for word in key.split(" ") for end in range(1, len(word) + 1)}
        places, rows = _pairs(self.short, codes)
        names = [
            row
            for place, row, key in zip(places.tolist(), rows.tolist(), self.keys.ids.take(rows), strict=True)
            if not is_decided[place]
            or ((key.partition(" ")[0] in begun or key.endswith(known)) and _may_mean(key, changed[codes[place]]))
        ]
        return np.array(names, dtype=np.int64)

    def _standing_for(self, rows: IntArray, after: IntArray) -> tuple[SubjectNames, IntArray]:
        before = self.subject.at(rows).astype(np.int64)
        changed = before != after
        rows, after = rows[changed], after[changed]
        if not len(rows):
            return self, rows
        leads = after >= 0
        nothing = np.zeros(leads.sum(), dtype=np.float32)
        names = self.names.extended(after[leads], rows[leads], nothing)
        return replace(self, subject=self.subject.replaced(rows, after), names=names), rows


def _coded(keys: EntityKeys, rows: IntArray, codes: Callable[[Sequence[str]], Iterable[int]]) -> Lookup:
    """Some entities, by codes of their words."""
    listed, ends = array("Q"), array("q")
    for row in rows.tolist():
        listed.extend(codes(keys[row].split(" ")))
        ends.append(len(listed))
    return Lookup.of(np.array(listed), np.repeat(rows, np.diff(ends, prepend=0)))


def _extended(parts: tuple[Lookup, ...], entries: Lookup) -> tuple[Lookup, ...]:
    return grown(parts, entries) if len(entries) else parts


def _with_few(lookup: Lookup) -> Lookup:
    """Of each code that more than :data:`_MOST` rows have, these and one more: no name is compared with them."""
    few = rank_in_group(lookup.hashes.astype(np.int64)) <= _MOST
    return Lookup(lookup.hashes[few], lookup.rows[few])


def _pairs(parts: tuple[Lookup, ...], codes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The place in ``codes`` and the row of each entry with any of some codes; some may come more than once."""
    pairs = [part.pairs(codes) for part in (*parts, _NO_ENTRIES)]
    places, rows = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return places, rows


def _ends(words: Sequence[str]) -> set[int]:
    """Codes of the first and last word, or first letter and last word, of all that a name may be shortened to."""
    if not _FEWEST <= len(words) <= _LONGEST:
        return set()
    ends = {(words[0], word) for word in words[1:]} | {(word, words[-1]) for word in words[:-1]}
    return {_code(first, last) for word, last in ends for first in (word, word[0])}


def _beginnings(words: Sequence[str]) -> set[int]:
    """Codes under which a name is found by the subjects it may be short for, or end in."""
    if len(words) < _FEWEST:
        return set()
    return {_code(words[0], words[-1]), _code(words[0][0], words[-1]), _ending_code(words)}


def _shortened(words: Sequence[str]) -> set[int]:
    """Codes of the names that may stand for a subject of these words."""
    return _ends(words) | ({_ending_code(words)} if len(words) >= _FEWEST else set())


def _code(first: str, last: str) -> int:
    return crc32(f"{first} {last}".encode("utf-8", "surrogatepass"))


def _ending_code(words: Sequence[str]) -> int:
    """Of the last two words; apart from the codes of ends."""
    return 2**32 + _code(words[-2], words[-1])


def _whole(words: Sequence[str]) -> str:
    return words[0]


def _letter(words: Sequence[str]) -> str:
    return words[0][0]


def _may_mean(key: str, subjects: Iterable[Sequence[str]]) -> bool:
    """Whether a name, by its key, ends in any of some subjects, or is short for it."""
    name = key.split(" ")
    return any(name[-len(subject) :] == subject or _shortens(name, subject) for subject in subjects)


def _leaves_out(short: Sequence[str], long: Sequence[str]) -> bool:
    """Whether a name is another without some of its words."""
    rest = iter(long)
    return all(word in rest for word in short)


def _shortens(short: Sequence[str], long: Sequence[str]) -> bool:
    """The same where the first word, and single letters, stand for any word that begins with them."""
    next_one = 0
    for place, word in enumerate(short):
        begins = place == 0 or len(word) == 1
        last = len(long) - (len(short) - place)
        while next_one <= last and not (long[next_one] == word or (begins and long[next_one].startswith(word))):
            next_one += 1
        if next_one > last:
            return False
        next_one += 1
    return True
