"""Extracts the lines of a PDF page with their position and type."""

from __future__ import annotations

import ctypes
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from polyad.errors import MissingExtraError
from polyad.readers.text.plain_text import clean
from polyad_readers.lines.garbled import SUSPECT, is_garbled_line, is_garbled_page
from polyad_readers.lines.right_to_left import RIGHT_TO_LEFT, Glyph, order_letters

try:
    from pypdfium2 import raw  # type: ignore[import-untyped]  # has no stubs
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_PIECE = re.compile("[^\r\n\x02\ufffe]+[\x02\ufffe]?|[\x02\ufffe]")
"""A line as PDFium writes it. U+FFFE, once U+0002, is its hyphen that breaks a word; no line ending follows it."""

_BOLD = re.compile(r"bold|black|heavy|demi|cmb|[-,]bd|bx\d", re.IGNORECASE)
_FIXED = re.compile(r"mono|courier|cmtt|cmsltt|tt\d|xtt|code|consol|menlo|typewriter|fixed", re.IGNORECASE)
_FIXED_FLAG = 1
_LONGEST_NAME = 128
"""Bytes of a font's name that are looked at."""

_X, _Y, _FLAGS, _MATRIX = ctypes.c_double(), ctypes.c_double(), ctypes.c_int(), raw.FS_MATRIX()
_FONT_NAME = ctypes.create_string_buffer(_LONGEST_NAME)
_ORIGIN = ctypes.byref(_X), ctypes.byref(_Y)
_BOX = ctypes.c_double(), ctypes.c_double(), ctypes.c_double(), ctypes.c_double()
_BOX_REFERENCES = tuple(map(ctypes.byref, _BOX))
_FLAGS_REFERENCE, _MATRIX_REFERENCE = ctypes.byref(_FLAGS), ctypes.byref(_MATRIX)
"""Places of PDFium's results; it never runs in two threads at once, and new places for each letter take time."""

_LIGATURE = re.compile("[\ufb00-\ufb06\ufb1d-\ufdff\ufe70-\ufefc]")
"""A Latin ligature or a Hebrew or Arabic letter in the form that it has in a word (presentation form)."""

_LOOSE_ACCENT = re.compile("([\xa8\xaf\xb4\xb8\u02c6\u02c7\u02d8-\u02dd])([^\\W\\d_])")
"""An accent that was set as a sign of its own before its letter, as TeX does it with older fonts."""

_COMBINING = {"\u02c6": "\u0302", "\u02c7": "\u030c"}
"""The combining forms of accents that Unicode does not decompose."""

_LEVEL = 0.3
"""Largest difference of two baselines in one row, as a multiple of the type size."""

_DOTLESS = {"\u0131": "i", "\u0237": "j"}


class Piece(NamedTuple):
    """The text of a line between two wide gaps, with its left and right end in points."""

    text: str
    left: float
    right: float


class Line(NamedTuple):
    """A line of a PDF page, with its position and typeface. Distances are in points, in reading direction.

    Attributes:
        text: Cleaned text; a hyphen that splits a word at the end of the line is ``-``.
        left: Start of the first character.
        right: End of the last character.
        baseline: Height of the baseline, growing towards the top of the page.
        size: Type size.
        turn: Rotation in whole degrees, counter-clockwise.
        is_bold: Whether all sampled characters are bold.
        is_fixed: Whether all sampled characters are monospaced, as in code.
        characters: Indices of PDFium's characters; empty if the text is in another order.
        pieces: The parts of a line with wide gaps, such as the cells of a table; otherwise empty.
        row: Number of the line as a row of a table, from 1; 0 outside tables.
    """

    text: str
    left: float
    right: float
    baseline: float
    size: float
    turn: int
    is_bold: bool
    is_fixed: bool
    characters: range = range(0)
    pieces: tuple[Piece, ...] = ()
    row: int = 0


class Style(NamedTuple):
    """The typeface of a line of text: its type size, and whether it is bold."""

    size: float
    is_bold: bool


class _Sample(NamedTuple):
    """The position, font and size of one sampled character on a PDF page."""

    x: float
    y: float
    size: float
    angle: float
    is_bold: bool
    is_fixed: bool


