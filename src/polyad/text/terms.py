"""Extracts the terms of a full-text index: words without case, accents and endings, the same for every store.

White space and punctuation separate words. Chinese, Japanese and Korean text has no spaces, so overlapping pairs of
characters are terms, as is usual. The parts of a number or code are also one term together: ``P-17`` is more than a P
and a 17.
"""

from __future__ import annotations

import re
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

_MARK_CODES = range(0x300, 0x20000)
"""Characters among which all combining marks of Unicode are."""

_MAX_STEMMED = 64
"""Most characters of a word that is stemmed; a longer word belongs to no language."""

_STOP_WORDS = frozenset(
    """
    a an and are as at be been by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()  # noqa: SIM905  # a list of 50 strings is no easier to read
)
"""Words that do not distinguish passages."""


def extract_terms_and_codes(text: str) -> tuple[list[str], list[str]]:
    """Return the terms and the codes of a text; see :func:`extract_terms` and :func:`extract_codes`."""
    folded = _fold(text)
    return _stem_words(folded), _join_codes(folded)


def extract_terms(text: str) -> list[str]:
    r"""Return the stems of the words of a text, in order.

    >>> extract_terms("Caf\u00e9s were noticed by WATCHMEN.")
    ['cafe', 'were', 'notic', 'by', 'watchmen']
    """
    return _stem_words(_fold(text))


def extract_codes(text: str) -> list[str]:
    """Return the codes of several parts in a text, such as "P-17" or "chapter 3.2", each as one term.

    >>> extract_codes("P-17 and/or chapter 3.2, in Smith-Jones(1999)")
    ['p 17', '3 2', 'smith jones']
    """
    return _join_codes(_fold(text))


def extract_query_terms(question: str) -> list[str]:
    """Return the distinct stems of a question's words, without stop words unless all words are stop words."""
    words = dict.fromkeys(_WORD.findall(_fold(question)))
    telling = [word for word in words if word not in _STOP_WORDS] or list(words)
    return list(dict.fromkeys(map(stem_word, telling)))


def extract_search_terms(question: str) -> list[str]:
    """Return the terms that a search looks up for a question: its query terms, then its codes."""
    return list(dict.fromkeys([*extract_query_terms(question), *extract_codes(question)]))


def split_ideographs(text: str) -> str:
    """Return ``text`` with pairs of characters in place of runs of ideographs, kana and hangul.

    For example, ``东京塔`` becomes ``东京 京塔``.
    """
    return _IDEOGRAPHS.sub(lambda run: f" {_pair_characters(run[0])} ", text)


def _stem_words(folded: str) -> list[str]:
    return [stem_word(word) for word in _WORD.findall(folded)]


def _join_codes(folded: str) -> list[str]:
    return [" ".join(_WORD.findall(code)) for code in _find_codes(folded)]


def _fold(text: str) -> str:
    lower = text.lower()
    if lower.isascii():
        return lower
    plain = unicodedata.normalize("NFKD", lower).translate(_list_marks())
    # Composed again: NFKD takes hangul apart, and kana from their voicing marks.
    return split_ideographs(unicodedata.normalize("NFC", plain))


@cache
def _list_marks() -> dict[int, None]:
    """Return the combining marks such as accents, but not the voicing marks of kana, which distinguish sounds."""
    return {code: None for code in _MARK_CODES if unicodedata.combining(chr(code)) and code not in _VOICING}


def _find_codes(text: str) -> Iterator[str]:
    """Yield words that are joined by a mark, in runs of characters with a digit."""
    for run in _RUN.findall(text):
        last_digit = max(match.start() for match in _DIGIT.finditer(run))
        yield from (match[0] for match in _JOINED.finditer(run) if match.start() <= last_digit)


def _pair_characters(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1)) or run


_local = threading.local()


@cache
def stem_word(word: str) -> str:
    """Return the Porter stem of a word in lower case; a long word, or one with other than ASCII letters, is its own."""
    if len(word) > _MAX_STEMMED or not word.isascii():
        return word
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("porter")
    stem: str = _local.stemmer.stemWord(word)
    return stem
