"""Finds known entities in a text by their keys, to link a question to an index."""

# ruff: noqa: RUF001  the look-alike punctuation below is what is being told apart

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from polyad.model import Mention
from polyad.text.keys import build_entity_key, limit_marks
from polyad.text.lexicon import COMMON_WORDS, FORMS_OF_ADDRESS, FUNCTION_WORDS, GENERIC_WORDS

_MAX_NAME_WORDS = 12
"""Most words of a name that is searched for."""

_WORD = re.compile(r"[^\s\x00-\x1f!\"(),\-./:;<=>?@\[\\\]^_{|}~*‐‑‒–—―…“”„«»‹›《》〈〉「」『』【】、。，·]+")
_APOSTROPHES = str.maketrans("", "", "'’‘ʼ`´")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ`´‘]s['’ʼ`´‘]*$", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:\A|[.!?:…][\"”’)]?\s|\()\W*\Z")
_MIN_CONTENT_WORDS = 2
_ARTICLES = frozenset({"the", "a", "an"})
_ARTICLE_STARTS = ("the ", "a ", "an ")
_EVERYDAY_WORDS = COMMON_WORDS | FUNCTION_WORDS | GENERIC_WORDS | FORMS_OF_ADDRESS


class _Token(NamedTuple):
    """A word of a text, with its form inside a key and at the end of a key.

    Attributes:
        start, end: Span of the word.
        inner: The word before other words of a key.
        last: The word at the end of a key, without a possessive ending.
        irregular: Whether it is a letter, an acronym or digits, whose form in a key depends on the neighbouring words.
    """

    start: int
    end: int
    inner: str
    last: str
    irregular: bool


class EntityNameMatcher:
    """Finds mentions of known entity names in a text, ignoring case, punctuation and possessive endings.

    A single word of everyday English that happens to be an entity ("film", "heat") counts only where the text gives
    it a capital that its place in the sentence does not explain. Nor do several words without a capital count when they
    are function words but for one ("came out").

    Args:
        find_known: Returns which of the entity keys exist; called once with all keys of a text.
    """

    def __init__(self, find_known: Callable[[Iterable[str]], Container[str]]) -> None:
        self._find_known = find_known

    def find(self, text: str) -> list[Mention]:
        """Return the mentions of known names, ordered by ``start`` and disjoint: at each word, the longest name."""
        words = list(_split_words(text))
        windows = [_build_keys(text, words[start : start + _MAX_NAME_WORDS]) for start in range(len(words))]
        existing = self._find_known({v for keys in windows for key in keys for v in _get_key_variants(key) if v})
        mentions: list[Mention] = []
        position = 0
        while position < len(words):
            length = self._match(text, words[position : position + _MAX_NAME_WORDS], windows[position], existing)
            if length:
                matched = _skip_article(text, words[position : position + length])
                start = matched[0].start
                name = _POSSESSIVE.sub("", text[start : matched[-1].end])
                mentions.append(Mention(name, start, start + len(name)))
            position += max(1, length)
        return mentions

    def _match(self, text: str, window: list[_Token], keys: Sequence[str], existing: Container[str]) -> int:
        """Return the number of words of the longest known name that the window begins with; 0 if there is none."""
        for length in range(len(window), 0, -1):
            if not any(key in existing for key in _get_key_variants(keys[length - 1])):
                continue
            key = build_entity_key(text[window[0].start : window[length - 1].end])
            is_known = key in existing or (bool(key) and key in self._find_known([key]))
            if is_known and _is_name_here(text, _skip_article(text, window[:length])):
                return length
        return 0


def _build_keys(text: str, window: Sequence[_Token]) -> list[str]:
    """Return the keys of the first word, the first two words and so on of a window."""
    keys = []
    joined = ""
    irregular = False
    for word in window:
        irregular = irregular or word.irregular
        keys.append(build_entity_key(text[window[0].start : word.end]) if irregular else joined + word.last)
        joined += word.inner + " "
    return keys


def _get_key_variants(key: str) -> list[str]:
    """Return the key, and the key without its leading article if it has one."""
    return [key, key.partition(" ")[2]] if key.startswith(_ARTICLE_STARTS) else [key]


def _skip_article(text: str, words: list[_Token]) -> list[_Token]:
    """Return the words without a leading article, if the key does not contain the article."""
    first, end = words[0], words[-1].end
    if len(words) == 1 or first.inner not in _ARTICLES:
        return words
    without = build_entity_key(text[words[1].start : end])
    return words[1:] if without == build_entity_key(text[first.start : end]) else words


def _split_words(text: str) -> Iterator[_Token]:
    for match in _WORD.finditer(text):
        word = match.group()
        folded = word.casefold()
        if not folded.isascii():
            folded = unicodedata.normalize("NFKC", limit_marks(folded))
        inner = "and" if folded == "&" else folded.translate(_APOSTROPHES)
        last = _POSSESSIVE.sub("", folded).translate(_APOSTROPHES)
        yield _Token(match.start(), match.end(), inner, last, len(inner) == 1 or not inner.isalpha() or word.isupper())


def _is_name_here(text: str, words: list[_Token]) -> bool:
    """Return whether words that spell a known name are meant as that name.

    Otherwise they are everyday English, or the end and the beginning of two clauses.
    """
    if any(text[word.start].isupper() or text[word.start].isdigit() for word in words[1:]):
        first = text[words[0].start]
        return first.isupper() or first.isdigit() or not _crosses_punctuation(text, words)
    if len(words) > 1:
        content = sum(word.last not in FUNCTION_WORDS for word in words)
        is_term = content == len(words) or content >= _MIN_CONTENT_WORDS
        return is_term and not _crosses_punctuation(text, words)
    word = words[0]
    if word.last not in _EVERYDAY_WORDS:
        return True
    return text[word.start].isupper() and not _SENTENCE_START.search(text, max(0, word.start - 4), word.start)


def _crosses_punctuation(text: str, words: list[_Token]) -> bool:
    return any(text[left.end : right.start].strip(" -") for left, right in pairwise(words))
