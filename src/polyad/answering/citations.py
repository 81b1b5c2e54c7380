"""Citations by number: assigns the numbers, finds them in a reply, and locates the cited passages.

The number of a passage of the evidence is its rank, also if the token budget omits passages. So ``[3]`` is the same
passage for the model, the reader and the trace. Passages of hyperedges that are not in the evidence have the following
numbers, in the order of their first use.

A citation is a bracket of numbers: ``[1]``, ``[1, 2]``, ``[1-3]``, or several brackets in a row. A number from 1000 to
2999 is no citation: ``[1999]`` is a year. Other forms that models write are replaced by such a bracket:
``【1†source】`` (OpenAI), ``[citation:1]`` (DeepSeek), ``[^1]``, ``[Passage 1]``, digits of any script. Brackets with
unknown numbers only are removed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyad.errors import NotFoundError
from polyad.model import Answer, Citation, Location, Origin, Passage, ScoredPassage, Span
from polyad.protocols.lookups import get_all
from polyad.protocols.store import Store
from polyad.text.words import separate_markup

LARGEST_NUMBER = 999
"""The largest number of a source; larger ones never have a source."""

_BLANK = r"[ \t\n]*"
_NUMBER = r"(?:[0-9]{5,99}|[03-9][0-9]{3}|[0-9]{1,3})"
_DASH = r"[-\u2013]"
_ITEM = rf"{_NUMBER}(?:{_BLANK}{_DASH}{_BLANK}{_NUMBER})?"
_LONGEST_PLAIN = 1000
"""Characters between the brackets of a list of numbers."""

_PLAIN = (
    rf"(?=\[[0-9 \t\n,;\u2013-]{{1,{_LONGEST_PLAIN}}}\])\[{_BLANK}{_ITEM}(?:{_BLANK}[,;]{_BLANK}{_ITEM})*{_BLANK}\]"
)
CITATION_LABEL = r"(?:[\^#]|(?:citation|passage|source|ref)s?[ :#_]{1,2})?"
"""Pattern of what replies write before the number of a citation, such as the ``citation:`` of DeepSeek's models."""

_LABELLED_ITEM = rf"{CITATION_LABEL}{_NUMBER}(?:{_DASH}{_NUMBER})?"
_OPENING = "[\u3010\uff3b"
_NO_BRACKET = r"[^\[\u3010\uff3b\]\u3011\uff3d\n]"
_PLACE = rf"(?:\u2020{_NO_BRACKET}{{0,40}})?"
_NOT_PLAIN = rf"[\[\u3010\uff3b]{_LABELLED_ITEM}(?:[,;] ?{_LABELLED_ITEM}){{0,3}}{_PLACE}[\]\u3011\uff3d]"
_LONGEST = 128
"""Characters of a bracket that is not plain."""

_ANY_DIGITS = re.compile(r"[\[\u3010\uff3b][\d \t\n,;\u060c\u061b\u3001\uff0c\u2013-]+[\]\u3011\uff3d]")
_ASCII_COMMAS = str.maketrans("\u060c\u061b\u3001\uff0c", ",;,,")
_BRACKET = re.compile(rf"((?:(?<![^\S\n])[^\S\n]+)?)({_PLAIN}|{_NOT_PLAIN})", re.IGNORECASE)
_IS_PLAIN = re.compile(_PLAIN)
_UNFINISHED = re.compile(rf"[\[\u3010\uff3b]{_NO_BRACKET}{{0,{_LONGEST}}}")
_RANGE = re.compile(rf"({_NUMBER})(?:{_BLANK}{_DASH}{_BLANK}({_NUMBER}))?")
_INSIDE = frozenset("0123456789,;-\u2013 \t\n")

