"""Hits: adjacent passages as one result, passages cut to their best spans, and copies of a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Self

import numpy as np

from polyad.model import Excerpt, FloatArray, Hyperedge, Location, Origin, Passage, ScoredPassage, Span
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.text.lexicon import FUNCTION_WORDS
from polyad.text.sentences import HEADING_SEPARATOR, join_headings
from polyad.text.words import find_words, normalize_words

PART_SEPARATOR = " … "
"""Replaces text that a hit leaves out."""

_MAX_GAP = 40
"""Characters between adjacent passages; the splitter leaves out nothing but white space."""

_SHINGLE_WORDS = 5
"""Words in a shingle, the unit in which texts are compared."""

_COPY_SHARE = 0.9
"""Share of a text's shingles in another text, from which on it is a copy."""


@dataclass(frozen=True, slots=True)
class TextFingerprint:
    """The word n-grams (shingles) and numbers of a text, by which near-duplicate texts are recognised.

    Attributes:
        shingles: Every run of five words; all words of a shorter text.
        numbers: Words that contain a digit.
    """

    shingles: frozenset[tuple[str, ...]]
    numbers: frozenset[str]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Compute the word n-grams and numbers of a text, to recognise near-duplicates."""
        words = normalize_words(text)
        runs = (
            zip(*(words[start:] for start in range(_SHINGLE_WORDS)), strict=False)
            if len(words) >= _SHINGLE_WORDS
            else [tuple(words)]
        )
        numbers = (word for word in words if not word.isalpha() and any(map(str.isdigit, word)))
        return cls(frozenset(runs), frozenset(numbers))

    def is_contained_in(self, other: TextFingerprint) -> bool:
        """Return whether the text ``other`` contains almost all word n-grams of this text, and all its numbers.

        >>> contains = TextFingerprint.from_text
        >>> contains("Pump P-17 -- see the MANUAL.").is_contained_in(contains("Pump P-17: see the manual, or ask."))
        True
        >>> contains("Open in 2023 as well.").is_contained_in(contains("Open in 2024 as well."))
        False
        """
        shared = len(self.shingles & other.shingles)
        return self.numbers <= other.numbers and shared >= _COPY_SHARE * len(self.shingles)


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of a text (a sentence or a hyperedge) with the similarity of the span to the question.

    Attributes:
        span: Characters of the passage's text.
        similarity: Higher is more similar.
    """

    span: Span
    similarity: float


RankSpans = Callable[[Sequence[Passage]], Sequence[Sequence[ScoredSpan]]]
"""Returns the hyperedges of each passage, the most similar to the question first; the whole text if there are none."""


class SpanRanker:
    """Ranks the hyperedges of passages, as spans of their text, by similarity to a question.

    Args:
        snapshot: The index.
        question: The question.
        embedder: Embeds the question when the first passage is ranked; None to count common words.
    """

    def __init__(self, snapshot: Snapshot, question: str, embedder: Embedder | None) -> None:
        self._snapshot = snapshot
        self._question = question
        self._embedder = embedder
        self._spans_by_id: dict[str, Sequence[ScoredSpan]] = {}

    def __call__(self, passages: Sequence[Passage]) -> Sequence[Sequence[ScoredSpan]]:
        """Return the hyperedges of each passage as spans, the most similar first, ties in text order."""
        missing = [passage for passage in passages if passage.id not in self._spans_by_id]
        if missing:
            self._spans_by_id.update(zip((passage.id for passage in missing), self._rank(missing), strict=True))
        return [self._spans_by_id[passage.id] for passage in passages]

    def _rank(self, passages: Sequence[Passage]) -> list[Sequence[ScoredSpan]]:
        row_by_id = self._snapshot.find_rows("passage", [passage.id for passage in passages])
        positions = [position for position, passage in enumerate(passages) if passage.id in row_by_id]
        rows = np.array([row_by_id[passages[position].id] for position in positions], dtype=np.int64)
        edge_rows, owners = self._snapshot.graph.hyperedges(rows)
        edges = self._snapshot.get(Hyperedge, edge_rows.tolist())
        if self._embedder:
            similarities = self._snapshot.cosines("hyperedge", edge_rows, self._vector).tolist()
        else:
            similarities = [
                len(self._words & set(normalize_words(edge.text))) / max(1, len(self._words)) for edge in edges
            ]
        spans: list[list[ScoredSpan]] = [[] for _ in passages]
        for edge, owner, similarity in zip(edges, owners.tolist(), similarities, strict=True):
            length = len(passages[positions[owner]].text)
            span = Span(min(max(edge.start, 0), length), min(max(edge.end, 0), length))
            if span.start < span.end:
                spans[positions[owner]].append(ScoredSpan(span, similarity))
        return [
            sorted(passage_spans, key=lambda scored: (-scored.similarity, scored.span.start, scored.span.end))
            or [ScoredSpan(Span(0, len(passage.text)), 0.0)]
            for passage, passage_spans in zip(passages, spans, strict=True)
        ]

    @cached_property
    def _vector(self) -> FloatArray:
        assert self._embedder is not None
        vector: FloatArray = self._embedder.encode([self._question], "query")[0]
        return vector

    @cached_property
    def _words(self) -> set[str]:
        return set(normalize_words(self._question)) - FUNCTION_WORDS


