"""BM25 over the words of passages: for each word the passages that hold it, and how often.

Robertson and others, 1994: the score of a passage is the sum over the words w of a question of

    idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length)),    idf(w) = ln((N - n + 0.5) / (n + 0.5))

with f how often the passage holds w, N the number of passages and n of those that hold w. A word that half of them
hold or more counts next to nothing. Words are taken from the rarest on, and those whose passages cannot come among the
best by themselves are looked up for the passages that can: what most passages hold costs no scan (Turtle and Flood,
1995).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import expand_ranges
from polyad.hypergraph.sparse import find_top_positions
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.columns import Column
from polyad.snapshot.growing import Presence, grown
from polyad.snapshot.ids import Ids
from polyad.snapshot.string_table import Hashes, hash_of
from polyad.text.terms import searched_words, words_and_codes_of

K1 = 1.2
B = 0.75

_LEAST_IDF = 1e-6

_LONG = 2000
"""Passages from which on a word may be left for looking up."""

_FEW = 16
"""Times as many passages that hold a word as have gone: then these are looked up among them."""

_ROUNDING = 1e-6
"""By how much a score may change when it is rounded."""

Counts = npt.NDArray[np.uint16]

Scores = npt.NDArray[np.float64]

Holders = tuple[IntArray, Counts]
"""Passages, sorted, and how often each holds a word."""


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Which passages hold which words.

    Attributes:
        hashes: Of the words, sorted; uint64 ``[words]``.
        offsets: The passages of word i are ``rows[offsets[i]:offsets[i + 1]]``, sorted; int64 ``[words + 1]``.
        rows: int32 ``[pairs]``.
        counts: How often each holds the word; uint16 ``[pairs]``.
    """

    hashes: Hashes
    offsets: IntArray
    rows: IntArray
    counts: Counts

    @classmethod
    def of(cls, hashes: Hashes, rows: IntArray, counts: Counts) -> Postings:
        """From parallel arrays of word, passage and count, each pair once, in any order."""
        order = np.lexsort((rows, hashes))
        hashes = hashes[order]
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
        offsets = np.append(starts, len(hashes)).astype(np.int64)
        return cls(hashes[starts], offsets, rows[order].astype(np.int32), counts[order])

    @classmethod
    def none(cls) -> Postings:
        """Of no passages."""
        nothing = np.empty(0, dtype=np.int64)
        return cls.of(nothing.astype(np.uint64), nothing, nothing.astype(np.uint16))

    @classmethod
    def merged(cls, parts: Sequence[Postings]) -> Postings:
        """All of some postings, of which each is of passages after those of the one before."""
        if len(parts) == 1:
            return parts[0]
        hashes = np.unique(np.concatenate([part.hashes for part in parts]))
        places = [np.searchsorted(hashes, part.hashes) for part in parts]
        offsets = np.zeros(len(hashes) + 1, dtype=np.int64)
        for part, own in zip(parts, places, strict=True):
            offsets[own + 1] += np.diff(part.offsets)
        np.cumsum(offsets, out=offsets)
        rows, counts = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.uint16)
        ends = offsets[:-1].copy()
        for part, own in zip(parts, places, strict=True):
            often = np.diff(part.offsets)
            into = expand_ranges(ends[own], often)
            rows[into], counts[into] = part.rows, part.counts
            ends[own] += often
        return cls(hashes, offsets, rows, counts)

    def __len__(self) -> int:
        return len(self.rows)

    def among(self, is_there: BoolArray) -> Postings:
        """Those of passages that are there, by their rows."""
        stays = is_there[self.rows]
        gone = np.flatnonzero(~stays)
        if not len(gone):
            return self
        return Postings(
            self.hashes, self.offsets - gone.searchsorted(self.offsets), self.rows[stays], self.counts[stays]
        )

    def joined(self, other: Postings) -> Postings:
        """Both; the other's passages come after these."""
        return Postings.merged([self, other])

    def of_words(self, hashes: Hashes) -> list[Holders]:
        """The passages that hold each of some words, sorted, and how often each."""
        starts, ends = (self.hashes.searchsorted(hashes, side) for side in ("left", "right"))
        bounds = zip(self.offsets[starts].tolist(), self.offsets[ends].tolist(), strict=True)
        return [(self.rows[start:end], self.counts[start:end]) for start, end in bounds]


