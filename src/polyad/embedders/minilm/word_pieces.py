"""The WordPiece tokenizer of uncased BERT models."""

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
"""Ranges of characters that are words of their own, as in the training of the model."""

_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

_MAX_WORD_LENGTH = 100
"""Characters; a longer word becomes the token [UNK]."""

_CACHED_WORDS = 1 << 16


class WordPieceTokenizer:
    """Converts texts to the token ids of an uncased BERT model (Devlin et al., 2019), like the library ``tokenizers``.

    A word is split from left to right into the longest pieces in the vocabulary (Schuster and Nakajima, 2012).

    Args:
        vocabulary: Word pieces in the order of their ids; pieces that continue a word begin with ``##``.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: id for id, piece in enumerate(vocabulary)}
        self._unknown = [self._ids["[UNK]"]]
        self._pieces = lru_cache(_CACHED_WORDS)(self._split_word)

    def split_windows(self, text: str, max_tokens: int) -> list[list[int]]:
        """Return the token ids of a text as one or more windows, each starting with [CLS] and ending with [SEP].

        Args:
            text: The text.
            max_tokens: Maximum number of tokens in a window, [CLS] and [SEP] included; 3 or more.
        """
        ids = self._tokenize(text)
        begin, end = self._ids["[CLS]"], self._ids["[SEP]"]
        return [
            [begin, *ids[start : start + max_tokens - 2], end] for start in range(0, max(1, len(ids)), max_tokens - 2)
        ]

    def _tokenize(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in _SPECIAL.split(text):
            if _SPECIAL.fullmatch(part):
                ids.append(self._ids[part])
            else:
                for word in _normalise(part).split(" "):
                    ids.extend(self._pieces(word))
        return ids

    def _split_word(self, word: str) -> list[int]:
        """Return the token ids of a word's pieces, or the id of ``[UNK]`` for an unknown word."""
        if len(word) > _MAX_WORD_LENGTH:
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


def _normalise(text: str) -> str:
    """Return a text in lower case without accents, with spaces around punctuation and Chinese characters."""
    return unicodedata.normalize("NFD", text.translate(_CLEANING)).translate(_SPLITTING)


class _CleaningTable(dict[int, str]):
    """A ``str.translate`` table that deletes control characters and normalises white space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            translation = " "
        elif code in (0, 0xFFFD) or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
            translation = ""
        else:
            translation = " " if character.isspace() else character
        self[code] = translation
        return translation


class _SplittingTable(dict[int, str]):
    """A ``str.translate`` table that removes accents, lowercases, and separates punctuation."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Mn":
            translation = ""
        elif category[0] == "P" or _is_ascii_punctuation(code) or any(low <= code <= high for low, high in _CJK):
            translation = f" {character} "
        else:
            translation = character.lower()
        self[code] = translation
        return translation


def _is_ascii_punctuation(code: int) -> bool:
    """Return whether a character code is ASCII punctuation or an ASCII symbol such as "$"."""
    return 33 <= code <= 126 and not chr(code).isalnum()


_CLEANING, _SPLITTING = _CleaningTable(), _SplittingTable()
