"""The evidence as the model reads it: numbered passages within a budget of tokens.

A passage's number is its rank in the evidence, whatever the budget leaves out, so that ``[3]`` means the same to the
model, to the reader and in the trace. The passages come as one section of the context; further kinds of evidence
(hyperedges, entities) can become sections beside it, each with a share of the budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyad.model import Passage, ScoredPassage

CountTokens = Callable[[str], int]

_SHORTEST_CUT = 40
"""Characters of a passage below which showing its beginning is of no use."""

_SENTENCE_END = re.compile(r"[.!?](?=[\"')\]]*\s)|[\u3002\uff01\uff1f]|\n")
_WORD_END = re.compile(r"\S(?=\s)|[\u2e80-\U0003ffff]")  # scripts written without spaces may be cut anywhere
_OUR_TAGS = re.compile(r"<(?=\s*/?\s*passage\b)", re.IGNORECASE)
_BRACKETED_NUMBER = re.compile(r"\[(\s*\d[\d\s,;\u2013-]*)\]")


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage under the number it is cited by; ``cut`` when only its beginning is shown."""

    number: int
    passage: Passage
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What goes into the prompt: its text, and which passages are in it."""

    text: str = ""
    passages: tuple[NumberedPassage, ...] = ()


def build_context(passages: Sequence[ScoredPassage], max_tokens: int, count_tokens: CountTokens) -> Context:
    """Number the passages and lay out as many as fit, best first.

    The first one that does not fit is cut at the end of a sentence, or else of a word, and is the last; if nothing
    useful of it fits, it is left out. Text that could be taken for the prompt's own marks (its tags, bracketed
    numbers such as footnotes) is defused.

    Args:
        passages: Best first.
        max_tokens: Longest text, as ``count_tokens`` measures it.
        count_tokens: Length of a text in tokens.
    """
    text = ""
    shown: list[NumberedPassage] = []
    for number, scored in enumerate(passages, start=1):
        laid_out = text + _block(number, scored.passage, _defused(scored.passage.text))
        cut = count_tokens(laid_out.rstrip()) > max_tokens
        if cut:
            laid_out = _cut_to_fit(text, number, scored.passage, max_tokens, count_tokens)
        if laid_out:
            text = laid_out
            shown.append(NumberedPassage(number, scored.passage, cut))
        if cut:
            break
    return Context(text.rstrip(), tuple(shown))


def _block(number: int, passage: Passage, text: str) -> str:
    title = " ".join(_defused(passage.title).split()).replace('"', "'")
    titled = f' title="{title}"' if title else ""
    return f'[{number}]\n<passage number="{number}"{titled}>\n{text.strip()}\n</passage>\n\n'


def _cut_to_fit(before: str, number: int, passage: Passage, max_tokens: int, count_tokens: CountTokens) -> str:
    """``before`` with as much of the passage as fits after it; empty when that is too little to be of use."""
    text = _defused(passage.text).strip()

    def laid_out(end: int) -> str:
        return before + _block(number, passage, text[:end].rstrip() + " …")

    def fits(end: int) -> bool:
        return count_tokens(laid_out(end).rstrip()) <= max_tokens

    for boundary in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in boundary.finditer(text) if match.end() >= _SHORTEST_CUT]
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if fits(ends[middle]) else (low, middle)
        if low > 0:
            return laid_out(ends[low - 1])
    return ""


def _defused(text: str) -> str:
    return _BRACKETED_NUMBER.sub(r"(\1)", _OUR_TAGS.sub("&lt;", text))