_NO_ABBREVIATION = r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMrs)(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)(?<!\b[A-Z])"
_STOP = rf"{_NO_ABBREVIATION}[.!?][\"'\u201d\u2019)]*(?=\s|\[|\Z)|[\u3002\uff01\uff1f]"
_SENTENCE_END = re.compile(rf"(?:(?:{_STOP})(?:[^\S\n]*\[[0-9 \t\n,;\u2013-]+\])*\.?|\n)\s*")


_Place = tuple[str, Location, Origin]


@dataclass(frozen=True, slots=True)
class CitableSource:
    """A numbered passage in a prompt; an answer cites it by this number."""

    number: int
    passage_id: str
    document_id: str
    text: str


class Numbering:
    """The citation number of each passage in one prompt; a passage gets its number on first use.

    Args:
        passages: Passages of the evidence, best first.
        limit: Largest number that a prompt may contain.
    """

    def __init__(self, passages: Sequence[ScoredPassage], limit: float = LARGEST_NUMBER) -> None:
        self.limit = limit
        self._numbers: dict[str, int] = {}
        for number, scored in enumerate(passages, start=1):
            self._numbers.setdefault(scored.passage.id, number)
        self._next = len(passages) + 1

    def get_number(self, passage_id: str) -> int:
        """Return the citation number of a passage; a passage without number gets the next free number."""
        if passage_id not in self._numbers:
            self._numbers[passage_id] = self._next
            self._next += 1
        return self._numbers[passage_id]


def get_document_id(passage_id: str) -> str:
    """Return the document id with which a passage id begins: ``notes.md`` for ``notes.md#4``.

    See :mod:`polyad.model`.

    >>> get_document_id("notes#1.md#4")
    'notes#1.md'
    """
    return passage_id.rpartition("#")[0] or passage_id


@dataclass(frozen=True, slots=True)
class CitationMark:
    """A citation in an answer: its number, and the span of its bracket in the answer text."""

    number: int
    bracket: Span


class CitationFilter:
    """Removes citations of nonexistent sources, such as ``[9]``, from a streamed answer, and makes markup inactive.

    Args:
        numbers: The numbers of the sources.

    Attributes:
        text: The text that was returned so far.
        cited: The citations in this text, in order.
        dropped: Number of citations of other numbers.

    >>> citations = CitationFilter(frozenset({1, 2}))
    >>> citations.feed("Rome [1, 7] fell [9") + citations.feed("].") + citations.finish()
    'Rome [1] fell.'
    >>> citations.dropped
    2
    >>> citations.feed(" ![a][7]") + citations.feed("(http://x)") + citations.finish()
    ' ![a] (http://x)'
    """

    def __init__(self, numbers: frozenset[int]) -> None:
        self.text = ""
        self.cited: list[CitationMark] = []
        self.dropped = 0
        self._valid_numbers = numbers
        self._held = ""
        self._blank: list[str] = []  # pieces of white space behind what is held
        self._gap: str | None = None  # white space in front of a bracket just removed

    def feed(self, piece: str) -> str:
        """Add the next piece of a streamed answer, and return the new text without invalid citations."""
        if piece.isspace():
            self._blank.append(piece)
            return ""
        self._held += "".join([*self._blank, piece])
        self._blank = []
        return self._take(_measure_settled_text(self._held))

    def finish(self) -> str:
        """Return the last characters of a streamed answer, without trailing white space."""
        return self._take(len(self._held.rstrip()))

    def _take(self, length: int) -> str:
        piece, self._held = _ANY_DIGITS.sub(_write_in_ascii, self._held[:length]), self._held[length:]
        before = len(self.text)
        position = 0
        for match in _BRACKET.finditer(piece):
            self._add_words(piece[position : match.start()])
            self._add_bracket(match[1], match[2])
            position = match.end()
        self._add_words(piece[position:])
        return self.text[before:]

    def _add_words(self, words: str) -> None:
        if not words:
            return
        if self._gap is not None and (not self.text or self.text.endswith("\n")):
            words = words.lstrip(" \t")  # it was behind a bracket that began the line
        self._gap = None
        last = self.text[-1:]
        self.text += separate_markup(last + words)[len(last) :]

    def _add_bracket(self, space: str, bracket: str) -> None:
        numbers = _parse_numbers(bracket)
        valid = [number for number in numbers if number in self._valid_numbers]
        self.dropped += len(numbers) - len(valid)
        if not valid:
            self._gap = self._gap or space
            return
        if len(valid) < len(numbers) or not _IS_PLAIN.fullmatch(bracket):
            bracket = f"[{', '.join(map(str, valid))}]"
        space = space or self._gap or ""
        self._gap = None
        self.text += space if self.text else ""
        span = Span(len(self.text), len(self.text) + len(bracket))
        self.text += bracket
        self.cited += [CitationMark(number, span) for number in valid]


