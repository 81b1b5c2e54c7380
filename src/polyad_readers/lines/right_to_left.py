"""Orders the letters of right-to-left lines of a PDF page by their positions.

Depending on the program that wrote the file, PDFium returns such lines in order or reversed, by letters or by words,
and exchanges the letters of a ligature. The positions do not depend on that. A number or a word of Latin
letters runs from left to right within the line (Unicode Bidirectional Algorithm, UAX 9).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_LETTERS = "\u0590-\u05ff\u0600-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
RIGHT_TO_LEFT = re.compile(f"[{_LETTERS}]")
_ARABIC = re.compile("[\u0620-\u064a]")
_LATIN = re.compile(rf"[^\W\d_{_LETTERS}]")
_SIGN = "[$€£¥%#°]*"
_LEFT_TO_RIGHT_RUN = re.compile(rf"{_SIGN}[^\W_{_LETTERS}](?:[^{_LETTERS}\n\t]*[^\W_{_LETTERS}])?{_SIGN}")
_RIGHT_TO_LEFT_RUN = re.compile(rf"[{_LETTERS}](?:(?:[^\w\t]|[\d{_LETTERS}])*[{_LETTERS}])?")
_NUMBER = re.compile(rf"{_SIGN}\d(?:[\d.,:/-]*\d)?{_SIGN}")
_ARABIC_NUMBER = re.compile(r"\d(?:[\d.,:/\u066b\u066c]*\d)?")
_LAM_ALEF = re.compile("\u0644[\u0622\u0623\u0625\u0627]")
_BRACKETS = re.compile("[()\\[\\]]")
_MIRRORED = str.maketrans("()[]", ")(][")

_SPACE, _TAB = 0.13, 2.0
"""Least gap between words and between table cells, as multiples of the type size."""


class Glyph(NamedTuple):
    """A character of a PDF page, with the origin and the horizontal bounds of its glyph in points."""

    text: str
    origin: float
    left: float
    right: float


def order_letters(glyphs: Iterable[Glyph], size: float) -> str:
    """Return the text of one line with right-to-left letters in reading order.

    Args:
        glyphs: The characters of the line in any order, except that characters of one glyph are adjacent.
        size: Type size in points.
    """
    clusters = _group_by_origin(glyphs)
    marks = [cluster for cluster in clusters if unicodedata.combining(cluster.text[0])]
    bases = sorted((cluster for cluster in clusters if not unicodedata.combining(cluster.text[0])), key=_get_middle)
    texts = [cluster.text for cluster in bases]
    for mark in marks if bases else ():
        texts[_find_nearest(bases, _get_middle(mark))] += mark.text
    latin, letters = (sum(len(kind.findall(text)) for text in texts) for kind in (_LATIN, RIGHT_TO_LEFT))
    is_left_to_right = latin > letters
    if not is_left_to_right:
        bases.reverse()
        texts.reverse()
    text = "".join(separator + cluster for separator, cluster in zip(_find_separators(bases, size), texts, strict=True))
    text = _turn_words(text) if is_left_to_right else _turn_brackets(_turn_numbers(text))
    return unicodedata.normalize("NFC", text)


def _group_by_origin(glyphs: Iterable[Glyph]) -> list[Glyph]:
    """Return the glyphs of a line without white space, where the characters of each ligature are one text."""
    clusters: list[list[Glyph]] = []
    for glyph in glyphs:
        if glyph.text.isspace():
            continue
        if clusters and abs(clusters[-1][-1].origin - glyph.origin) < 0.01:
            clusters[-1].append(glyph)
        else:
            clusters.append([glyph])
    return [
        Glyph(
            _order_ligature("".join(glyph.text for glyph in cluster)),
            cluster[0].origin,
            min(cluster[0].origin, *(glyph.left for glyph in cluster)),
            max(glyph.right for glyph in cluster),
        )
        for cluster in clusters
    ]


def _order_ligature(text: str) -> str:
    """Return the characters of one glyph in reading order: PDFium reverses letters; lam always precedes alef."""
    letters = "".join(character for character in text if not unicodedata.combining(character))
    if len(letters) > 1 and RIGHT_TO_LEFT.match(letters) and not _LAM_ALEF.fullmatch(letters):
        letters = letters[::-1]
    return letters + "".join(filter(unicodedata.combining, text))


def _find_nearest(glyphs: Sequence[Glyph], middle: float) -> int:
    """Return the index of the glyph whose middle is nearest; the glyphs are sorted by their middles."""
    after = bisect_left(glyphs, middle, 1, len(glyphs) - 1, key=_get_middle) if len(glyphs) > 1 else 0
    return min({max(0, after - 1), after}, key=lambda place: (abs(_get_middle(glyphs[place]) - middle), place))


def _find_separators(glyphs: Sequence[Glyph], size: float) -> list[str]:
    """Return the white space before each of the ordered ``glyphs``, by the gap to the preceding glyph."""
    separators = [""] * len(glyphs)
    for place in range(1, len(glyphs)):
        first, second = sorted(glyphs[place - 1 : place + 1], key=_get_middle)
        gap = (second.left - first.right) / (size or 1)
        separators[place] = "\t" if gap > _TAB else " " if gap > _SPACE else ""
    return separators


def _get_middle(glyph: Glyph) -> float:
    return (glyph.left + glyph.right) / 2


def _turn_numbers(text: str) -> str:
    """Return a line that was read from right to left, with its numbers and Latin words from left to right.

    Signs and hyphens belong to a number between Hebrew letters, but not between Arabic letters (UAX 9, rules W2 to W5).
    """
    number = _ARABIC_NUMBER if _ARABIC.search(text) else _NUMBER

    def turn(run: re.Match[str]) -> str:
        return run[0][::-1] if _LATIN.search(run[0]) else number.sub(lambda match: match[0][::-1], run[0])

    return _LEFT_TO_RIGHT_RUN.sub(turn, text)


def _turn_words(text: str) -> str:
    """Return a line that was read from left to right, with its right-to-left words from right to left."""
    return _RIGHT_TO_LEFT_RUN.sub(lambda run: _turn_numbers(run[0][::-1]), text)


def _turn_brackets(text: str) -> str:
    """Return a line whose brackets open before they close: some programs store the sign that a mirrored one shows."""
    first = _BRACKETS.search(text)
    is_mirrored = first is not None and first[0] in ")]" and text.translate(_MIRRORED).count(first[0]) > 0
    return text.translate(_MIRRORED) if is_mirrored else text
