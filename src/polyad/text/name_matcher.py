"""Known entities in a text, by their keys: how a question is linked to an index."""

# ruff: noqa: RUF001  the look-alike punctuation below is what is being told apart

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from polyad.model import Mention
from polyad.text.keys import entity_key, with_few_marks
from polyad.text.lexicon import COMMON_WORDS, FORMS_OF_ADDRESS, FUNCTION_WORDS, GENERIC_WORDS

_LONGEST = 12
"""Words of a name that is looked for."""

_WORD = re.compile(r"[^\s\x00-\x1f!\"(),\-./:;<=>?@\[\\\]^_{|}~*‐‑‒–—―…“”„«»‹›《》〈〉「」『』【】、。，·]+")
_APOSTROPHES = str.maketrans("", "", "'’‘ʼ`´")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ`´‘]s['’ʼ`´‘]*$", re.IGNORECASE)
_EXPLAINS_CAPITAL = re.compile(r"(?:\A|[.!?:…][\"”’)]?\s|\()\W*\Z")
_FEWEST_CONTENT_WORDS = 2
_ARTICLES = frozenset({"the", "a", "an"})
_ARTICLE_STARTS = ("the ", "a ", "an ")
_EVERYDAY = COMMON_WORDS | FUNCTION_WORDS | GENERIC_WORDS | FORMS_OF_ADDRESS


class _Word(NamedTuple):
    start: int
    end: int
    inner: str
    """As it stands in a key before other words."""
    last: str
    """As it stands at the end of a key: without a possessive."""
    irregular: bool
    """A single letter, an acronym or digits: what becomes of it in a key depends on what is beside it."""


class Vocabulary:
    """Finds known names in a text, whatever their case, punctuation and possessives.

    A single word of everyday English that happens to be an entity ("film", "heat") counts only where the text gives
    it a capital that its place in the sentence does not explain. Nor do several words without a capital count when they
    are function words but for one ("came out").

    Args:
        known: Which of some keys, as :func:`polyad.text.keys.entity_key` makes them, are entities'; asked for all
            of a text at once.
    """

    def __init__(self, known: Callable[[Iterable[str]], Container[str]]) -> None:
        self._known = known

    def find(self, text: str) -> list[Mention]:
        """Mentions of known names by ``start``, disjoint: from left to right, at each word the longest."""
        words = list(_words(text))
        windows = [_keys(text, words[start : start + _LONGEST]) for start in range(len(words))]
        known = self._known({key for keys in windows for spelt in keys for key in _spellings(spelt) if key})
        found: list[Mention] = []
        position = 0
        while position < len(words):
            length = self._match(text, words[position : position + _LONGEST], windows[position], known)
            if length:
                matched = _without_article(text, words[position : position + length])
                start = matched[0].start
                name = _POSSESSIVE.sub("", text[start : matched[-1].end])
                found.append(Mention(name, start, start + len(name)))
            position += max(1, length)
        return found

    def _match(self, text: str, window: list[_Word], keys: Sequence[str], known: Container[str]) -> int:
        """Words of the longest known name that the window begins with; 0 when there is none."""
        for length in range(len(window), 0, -1):
            if not any(key in known for key in _spellings(keys[length - 1])):
                continue
            key = entity_key(text[window[0].start : window[length - 1].end])
            is_known = key in known or (bool(key) and key in self._known([key]))
            if is_known and _is_meant(text, _without_article(text, window[:length])):
                return length
        return 0


def _keys(text: str, window: Sequence[_Word]) -> list[str]:
    """The key of the first word, the first two and so on; taken from the text where it depends on more than words."""
    keys = []
    joined = ""
    irregular = False
    for word in window:
        irregular = irregular or word.irregular
        keys.append(entity_key(text[window[0].start : word.end]) if irregular else joined + word.last)
        joined += word.inner + " "
    return keys


def _spellings(key: str) -> list[str]:
    """A key, and without the article it begins with."""
    return [key, key.partition(" ")[2]] if key.startswith(_ARTICLE_STARTS) else [key]


def _without_article(text: str, words: list[_Word]) -> list[_Word]:
    """The words without an article that their key does without."""
    first, end = words[0], words[-1].end
    if len(words) == 1 or first.inner not in _ARTICLES:
        return words
    without = entity_key(text[words[1].start : end])
    return words[1:] if without == entity_key(text[first.start : end]) else words


def _words(text: str) -> Iterator[_Word]:
    for match in _WORD.finditer(text):
        word = match.group()
        folded = word.casefold()
        if not folded.isascii():
            folded = unicodedata.normalize("NFKC", with_few_marks(folded))
        inner = "and" if folded == "&" else folded.translate(_APOSTROPHES)
        last = _POSSESSIVE.sub("", folded).translate(_APOSTROPHES)
        yield _Word(match.start(), match.end(), inner, last, len(inner) == 1 or not inner.isalpha() or word.isupper())


def _is_meant(text: str, words: list[_Word]) -> bool:
    """Whether words that spell a known name are that name here, and not everyday English or two clauses that meet."""
    if any(text[word.start].isupper() or text[word.start].isdigit() for word in words[1:]):
        first = text[words[0].start]
        return first.isupper() or first.isdigit() or not _crosses_punctuation(text, words)
    if len(words) > 1:
        content = sum(word.last not in FUNCTION_WORDS for word in words)
        is_term = content == len(words) or content >= _FEWEST_CONTENT_WORDS
        return is_term and not _crosses_punctuation(text, words)
    word = words[0]
    if word.last not in _EVERYDAY:
        return True
    return text[word.start].isupper() and not _EXPLAINS_CAPITAL.search(text, max(0, word.start - 4), word.start)


def _crosses_punctuation(text: str, words: list[_Word]) -> bool:
    return any(text[left.end : right.start].strip(" -") for left, right in pairwise(words))
