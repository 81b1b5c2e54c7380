"""Function words of many languages, and the language of a text by them.

Function words (articles, pronouns, prepositions, question words) begin no name and separate terms. The lists are a data
file of 60 to 200 words a language.
"""

# ruff: noqa: RUF001  an apostrophe is matched

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache

from polyad.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, compile_letters, is_mostly_uncased

_MIN_WORDS = 2
"""Fewest function words of another language by which a text is not in English."""

_MAX_CACHED = 300
"""Characters of a text whose language is cached: a search asks several times for that of its question."""

_OWN_ALPHABETS = frozenset({"ru", "uk", "bg", "el", "ar", "fa", "ur", "he", "hi", "mr", "bn"})
"""Languages with spaces whose alphabet is not Latin, so that one word is enough."""

_SCRIPTS = {"ja": f"[{HIRAGANA}{KATAKANA}]", "ko": f"[{HANGUL}]", "zh": f"[{HAN}]", "th": "[\u0e01-\u0e3a]"} | {
    "lo": "[\u0e81-\u0ebd]", "my": "[\u1000-\u103f]", "km": "[\u1780-\u17d3]"
}  # fmt: skip
"""Pattern of a letter that shows the language of a text without spaces; Japanese also has Chinese characters."""

_MIN_SCRIPT_SHARE = 0.1
"""Share of a text's letters above which a script shows its language."""

_LETTER = "[^\\W\\d_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u06d3\u0900-\u0963\u0970-\u09e5]"
_WORD = rf"(?<![\w'’])(?:{_LETTER}){{2,}}"


@cache
def read_function_words() -> Mapping[str, tuple[str, ...]]:
    """Return the function words of each language, in lower case, by its ISO 639-1 code; without English."""
    from polyad.text.files import read_package_file  # imports what the help of the command line does not need

    lines = read_package_file("polyad.text", "function_words.txt").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {language: tuple(words.split()) for language, _, words in entries}


@cache
def get_function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in lower case; empty for English and unknown languages.

    >>> "später" in get_function_words("de"), get_function_words("en")
    (True, frozenset())
    """
    return frozenset(read_function_words().get(language, ()))


@cache
def list_languages() -> tuple[str, ...]:
    """Return the codes that :func:`infer_language` can return, sorted."""
    return tuple(sorted({"en", *read_function_words(), *_SCRIPTS}))


def infer_language(text: str) -> str:
    """Return the ISO 639-1 code of the language most of whose function words are in a text; ``en`` without evidence.

    Scripts without spaces show the language themselves.

    >>> infer_language("Wer goss die Glocke von Tarn?"), infer_language("Who cast the Bell of Tarn?")
    ('de', 'en')
    """
    return find_language_evidence(text) or "en"


def find_language_evidence(text: str) -> str:
    """Return the language of a text as :func:`infer_language` does, but empty without evidence, also of English.

    Each word counts once: a foreign title that an English text repeats says nothing.
    """
    return _find_evidence(text) if len(text) > _MAX_CACHED else _find_cached_evidence(text)


@lru_cache(maxsize=512)
def _find_cached_evidence(text: str) -> str:
    return _find_evidence(text)


def _find_evidence(text: str) -> str:
    if is_mostly_uncased(text) and (script := _infer_by_script(text)):
        return script
    from polyad.text.lexicon import FUNCTION_WORDS  # takes milliseconds, and the help of the command line needs none

    languages_by_word = _index_function_words()
    counts: Counter[str] = Counter()
    shared: Counter[str] = Counter()  # words that English has too
    english = english_alone = 0
    for word in set(compile_letters(_WORD).findall(text.lower())):
        languages = languages_by_word.get(word, ())
        is_english = word in FUNCTION_WORDS
        english += is_english
        english_alone += is_english and not languages
        for language in languages:
            (shared if is_english else counts)[language] += 1
    (language, count), (_, second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    is_enough = count >= _MIN_WORDS or language in _OWN_ALPHABETS
    if is_enough and count > second and count > 3 * (english - shared[language]):
        return language
    return "en" if english_alone and english_alone >= count else ""


def find_part_language(part: str, language: str) -> str:
    """Return the language of a line or paragraph of a text that is mostly in ``language``.

    It differs only if the part has evidence of a language in another script: evidence of a language in the same script,
    or of English, may be a name.

    >>> find_part_language("Der Turm steht am Ufer der Isk.", "zh"), find_part_language("The Beatles", "zh")
    ('de', 'zh')
    """
    evidence = "" if language == "en" else find_language_evidence(part)
    is_other = evidence not in ("", "en") and _has_own_script(evidence) != _has_own_script(language)
    return evidence if is_other else language


def _has_own_script(language: str) -> bool:
    return language in _OWN_ALPHABETS or language in _SCRIPTS


def _infer_by_script(text: str) -> str:
    """Return the language of a script without spaces in a text; empty for other scripts."""
    least = _MIN_SCRIPT_SHARE * sum(map(str.isalpha, text))
    return next((one for one, letter in _SCRIPTS.items() if len(compile_letters(letter).findall(text)) > least), "")


@cache
def _index_function_words() -> Mapping[str, tuple[str, ...]]:
    """Return the languages of each function word, without English."""
    index: dict[str, list[str]] = defaultdict(list)
    for language, words in read_function_words().items():
        for word in words:
            index[word].append(language)
    return {word: tuple(languages) for word, languages in index.items()}