def extract_lines(text_page: Any, max_lines: int = sys.maxsize) -> tuple[list[Line], list[str]]:
    """Return the non-blank lines of a PDF page in drawing order, and the lines whose characters are no text.

    Args:
        text_page: A ``pypdfium2.PdfTextPage``.
        max_lines: Number of lines after which no more are extracted.
    """
    lines: list[Line] = []
    garbled: list[str] = []
    row: list[tuple[Line, range]] = []  # pieces of a row with right-to-left letters
    for words, characters in _extract_pieces(text_page):
        if len(lines) > max_lines:
            break
        if characters is None:
            garbled.append(words)
            continue
        line = _build_line(text_page, words, characters)
        if row and not is_level(row[-1][0], line):
            lines.append(_join_row(text_page, row))
            row = []
        if line.turn == 0 and (row or (not words.isascii() and RIGHT_TO_LEFT.search(words))):
            row.append((line, characters))
        else:
            lines.append(line)
    if row:
        lines.append(_join_row(text_page, row))
    return lines, garbled


def _extract_pieces(text_page: Any) -> Iterator[tuple[str, range | None]]:
    """Yield the non-blank lines of a page as PDFium returns them, and their characters; None for garbled lines."""
    text = text_page.get_text_range()
    if is_garbled_page(text_page, text):
        yield text, None
        return
    is_suspect = SUSPECT.search(text) is not None
    offset = end = 0  # ``offset`` counts UTF-16 code units, as PDFium does
    for match in _PIECE.finditer(text):
        offset += _count_utf16_units(text[end : match.start()])
        end = match.end()
        piece = match[0]
        words = normalize_text(piece).strip()
        start = offset + len(piece) - len(piece.lstrip())
        characters = (
            _find_characters(text_page, start, start + _count_utf16_units(piece.strip())) if words else range(0)
        )
        if is_suspect and is_garbled_line(text_page, piece, characters):
            yield piece, None
        elif words:
            yield words, characters
        offset += _count_utf16_units(piece)


def _find_characters(text_page: Any, start: int, end: int) -> range:
    """Return the indices of PDFium's characters from ``start`` to ``end``, offsets in PDFium's text in code units."""
    first, last = (max(0, int(raw.FPDFText_GetCharIndexFromTextIndex(text_page, place))) for place in (start, end - 1))
    return range(first, max(first, last) + 1)


def is_level(line: Line, other: Line) -> bool:
    """Return whether two lines are in one row."""
    return line.turn == other.turn and abs(line.baseline - other.baseline) < _LEVEL * max(line.size, other.size)


def _join_row(text_page: Any, row: Sequence[tuple[Line, range]]) -> Line:
    """Return one line of the pieces of a row with right-to-left letters, ordered by their positions."""
    lines = [line for line, _ in row]
    glyphs = [glyph for _, characters in row for glyph in _read_glyphs(text_page, characters)]
    text = order_letters(glyphs, max(line.size for line in lines)) or " ".join(line.text for line in lines)
    ends = [end for line in lines for end in (line.left, line.right)]
    return max(lines, key=lambda line: len(line.text))._replace(
        text=text, left=min(ends), right=max(ends), characters=range(0)
    )


def _read_glyphs(text_page: Any, characters: range) -> Iterator[Glyph]:
    """Yield the characters of a PDF page with their positions, and with their usual forms."""
    x, y = ctypes.c_double(), ctypes.c_double()
    box = raw.FS_RECTF()
    for index in characters:
        raw.FPDFText_GetCharOrigin(text_page, index, x, y)
        raw.FPDFText_GetLooseCharBox(text_page, index, box)
        text = normalize_text(chr(raw.FPDFText_GetUnicode(text_page, index)))
        yield Glyph(text, x.value, box.left, box.right)


def get_body_style(pages: Iterable[Iterable[Line]]) -> Style:
    """Return the most frequent style in a document, which is the style of its body text."""
    styles: Counter[Style] = Counter()
    for page in pages:
        for line in page:
            styles[Style(round(line.size, 1), line.is_bold)] += len(line.text)
    return max(styles, key=styles.__getitem__, default=Style(0.0, False))


