"""Parses scores in the replies of a language model in any spelling, without inventing missing scores.

A missing score is None until all scores of a passage are parsed. Then it becomes their median, or the middle of the
scale if there are none. So a missing score changes an entity's mean over passages no more than a typical score does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from polyad.text.words import collapse_whitespace

_NUMBER = r"\d+(?:[.,]\d+)?"
_ABOUT = r"(?:[~≈<>≤≥]=?|(?:about|around|roughly|approx(?:\.|imately)?|circa|ca\.?)(?=\s*[\d+-]))"
_SCORE = re.compile(
    rf"""[\s"'“”*(\[]*(?:score\b[\s:=]*)?(?:{_ABOUT}\s*)?(?P<number>[-+]?{_NUMBER})"""
    rf"""(?:\s*(?:(?P<percent>%)|(?:/|(?:out\s+)?of\b)\s*(?P<whole>{_NUMBER})))?[\s"'“”*)\].,;+]*""",
    re.IGNORECASE,
)
_LEVELS = {
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
"""Shares of the scale for verbal scores. Models are not asked for words; these are the quarters of the scale."""
_PUNCTUATION = " \t\n\"'“”*()[].,;:"


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of scores that a prompt requests: above 0 and up to ``highest``.

    Attributes:
        highest: The best score.
        lowest: The score that replaces 0 and lower values: low, but a product of scores survives it.
    """

    highest: float
    lowest: float

    def parse(self, value: object, problem_counts: Counter[str]) -> float | None:
        """Return the number in a score such as 8, "~8", "8/10", "80%" or "high"; None if there is no number.

        The result may be outside the scale, or a fraction, which :func:`polyad.replies.facts.scale_scores` corrects by
        all scores of the reply.
        """
        if value is None or value == "":
            problem_counts["score missing"] += 1
            return None
        number = self._parse_text(value, problem_counts) if isinstance(value, str) else _convert_to_float(value)
        if math.isnan(number):
            problem_counts["score that is not a number"] += 1
            return None
        problem_counts["score out of range"] += not 0 <= number <= self.highest
        return number

    def _parse_text(self, text: str, notes: Counter[str]) -> float:
        share = _LEVELS.get(collapse_whitespace(text.strip(_PUNCTUATION).casefold()))
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

    def clip(self, score: float | None, factor: float = 1.0) -> float | None:
        """Return a score times ``factor``, clipped to the range of the scale; None for a missing score."""
        return None if score is None else min(max(score * factor, self.lowest), self.highest)

    def compute_default(self, scores: Iterable[float | None]) -> float:
        """Return the score that replaces missing scores: the median of ``scores``, or half of ``highest`` if empty."""
        present = [score for score in scores if score is not None]
        return median(present) if present else self.highest / 2


FACT_SCORES = Scale(10.0, 0.5)
ENTITY_SCORES = Scale(100.0, 1.0)


def are_fractions(scores: Iterable[float | None], other_scores: Iterable[float | None] = ()) -> bool:
    """Return whether ``scores`` are fractions of 1, although the prompt requests a larger scale such as 1 to 10.

    Args:
        scores: Scores of one kind.
        other_scores: Scores of the other kind; if none of these is above 1 either, whole numbers are fractions too.
    """
    present, beside = ([score for score in kind if score is not None] for kind in (scores, other_scores))
    if not present or not 0 < max(present) <= 1:
        return False
    return any(0 < score < 1 for score in present) or (bool(beside) and max(beside) <= 1)


def _convert_to_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_score(text: str) -> bool:
    """Return whether a text consists only of a score, such as "8/10"."""
    return _SCORE.fullmatch(text) is not None
