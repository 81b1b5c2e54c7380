"""Restores the indentation and the aligned columns of lines in monospaced type."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from statistics import median

from polyad_readers.lines.lines import Line

_LEVEL = 0.5
"""Largest difference of baselines in one row, as a multiple of the type size."""

FIXED_ADVANCE = 0.6
"""Usual width of a monospaced letter, as a multiple of the type size."""

_MAX_DIFFERENCE = 0.15
"""Largest difference from this width; the flags of some proportional fonts say that they are monospaced."""

_MAX_DEPTH = 60
"""Characters of the deepest indentation of code; the cells of a table stand further apart."""

MAX_SPACES = 200
_SENTENCE_WORDS = 6
_SENTENCE = re.compile(r"[^=;{}<>\[\]|_#$@\\]*[^\W\d_][^=;{}<>\[\]|_#$@\\]*")
"""A line of prose, such as that of a typed letter: words without the signs of code."""


def indent_code(pages: Iterable[Sequence[Line]]) -> Iterator[list[Line]]:
    """Yield the lines of each PDF page, those in monospaced type with the spaces that their positions show.

    Code continues on the next page with the same margin. Prose in monospaced type, as in typed letters, is marked as
    other prose.
    """
    margin = math.inf
    for page in pages:
        lines: list[Line] = []
        for is_code, block in groupby(page, lambda line: line.is_fixed and line.turn == 0):
            block_lines = list(block)
            margin = (
                min(margin if not lines else math.inf, *(line.left for line in block_lines)) if is_code else math.inf
            )
            lines += _indent_block(block_lines, margin) if is_code else block_lines
        yield lines


def _indent_block(block: Sequence[Line], margin: float) -> Iterator[Line]:
    """Yield the lines of a block of monospaced lines; those that begin at the margin are not indented."""
    widths = [(line.right - line.left) / len(line.text) for line in block if not line.pieces and len(line.text) > 1]
    advance = median(widths or [FIXED_ADVANCE * block[0].size]) or 1.0
    deepest = max(line.left for line in block) - margin
    is_narrow = abs(advance / block[0].size - FIXED_ADVANCE) <= _MAX_DIFFERENCE
    if 2 * sum(map(_is_prose, block)) > len(block) or deepest > _MAX_DEPTH * advance or not is_narrow:
        yield from (line._replace(is_fixed=False) for line in block)
        return
    previous: Line | None = None
    for line in block:
        text = line.text
        for place, piece in enumerate(line.pieces):
            text = f"{text:<{_count(piece.left - line.left, advance)}}{piece.text}" if place else piece.text
        is_same_row = previous is not None and abs(previous.baseline - line.baseline) < _LEVEL * line.size
        indent = 0 if is_same_row else _count(line.left - margin, advance)
        yield line._replace(text=" " * indent + text, pieces=())
        previous = line


def _count(distance: float, advance: float) -> int:
    """Return the number of characters in a distance."""
    return max(0, min(MAX_SPACES, round(distance / advance)))


def _is_prose(line: Line) -> bool:
    return line.text.count(" ") >= _SENTENCE_WORDS and not line.pieces and _SENTENCE.fullmatch(line.text) is not None
