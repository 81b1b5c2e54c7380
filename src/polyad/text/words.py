"""Words of running text, as budgets of words count them: what white space divides, and each ideograph."""

from __future__ import annotations

import re

from polyad.model import Span

_WITHOUT_SPACES = "\u2e80-\U0003ffff"
"""Scripts that put no blanks between words: there each character counts."""

_WORD = re.compile(rf"(?=\S)[{_WITHOUT_SPACES}]|[^\s{_WITHOUT_SPACES}]+")
_SHORT = 3
"""Letters of the longest word that names hold in lower case: "of", "and", "von"."""

_IDEOGRAPH = re.compile(rf"[{_WITHOUT_SPACES}]")
_TERM = re.compile(rf"(?=\w)[{_WITHOUT_SPACES}]|[^\W{_WITHOUT_SPACES}]+")


def count_words(text: str) -> int:
    r"""How many words there are.

    >>> count_words("Who funded the trial?"), count_words("\u6771\u4eac tower")
    (4, 3)
    """
    is_divided = text.isascii() or not _IDEOGRAPH.search(text)
    return len(text.split()) if is_divided else _WORD.subn("", text)[1]


def word_spans(text: str) -> list[Span]:
    """Where each word is, in order."""
    return [Span(*match.span()) for match in _WORD.finditer(text)]


def terms(text: str) -> list[str]:
    """The words without case and punctuation: what remains equal when a text goes through another format.

    >>> terms("The Trial -- it was FUNDED.")
    ['the', 'trial', 'it', 'was', 'funded']
    """
    return _TERM.findall(text.casefold())


def is_written_as_name(text: str) -> bool:
    """Whether all words but short ones begin with a capital, as in a name; where there are no capitals, always.

    >>> is_written_as_name("University of Leeds"), is_written_as_name("root directory"), is_written_as_name("東京")
    (True, False, True)
    """
    words = text.split()
    longer = [word for word in words if len(word) > _SHORT] or words
    return not any(word[0].islower() for word in longer)
