"""Splits documents into passages of whole sentences, by exact character spans.

Tokens are estimated by a rule, so that a limit means the same on every machine and for every embedding model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from polyad.config import SHORT_PASSAGES, SplitSettings
from polyad.model import Span
from polyad.text.sentences import find_labels, find_paragraphs, split_sentences, trim_span
from polyad.text.words import TOKEN, count_tokens

_FULL_ENOUGH = 0.6
"""Smallest share of ``passage_tokens`` in a passage that ends early, at the end of a paragraph."""

_MAX_LABELS = 3
"""Most consecutive terms, headings and introductions that are moved to the passage of the text below them."""


class _Unit(NamedTuple):
    """A sentence or a part of a long sentence: the smallest piece of text that is never divided.

    Attributes:
        start: Offset of the first character in the text.
        end: Offset after the last character.
        tokens: Length in tokens.
        whole: Whether the unit is a whole sentence.
        opens: Whether a paragraph begins with the unit, and the text before the paragraph is not a heading.
        introduces: Whether the unit is a term, heading or introduction that belongs to the next unit.
    """

    start: int
    end: int
    tokens: int
    whole: bool
    opens: bool = False
    introduces: bool = False


class SentenceSplitter:
    """Splits text into passages at the ends of sentences.

    Args:
        settings: Token limits and the language of the sentence rules. An unknown language has the rules common to all.
        default_sizes: Tokens of a passage and of its overlap if the settings do not state them.

    Attributes:
        name: Name of the text splitter: its version and the settings that affect where texts are divided.
    """

    def __init__(self, settings: SplitSettings | None = None, default_sizes: tuple[int, int] = SHORT_PASSAGES) -> None:
        settings = settings or SplitSettings()
        self._limit, self._max_overlap = _get_sizes(settings, default_sizes)
        self._min_section, self._language = settings.section_tokens, settings.language
        self.name = f"sentences-4 {(self._limit, self._max_overlap, self._min_section, self._language)}"

    def passages(self, text: str, breaks: Sequence[int] = ()) -> list[Span]:
        """Return the spans of the passages in ``text``, in order; ``breaks`` are offsets at which sections begin.

        A passage has whole sentences with at most ``passage_tokens`` tokens together. It begins with the last sentences
        of the passage before, as many as fit into ``overlap_tokens``. A sentence that exceeds a passage is cut between
        words, and a word that exceeds a passage between characters; the pieces share no passage with text before them.
        A passage that is at least 60 % full ends before a paragraph rather than within it.

        A passage crosses ``breaks`` only between consecutive sections of fewer than ``section_tokens`` tokens.
        """
        return [
            Span(part.start + span.start, part.start + span.end)
            for part in self._split_at_breaks(text, breaks)
            for span in self._split_part(part.of(text))
        ]

    def _split_at_breaks(self, text: str, breaks: Sequence[int]) -> list[Span]:
        """Return spans that begin at the offsets ``breaks`` of sections; short neighbouring sections form one span."""
        starts = sorted({0, *(place for place in breaks if 0 < place < len(text))})
        sections = [Span(start, end) for start, end in pairwise([*starts, len(text)])]
        parts: list[Span] = []
        previous = self._min_section  # tokens of the part before; no section joins before the first part
        for section in sections:
            tokens = self.count_tokens(section.of(text)) if len(sections) > 1 else 0
            if max(previous, tokens) < self._min_section:
                parts[-1] = Span(parts[-1].start, section.end)
                previous += tokens
            else:
                parts.append(section)
                previous = tokens
        return parts

    def _split_part(self, text: str) -> list[Span]:
        whole = trim_span(text, 0, len(text))
        if whole is None:
            return []
        limit = self._limit
        if whole.end - whole.start <= limit or self.count_tokens(text) <= limit:
            return [whole]
        return self._pack(self._split_units(text))

    def sentences(self, text: str) -> list[Span]:
        """Return the spans (start and end) of the sentences in ``text``, in order."""
        return split_sentences(text, self._language)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in ``text``, estimated by a rule; see :func:`polyad.text.words.count_tokens`."""
        return count_tokens(text)

    def _split_units(self, text: str) -> Iterator[_Unit]:
        limit = self._limit
        starts = find_paragraphs(text)
        sentences = self.sentences(text)
        labels = find_labels(text, sentences)
        paragraphs = [bisect_right(starts, sentence.start) for sentence in sentences]
        is_introduced = True
        for place, sentence in enumerate(sentences):
            opens = not is_introduced and paragraphs[place] > paragraphs[place - 1]
            is_last = paragraphs[place] < paragraphs[min(place + 1, len(sentences) - 1)]  # of its paragraph
            is_introduced = labels[place] or (is_last and _is_introduction(text[sentence.end - 1]))
            tokens = self.count_tokens(sentence.of(text))
            if tokens <= limit:
                yield _Unit(sentence.start, sentence.end, tokens, True, opens, is_introduced)
            else:
                yield from _cut_sentence(text, sentence, limit)

    def _pack(self, units: Iterator[_Unit]) -> list[Span]:
        spans: list[Span] = []
        current: list[_Unit] = []
        repeated = 0  # units of the current passage that are from the passage before
        total = 0
        for unit in units:
            if current and (not unit.whole or total + unit.tokens > self._limit):
                size = self._count_passage_units([*current, unit], repeated)
                spans.append(Span(current[0].start, current[size - 1].end))
                overlap = self._find_overlap(current[:size], [*current[size:], unit])
                current = [*overlap, *current[size:]]
                repeated = len(overlap)
                total = sum(each.tokens for each in current)
            current.append(unit)
            total += unit.tokens
        spans.append(Span(current[0].start, current[-1].end))
        return spans

    def _count_passage_units(self, units: Sequence[_Unit], repeated_count: int) -> int:
        """Return how many of the sentences ``units`` form the next passage, ``repeated_count`` included.

        The passage ends at a nearby end of a paragraph, or contains as many units as fit.

        The first ``repeated_count`` units are repeated from the end of the passage before.

        The remaining units have to fit into a passage, and some units of the passage have to be new.
        """
        limit = self._limit
        size = len(units) - 1
        if not units[-1].whole:
            return size
        used, remaining = sum(unit.tokens for unit in units) - units[-1].tokens, units[-1].tokens
        while size > repeated_count and used >= _FULL_ENOUGH * limit and remaining <= limit:
            if units[size].opens:
                return size
            size -= 1
            used -= units[size].tokens
            remaining += units[size].tokens
        return self._exclude_labels(units, repeated_count)

    def _exclude_labels(self, units: Sequence[_Unit], repeated_count: int) -> int:
        """Return the number of all ``units`` but the last and the terms, headings and introductions before the last.

        More than :data:`_MAX_LABELS` of them are a list, which may be divided anywhere.
        """
        size = len(units) - 1
        while size > repeated_count and units[size - 1].introduces:
            size -= 1
        count = len(units) - 1 - size
        fits = sum(unit.tokens for unit in units[size:]) <= self._limit
        return size if size > repeated_count and count <= _MAX_LABELS and fits else len(units) - 1

    def _find_overlap(self, passage: list[_Unit], following: Sequence[_Unit]) -> list[_Unit]:
        """Return the last sentences of ``passage`` that the next passage repeats before ``following``.

        The end of a cut sentence is never repeated, because it begins a passage. Neither is a whole passage, because
        the following units did not fit behind it.
        """
        if not following[0].whole:
            return []
        room = min(self._max_overlap, self._limit - sum(unit.tokens for unit in following))
        first = len(passage)
        while first > 0 and passage[first - 1].tokens <= room:
            first -= 1
            room -= passage[first].tokens
        while 0 < first < len(passage) and passage[first - 1].introduces:  # a definition is repeated with its term
            first += 1
        return passage[first:]


