"""Counts the tokens and words of a text by rules that are the same on every machine, and formats counts."""

from __future__ import annotations

import re
from functools import cache

from polyad.model import Span

TOKEN = re.compile(r"[a-zA-Z\u00c0-\u024f]{1,8}|[0-9]{1,4}|\S")
"""An estimated token: up to 8 Latin letters, up to 4 digits, or any other character that is not white space."""


def count_tokens(text: str) -> int:
    """Estimate the length of ``text`` in tokens; two joined texts never have more tokens than the sum.

    Against the WordPiece tokenizer of all-MiniLM-L6-v2 the estimate is off by -4, 0 and +2 % in total on the
    2WikiMultiHopQA, HotpotQA and MuSiQue passages (6 to 7 % for the average passage), by -1 % on Chinese prose and by
    -5 % on source code and scientific English. Good for limits, budgets and servers that report no usage.

    >>> count_tokens("Who funded the trial?")
    5
    """
    return TOKEN.subn("", text)[1]


_WITHOUT_SPACES = "\u2e80-\U0003ffff"
"""Scripts without spaces between words, in which each character counts as a word."""

_WORD = rf"(?=\S)[{_WITHOUT_SPACES}]|[^\s{_WITHOUT_SPACES}]+"
_SHORT = 3
"""Letters of the longest word that is in lower case inside names: "of", "and", "von"."""

_IDEOGRAPH = rf"[{_WITHOUT_SPACES}]"
_TERM = rf"(?=\w)[{_WITHOUT_SPACES}]|[^\W{_WITHOUT_SPACES}]+"


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first used: classes of so many characters take milliseconds."""
    return re.compile(pattern)


def count_words(text: str) -> int:
    r"""Return the number of words; in scripts without spaces, each character counts.

    >>> count_words("Who funded the trial?"), count_words("\u6771\u4eac tower")
    (4, 3)
    """
    is_divided = text.isascii() or not _compile(_IDEOGRAPH).search(text)
    return len(text.split()) if is_divided else _compile(_WORD).subn("", text)[1]


def find_words(text: str) -> list[Span]:
    """Return the span of each word, in order."""
    return [Span(*match.span()) for match in _compile(_WORD).finditer(text)]


def normalize_words(text: str) -> list[str]:
    """Return the words without case and punctuation, which stay equal if a text is converted to another format.

    >>> normalize_words("The Trial -- it was FUNDED.")
    ['the', 'trial', 'it', 'was', 'funded']
    """
    return _compile(_TERM).findall(text.casefold())


def is_capitalized_name(text: str) -> bool:
    """Return whether all words but short ones begin with a capital, as in a name; true in scripts without capitals.

    >>> is_capitalized_name("University of Leeds"), is_capitalized_name("root directory"), is_capitalized_name("東京")
    (True, False, True)
    """
    words = text.split()
    longer = [word for word in words if len(word) > _SHORT] or words
    return not any(word[0].islower() for word in longer)


def format_count(number: int, what: str) -> str:
    """Return a number with its noun, in the singular or plural.

    >>> format_count(1, "hyperedge"), format_count(2000, "hyperedge"), format_count(0, "entity")
    ('1 hyperedge', '2,000 hyperedges', '0 entities')
    """
    return f"{number:,} {what if number == 1 else _plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-1]}ies" if re.search("[^aeiou]y$", what) else f"{what}s"
