"""Suggestions of aliases: names that may stand for the same entity, by initials, spelling or meaning."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from typing import Final

import numpy as np

from polyad.model import FloatArray

MIN_SPELLING: Final = 0.88
"""Least share of equal characters, in [0, 1], of two spellings of one name."""

MIN_COSINE: Final = 0.85
"""Least cosine of the vectors of two names of one entity."""

_MAX_EMBEDDED = 4000
"""Most frequent names that are compared by their vectors."""

_MAX_GROUP = 200
"""Names compared in pairs because they share a word; a more frequent word is not specific enough."""

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"\w+")
_MINOR_WORDS = frozenset({"and", "de", "for", "in", "la", "of", "on", "the", "und", "von"})


@dataclass(frozen=True, slots=True)
class AliasSuggestion:
    """Two names that may denote the same entity, with the reason for the suggestion.

    Attributes:
        name: The rarer name.
        target: The more frequent name.
        reason: ``initials``, ``spelling`` or ``meaning``.
        score: Similarity in [0, 1].
    """

    name: str
    target: str
    reason: str
    score: float


def suggest_aliases(
    counts: Mapping[str, int], encode: Callable[[Sequence[str]], FloatArray] | None = None
) -> list[AliasSuggestion]:
    """Return pairs of entity names that may denote the same entity, most similar first.

    Names with different numbers are never suggested: "Model 3" is not "Model 4".

    Args:
        counts: Number of facts by the name of each entity.
        encode: Embeds names, as unit vectors ``[names, dimension]``; None to compare only how they are written.
    """
    suggestions: dict[tuple[str, str], AliasSuggestion] = {}
    for one, other, reason, score in (
        *_compare_initials(counts),
        *_compare_spellings(counts),
        *(_compare_meanings(counts, encode) if encode else ()),
    ):
        if _DIGITS.findall(one) == _DIGITS.findall(other):
            name, target = sorted((one, other), key=lambda each: (counts[each], each))
            suggestions.setdefault((name, target), AliasSuggestion(name, target, reason, round(score, 3)))
    return sorted(suggestions.values(), key=lambda one: (-one.score, one.name, one.target))


def _compare_initials(names: Iterable[str]) -> Iterator[tuple[str, str, str, float]]:
    """Yield pairs such as "WHO" and "World Health Organization": an abbreviation, and a name with these initials."""
    by_initials: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        words = [word for word in _WORD.findall(name) if word.casefold() not in _MINOR_WORDS]
        if len(words) > 1:
            by_initials["".join(word[0] for word in words).upper()].append(name)
    for name in names:
        letters = name.replace(".", "").replace(" ", "")
        if letters.isupper() and len(letters) > 1:
            yield from ((name, other, "initials", 1.0) for other in by_initials[letters] if other != name)


def _compare_spellings(names: Iterable[str]) -> Iterator[tuple[str, str, str, float]]:
    """Yield pairs of names with similar spelling: they share a word or beginning, and most characters."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        for word in {*_WORD.findall(name.casefold()), name.casefold()[:4]} - _MINOR_WORDS:
            groups[word].add(name)
    for group in groups.values():
        for one, other in combinations(sorted(group), 2) if len(group) <= _MAX_GROUP else ():
            matcher = SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False)
            if matcher.real_quick_ratio() >= MIN_SPELLING and matcher.quick_ratio() >= MIN_SPELLING:
                score = matcher.ratio()
                if score >= MIN_SPELLING:
                    yield one, other, "spelling", score


def _compare_meanings(
    counts: Mapping[str, int], encode: Callable[[Sequence[str]], FloatArray]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield pairs of frequent names whose embedding vectors have a high cosine."""
    names = sorted(counts, key=lambda name: (-counts[name], name))[:_MAX_EMBEDDED]
    if not names:
        return
    vectors = encode(names)
    cosines = np.triu(vectors @ vectors.T, k=1)
    for one, other in np.argwhere(cosines >= MIN_COSINE).tolist():
        yield names[one], names[other], "meaning", float(min(1.0, cosines[one, other]))
