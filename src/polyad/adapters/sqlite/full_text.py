"""Text as SQLite's FTS5 should see it.

FTS5's ``unicode61`` tokenizer breaks words at white space and punctuation, so a run of Chinese or Japanese is one
"word" that no question ever equals. Such runs are rewritten as overlapping pairs of characters, the usual remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_IDEOGRAPHS = re.compile("[\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uac00-\\ud7af]+")
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_JOINED = re.compile(r"(?<!\w)\w++(?:[-./:]\w++)+")  # nothing is tried twice: questions may be long

# Words that tell no passage from another; leaving them out of the query saves FTS5 its longest posting lists.
_STOP_WORDS = frozenset(
    """
    a an and are as at be been by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()  # noqa: SIM905  # a list of 50 strings is no easier to read
)


def searchable(text: str) -> str:
    """``text`` with runs of ideographs, kana and hangul as pairs of characters: ``东京塔`` becomes ``东京 京塔``."""
    return _IDEOGRAPHS.sub(lambda run: f" {_pairs(run[0])} ", text)


def telling_words(question: str) -> list[str]:
    """The words of ``question``, each once; without those that tell no passage from another, unless all do."""
    words = list(dict.fromkeys(_WORD.findall(searchable(question).lower())))
    return [word for word in words if word not in _STOP_WORDS] or words


def match_expression(question: str) -> str:
    """An FTS5 query for any word of ``question``; empty when there is no word to look for.

    The parts of a number or code count together as well: ``P-17`` is more than a P and a 17.
    """
    codes = dict.fromkeys(" ".join(_WORD.findall(code)) for code in _codes(question.lower()))
    return " OR ".join(f'"{term}"' for term in [*telling_words(question), *codes])


def _codes(text: str) -> Iterator[str]:
    """Words joined by a mark, in what stands without a blank before a digit.

    >>> list(_codes("p-17 and/or chapter 3.2, in smith-jones(1999)"))
    ['p-17', '3.2', 'smith-jones']
    """
    for run in text.split():
        last_digit = max((match.start() for match in _DIGIT.finditer(run)), default=-1)
        yield from (match[0] for match in _JOINED.finditer(run) if match.start() <= last_digit)


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1)) or run
