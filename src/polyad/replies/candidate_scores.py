"""Parses replies to "how much does each candidate matter?" and "is this enough?" (HyperMemory).

Models asked for JSON also reply with fences, prose, percentages and lists. The parsers read what they can and repair
the rest: a missing score becomes 0, scores that were requested as shares are scaled to sum to 1, and if nothing can be
parsed, all scores are equal. Each repair has a kind, so that it can be counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from polyad.replies.loose_json import find_first_json, find_list, normalize_keys

_SUM_TOLERANCE = 0.02  # three thirds, each rounded to two digits, sum to 0.99


class Repair(StrEnum):
    """An error that polyad repairs in a reply with scores, such as a percentage; counted in statistics."""

    FAILED = "failed_replies"
    UNREADABLE = "unreadable_scores"
    NEGATIVE = "negative_scores"
    ABOVE_ONE = "scores_above_one"
    PERCENTAGES = "percentages"
    WRONG_SUM = "wrong_sums"
    MISSING = "missing_scores"
    NOT_OFFERED = "numbers_not_offered"
    REPEATED = "repeated_numbers"
    FROM_ZERO = "numbers_from_zero"
    UNREADABLE_VERDICT = "unreadable_verdicts"


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """The scores that a language model gave to numbered candidates, and the errors repaired in its reply.

    Attributes:
        scores: One score for each candidate, in order; 0 or more, as shares that sum to 1.
        repairs: The repaired problems.
        is_empty: Whether no score could be parsed, so that all scores are equal.
    """

    scores: tuple[float, ...]
    repairs: frozenset[Repair] = frozenset()
    is_empty: bool = False


def normalize_shares(values: Sequence[float]) -> tuple[float, ...]:
    """Return ``values`` scaled to sum to 1; negative values become 0, and without positive values all are equal.

    >>> normalize_shares([3.0, -1.0, 1.0])
    (0.75, 0.0, 0.25)
    """
    highest = max(values, default=0.0)
    if not highest > 0:
        return tuple(1 / len(values) for _ in values)
    scaled = [max(0.0, value) / highest for value in values]  # without this, a sum could overflow
    total = math.fsum(scaled)
    return tuple(value / total for value in scaled)


def parse_candidate_scores(
    reply: str,
    candidate_count: int,
    *,
    is_selection: bool = False,
    is_absolute: bool = False,
    names: Sequence[str] = (),
) -> CandidateScores:
    """Return the scores of the candidates numbered 1 to ``candidate_count`` in a reply: JSON or another form.

    The other forms are truncated JSON, ``{{2. "text" (Score: 0.70)}}`` and ``Score: 0.3, 0.6`` (HyperRAG, figures 7a
    and 4), and numbered lines with a score. Words other than "score" are ignored, so that any language works.

    Args:
        reply: The model's reply.
        candidate_count: Number of candidates, which are numbered from 1; 1 or more.
        is_selection: Whether the prompt requests the best candidates only, so that no score counts as missing.
        is_absolute: Whether the prompt requests independent scores from 0 to 1, which need not sum to 1.
        names: The candidates as the prompt lists them; some models refer to a candidate by its name.

    >>> parse_candidate_scores("Score: 0.3, 0.6, 0.1", 3).scores
    (0.3, 0.6, 0.1)
    """
    numbers = {name.casefold(): number for number, name in enumerate(names, start=1)}
    for raw_pairs in (_parse_json_scores(reply, candidate_count), _parse_score_lines(reply), _parse_score_list(reply)):
        repairs: set[Repair] = set()
        listed = [(_convert_name_to_number(raw, numbers), score) for raw, score in raw_pairs]
        pairs = _number_from_one(listed, candidate_count, repairs)
        valid = _collect_valid_scores(pairs, candidate_count, repairs)
        if valid:
            if len(valid) < candidate_count and not is_selection:
                repairs.add(Repair.MISSING)
            return (
                _scale_to_unit_range(valid, candidate_count, repairs)
                if is_absolute
                else _scale_to_shares(valid, candidate_count, repairs)
            )
    if is_absolute and find_list(reply, "scores") == []:
        return CandidateScores((0.0,) * candidate_count)
    return CandidateScores(normalize_shares([0.0] * candidate_count), frozenset({Repair.UNREADABLE}), is_empty=True)


def parse_verdict(reply: str) -> bool | None:
    """Return the yes or no of a reply as a boolean, in JSON or at the start of an answer; None if neither.

    >>> parse_verdict("A: {{No}}. The spouse is missing.")
    False
    """
    value_object = find_first_json(reply)
    if isinstance(value_object, dict):
        for value in (value_object.get("sufficient"), *value_object.values()):
            verdict = value if isinstance(value, bool) else _parse_yes_or_no(value) if isinstance(value, str) else None
            if verdict is not None:
                return verdict
    words = [*_LABELLED_VERDICT.findall(reply), *_FIRST_WORD.findall(reply)]
    return next((verdict for word in words if (verdict := _parse_yes_or_no(word)) is not None), None)


# Parsers of a reply. Each returns pairs of a candidate's number or name and its score, both unchecked.

_Pair = tuple[object, object]

_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_SCORE = re.compile(rf"\s*({_NUMBER})\s*+([%\uff05]?)\s*")
_FRACTION = re.compile(r"\s*(\d{1,9}(?:[.,]\d+)?)\s*/\s*(\d{1,9})\s*")  # 7/10
_ITEM_NUMBER = re.compile(r"\W*(\d{1,9})\W*")
_FIELDS = re.compile(r"""["']?number["']?\s*:\s*["']?(\d{1,9})["']?\s*,\s*["']?score["']?\s*:\s*["']?([^\s"'},]+)""")
_BRACED = re.compile(r"\{\s*(\d{1,9})\b(?=\s*[.:])(.*?)(?=\{\s*\d{1,9}\s*[.:]|$)", re.MULTILINE)
_LINE = re.compile(r"^\W{0,20}(\d{1,9})\s*(?:\.(?!\d)|[]):=\u3001\uff1a-])(.*)$", re.MULTILINE)
_EXACT = r"(?<![\d.])(?:\d{1,9}\s?/\s?\d{1,9}\b(?![./]\d)|-?\d{0,9}\.\d+|-?\d{1,9}\s?[%\uff05])"
"""A number with a point, a percentage or a fraction; other numbers are years and pages as well."""

_LABELLED = re.compile(rf"score\W{{1,3}}?({_EXACT}|-?\d{{1,9}})", re.IGNORECASE)
_EXACT_NUMBERS = re.compile(_EXACT)
_LAST_NUMBER = re.compile(r"(\d{1,9}(?:,\d+)?)\W*$")


def _parse_json_scores(reply: str, candidate_count: int) -> list[_Pair]:
    """Parse pairs of candidate (number or name) and score from a JSON reply in one of three forms.

    The forms are objects with number and score, one object of scores by number or name, and a list of scores.
    """
    listed = find_list(reply, "scores") or []
    items = [normalize_keys(item) for item in listed if isinstance(item, dict)]
    if items:
        return [(item.get("number", _find_first_string(item)), item.get("score")) for item in items]
    if len(listed) == candidate_count:
        return list(enumerate(listed, start=1))
    parsed = find_first_json(reply)
    scores = normalize_keys(parsed).get("scores", parsed) if isinstance(parsed, dict) else None
    if isinstance(scores, dict) and "score" not in normalize_keys(scores):
        return list(scores.items())
    return list(_FIELDS.findall(reply))  # of JSON that was cut off


def _find_first_string(item: Mapping[str, object]) -> str | None:
    """Return the first string value of a JSON object, usually a candidate's name; None without a string."""
    return next((value for key, value in item.items() if isinstance(value, str) and key != "score"), None)


def _parse_score_lines(reply: str) -> list[_Pair]:
    """Parse pairs of candidate number and score from lines that begin with a number, or from braces.

    Braces are the form of HyperRAG, figure 7a.
    """
    items = _BRACED.findall(reply) or _LINE.findall(reply)
    return [(number, score) for number, text in items if (score := _find_score(text))]


def _find_score(line: str) -> str:
    """Return the score in a line about a candidate as text: after "score", or the last decimal or number."""
    numbers = _LABELLED.findall(line) or _EXACT_NUMBERS.findall(line) or _LAST_NUMBER.findall(line)
    return str(numbers[-1]) if numbers else ""


def _parse_score_list(reply: str) -> list[_Pair]:
    """Parse pairs of candidate number and score from a reply that lists only scores, in the candidates' order."""
    scores = _EXACT_NUMBERS.findall(reply)
    return list(enumerate(scores, start=1)) if len(scores) > 1 else []


# Repair


def _convert_name_to_number(candidate: object, numbers_by_name: Mapping[str, int]) -> object:
    """Return the number of a candidate that a reply calls by its name; anything else is returned unchanged."""
    if not isinstance(candidate, str):
        return candidate
    return numbers_by_name.get(" ".join(candidate.split()).casefold(), candidate)


def _number_from_one(pairs: Sequence[_Pair], candidate_count: int, repairs: set[Repair]) -> Sequence[_Pair]:
    """Return (number, score) pairs with candidate numbers from 1, even if the reply counts candidates from 0."""
    numbers = [_parse_number(raw) for raw, _ in pairs]
    if set(numbers) != set(range(candidate_count)):
        return pairs
    repairs.add(Repair.FROM_ZERO)
    return [(number + 1, score) for number, (_, score) in zip(numbers, pairs, strict=True) if number is not None]


def _collect_valid_scores(pairs: Iterable[_Pair], candidate_count: int, repairs: set[Repair]) -> dict[int, float]:
    """Return the valid scores, keyed by candidate number; add each error in ``pairs`` to the set ``repairs``."""
    valid: dict[int, float] = {}
    for raw_number, raw_score in pairs:
        number, score = _parse_number(raw_number), _parse_score(raw_score)
        if number is None or not 1 <= number <= candidate_count:
            repairs.add(Repair.NOT_OFFERED)
        elif score is None:
            repairs.add(Repair.UNREADABLE)
        elif number in valid:
            repairs.add(Repair.REPEATED)
        else:
            valid[number], percentage = score
            if percentage:
                repairs.add(Repair.PERCENTAGES)
    return valid


def _scale_to_shares(valid: Mapping[int, float], candidate_count: int, repairs: set[Repair]) -> CandidateScores:
    if min(valid.values()) < 0:
        repairs.add(Repair.NEGATIVE)
    scores = [max(0.0, valid.get(number, 0.0)) for number in range(1, candidate_count + 1)]
    total = sum(scores)
    if max(scores) > 1:  # on another scale, of which only the proportions count
        repairs.add(Repair.PERCENTAGES if abs(total - 100) <= 100 * _SUM_TOLERANCE else Repair.ABOVE_ONE)
    elif abs(total - 1) > _SUM_TOLERANCE:
        repairs.add(Repair.WRONG_SUM)
    return CandidateScores(normalize_shares(scores), frozenset(repairs))


def _scale_to_unit_range(scores: Mapping[int, float], candidate_count: int, repairs: set[Repair]) -> CandidateScores:
    """Return scores in [0, 1]: scores on a scale up to 10 or 100 are divided, missing scores are 0."""
    if min(scores.values()) < 0:
        repairs.add(Repair.NEGATIVE)
    highest = max(scores.values())
    whole = 1.0 if highest <= 1 else 10.0 if highest <= 10 else 100.0
    if whole > 1:
        repairs.add(Repair.ABOVE_ONE)
    return CandidateScores(
        tuple(min(1.0, max(0.0, scores.get(number, 0.0) / whole)) for number in range(1, candidate_count + 1)),
        frozenset(repairs),
    )


def _parse_number(raw: object) -> int | None:
    if isinstance(raw, str):
        match = _ITEM_NUMBER.fullmatch(raw)
        return int(match[1]) if match else None
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _parse_score(value: object) -> tuple[float, bool] | None:
    """Return a finite score and whether it was a percentage; None if ``value`` is no score."""
    fraction = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if fraction:
        whole = int(fraction[2])
        return (float(fraction[1].replace(",", ".")) / whole, False) if whole else None
    match = _SCORE.fullmatch(value) if isinstance(value, str) else None
    if match:
        score, percentage = float(match[1].replace(",", ".")), bool(match[2])
        return (score / 100 if percentage else score, percentage) if math.isfinite(score) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return (float(value), False) if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


# Verdicts

_YES = frozenset({"yes", "true", "sufficient", "ja", "oui", "si", "s\u00ed", "sim", "\u0434\u0430"})
_NO = frozenset({"no", "false", "insufficient", "nein", "non", "n\u00e3o", "nee", "\u043d\u0435\u0442"})
_YES_BEGINNINGS = ("\u662f", "\u8db3\u591f", "\u5145\u5206", "\u306f\u3044", "\uc608")
_NO_BEGINNINGS = ("\u4e0d", "\u5426", "\u6ca1", "\u3044\u3044\u3048", "\uc544\ub2c8")
"""In scripts without spaces between words, a matched word is a whole clause."""

_LABELLED_VERDICT = re.compile(r"""sufficient["']?\s*:\s*["']?(\w+)""", re.IGNORECASE)
_FIRST_WORD = re.compile(r"(?:^|[:\uff1a{*])[^\w\n]{0,20}(\w+)", re.MULTILINE)


def _parse_yes_or_no(text: str) -> bool | None:
    word = text.strip(" \t\n.,;!*{}\"'").casefold()
    if word in _NO or word.startswith(_NO_BEGINNINGS):
        return False
    return True if word in _YES or word.startswith(_YES_BEGINNINGS) else None