class Claims:
    """The sentences of an answer, to find the claim that a citation supports."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bounds = [0, *(end.end() for end in _SENTENCE_END.finditer(text)), len(text)]
        self._trimmed: dict[tuple[int, int], Span] = {}

    def find_sentence(self, citation: Span) -> Span:
        """Return the span of the sentence that a citation belongs to; ``citation`` is the span of its bracket.

        A citation after a full stop belongs to the sentence before it. A line break inside a bracket ends no sentence.
        """
        start = self._bounds[bisect_right(self._bounds, citation.start, hi=len(self._bounds) - 1) - 1]
        end = self._bounds[bisect_left(self._bounds, citation.end, lo=1)]
        if (start, end) not in self._trimmed:
            sentence = self._text[start:end]
            first = start + len(sentence) - len(sentence.lstrip())
            self._trimmed[start, end] = Span(first, first + len(sentence.strip()))
        return self._trimmed[start, end]


def _measure_settled_text(text: str) -> int:
    """Return the length of the text before a citation bracket that is incomplete at the end of ``text``."""
    opening = max(map(text.rfind, _OPENING))
    is_open = opening >= max(0, len(text) - _LONGEST_PLAIN - 1) and (
        _INSIDE.issuperset(text[opening + 1 :]) or _UNFINISHED.fullmatch(text, opening)
    )
    end = opening if is_open else len(text)
    return len(text[:end].rstrip())


def _write_in_ascii(bracket: re.Match[str]) -> str:
    """Return a bracket of numbers in ASCII; models write the digits of the language of the answer."""
    return re.sub(r"\d", lambda digit: str(int(digit[0])), bracket[0].translate(_ASCII_COMMAS))


def _parse_numbers(bracket: str) -> list[int]:
    """Return the distinct citation numbers in a bracket; "[2-4]" gives 2, 3 and 4."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(bracket.partition("\u2020")[0]):
        low, high = sorted((int(first), int(last or first)))
        numbers.update(dict.fromkeys(range(low, min(high, LARGEST_NUMBER) + 1) or [low]))
    return list(numbers)


def add_locations(answer: Answer, store: Store) -> Answer:
    """Return the answer; each citation also has the title, location and origin of its passage."""
    places = {hit.passage.id: (hit.passage.title, hit.location, hit.origin) for hit in answer.evidence.passages}
    for citation in answer.citations:
        if citation.passage_id not in places and (place := _find_place(citation.passage_id, store)):
            places[citation.passage_id] = place
    citations = (_add_location(citation, places.get(citation.passage_id)) for citation in answer.citations)
    return replace(answer, citations=tuple(citations))


def _find_place(passage_id: str, store: Store) -> _Place | None:
    """Return title, location and origin of a passage from the store; None if the passage was deleted."""
    try:
        (passage,) = get_all(store, Passage, [passage_id])
        (origin,) = get_all(store, Origin, [passage.document_id])
    except NotFoundError:
        return None
    return passage.title, passage.location, origin


def _add_location(citation: Citation, place: _Place | None) -> Citation:
    if place is None:
        return citation
    title, location, origin = place
    return replace(citation, title=title, location=location, origin=origin)
