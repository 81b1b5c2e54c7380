"""Words as an index of words sees them: without case, accents and endings, the same for every store.

White space and punctuation divide words. Runs of Chinese, Japanese or Korean have none, so their overlapping pairs of
characters stand for words, the usual remedy. The parts of a number or code count together as well: ``P-17`` is more
than a P and a 17.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache

import Stemmer

_IDEOGRAPHS = re.compile("[\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uac00-\\ud7af]+")
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"(?<!\S)[^\s\d]*+\d\S*+")  # with a digit; nothing is tried twice
_JOINED = re.compile(r"(?<!\w)\w++(?:[-./:]\w++)+")  # nothing is tried twice: questions may be long

_VOICING = (0x3099, 0x309A)

_MARKS = {code: None for code in range(sys.maxunicode) if unicodedata.combining(chr(code)) and code not in _VOICING}
"""Marks on letters, such as accents, to be left out; without the voicing marks of kana, which tell sounds apart."""

_LONGEST = 64
"""Characters from which on a word is no word of a language, and is left as it is."""

_STOP_WORDS = frozenset(
    """
    a an and are as at be been by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()  # noqa: SIM905  # a list of 50 strings is no easier to read
)
"""Words that tell no passage from another."""


def words_and_codes_of(text: str) -> tuple[list[str], list[str]]:
    """The words of a text, and its codes: see :func:`words_of` and :func:`codes_of`."""
    folded = _folded(text)
    return _words(folded), _parts(folded)


def words_of(text: str) -> list[str]:
    r"""The words of a text in order, each by its stem.

    >>> words_of("Caf\u00e9s were noticed by WATCHMEN.")
    ['cafe', 'were', 'notic', 'by', 'watchmen']
    """
    return _words(_folded(text))


def codes_of(text: str) -> list[str]:
    """Numbers and codes of several parts, each as one word that no single word is.

    >>> codes_of("P-17 and/or chapter 3.2, in Smith-Jones(1999)")
    ['p 17', '3 2', 'smith jones']
    """
    return _parts(_folded(text))


def query_terms(question: str) -> list[str]:
    """The stems of a question's words, each once; without those that tell no passage from another, unless all do."""
    words = dict.fromkeys(_WORD.findall(_folded(question)))
    telling = [word for word in words if word not in _STOP_WORDS] or list(words)
    return list(dict.fromkeys(map(_stem, telling)))


def searched_words(question: str) -> list[str]:
    """What a search for a question's words looks up: its telling words, then its codes."""
    return list(dict.fromkeys([*query_terms(question), *codes_of(question)]))


def in_pairs(text: str) -> str:
    """``text`` with runs of ideographs, kana and hangul as pairs of characters: ``东京塔`` becomes ``东京 京塔``."""
    return _IDEOGRAPHS.sub(lambda run: f" {_pairs(run[0])} ", text)


def _words(folded: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(folded)]


def _parts(folded: str) -> list[str]:
    return [" ".join(_WORD.findall(code)) for code in _codes(folded)]


def _folded(text: str) -> str:
    lower = text.lower()
    if lower.isascii():
        return lower
    plain = unicodedata.normalize("NFKD", lower).translate(_MARKS)
    # Composed again: NFKD takes hangul apart, and kana from their voicing marks.
    return in_pairs(unicodedata.normalize("NFC", plain))


def _codes(text: str) -> Iterator[str]:
    """Words joined by a mark, in what stands without a blank before a digit."""
    for run in _RUN.findall(text):
        last_digit = max(match.start() for match in _DIGIT.finditer(run))
        yield from (match[0] for match in _JOINED.finditer(run) if match.start() <= last_digit)


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1)) or run


_local = threading.local()


@cache
def _stem(word: str) -> str:
    if len(word) > _LONGEST or not word.isascii():
        return word
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("porter")
    stem: str = _local.stemmer.stemWord(word)
    return stem
