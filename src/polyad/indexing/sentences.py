"""Finds the sentences of a text, by exact character spans.

They are found by sentencex, which is made for Wikimedia's languages and works without a model. It knows running text:
so it is given a paragraph at a time, and a copy of it in which what would mislead it is replaced, character for
character. It is given short windows rather than whole paragraphs, because its time grows with the square of the length
of Chinese and of quotations.
"""

# ruff: noqa: RUF001  marks of quotation, and signs that look alike

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from sentencex import segment  # type: ignore[import-untyped]  # has no stubs

from polyad.model import Span
from polyad.text.counting import TOKEN
from polyad.text.paragraphs import BULLETS, OPENING, paragraphs

_UNSAFE = re.compile("[^\\S ]|[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What makes sentencex panic or refuse: white space beyond blank and newline, control characters, surrogates."""

_QUOTED_LINE = re.compile(r"(?m)^[^\S\n]*>[^\S\n>]*(?:>[^\S\n>]*)*")
_BULLET = re.compile(rf"^\s*[{BULLETS}]+")
_OPENING = re.compile(rf"^\s*(?:{OPENING.pattern})")
_SIGN = re.compile(r"[^\w\s]")
_DOTS = re.compile(r"\.(?:\.{3,}+|(?: \.){3,}+)| \.(?: \.){2,}+")
_PAGE = re.compile(r"[^\S\n]*\w{1,6}[^\S\n]*$", re.MULTILINE)
"""What follows the dots of a table of contents. Looked for once a run: one pattern took quadratic time."""


def _after(words: str) -> str:
    """What holds behind the point of one of some words."""
    return "|".join(rf"(?<=\b{word}\.)" for word in words.split())


_ABBREVIATION = re.compile(
    r"\.(?=\s)(?:"
    rf"(?:{_after('fig figs vol vols p pp ch chs chap sec secs sect eq eqs para paras')})(?=\s+[\dIVXLC])"
    rf"|(?:{_after('no nos art arts tab tabs cl reg app')})(?=\s+\d)"
    rf"|{_after('conf dept lieut mons proc ste tel trans univ')})",
    re.IGNORECASE,
)
"""The points of those that sentencex does not know, where they end no sentence: before a number, or before anything.

This pattern and those below look for a sign, then behind it: what begins by looking behind is tried at each letter.
"""

_MARK = re.compile(r"--+|—|[_*](?<![\w*][_*])[_*]*+(?=\w)")
"""What hides the word behind it: a dash without a space, the beginning of something emphasised."""

_LONG_QUOTATION = re.compile(
    r"[“‘«„「『\"'(\[（](?:(?<=“)(?=[^”]{100})|(?<=‘)(?=[^’]{100})|(?<=«)(?=[^»]{100})|(?<=„)(?=[^“”]{100})"
    r"|(?<=[「『])(?=[^」』]{100})|(?<![^\s(\[—–-][\"'])(?:(?<=\")(?=[^\"]{100})|(?<=')(?=[^']{100}))"
    r"|(?<=[(\[（])(?=[^()\[\]（）]{200}))"
)
"""Marks before a quotation or remark that is too long to be kept as part of one sentence, or is never closed."""

_WINDOW = 2048
"""Characters given to sentencex at once. At this length Chinese costs up to 8 ms a window, English 0.04 ms."""

_LONGEST = 240
"""Tokens, about 200 words: longer sentences are cut where they best can be. Small encoders read no more at once."""

_SECONDARY = (
    re.compile(r"[;；](?=\s|$)|[；]|(?:--|—)|\n(?=[^\S\n])"),
    re.compile(r"\n"),
    re.compile(r"[,，、](?=\s|$)|[，、]"),
)
"""Where an overlong sentence is cut, the best first."""


def sentences(text: str, language: str) -> list[Span]:
    """Spans of the sentences in ``text``, in order, disjoint; together they hold all but white space.

    No sentence runs across the beginning of a paragraph; see :func:`polyad.text.paragraphs.paragraphs`. A sentence of
    more than 200 words is cut at a semicolon, dash, line end or comma, if it has any. Time is linear in the length of
    the text.

    Args:
        text: Any.
        language: Code (ISO 639, perhaps with a region). An unknown one has the rules common to all.
    """
    cuts = [0]
    for start, end in pairwise([*paragraphs(text), len(text)]):
        cuts.extend(start + place for place in _ends(text[start:end], language.lower()))  # as sentencex writes codes
    cuts[1 if len(cuts) == 1 else -1 :] = [len(text)]
    whole = (trim(text, start, end) for start, end in pairwise(cuts))
    return [part for span in whole if span is not None for part in _shortened(text, span)]


def trim(text: str, start: int, end: int) -> Span | None:
    """The range without surrounding white space; None when nothing is left."""
    part = text[start:end]
    stripped = part.lstrip()
    if not stripped:
        return None
    start = end - len(stripped)
    return Span(start, start + len(stripped.rstrip()))


def _ends(paragraph: str, language: str) -> Iterator[int]:
    """Where the sentences of a paragraph end, white space and signs before the next left to it.

    What holds no word is the end of the sentence before it. Nothing ends before a small letter in the text of a writer
    who begins sentences with capitals.
    """
    copy = _without_what_misleads(paragraph)
    end, first = 0, ""
    for start, piece in _pieces(copy, language):
        holds_words = any(map(str.isalnum, piece))
        if end and holds_words and not (first.isupper() and piece.lstrip()[0].islower()):
            yield end
            first = ""
        first = first or next(filter(str.isalpha, piece), "")
        kept = len(piece.rstrip())
        if kept and (end or holds_words):
            end = start + kept
    if end or copy.strip():
        yield end or len(copy.rstrip())


def _pieces(copy: str, language: str) -> Iterator[tuple[int, str]]:
    """What sentencex makes of a text of any length, with the offsets; a blank piece too."""
    start = done = 0
    while start < len(copy):
        window = copy[start : start + _WINDOW]
        pieces = _segment(window, language)
        if start + len(window) < len(copy):
            if len(pieces) == 1:  # none ends here; half is given again, lest the end of one fall between two windows
                start += _half(window)
                continue
            pieces.pop()  # cut off by the window, so the next one begins with it
        for piece in pieces:
            start += len(piece)
            yield done, copy[done:start]
            done = start


def _half(window: str) -> int:
    """The middle of a window, or the end of the word before it."""
    middle = len(window) // 2
    return max(window.rfind(" ", middle // 2, middle), 0) or middle


def _without_what_misleads(paragraph: str) -> str:
    """A copy of the same length with blanks for signs before a line, long quotations and remarks, and dot leaders."""
    copy = _QUOTED_LINE.sub(_blank, paragraph)
    copy = _DOTS.sub(_without_leaders, copy)
    copy = _LONG_QUOTATION.sub(" ", copy)
    copy = _MARK.sub(_blank, copy)
    copy = _ABBREVIATION.sub(",", copy)
    return _UNSAFE.sub(" ", copy)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _without_leaders(dots: re.Match[str]) -> str:
    return _blank(dots) if _PAGE.match(dots.string, dots.end()) else dots.group()


def _without_signs(found: re.Match[str]) -> str:
    return _SIGN.sub(" ", found.group())


def _segment(window: str, language: str) -> list[str]:
    """What sentencex makes of ``window``, or all of it in one piece should the library fail or alter it.

    A list sign at its beginning would make one sentence of it all, so the library does not see it.
    """
    seen = _OPENING.sub(_without_signs, _BULLET.sub(_blank, window, count=1), count=1)
    try:
        pieces: list[str] = segment(language, seen)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a Rust panic is no Exception, and cannot be imported
            raise
        return [window]
    return pieces if "".join(pieces) == seen else [window]


def _shortened(text: str, sentence: Span) -> Iterator[Span]:
    """The sentence, or its parts if it is overlong: each at most so long where there is a place to cut it."""
    if sentence.end - sentence.start <= _LONGEST:
        yield sentence
        return
    ends = [token.end() for token in TOKEN.finditer(text, sentence.start, sentence.end)]
    start, first = sentence.start, 0
    while len(ends) - first > _LONGEST:
        cut = _best_cut(text, ends[first + _LONGEST // 3], ends[first + _LONGEST - 1])
        if cut is None:
            first += _LONGEST // 2  # nowhere to cut, so the part goes on
            continue
        part = trim(text, start, cut)
        if part is not None:
            yield part
        start, first = cut, bisect_right(ends, cut)
    part = trim(text, start, sentence.end)
    if part is not None:
        yield part


def _best_cut(text: str, start: int, end: int) -> int | None:
    """The last of the best places to cut a range at."""
    for boundary in _SECONDARY:
        places = [found.end() for found in boundary.finditer(text, start, end)]
        if places:
            return places[-1]
    return None
