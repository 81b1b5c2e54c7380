"""Texts to the tokens that BERT reads: pieces of words, in lower case and without accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Characters that are words by themselves; the ranges that the model was trained with."""

_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

_LONGEST_WORD = 100
"""Characters; a longer word is unknown."""

_KEPT_WORDS = 1 << 16


class WordPieces:
    """The tokenizer of an uncased BERT model (Devlin et al., 2019), token for token that of the library `tokenizers`.

    A word is cut from the left into the longest pieces that the vocabulary has (Schuster and Nakajima, 2012).

    Args:
        vocabulary: Pieces in the order of their ids; those that continue a word begin with ``##``.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: id for id, piece in enumerate(vocabulary)}
        self._unknown = [self._ids["[UNK]"]]
        self._pieces = lru_cache(_KEPT_WORDS)(self._cut)

    def windows(self, text: str, size: int) -> list[list[int]]:
        """The ids of a text's tokens in windows, each between [CLS] and [SEP]; at least one window.

        Args:
            text: Any.
            size: The most tokens of a window, those two included; 3 or more.
        """
        ids = self._tokens(text)
        begin, end = self._ids["[CLS]"], self._ids["[SEP]"]
        return [[begin, *ids[start : start + size - 2], end] for start in range(0, max(1, len(ids)), size - 2)]

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in _SPECIAL.split(text):
            if _SPECIAL.fullmatch(part):
                ids.append(self._ids[part])
            else:
                for word in _plain(part).split(" "):
                    ids.extend(self._pieces(word))
        return ids

    def _cut(self, word: str) -> list[int]:
        """The ids of a word's pieces; that of [UNK] where it cannot be cut into any."""
        if len(word) > _LONGEST_WORD:
            return self._unknown
        ids, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                id = self._ids.get(("##" if start else "") + word[start:end])
                if id is not None:
                    ids.append(id)
                    start = end
                    break
            else:
                return self._unknown
        return ids


def _plain(text: str) -> str:
    """Lower case without accents and control characters, blanks around each mark and each CJK character."""
    return unicodedata.normalize("NFD", text.translate(_CLEAN)).translate(_SPLIT)


class _Clean(dict[int, str]):
    """Without control characters; every white space is a blank."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            found = " "
        elif code in (0, 0xFFFD) or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
            found = ""
        else:
            found = " " if character.isspace() else character
        self[code] = found
        return found


class _Split(dict[int, str]):
    """What decomposed characters become: no accents, lower case, marks and CJK characters apart."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Mn":
            found = ""
        elif category[0] == "P" or _is_ascii_mark(code) or any(low <= code <= high for low, high in _CJK):
            found = f" {character} "
        else:
            found = character.lower()
        self[code] = found
        return found


def _is_ascii_mark(code: int) -> bool:
    """Whether it is one of the marks of ASCII, of which Unicode counts some as symbols."""
    return 33 <= code <= 126 and not chr(code).isalnum()


_CLEAN, _SPLIT = _Clean(), _Split()
