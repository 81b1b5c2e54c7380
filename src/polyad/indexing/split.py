"""Cuts documents into passages of whole sentences, by exact character spans.

Tokens are counted by a rule, so that a limit means the same on every machine and under every embedding model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import NamedTuple

from polyad.config import SHORT_PASSAGES, SplitSettings
from polyad.indexing.sentences import sentences, trim
from polyad.model import Span
from polyad.text.counting import TOKEN, count_tokens
from polyad.text.paragraphs import paragraphs

_FULL_ENOUGH = 0.6
"""Share of ``passage_tokens`` that a passage holds at least when it ends early, with a paragraph."""


class _Unit(NamedTuple):
    """What passages are packed from: a sentence, or a piece of one that exceeds a passage by itself.

    Attributes:
        start: Offset in the text.
        end: Offset behind it.
        tokens: In it.
        whole: Whether it is a sentence.
        opens: Whether a paragraph begins with it, and what is before it is no heading.
    """

    start: int
    end: int
    tokens: int
    whole: bool
    opens: bool = False


class SentenceSplitter:
    """Splits at the ends of sentences.

    Args:
        settings: The limits, and the language of the rules. An unknown language has the rules common to all.
        usual: Tokens of a passage and of its overlap where the settings do not say.
    """

    def __init__(self, settings: SplitSettings | None = None, usual: tuple[int, int] = SHORT_PASSAGES) -> None:
        self._settings = (settings or SplitSettings()).sized(usual)
        self._limit, self._most_shared = self._settings.passage_tokens or 0, self._settings.overlap_tokens or 0

    @property
    def name(self) -> str:
        """The settings that decide where texts are cut."""
        return f"sentences-2 {astuple(self._settings)}"

    def passages(self, text: str, breaks: Sequence[int] = ()) -> list[Span]:
        """Spans of the passages in ``text``, in order; none for blank text, one for a text without breaks that fits.

        A passage holds whole sentences, at most ``passage_tokens`` of them together, and begins with the sentences at
        the end of the passage before, as many as fit into ``overlap_tokens``. A sentence that exceeds a passage by
        itself is cut between words, a word that does between characters, and shares no passage with what is before it.
        Rather than in the middle of a paragraph a passage ends before it, if it is 60 % full there.

        It goes across ``breaks`` only between sections of fewer than ``section_tokens``, one after another.
        """
        return [
            Span(part.start + span.start, part.start + span.end)
            for part in self._parts(text, breaks)
            for span in self._of_part(part.of(text))
        ]

    def _parts(self, text: str, breaks: Sequence[int]) -> list[Span]:
        """The text in parts that no passage goes across."""
        starts = sorted({0, *(place for place in breaks if 0 < place < len(text))})
        sections = [Span(start, end) for start, end in pairwise([*starts, len(text)])]
        parts: list[Span] = []
        before = self._settings.section_tokens  # in the part before; nothing joins what is not there
        for section in sections:
            tokens = self.count_tokens(section.of(text)) if len(sections) > 1 else 0
            if max(before, tokens) < self._settings.section_tokens:
                parts[-1] = Span(parts[-1].start, section.end)
                before += tokens
            else:
                parts.append(section)
                before = tokens
        return parts

    def _of_part(self, text: str) -> list[Span]:
        whole = trim(text, 0, len(text))
        if whole is None:
            return []
        limit = self._limit
        if whole.end - whole.start <= limit or self.count_tokens(text) <= limit:
            return [whole]
        return self._pack(self._units(text))

    def sentences(self, text: str) -> list[Span]:
        """Spans of the sentences in ``text``, in order; see :func:`polyad.indexing.sentences.sentences`."""
        return sentences(text, self._settings.language)

    def count_tokens(self, text: str) -> int:
        """Estimated length of ``text`` in tokens; see :func:`polyad.text.counting.count_tokens`."""
        return count_tokens(text)

    def _units(self, text: str) -> Iterator[_Unit]:
        limit = self._limit
        starts = paragraphs(text)
        begun = end = 0
        for sentence in self.sentences(text):
            before, begun = begun, bisect_right(starts, sentence.start)
            opens = begun > before and not _introduces(text[end - 1 : end])
            end = sentence.end
            tokens = self.count_tokens(sentence.of(text))
            if tokens <= limit:
                yield _Unit(sentence.start, sentence.end, tokens, whole=True, opens=opens)
            else:
                yield from _cut(text, sentence, limit)

    def _pack(self, units: Iterator[_Unit]) -> list[Span]:
        spans: list[Span] = []
        current: list[_Unit] = []
        repeated = 0  # of the current ones, from the passage before
        total = 0
        for unit in units:
            if current and (not unit.whole or total + unit.tokens > self._limit):
                size = self._size([*current, unit], repeated)
                spans.append(Span(current[0].start, current[size - 1].end))
                overlap = self._overlap(current[:size], [*current[size:], unit])
                current = [*overlap, *current[size:]]
                repeated = len(overlap)
                total = sum(kept.tokens for kept in current)
            current.append(unit)
            total += unit.tokens
        spans.append(Span(current[0].start, current[-1].end))
        return spans

    def _size(self, units: Sequence[_Unit], repeated: int) -> int:
        """How many of the units make a passage, when the last is one too many: up to a paragraph, if that is near.

        What is left over has to fit into a passage, and some of the units have to be new.
        """
        limit = self._limit
        size = len(units) - 1
        if not units[-1].whole:
            return size
        held, left = sum(unit.tokens for unit in units) - units[-1].tokens, units[-1].tokens
        while size > repeated and held >= _FULL_ENOUGH * limit and left <= limit:
            if units[size].opens:
                return size
            size -= 1
            held -= units[size].tokens
            left += units[size].tokens
        return len(units) - 1

    def _overlap(self, passage: list[_Unit], following: Sequence[_Unit]) -> list[_Unit]:
        """The sentences at the end of ``passage`` that are repeated before ``following``.

        They never include the rest of a cut sentence: that begins a passage, and a whole passage is never repeated,
        because what follows did not fit behind it.
        """
        if not following[0].whole:
            return []
        room = self._limit - sum(unit.tokens for unit in following)
        room = min(self._most_shared, room)
        first = len(passage)
        while first > 0 and passage[first - 1].tokens <= room:
            first -= 1
            room -= passage[first].tokens
        return passage[first:]


def _introduces(last: str) -> bool:
    """Whether what ends with a character belongs to what follows: a heading, or the words before a list."""
    return last.isalnum() or last == ":"


def _cut(text: str, sentence: Span, limit: int) -> Iterator[_Unit]:
    """Pieces of at most ``limit`` tokens, cut between words where a word does not exceed the limit by itself."""
    start = word = sentence.start
    tokens = tokens_before_word = 0
    end = end_before_word = sentence.start
    for match in TOKEN.finditer(text, sentence.start, sentence.end):
        if match.start() > end:
            word, end_before_word, tokens_before_word = match.start(), end, tokens
        if tokens == limit:
            if word == start:
                word, end_before_word, tokens_before_word = match.start(), end, tokens
            yield _Unit(start, end_before_word, tokens_before_word, whole=False)
            start, tokens = word, tokens - tokens_before_word
        tokens += 1
        end = match.end()
    yield _Unit(start, end, tokens, whole=False)