@dataclass(slots=True)
class Hit:
    """A search hit under construction: one passage, or several adjacent passages of a document.

    Attributes:
        best: The passage of the hit with the highest rank.
        passages: The best passage and adjacent ones, in document order.
        spans: Displayed spans of the only passage; None if all of it is displayed.
        fingerprints: Fingerprints of the passages.
        copies: Passages with the same text, and their documents.
    """

    best: ScoredPassage
    passages: list[Passage]
    spans: list[Span] | None = None
    fingerprints: list[TextFingerprint] = field(default_factory=list)
    copies: list[tuple[Passage, Origin]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The id of the best passage, which is also the id of the hit."""
        return self.best.passage.id

    def is_adjacent(self, passage: Passage) -> bool:
        """Return whether a passage directly precedes or follows this hit in its document; False for a shortened hit."""
        is_whole = self.spans is None
        return is_whole and (_is_next(self.passages[-1], passage) or _is_next(passage, self.passages[0]))

    def merge(self, other: Hit) -> None:
        """Merge the hit ``other``, whose passage precedes or follows, into this hit."""
        self.passages = sorted([*self.passages, *other.passages], key=lambda passage: passage.start)
        self.fingerprints += other.fingerprints
        self.copies += other.copies

    def get_document_spans(self) -> list[Span]:
        """Return the displayed spans of the hit as character offsets in the document."""
        first = self.passages[0].start
        if self.spans is None:
            return [Span(first, self.passages[-1].end)]
        return [Span(first + span.start, first + span.end) for span in self.spans]

    def to_scored_passage(self) -> ScoredPassage:
        """Return the hit as a single scored passage, with the id and score of its best passage."""
        return replace(self.best, passage=self._build_passage(), copies=self._locate_copies())

    def build_excerpt(self, text: str, spans: Sequence[Span], highlight: Span, cited: Span) -> Excerpt:
        """Build a hit's excerpt from ``spans`` of its text, with their location.

        Args:
            text: The text of the hit.
            spans: The displayed spans.
            highlight: The best span.
            cited: The span whose pages are cited.
        """
        offsets = (spans[0].start, spans[-1].end, cited.start, cited.end)
        start, end, *cited_offsets = map(self._find_document_offset, offsets)
        return Excerpt(
            join_spans(text, spans),
            *(start, end, highlight),
            sheet=self.best.passage.sheet,
            slide=self.best.passage.slide,
            cited=Span(*cited_offsets),
        )

    def _find_document_offset(self, offset: int) -> int:
        """Convert a character offset in a hit's text to an offset in the document's text."""
        first, last = self.passages[0], self.passages[-1]
        if self.spans is None:
            return min(first.start + offset, last.end)
        for span in self.spans[:-1]:
            if offset <= (length := span.end - span.start):
                return first.start + span.start + offset
            offset = max(0, offset - length - len(PART_SEPARATOR))
        return min(first.start + self.spans[-1].start + offset, last.end)

    def _locate_copies(self) -> tuple[tuple[Origin, Location], ...]:
        """Return the (document, location) pairs of all passages that repeat the hit's text."""
        merged: list[tuple[Passage, Origin]] = []
        for passage, origin in sorted(self.copies, key=lambda copy: (copy[0].document_id, copy[0].start)):
            if merged and _is_next(merged[-1][0], passage):
                merged[-1] = merge_passages([merged[-1][0], passage], passage), origin
            else:
                merged.append((passage, origin))
        return tuple((origin, passage.location) for passage, origin in merged)

    def _build_passage(self) -> Passage:
        passage = self.best.passage
        if self.spans is not None:
            text = _join_parts(passage.text, self.spans)
            start, end = self.spans[0].start, self.spans[-1].end
            return replace(passage, text=text, start=passage.start + start, end=passage.start + end)
        return merge_passages(self.passages, passage) if len(self.passages) > 1 else passage

    def translate_span(self, passage_id: str, span: Span) -> Span | None:
        """Convert a span of the passage ``passage_id`` to a span of the hit's text; None if not displayed whole."""
        if self.spans is None:
            passage = next(passage for passage in self.passages if passage.id == passage_id)
            offset = passage.start - self.passages[0].start
            return Span(span.start + offset, span.end + offset)
        length = 0
        for displayed in self.spans:
            if displayed.start <= span.start and span.end <= displayed.end:
                return Span(length + span.start - displayed.start, length + span.end - displayed.start)
            length += displayed.end - displayed.start + len(PART_SEPARATOR)
        return None

    def list_displayed_spans(self, spans_by_id: Mapping[str, Sequence[ScoredSpan]]) -> list[ScoredSpan]:
        """Return the spans of passages that the hit displays, converted to spans of the hit's text.

        Args:
            spans_by_id: Hyperedges of each passage, by the passage's id.
        """
        return [
            ScoredSpan(displayed, scored.similarity)
            for passage in self.passages
            for scored in spans_by_id[passage.id]
            if (displayed := self.translate_span(passage.id, scored.span))
        ]


def merge_passages(passages: Sequence[Passage], best: Passage) -> Passage:
    """Return one passage that joins adjacent ``passages``, with the id of ``best``, which is one of the passages."""
    first = passages[0]
    texts = [first.text]
    for previous, passage in pairwise(passages):
        gap = passage.start - previous.end
        # White space as long as the gap, so that offsets stay: a space, or a blank line if the gap is longer.
        texts += [" " * gap if gap < 2 else "\n\n".ljust(gap), passage.text[max(0, -gap) :]]
    heading = join_headings(passage.heading.split(HEADING_SEPARATOR) for passage in passages if passage.heading)
    return replace(best, text="".join(texts), start=first.start, end=passages[-1].end, page=first.page, heading=heading)


def _is_next(first: Passage, second: Passage) -> bool:
    """Return whether the second passage directly follows the first in the same section, sheet or slide."""
    gap = second.start - first.end
    return (
        (first.document_id, first.title, first.sheet, first.slide)
        == (second.document_id, second.title, second.sheet, second.slide)
        and _parse_position(second) == _parse_position(first) + 1
        and all(len(passage.text) == passage.end - passage.start for passage in (first, second))
        and first.start < second.start
        and first.end < second.end
        and gap <= _MAX_GAP
        and (gap >= 0 or first.text[gap:] == second.text[:-gap])
    )


def _parse_position(passage: Passage) -> int:
    """Parse the position of a passage in its document from the passage's id; -2 if the id has none."""
    number = passage.id.rpartition("#")[2]
    return int(number) if number.isdecimal() else -2


def find_overlap(passage: Passage, spans: Iterable[Span]) -> list[Span]:
    """Return the overlap of a passage with ``spans`` of its document, as spans of the passage's text."""
    overlap = []
    for span in spans:
        start, end = max(span.start, passage.start), min(span.end, passage.end)
        if start < end:
            overlap.append(Span(start - passage.start, end - passage.start))
    return overlap


def select_spans(
    text: str, ranked: Iterable[ScoredSpan], max_words: int, excluded_spans: Iterable[Span] = ()
) -> list[Span]:
    """Return the best of the ``ranked`` spans of a text that fit into ``max_words`` words, in text order.

    Args:
        text: The text of a passage.
        ranked: Spans of the text, best first; spans that do not fit are skipped.
        max_words: Number of words that fit, outside ``excluded_spans``.
        excluded_spans: Spans that another hit displays; their words are left out and not counted.

    Returns:
        Disjoint spans; empty if no span fits.
    """
    words = find_words(text)
    starts = [word.start for word in words]
    is_free = [True] * len(words)

    def get_word_range(span: Span) -> range:
        return range(bisect_left(starts, span.start), bisect_left(starts, span.end))

    for span in excluded_spans:
        for index in get_word_range(span):
            is_free[index] = False
    selected: list[int] = []
    for scored in ranked:
        free = [index for index in get_word_range(scored.span) if is_free[index]]
        if len(free) <= max_words:
            max_words -= len(free)
            selected += free
            for index in free:
                is_free[index] = False
    return _join_words(words, sorted(selected))


def _join_words(words: Sequence[Span], word_indexes: Sequence[int]) -> list[Span]:
    """Return the spans of the words at the sorted ``word_indexes``; consecutive words share one span."""
    spans = []
    for _, group in groupby(enumerate(word_indexes), key=lambda pair: pair[1] - pair[0]):
        run = [index for _, index in group]
        spans.append(Span(words[run[0]].start, words[run[-1]].end))
    return spans


def select_first_words(text: str, span: Span, count: int) -> list[Span]:
    """Return the span of the first ``count`` words in ``span`` of a text; no span if there are no words."""
    words = find_words(span.of(text))[:count]
    return [Span(span.start + words[0].start, span.start + words[-1].end)] if words else []


def _join_parts(text: str, spans: Sequence[Span]) -> str:
    """Return the texts of ``spans``, joined by ellipses of equal length, so that offsets can be computed."""
    separators = ["", *(_build_separator(text, before, span) for before, span in pairwise(spans))]
    return "".join(separator + span.of(text) for separator, span in zip(separators, spans, strict=True))


def join_spans(text: str, spans: Sequence[Span]) -> str:
    """Return the texts of ``spans``, joined by ellipses; line breaks and indentation of the text are preserved."""
    pieces = [span.of(text) for span in spans[:1]]
    for before, span in pairwise(spans):
        separator = _build_separator(text, before, span)
        indent = text[text.rfind("\n", 0, span.start) + 1 : span.start] if separator.endswith("\n") else ""
        pieces += [separator, indent, span.of(text)]
    return "".join(pieces)


def _build_separator(text: str, first: Span, second: Span) -> str:
    """Return the ellipsis between two spans of a text, followed by a line end if ``second`` begins a line."""
    _, line_end, indent = text[first.end : second.start].rpartition("\n")
    return PART_SEPARATOR[:-1] + "\n" if line_end and not indent.strip() else PART_SEPARATOR
