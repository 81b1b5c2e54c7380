"""The passages as the model reads them: numbered by rank, as many as fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyad.answering.quoting import on_one_line, without_marks
from polyad.answering.room import Room
from polyad.model import Passage, ScoredPassage

_SHORTEST_CUT = 40
"""Characters of a passage below which showing its beginning is of no use."""

_SENTENCE_END = re.compile(r"[.!?](?=[\"')\]]*\s)|[\u3002\uff01\uff1f]|\n")
_WORD_END = re.compile(r"\S(?=\s)|[\u2e80-\U0003ffff]")  # scripts written without spaces may be cut anywhere


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage under the number it is cited by; ``quoted`` is what is shown, only its beginning when ``cut``."""

    number: int
    passage: Passage
    quoted: str
    cut: bool = False


def lay_out_passages(passages: Sequence[ScoredPassage], room: Room) -> tuple[str, tuple[NumberedPassage, ...]]:
    """Number the passages and lay out as many as fit.

    The first one that does not fit is cut at the end of a sentence, or else of a word, and is the last; if nothing
    useful of it fits, it is left out.

    Args:
        passages: Best first.
        room: What they may fill.

    Returns:
        The text, ending in a blank line unless empty, and the passages in it.
    """
    text = ""
    shown: list[NumberedPassage] = []
    for number, scored in enumerate(passages, start=1):
        quoted = without_marks(scored.passage.text).strip()
        cut = not room.fits(text + _block(number, scored, quoted))
        if cut:
            quoted = _beginning(text, number, scored, quoted, room)
        if quoted or not cut:
            text += _block(number, scored, quoted)
            shown.append(NumberedPassage(number, scored.passage, quoted, cut))
        if cut:
            break
    return text, tuple(shown)


def _block(number: int, passage: ScoredPassage, quoted: str) -> str:
    marks = "".join(f' {name}="{value}"' for name, value in _marks(passage).items() if value)
    return f'[{number}]\n<passage number="{number}"{marks}>\n{quoted}\n</passage>\n\n'


def _marks(scored: ScoredPassage) -> dict[str, str]:
    """What the model is told of a passage: its title with the headings it stands under, and where it is."""
    passage = scored.passage
    title = passage.title or scored.origin.title
    return {
        "title": _attribute(title),
        "heading": "" if passage.heading in title else _attribute(passage.heading),
        "page": "" if passage.page is None else str(passage.page),
        "slide": "" if passage.slide is None else str(passage.slide),
        "sheet": _attribute(passage.sheet),
    }


def _attribute(text: str) -> str:
    return on_one_line(text).replace('"', "'")


def _beginning(before: str, number: int, passage: ScoredPassage, quoted: str, room: Room) -> str:
    """As much of a passage as fits behind the others; empty when that is too little to be of use."""

    def cut(end: int) -> str:
        return quoted[:end].rstrip() + " …"

    for boundary in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in boundary.finditer(quoted) if match.end() >= _SHORTEST_CUT]
        count = _most_ends(ends, lambda end: before + _block(number, passage, cut(end)), room)
        if count:
            return cut(ends[count - 1])
    return ""


def _most_ends(ends: Sequence[int], lay_out: Callable[[int], str], room: Room) -> int:
    return room.most(len(ends), lambda count: lay_out(ends[count - 1]))
