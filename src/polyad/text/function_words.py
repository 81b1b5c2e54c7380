"""Function words of many languages, and the language of a text by them.

Function words (articles, pronouns, prepositions, question words) begin no name and separate terms. The lists are a data
file of 60 to 200 words a language.
"""

# ruff: noqa: RUF001  an apostrophe is matched

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources

from polyad.text.lexicon import FUNCTION_WORDS

_MIN_WORDS = 2
"""Fewest function words of another language by which a text is not in English."""

_OWN_ALPHABETS = frozenset({"ru", "uk", "bg", "el"})
"""Languages whose alphabet is not Latin, so that one word is enough."""

_WORD = re.compile(r"(?<![\w'’])[^\W\d_]{2,}")


@cache
def read_function_words() -> Mapping[str, frozenset[str]]:
    """Return the function words of each language, in lower case, by its ISO 639-1 code; without English."""
    lines = resources.files("polyad.text").joinpath("function_words.txt").read_text(encoding="utf-8").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {language: frozenset(words.split()) for language, _, words in entries}


def get_function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in lower case; empty for English and unknown languages.

    >>> "später" in get_function_words("de"), get_function_words("en")
    (True, frozenset())
    """
    return read_function_words().get(language, frozenset())


def infer_language(text: str) -> str:
    """Return the ISO 639-1 code of the language most of whose function words are in a text; ``en`` without evidence.

    Meant for alphabets with capitals, in which a word list is all that a rule for names needs.

    >>> infer_language("Wer goss die Glocke von Tarn?"), infer_language("Who cast the Bell of Tarn?")
    ('de', 'en')
    """
    languages_by_word = _index_function_words()
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        counts.update(languages_by_word.get(word, ()))
    english = counts.pop("en", 0)
    count, language = max(((count, language) for language, count in counts.items()), default=(0, "en"))
    return language if count > 3 * english and (count >= _MIN_WORDS or language in _OWN_ALPHABETS) else "en"


@cache
def _index_function_words() -> Mapping[str, tuple[str, ...]]:
    """Return the languages of each function word; words that English shares with others are English only."""
    index: dict[str, list[str]] = defaultdict(list)
    for language, words in read_function_words().items():
        for word in words - FUNCTION_WORDS:
            index[word].append(language)
    return {word: tuple(languages) for word, languages in index.items()} | dict.fromkeys(FUNCTION_WORDS, ("en",))
