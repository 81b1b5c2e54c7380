"""Scores in the replies of a language model: read however they are written, and never made up.

What a reply does not say is None until all that is said of a passage is known; then it is the median of what was said,
or the middle of the scale where nothing was. So a score that is missing can neither raise nor lower what other
passages say of the same entity by more than a usual one does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

_NUMBER = r"\d+(?:[.,]\d+)?"
_ABOUT = r"(?:[~≈<>≤≥]=?|(?:about|around|roughly|approx(?:\.|imately)?|circa|ca\.?)(?=\s*[\d+-]))"
_SCORE = re.compile(
    rf"""[\s"'“”*(\[]*(?:score\b[\s:=]*)?(?:{_ABOUT}\s*)?(?P<number>[-+]?{_NUMBER})"""
    rf"""(?:\s*(?:(?P<percent>%)|(?:/|(?:out\s+)?of\b)\s*(?P<whole>{_NUMBER})))?[\s"'“”*)\].,;+]*""",
    re.IGNORECASE,
)
_WORDS = {
    "very low": 0.1,
    "low": 0.25,
    "medium": 0.5,
    "moderate": 0.5,
    "average": 0.5,
    "high": 0.75,
    "very high": 0.9,
    "低": 0.25,
    "中": 0.5,
    "高": 0.75,
}
"""Shares of a scale that models give in words; the quarters between them, as they are asked for no such thing."""
_AROUND_WORDS = " \t\n\"'“”*()[].,;:"


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of scores, open at 0 where models are asked for 0 to ``highest``.

    Attributes:
        highest: The best score.
        lowest: What 0, and all else below it, counts as: a low score, yet one that a product of scores survives.
    """

    highest: float
    lowest: float

    def read(self, value: object, notes: Counter[str]) -> float | None:
        """The number that ``value`` stands for: 8, "~8", "8/10", "8 out of 10", "80%", "high"; None where it has none.

        It may be out of the range, and on a scale from 0 to 1, until :func:`scaled` has seen all of the reply.
        """
        if value is None or value == "":
            notes["score missing"] += 1
            return None
        number = self._in_words(value, notes) if isinstance(value, str) else _as_float(value)
        if math.isnan(number):
            notes["score that is not a number"] += 1
            return None
        notes["score out of range"] += not 0 <= number <= self.highest
        return number

    def _in_words(self, text: str, notes: Counter[str]) -> float:
        share = _WORDS.get(" ".join(text.strip(_AROUND_WORDS).casefold().split()))
        if share is not None:
            notes["score given in words"] += 1
            return share * self.highest
        match = _SCORE.match(text)
        if match is None:
            return math.nan
        number = float(match["number"].replace(",", "."))
        whole = 100.0 if match["percent"] else float((match["whole"] or "0").replace(",", "."))
        if whole == 0:
            return number
        notes["score given as a share"] += 1
        return number / whole * self.highest

    def within(self, score: float | None, factor: float = 1.0) -> float | None:
        """``factor`` times the score, in ``[lowest, highest]``."""
        return None if score is None else min(max(score * factor, self.lowest), self.highest)

    def usual(self, scores: Iterable[float | None]) -> float:
        """What to take for a score that is missing among ``scores``: their median, else the middle of the scale."""
        given = [score for score in scores if score is not None]
        return median(given) if given else self.highest / 2


FACT_SCORES = Scale(10.0, 0.5)
ENTITY_SCORES = Scale(100.0, 1.0)


def are_shares(scores: Iterable[float | None], others: Iterable[float | None] = ()) -> bool:
    """Whether the scores of a reply go from 0 to 1, as none is above 1 and some are fractions.

    Args:
        scores: Of one kind.
        others: Of the other kind; where these are no higher either, whole numbers are shares too.
    """
    given, beside = ([score for score in kind if score is not None] for kind in (scores, others))
    if not given or not 0 < max(given) <= 1:
        return False
    return any(0 < score < 1 for score in given) or (bool(beside) and max(beside) <= 1)


def _as_float(value: object) -> float:
    """NaN for what is no number; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_score(text: str) -> bool:
    """Whether a field holds a score and nothing else."""
    return _SCORE.fullmatch(text) is not None
