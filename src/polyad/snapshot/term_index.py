"""BM25 over the terms of passages: an inverted index of the passages that contain each term.

Robertson et al., 1994: the score of a passage is the sum over the terms t of a question of

    idf(t) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length)),    idf(t) = ln((N - n + 0.5) / (n + 0.5))

with f the frequency of t in the passage, N the number of passages and n of those that contain t. A term in half of the
passages or more counts almost nothing. Terms are added from the rarest on. Once the remaining terms cannot lift a new
passage into the best k, they are looked up only for the passages that can still reach the best k, so that frequent
terms cost no scan (Turtle and Flood, 1995).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.sparse import find_top_positions, union
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.snapshot.columns import Column, LiveRows, StringColumn, hash_strings
from polyad.snapshot.segments import Segment, SegmentList
from polyad.snapshot.vocabulary import Vocabulary
from polyad.text.clause_numbers import MARK
from polyad.text.date_terms import DATE_MARK, find_date_terms
from polyad.text.file_names import FILE_MARK, parse_file_label
from polyad.text.function_words import find_language_evidence, infer_language, list_languages
from polyad.text.words import (
    extract_search_terms,
    extract_terms,
    extract_terms_and_codes,
    find_vocabulary,
    infer_question_language,
)

_FACTORS = {MARK: 3.0, DATE_MARK: 2.0, FILE_MARK: 3.0}
"""Weights of terms by their first character. The number of a clause gains more than a passage that names this number
and the word "clause" often."""

_LABEL_FREQUENCY = 2
"""Frequency of a date in the name or the metadata of a document in each of its passages."""

K1 = 1.2
B = 0.75

_LANGUAGE = "¶"
"""Before the code of a passage's language: a search term, which no question has, whose postings have its passages."""

_MIN_IDF = 1e-6

_LOOKUP_FROM = 2000
"""Passages with a term from which on the term may be looked up instead of scanned."""

_MAX_BLOCK = 64
"""Scores whose maximum is taken together."""

_SEARCH_FACTOR = 16
"""A posting list at least this many times as long as the deleted passages is searched for them by bisection."""

_ROUNDING = 1e-4
"""Largest change of a score by rounding, which is to float32 in the end."""

Counts = npt.NDArray[np.uint16]

Scores = npt.NDArray[np.float64]

_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)

PostingList = tuple[IntArray, Counts]
"""The passages that contain a term, sorted, and the frequency of the term in each."""


class Postings(NamedTuple):
    """The terms of some passages.

    Attributes:
        segment: The rows of the passages that contain each term, with the frequency of the term in each passage.
        lengths: Number of words of each passage; int32 ``[passages]``.
        words: The distinct words of the passages as they are written, in lower case and in order.
    """

    segment: Segment
    lengths: IntArray
    words: Collection[str]


def build_postings(
    texts: Iterable[str],
    first_row: int,
    document_ids: Iterable[str] = (),
    dates: Iterable[str] = (),
    families: Iterable[Sequence[str]] = (),
) -> Postings:
    """Return the posting lists of passage texts; passage rows begin at ``first_row``.

    Args:
        texts: Title and text of each passage.
        first_row: Row of the first passage.
        document_ids: Id of each passage's document, whose file name counts among the passage's terms.
        dates: Date in the metadata of each passage's document; empty for none.
        families: Terms of the family of versions of each passage's document, which only its first passage has.
    """
    vocabulary: dict[str, None] = {}
    label = _LabelTerms("", "", "")
    term_numbers: dict[str, int] = {}
    terms: list[int] = []
    frequencies: list[int] = []
    sizes: list[int] = []
    lengths: list[int] = []
    for text, document_id, date, family in zip_longest(texts, document_ids, dates, families, fillvalue=""):
        words, codes = extract_terms_and_codes(text)
        vocabulary.update(dict.fromkeys(find_vocabulary(text)))
        counter = Counter(words)
        counter.update(codes)
        if document_id == label.document_id:
            label = label.advance()
        else:
            label = _LabelTerms(document_id, date, text)
            counter.update(family)
        label.add_to(counter)
        if language := find_language_evidence(text):
            counter[_LANGUAGE + language] = 1
        terms.extend([term_numbers.setdefault(term, len(term_numbers)) for term in counter])
        frequencies.extend(counter.values())
        sizes.append(len(counter))
        lengths.append(len(words))
    hashes = hash_strings(term_numbers)
    rows = np.repeat(np.arange(first_row, first_row + len(sizes)), sizes)
    counts = np.minimum(np.array(frequencies, dtype=np.int64), np.iinfo(np.uint16).max).astype(np.uint16)
    postings = Segment.from_entries(hashes[np.array(terms, dtype=np.int64)], rows, counts)
    return Postings(postings, np.array(lengths, dtype=np.int32), vocabulary)