def _is_introduction(last_character: str) -> bool:
    """Return whether a text introduces the next text: it ends with a colon, letter or digit, not with a full stop."""
    return last_character.isalnum() or last_character == ":"


def _cut_sentence(text: str, sentence: Span, max_tokens: int) -> Iterator[_Unit]:
    """Yield pieces of one sentence, each with at most ``max_tokens`` tokens, cut between words if possible."""
    start = word = sentence.start
    tokens = tokens_before_word = 0
    end = end_before_word = sentence.start
    for match in TOKEN.finditer(text, sentence.start, sentence.end):
        if match.start() > end:
            word, end_before_word, tokens_before_word = match.start(), end, tokens
        if tokens == max_tokens:
            if word == start:
                word, end_before_word, tokens_before_word = match.start(), end, tokens
            yield _Unit(start, end_before_word, tokens_before_word, whole=False)
            start, tokens = word, tokens - tokens_before_word
        tokens += 1
        end = match.end()
    yield _Unit(start, end, tokens, whole=False)


def _get_sizes(settings: SplitSettings, default_sizes: tuple[int, int]) -> tuple[int, int]:
    """Return (maximum tokens of a passage, of its overlap), from ``settings`` or else from ``default_sizes``."""
    length, overlap = default_sizes
    if settings.passage_tokens is not None:
        length, overlap = settings.passage_tokens, settings.passage_tokens // 10
    return length, overlap if settings.overlap_tokens is None else min(settings.overlap_tokens, length - 1)