def _count_utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 code units, the unit of PDFium's character positions."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def normalize_text(piece: str) -> str:
    """Return a text with ligatures expanded, accents combined, and the hyphens restored that PDFium replaces."""
    if piece[-1] in "\x02\ufffe":
        piece = piece[:-1] + "-"
    piece = clean(piece)
    if piece.isascii():
        return piece
    piece = _LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]).lstrip(), piece)
    return _LOOSE_ACCENT.sub(_combine_accent, piece)


def _combine_accent(match: re.Match[str]) -> str:
    """Return a matched letter and its separate accent as one Unicode character if possible."""
    combining = _COMBINING.get(match[1]) or unicodedata.normalize("NFKD", match[1])[-1]
    letter = unicodedata.normalize("NFC", _DOTLESS.get(match[2], match[2]) + combining)
    return letter if len(letter) == 1 else match[0]


def _build_line(text_page: Any, text: str, characters: range) -> Line:
    """Return a line of a PDF page, with position and style measured at its first, middle and last character.

    ``characters`` are indices of PDFium's characters.
    """
    places = sorted({characters[0], characters[len(characters) // 2], characters[-1]})
    samples = [_sample_character(text_page, place) for place in places[:2]]
    if len(places) > 2 and not _are_alike(*samples):  # otherwise the last character would change no result
        samples.append(_sample_character(text_page, places[2]))
    middle = samples[len(samples) // 2]
    cosine, sine = math.cos(middle.angle), math.sin(middle.angle)
    baselines = sorted(sample.y * cosine - sample.x * sine for sample in samples)
    return Line(
        text,
        samples[0].x * cosine + samples[0].y * sine,
        _get_line_end(text_page, places[-1], cosine, sine),
        baselines[len(baselines) // 2],
        sorted(sample.size for sample in samples)[len(samples) // 2],
        round(math.degrees(middle.angle)) % 360,
        all(sample.is_bold for sample in samples),
        all(sample.is_fixed for sample in samples),
        characters,
    )


def _are_alike(first: _Sample, second: _Sample) -> bool:
    """Return whether two characters have the same size, angle and height, and are neither bold nor monospaced."""
    is_special = first.is_bold or second.is_bold or first.is_fixed or second.is_fixed
    return (
        not is_special
        and (first.y, first.size, first.angle) == (second.y, second.size, second.angle)
        and not second.angle
    )


def _sample_character(text_page: Any, index: int) -> _Sample:
    """Return position, font and size of the character with PDFium's ``index``."""
    x, y, matrix, flags, name = _X, _Y, _MATRIX, _FLAGS, _FONT_NAME
    raw.FPDFText_GetCharOrigin(text_page, index, *_ORIGIN)
    raw.FPDFText_GetMatrix(text_page, index, _MATRIX_REFERENCE)
    # Many programs write text in font size 1 and enlarge the text by a matrix.
    size = raw.FPDFText_GetFontSize(text_page, index) * math.hypot(matrix.c, matrix.d)
    name.value = b""
    raw.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_NAME, _FLAGS_REFERENCE)
    is_bold, is_fixed = _parse_font_name(name.value)
    is_fixed = is_fixed or bool(flags.value & _FIXED_FLAG)
    return _Sample(x.value, y.value, size, math.atan2(matrix.b, matrix.a), is_bold, is_fixed)


@lru_cache(maxsize=1024)
def _parse_font_name(font: bytes) -> tuple[bool, bool]:
    """Return whether a font is bold and whether it is monospaced, judged by the font's name."""
    name = font.decode("latin-1")
    return bool(_BOLD.search(name)), bool(_FIXED.search(name))


def _get_line_end(text_page: Any, index: int, cosine: float, sine: float) -> float:
    """Return the right end of a character along its line, whose angle has this ``cosine`` and ``sine``."""
    raw.FPDFText_GetCharBox(text_page, index, *_BOX_REFERENCES)
    left, right, bottom, top = _BOX
    if not sine and cosine > 0:
        return right.value
    return max(x.value * cosine + y.value * sine for x in (left, right) for y in (bottom, top))
