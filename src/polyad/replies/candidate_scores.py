"""Reading what a language model replies to "how much does each of these matter?" and to "is this enough?".

Models asked for JSON also reply with fences, prose, percentages and lists. What can be understood is understood, the
rest is repaired: a missing score is 0, scores that were asked for as shares are scaled to sum to 1, and where nothing
can be read they are equal. Every repair has a kind, so that it can be counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from polyad.replies.loose_json import first_json, listed_under, normal_keys
from polyad.text.cleaning import collapse_whitespace

_SUM_TOLERANCE = 0.02  # three thirds, each rounded to two digits, are 0.99


class Repair(StrEnum):
    """What was wrong with a reply; each kind is counted once a reply."""

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
class Reading:
    """The scores in one reply.

    Attributes:
        scores: One for each candidate, in the order offered; 0 or more, as shares summing to 1.
        repairs: What had to be put right.
        is_empty: Whether no score could be read, so that all are equal.
    """

    scores: tuple[float, ...]
    repairs: frozenset[Repair] = frozenset()
    is_empty: bool = False


def shares(values: Sequence[float]) -> tuple[float, ...]:
    """``values`` scaled to sum to 1, those below 0 taken as 0; equal shares when none is above 0.

    >>> shares([3.0, -1.0, 1.0])
    (0.75, 0.0, 0.25)
    """
    highest = max(values, default=0.0)
    if not highest > 0:
        return tuple(1 / len(values) for _ in values)
    scaled = [max(0.0, value) / highest for value in values]  # so that no sum overflows
    total = math.fsum(scaled)
    return tuple(value / total for value in scaled)


def read_scores(
    reply: str, offered: int, *, selective: bool = False, absolute: bool = False, names: Sequence[str] = ()
) -> Reading:
    """The scores in a reply: JSON as asked for, or one of the forms that models fall back to.

    Those are JSON of other shapes or cut off, ``{{2. "text" (Score: 0.70)}}`` and ``Score: 0.3, 0.6`` (HyperRAG,
    figures 7a and 4), and numbered lines that end in a score. Words are not looked at, so that any language will do.

    Args:
        reply: What the model said.
        offered: How many candidates there were, numbered from 1; 1 or more.
        selective: Whether the model was asked for the best alone, so that none is missing for having no score.
        absolute: Whether each score was asked for by itself, from 0 to 1, so that they need not sum to 1.
        names: The candidates as they were shown, by which some models call them.

    >>> read_scores("Score: 0.3, 0.6, 0.1", 3).scores
    (0.3, 0.6, 0.1)
    """
    numbers = {name.casefold(): number for number, name in enumerate(names, start=1)}
    for form in _FORMS:
        repairs: set[Repair] = set()
        found = [(_numbered(raw, numbers), score) for raw, score in form(reply, offered)]
        pairs = _from_one(found, offered, repairs)
        given = _given(pairs, offered, repairs)
        if given:
            if len(given) < offered and not selective:
                repairs.add(Repair.MISSING)
            return _clipped(given, offered, repairs) if absolute else _repaired(given, offered, repairs)
    if absolute and listed_under(reply, "scores") == []:
        return Reading((0.0,) * offered)
    return Reading(shares([0.0] * offered), frozenset({Repair.UNREADABLE}), is_empty=True)


def read_verdict(reply: str) -> bool | None:
    """Whether a reply says yes: JSON as asked for, or a yes or no where an answer begins; None if it says neither.

    >>> read_verdict("A: {{No}}. The spouse is missing.")
    False
    """
    found = first_json(reply)
    if isinstance(found, dict):
        for value in (found.get("sufficient"), *found.values()):
            verdict = value if isinstance(value, bool) else _yes_or_no(value) if isinstance(value, str) else None
            if verdict is not None:
                return verdict
    words = [*_LABELLED_VERDICT.findall(reply), *_FIRST_WORD.findall(reply)]
    return next((verdict for word in words if (verdict := _yes_or_no(word)) is not None), None)


# Forms of replies. A form gives pairs of a candidate's number and its score, both still unchecked.

_Pair = tuple[object, object]

_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_SCORE = re.compile(rf"\s*({_NUMBER})\s*+([%\uff05]?)\s*")
_FRACTION = re.compile(r"\s*(\d{1,9}(?:[.,]\d+)?)\s*/\s*(\d{1,9})\s*")  # 7/10
_VALUE = rf"{_NUMBER}(?:\s?/\s?\d{{1,9}}\b(?![.,]\d)|\s?[%\uff05])?"
_ITEM_NUMBER = re.compile(r"\W*(\d{1,9})\W*")
_FIELDS = re.compile(rf"""["']?number["']?\s*:\s*["']?(\d{{1,9}})["']?\s*,\s*["']?score["']?\s*:\s*["']?({_VALUE})""")
_LINE = re.compile(r"^\W{0,20}(\d{1,9})\s*(?:\.(?!\d)|[]):=\u3001\uff1a-])(.*)$", re.MULTILINE)
_IN_PARENTHESES = re.compile(rf"[(\uff08]\s*(?:[^\W\d][^()\d]{{0,40}}?)??({_VALUE})\s*[)\uff09]")
_LABELLED = re.compile(rf"[(\uff08]\s*[^\W\d][^()\d]{{0,40}}[:\uff1a=]\s*({_VALUE})\s*[)\uff09]")
_AT_END = re.compile(rf"(?:^|[:\uff1a=\u2013\u2014]|-(?=\s))[\s*_]*({_VALUE})\W*$")
_ONLY_NUMBER = re.compile(rf"[^\d]*?({_VALUE})\W*")
# A text in braces may hold braces; then it ends where a number in parentheses does, before the next that is numbered.
_BRACED = re.compile(
    r"\{\s*(\d{1,9})\b(?:([^{}]*)|(\s*[.:](?:(?!\{\s*\d{1,9}\s*[.:])[^\n])*?\d\s*+(?:[%\uff05]\s*+)?[)\uff09])\s*)\}"
)
_POINTED = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:\s?[%\uff05])?"
_NEXT = rf"(?:[ \t,;|/\u3001\uff0c\uff1b]+|[ \t,;]*\n[ \t]*(?={_POINTED}[ \t,;]*$))"  # or a line of its own
_POINTED_FRACTION = r"\d+(?:\.\d+)?\s?/\s?\d{1,9}\b"
_FRACTIONS = re.compile(rf"{_POINTED_FRACTION}(?:[ \t,;|\u3001\uff0c\uff1b\n]+{_POINTED_FRACTION})+")
_LIST = re.compile(rf"(?:^|[:\uff1a])[ \t\[(]{{0,20}}({_POINTED}(?:{_NEXT}{_POINTED})*)", re.MULTILINE)