def counted_words(texts: Iterable[str], first_row: int) -> tuple[Postings, IntArray]:
    """The postings of some passages, whose rows follow one another, and their lengths in words."""
    known: dict[str, int] = {}
    words: list[int] = []
    counts: list[int] = []
    sizes: list[int] = []
    lengths: list[int] = []
    for text in texts:
        plain, codes = words_and_codes_of(text)
        found = Counter(plain)
        found.update(codes)
        words.extend([known.setdefault(word, len(known)) for word in found])
        counts.extend(found.values())
        sizes.append(len(found))
        lengths.append(len(plain))
    hashes = np.array([hash_of(word) for word in known], dtype=np.uint64)
    rows = np.repeat(np.arange(first_row, first_row + len(sizes)), sizes)
    many = np.minimum(np.array(counts, dtype=np.int64), np.iinfo(np.uint16).max).astype(np.uint16)
    postings = Postings.of(hashes[np.array(words, dtype=np.int64)], rows, many)
    return postings, np.array(lengths, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class WordIndex:
    """The words of the passages of a snapshot.

    Attributes:
        parts: Postings of passages that came one after the other; those that went since are still in them.
        lengths: Of every passage in words, gone ones too.
        there: Which passages have not gone.
        gone: Rows of those that have and are still in the postings, sorted.
        total_length: Of those that are there.
    """

    parts: tuple[Postings, ...]
    lengths: Column
    there: Presence
    gone: IntArray
    total_length: int

    @classmethod
    def none(cls) -> WordIndex:
        """Of no passages."""
        return cls((), Column.of(np.empty(0, dtype=np.int32)), Presence.none(), _nothing(), 0)

    @property
    def passages(self) -> int:
        """How many there are."""
        return self.there.count - self.there.gone

    def advanced(self, there: Presence, gone: IntArray, postings: Sequence[Postings], lengths: IntArray) -> WordIndex:
        """The same after some passages went, whose rows are sorted, and others came."""
        parts = grown(self.parts, Postings.merged(postings)) if any(map(len, postings)) else self.parts
        total = self.total_length - int(self.lengths.at(gone).sum()) + int(lengths.sum())
        all_gone = np.insert(self.gone, self.gone.searchsorted(gone), gone) if len(gone) else self.gone
        return WordIndex(parts, self.lengths.extended(lengths), there, all_gone, total)

    def frequencies(self, words: Sequence[str]) -> IntArray:
        """How many passages hold each word."""
        return np.array([self._frequency(parts) for parts in self._holders(words)], dtype=np.int64)

    def holds(self, words: Sequence[str], passages: IntArray) -> BoolArray:
        """Which of some words each of some passages holds, ``[passages, words]``."""
        held = np.zeros((len(passages), len(words)), dtype=bool)
        for column, parts in enumerate(self._holders(words)):
            for rows, counts in parts:
                held[:, column] |= _counts_at(rows, counts, passages) > 0
        return held

    def best(self, words: Sequence[str], k: int) -> tuple[IntArray, FloatArray]:
        """The passages with the ``k`` highest scores, and all whose score equals the last of these; by row."""
        found = [(self._idf(n), parts) for parts in self._holders(words) if (n := self._frequency(parts))]
        found.sort(key=lambda pair: -pair[0])
        most = np.array([idf * (K1 + 1) for idf, _ in found])
        scores = np.zeros(self.there.count, dtype=np.float64)
        reached: list[IntArray] = []
        for place, (idf, parts) in enumerate(found):
            if place and sum(len(rows) for rows, _ in parts) > _LONG:
                rows = self._there(reached)
                rest = most[place:].sum()
                if rest < (least := _kth(scores[rows], k)):
                    rows = np.sort(rows[scores[rows] >= least - rest - _ROUNDING])
                    return _highest(*self._looked_up(rows, scores[rows], found[place:], most[place:], k), k)
            for holders, counts in parts:
                rows = holders.astype(np.int64)  # numpy would make them so at each use
                before = scores[rows]
                scores[rows] = before + idf * self._weights(rows, counts)
                reached.append(rows[before == 0])
        rows = np.sort(self._there(reached))
        return _highest(rows, scores[rows], k)

    def _there(self, reached: Sequence[IntArray]) -> IntArray:
        """Those of some passages that have not gone."""
        rows = np.concatenate([_nothing(), *reached])
        return rows[self.there.at(rows)] if len(self.gone) else rows

    def _looked_up(
        self,
        rows: IntArray,
        scores: Scores,
        words: Sequence[tuple[float, list[Holders]]],
        most: npt.NDArray[np.float64],
        k: int,
    ) -> tuple[IntArray, Scores]:
        """Some passages, by row, with their scores when all words are added; without those that are not the best then.

        Args:
            rows: Sorted.
            scores: Of each, without the words.
            words: With the inverse document frequency of each.
            most: What each can add at most.
            k: How many of the best are looked for.
        """
        for place, (idf, parts) in enumerate(words, start=1):
            for holders, counts in parts:
                scores += idf * self._weights(rows, _counts_at(holders, counts, rows))
            may_be_best = scores >= _kth(scores, k) - most[place:].sum() - _ROUNDING
            rows, scores = rows[may_be_best], scores[may_be_best]
        return rows, scores

    def _weights(self, rows: IntArray, counts: Counts) -> npt.NDArray[np.float64]:
        mean = max(self.total_length / max(1, self.passages), 1e-9)
        often = counts.astype(np.float64)
        weights: npt.NDArray[np.float64] = (
            often * (K1 + 1) / (often + (K1 * B / mean * self.lengths.at(rows) + K1 * (1 - B)))
        )
        return weights

    def _idf(self, frequency: int) -> float:
        return max(_LEAST_IDF, float(np.log((self.passages - frequency + 0.5) / (frequency + 0.5))))

    def _holders(self, words: Sequence[str]) -> list[list[Holders]]:
        """The passages that hold each word and how often each does, gone ones too; of each part that knows it."""
        hashes = np.array([hash_of(word) for word in words], dtype=np.uint64)
        of_parts = [part.of_words(hashes) for part in self.parts]
        return [[own[place] for own in of_parts if len(own[place][0])] for place in range(len(words))]

    def _frequency(self, holders: Sequence[Holders]) -> int:
        """How many of them have not gone."""
        return sum(len(rows) - self._gone_among(rows) for rows, _ in holders)

    def _gone_among(self, rows: IntArray) -> int:
        """How many of some rows, which are sorted, have gone."""
        if _FEW * len(self.gone) > len(rows):
            return len(rows) - int(self.there.at(rows).sum())
        gone = self.gone.astype(rows.dtype)
        places = np.minimum(rows.searchsorted(gone), len(rows) - 1)
        return int((rows[places] == gone).sum())


def _counts_at(rows: IntArray, counts: Counts, passages: IntArray) -> Counts:
    """How often each of some passages holds a word, by those that do."""
    # Of the same type: of another, all that hold the word would be converted first.
    places = np.minimum(rows.searchsorted(passages.astype(rows.dtype)), len(rows) - 1)
    found: Counts = np.where(rows[places] == passages, counts[places], 0).astype(np.uint16)
    return found


def _highest(rows: IntArray, scores: Scores, k: int) -> tuple[IntArray, FloatArray]:
    """The passages with the ``k`` highest scores, and all whose score equals the last of these."""
    values = np.round(scores, 6).astype(np.float32)
    if len(rows) <= k:
        return rows, values
    best = values >= np.partition(values, -k)[-k]
    return rows[best], values[best]


def _kth(values: npt.NDArray[np.float64], k: int) -> float:
    return float(np.partition(values, -k)[-k]) if len(values) >= k else 0.0


def _nothing() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PassageWords:
    """The words of a snapshot; implements :class:`polyad.protocols.snapshot.TermIndex`."""

    index: WordIndex
    ids: Ids

    def search(self, question: str, k: int) -> tuple[IntArray, FloatArray]:
        """The ``k`` best passages that share a word with a question, and their BM25 scores; best first."""
        rows, scores = self.index.best(searched_words(question), k)
        places = find_top_positions(scores, k, lambda chosen: self.ids.order(rows[chosen]))
        return rows[places], scores[places]

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term."""
        return self.index.frequencies(terms)

    def contains(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; shape ``[passages, terms]``."""
        return self.index.holds(terms, passages)