class _LabelTerms:
    """The terms of a document's file name and date, which count in its passages beside their text.

    Args:
        document_id: Id of the document; may be a path.
        date: Date in the document's metadata; may be empty.
        text: Text of the first passage, in whose language the words of the name are stemmed.
    """

    def __init__(self, document_id: str, date: str, text: str) -> None:
        label = parse_file_label(document_id)
        self.document_id = document_id
        self._names, self._weight = (label.names, label.weight) if label else ((), 1)
        self._words = extract_terms(label.words, infer_language(text)) if label else []
        self._dates = set(find_date_terms(f"{label.path if label else ''} {date}"))

    def advance(self) -> _LabelTerms:
        """Return the terms for the next passage, in which the name counts less."""
        self._weight = max(1, self._weight - 1)
        return self

    def add_to(self, counter: Counter[str]) -> None:
        """Add the terms to the frequencies of a passage's terms."""
        counter.update(dict.fromkeys(self._names, self._weight))
        counter.update(dict.fromkeys(self._dates, _LABEL_FREQUENCY))
        counter.update(term for term in dict.fromkeys(self._words) if term not in counter)


@dataclass(frozen=True, eq=False)  # no slots, for the cached property
class PassageTerms:
    """The BM25 index of all passages of a snapshot, which is immutable.

    Attributes:
        postings: Passages by the hashes of their terms, with the frequencies of the terms; with deleted passages.
        lengths: Number of words of each passage; int32 ``[passages]``.
        live: Which passages are live.
        total_length: Sum of the lengths of live passages.
        vocabulary: The words of all passages, also of deleted ones.
        deleted: Rows of the deleted passages that are still in the postings, sorted.
    """

    postings: SegmentList
    lengths: Column
    live: LiveRows
    total_length: int
    vocabulary: Vocabulary
    deleted: IntArray = field(default_factory=lambda: _NO_ROWS)

    @classmethod
    def empty(cls) -> PassageTerms:
        """Return the BM25 index of an index without passages."""
        return cls(SegmentList.empty(), Column.empty(np.int32), LiveRows.empty(), 0, Vocabulary.empty())

    def with_changes(self, live: LiveRows, deleted: IntArray, added: Sequence[Postings]) -> PassageTerms:
        """Return the BM25 index without the passages ``deleted`` and with the posting lists of ``added`` passages.

        Args:
            live: The new mask of live passages.
            deleted: Rows of the deleted passages, sorted.
            added: Posting lists of the added passages.
        """
        lengths = np.concatenate([np.empty(0, dtype=np.int32), *(postings.lengths for postings in added)])
        total_length = self.total_length - int(self.lengths.take(deleted).sum()) + int(lengths.sum())
        postings = self.postings.append(Segment.merge([postings.segment for postings in added]))
        vocabulary = self.vocabulary.append(chain.from_iterable(postings.words for postings in added))
        deleted = union([self.deleted, deleted])
        return PassageTerms(postings, self.lengths.append(lengths), live, total_length, vocabulary, deleted)

    def restrict(self, live: LiveRows) -> PassageTerms:
        """Return the BM25 index of only the passages that are True in the mask ``live``."""
        total_length = int(self.lengths.to_array()[live.mask].sum())
        deleted = (~live.mask).nonzero()[0]
        return PassageTerms(self.postings, self.lengths, live, total_length, self.vocabulary, deleted)

    def compact(self) -> PassageTerms:
        """Merge all posting lists into one segment, remove deleted passages, and return an equal BM25 index."""
        postings = self.postings.compact(self.live.mask)
        return PassageTerms(postings, self.lengths, self.live, self.total_length, self.vocabulary)

    def document_frequencies(self, terms: Sequence[str]) -> IntArray:
        """Return the number of passages that contain each term."""
        return np.array([self._count_live(lists) for lists in self._get_lists(terms)], dtype=np.int64)

    def infer_language(self, question: str) -> str:
        """Return the language of a question, see :func:`polyad.text.words.infer_question_language`."""
        return find_language_evidence(question) or self._language

    @cached_property
    def _language(self) -> str:
        return infer_question_language("", self.document_frequencies)

    def count_languages(self) -> dict[str, int]:
        """Return the number of live passages in each language, by its ISO 639-1 code; zeros are left out."""
        codes = list_languages()
        counts = self.document_frequencies([_LANGUAGE + code for code in codes]).tolist()
        return {code: count for code, count in zip(codes, counts, strict=True) if count}

    def find_in_language(self, code: str) -> IntArray:
        """Return the sorted rows of the live passages in the language with this ISO 639-1 code."""
        return self.find_passages([_LANGUAGE + code])

    def contains(self, terms: Sequence[str], passages: IntArray) -> BoolArray:
        """Return whether each passage contains each term; bool ``[passages, terms]``."""
        is_contained = np.zeros((len(passages), len(terms)), dtype=bool)
        needles = passages.astype(np.int32)  # searchsorted converts the whole posting list if the types differ
        for column, lists in enumerate(self._get_lists(terms)):
            for rows, _ in lists:
                is_contained[:, column] |= rows.take(rows.searchsorted(needles), mode="clip") == needles
        return is_contained

    def find_passages(self, terms: Sequence[str]) -> IntArray:
        """Return the sorted rows of the live passages that contain any of ``terms``."""
        rows = union([_NO_ROWS, *(rows.astype(np.int64) for lists in self._get_lists(terms) for rows, _ in lists)])
        return rows[self.live.are_live(rows)]

    def search(self, question: str, k: int, ids: StringColumn) -> tuple[IntArray, FloatArray]:
        """Return (rows, BM25 scores) of the ``k`` best passages with a score above 0, ties ordered by ``ids``."""
        terms = extract_search_terms(question, self.infer_language(question))
        rows, scores = self._score_passages(terms, k)
        values = np.round(scores, 6).astype(np.float32)
        top = find_top_positions(values, k, lambda positions: ids.rank(rows[positions]))
        return rows[top], values[top]

    def _score_passages(self, terms: Sequence[str], k: int) -> tuple[IntArray, Scores]:
        """Return (rows, BM25 scores) of all passages that may be among the ``k`` best, sorted by row."""
        live_lists = map(self._drop_deleted_if_many, self._get_lists(terms))
        factors = (_FACTORS.get(term[:1], 1.0) for term in terms)
        weighted = [
            (factor * self._compute_idf(n), lists)
            for factor, lists in zip(factors, live_lists, strict=True)
            if (n := self._count_live(lists))
        ]
        weighted.sort(key=lambda pair: -pair[0])
        limits = np.array([idf * (K1 + 1) for idf, _ in weighted])
        scores = np.zeros(len(self.live), dtype=np.float64)
        reached: list[IntArray] = []
        for place, (idf, lists) in enumerate(weighted):
            if place and sum(len(rows) for rows, _ in lists) > _LOOKUP_FROM:
                rows = self._drop_deleted(reached)
                remaining = limits[place:].sum()
                if remaining < (threshold := _find_kth_highest(scores[rows], k)):
                    rows = _sort_runs(rows[scores[rows] >= threshold - remaining - _ROUNDING])
                    return self._score_candidates(rows, scores[rows], weighted[place:], k)
            for passages, counts in lists:
                rows = passages.astype(np.int64)  # numpy converts an int32 index at each use
                before = scores[rows]
                scores[rows] = before + idf * self._compute_term_weights(rows, counts)
                reached.append(rows[before == 0])
        rows = self._drop_deleted(reached)
        rows = _sort_runs(rows[scores[rows] >= _find_kth_highest(scores[rows], k) - _ROUNDING])
        return rows, scores[rows]

    def _drop_deleted(self, reached: Sequence[IntArray]) -> IntArray:
        rows = np.concatenate([_NO_ROWS, *reached])
        return rows[self.live.are_live(rows)] if len(self.deleted) else rows

    def _score_candidates(
        self, rows: IntArray, scores: Scores, remaining_terms: Sequence[tuple[float, list[PostingList]]], k: int
    ) -> tuple[IntArray, Scores]:
        """Add the BM25 scores of ``remaining_terms`` to candidate passages; return those that may be the ``k`` best.

        Args:
            rows: The passages, sorted.
            scores: Scores of the passages without the remaining terms.
            remaining_terms: The inverse document frequency and the posting lists of each remaining term.
            k: Number of best passages.

        Returns:
            Rows and BM25 scores of the remaining candidates.
        """
        max_gains = np.array([idf * (K1 + 1) for idf, _ in remaining_terms])
        for place, (idf, lists) in enumerate(remaining_terms, start=1):
            for passages, counts in lists:
                scores += idf * self._compute_term_weights(rows, _look_up_frequencies(passages, counts, rows))
            may_be_best = scores >= _find_kth_highest(scores, k) - max_gains[place:].sum() - _ROUNDING
            rows, scores = rows[may_be_best], scores[may_be_best]
        return rows, scores

    def _compute_term_weights(self, rows: IntArray, counts: Counts) -> npt.NDArray[np.float64]:
        """Return a term's BM25 weight, without idf, in each of ``rows``, where the term occurs ``counts`` times."""
        mean_length = max(self.total_length / max(1, self.live.live_count), 1e-9)
        frequencies = counts.astype(np.float64)
        weights: npt.NDArray[np.float64] = (
            frequencies * (K1 + 1) / (frequencies + (K1 * B / mean_length * self.lengths.take(rows) + K1 * (1 - B)))
        )
        return weights

    def _compute_idf(self, frequency: int) -> float:
        return max(_MIN_IDF, float(np.log((self.live.live_count - frequency + 0.5) / (frequency + 0.5))))

    def _get_lists(self, terms: Sequence[str]) -> list[list[PostingList]]:
        """Return for each term a posting list per segment; the lists still contain deleted passages."""
        hashes = hash_strings(terms)
        lists: list[list[PostingList]] = [[] for _ in terms]
        for segment in self.postings.segments:
            starts, counts = segment.locate(hashes)
            for place in counts.nonzero()[0].tolist():
                entries = slice(starts[place], starts[place] + counts[place])
                lists[place].append((segment.rows[entries], segment.weights[entries]))
        return lists

    def _drop_deleted_if_many(self, lists: list[PostingList]) -> list[PostingList]:
        """Return the posting lists of a term without deleted passages, unless few passages are deleted."""
        if 2 * len(self.deleted) < len(self.live):
            return lists
        live = [self.live.are_live(rows).nonzero()[0] for rows, _ in lists]
        return [
            (rows.take(positions), counts.take(positions))
            for (rows, counts), positions in zip(lists, live, strict=True)
        ]

    def _count_live(self, lists: Sequence[PostingList]) -> int:
        return sum(len(rows) - self._count_deleted(rows) for rows, _ in lists)

    def _count_deleted(self, rows: IntArray) -> int:
        """Return the number of deleted passages in a sorted posting list."""
        if not len(self.deleted):
            return 0
        if _SEARCH_FACTOR * len(self.deleted) > len(rows):
            return len(rows) - int(np.count_nonzero(self.live.are_live(rows)))
        deleted = self.deleted.astype(rows.dtype)
        places = np.minimum(rows.searchsorted(deleted), len(rows) - 1)
        return int((rows[places] == deleted).sum())


def _look_up_frequencies(rows: IntArray, counts: Counts, passages: IntArray) -> Counts:
    """Return a term's frequency in each of ``passages``, from its posting list (``rows``, ``counts``); 0 if absent."""
    # searchsorted converts the whole posting list if the types differ.
    places = np.minimum(rows.searchsorted(passages.astype(rows.dtype)), len(rows) - 1)
    frequencies: Counts = np.where(rows[places] == passages, counts[places], 0).astype(np.uint16)
    return frequencies


def _sort_runs(rows: IntArray) -> IntArray:
    return np.sort(rows, kind="stable")  # merges the sorted runs of several terms in a tenth of the time


def _find_kth_highest(values: Scores, k: int) -> float:
    """Return the ``k``-th highest of ``values``, 0 if there are fewer."""
    if len(values) < k:
        return 0.0
    # The k-th highest of block maxima is at most the k-th highest value, so few values remain to be compared.
    highest = values[: len(values) // _MAX_BLOCK * _MAX_BLOCK].reshape(-1, _MAX_BLOCK).max(axis=1)
    if len(highest) >= k:
        values = values[values >= np.partition(highest, -k)[-k]]
    return float(np.partition(values, -k)[-k])