def _from_json(reply: str, offered: int) -> list[_Pair]:  # noqa: ARG001  # the signature of a form
    found = first_json(reply)
    if isinstance(found, dict):
        keyed = normal_keys(found)
        found = keyed.get("scores", found)
    if isinstance(found, dict):
        return (
            [] if "score" in normal_keys(found) else list(found.items())
        )  # the first of a list that was cut off: see below
    items = [normal_keys(item) for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    return [(item.get("number", first_of_strings(item)), item.get("score")) for item in items]


def first_of_strings(item: Mapping[str, object]) -> str | None:
    """The first text in an object, which is a name where there is no number."""
    return next((value for key, value in item.items() if isinstance(value, str) and key != "score"), None)


def _from_fields(reply: str, offered: int) -> list[_Pair]:  # noqa: ARG001
    """What is left of JSON that was cut off, or has words and brackets before it."""
    return list(_FIELDS.findall(reply))


def _from_braces(reply: str, offered: int) -> list[_Pair]:  # noqa: ARG001
    return [(number, _last_score(plain or with_braces)) for number, plain, with_braces in _BRACED.findall(reply)]


def _from_lines(reply: str, offered: int) -> list[_Pair]:  # noqa: ARG001
    found = [(number, _last_score(body)) for number, body in _LINE.findall(reply)]
    return [(number, score) for number, score in found if score]


def _last_score(body: str) -> str:
    """What is most likely meant as a score; empty if nothing is.

    Scores stand in parentheses after a word, at the end after a colon or a dash, or in parentheses by themselves. So
    do years and page numbers: a share of one whole goes before any other number, then the first of these places, then
    the last number there. Where nothing stands in such a place, the only number will do.
    """
    found = [text for place in (_LABELLED, _AT_END, _IN_PARENTHESES) for text in reversed(place.findall(body))]
    plausible = [text for text in found if (score := _score(text)) is not None and 0 <= score[0] <= 1]
    if found:
        return str((plausible or found)[0])
    alone = _ONLY_NUMBER.fullmatch(body)
    return alone[1] if alone else ""


def _from_list(reply: str, offered: int) -> list[_Pair]:
    """Scores by position; a list of the right length is preferred, a number by itself is none."""
    lists = [_listed(text) for text in _LIST.findall(reply)]
    whole = [scores for scores in lists if len(scores) == offered]
    several = [scores for scores in lists if len(scores) > 1]
    return list(enumerate(next(iter(whole or several), []), start=1))


def _listed(text: str) -> list[str]:
    """The scores in a list: fractions, or numbers that may have strokes between them."""
    return re.findall(_POINTED_FRACTION if _FRACTIONS.fullmatch(text) else _POINTED, text)


def _from_json_list(reply: str, offered: int) -> list[_Pair]:
    found = listed_under(reply, "scores")
    return list(enumerate(found, start=1)) if found is not None and len(found) == offered else []


_FORMS = (_from_json, _from_fields, _from_json_list, _from_braces, _from_lines, _from_list)


# Repair


def _numbered(raw: object, numbers: Mapping[str, int]) -> object:
    """The number of a candidate that is called by its name; anything else as it is."""
    return numbers.get(collapse_whitespace(raw).casefold(), raw) if isinstance(raw, str) else raw


def _from_one(pairs: Sequence[_Pair], offered: int, repairs: set[Repair]) -> Sequence[_Pair]:
    """The pairs with numbers from 1 where these are all there and counted from 0."""
    numbers = [_number(raw) for raw, _ in pairs]
    if set(numbers) != set(range(offered)):
        return pairs
    repairs.add(Repair.FROM_ZERO)
    return [(number + 1, score) for number, (_, score) in zip(numbers, pairs, strict=True) if number is not None]


def _given(pairs: Iterable[_Pair], offered: int, repairs: set[Repair]) -> dict[int, float]:
    """The readable scores of candidates that were offered, by number."""
    given: dict[int, float] = {}
    for raw_number, raw_score in pairs:
        number, score = _number(raw_number), _score(raw_score)
        if number is None or not 1 <= number <= offered:
            repairs.add(Repair.NOT_OFFERED)
        elif score is None:
            repairs.add(Repair.UNREADABLE)
        elif number in given:
            repairs.add(Repair.REPEATED)
        else:
            given[number], percentage = score
            if percentage:
                repairs.add(Repair.PERCENTAGES)
    return given


def _repaired(given: Mapping[int, float], offered: int, repairs: set[Repair]) -> Reading:
    if min(given.values()) < 0:
        repairs.add(Repair.NEGATIVE)
    scores = [max(0.0, given.get(number, 0.0)) for number in range(1, offered + 1)]
    total = sum(scores)
    if max(scores) > 1:  # on a scale of its own, of which only the proportions are meant
        repairs.add(Repair.PERCENTAGES if abs(total - 100) <= 100 * _SUM_TOLERANCE else Repair.ABOVE_ONE)
    elif abs(total - 1) > _SUM_TOLERANCE:
        repairs.add(Repair.WRONG_SUM)
    return Reading(shares(scores), frozenset(repairs))


def _clipped(given: Mapping[int, float], offered: int, repairs: set[Repair]) -> Reading:
    """Scores from 0 to 1 that were each given by themselves, those on a scale to 10 or 100 brought there."""
    if min(given.values()) < 0:
        repairs.add(Repair.NEGATIVE)
    highest = max(given.values())
    whole = 1.0 if highest <= 1 else 10.0 if highest <= 10 else 100.0
    if whole > 1:
        repairs.add(Repair.ABOVE_ONE)
    return Reading(
        tuple(min(1.0, max(0.0, given.get(number, 0.0) / whole)) for number in range(1, offered + 1)),
        frozenset(repairs),
    )


def _number(raw: object) -> int | None:
    if isinstance(raw, str):
        match = _ITEM_NUMBER.fullmatch(raw)
        return int(match[1]) if match else None
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _score(raw: object) -> tuple[float, bool] | None:
    """The finite number that a score stands for, and whether it was written as a percentage."""
    fraction = _FRACTION.fullmatch(raw) if isinstance(raw, str) else None
    if fraction:
        whole = int(fraction[2])
        return (float(fraction[1].replace(",", ".")) / whole, False) if whole else None
    match = _SCORE.fullmatch(raw) if isinstance(raw, str) else None
    if match:
        score, percentage = float(match[1].replace(",", ".")), bool(match[2])
        return (score / 100 if percentage else score, percentage) if math.isfinite(score) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        return (float(raw), False) if math.isfinite(raw) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


# Verdicts

_YES = frozenset({"yes", "true", "sufficient", "ja", "oui", "si", "s\u00ed", "sim", "\u0434\u0430"})
_NO = frozenset({"no", "false", "insufficient", "nein", "non", "n\u00e3o", "nee", "\u043d\u0435\u0442"})
_YES_BEGINNINGS = ("\u662f", "\u8db3\u591f", "\u5145\u5206", "\u306f\u3044", "\uc608")
_NO_BEGINNINGS = ("\u4e0d", "\u5426", "\u6ca1", "\u3044\u3044\u3048", "\uc544\ub2c8")
"""In scripts that put no space between words, a word found is a whole clause."""

_LABELLED_VERDICT = re.compile(r"""sufficient["']?\s*:\s*["']?(\w+)""", re.IGNORECASE)
_FIRST_WORD = re.compile(r"(?:^|[:\uff1a{*])[^\w\n]{0,20}(\w+)", re.MULTILINE)


def _yes_or_no(text: str) -> bool | None:
    word = text.strip(" \t\n.,;!*{}\"'").casefold()
    if word in _NO or word.startswith(_NO_BEGINNINGS):
        return False
    return True if word in _YES or word.startswith(_YES_BEGINNINGS) else None
