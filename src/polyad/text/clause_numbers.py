"""Finds numbers of clauses, sections, steps, figures and tables: where they stand, and where a question names them.

"What does clause 2.2 say?" asks for the text that begins with "2.2", rather than for those that mention clause 2.2. So
the number at the beginning of a line is a search term of its own, and so is the number that a question names.
"""

# ruff: noqa: RUF001  a dash and Cyrillic letters

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

MARK = "§"
"""The first character of these search terms, which no term of a word has."""

_FIGURES = r"""
    figur(?:a|as|es?|en)? fig abbildung(?:en)? abb tab(?:les?|ellen?|leaux?|las?|ellas?|el)? рисун(?:ок|ке|ка)
    таблиц[аеы]
"""
_LETTERED = "appendix annexe? exhibit anhang anlage anexo allegato bijlage приложени[еяю]"
_CLAUSES = r"""
    sect?(?:ions?)? clauses? art(?:icles?|ikels?|[ií]culos?|icol[oi]|igos?)? ch(?:ap(?:ters?)?)?
    paragra(?:ph[es]?|fen|f|fo|af) steps? items? points? rules? parts? schedules? abs(?:chnitts?|atz)? kapitels?
    ziffer punkte? klausel schritte? teil chapitre alin[eé]a [eé]tape partie secci[oó]n cap[ií]tulo p[aá]rrafo
    apartado paso cl[aá]usula se[cç][aã]o sezione capitolo punto passo clausola hoofdstuk stap rozdzial
    стать[еияю] раздел[ае]? глав[аеы] пункта?е? шаг[ае]?
"""
_FIGURE, _APPENDIX, _CLAUSE = (rf"(?:{'|'.join(words.split())})" for words in (_FIGURES, _LETTERED, _CLAUSES))
_KEYWORD = rf"§{{1,2}}|[第제]|(?<!\w)(?:{_FIGURE}|{_APPENDIX}|{_CLAUSE})(?!\w)"
_ROMAN = r"(?-i:(?=[VX]|II|IV|IX|I\s*(?:$|[?.,;:)]|and\b|of\b))X{0,3}(?:IX|IV|V?I{0,3}))"
_NUMBER = rf"(?:\d{{1,3}}(?:\.\d{{1,3}}){{0,5}}[a-z]?|{_ROMAN})(?![^\W\u3040-\u9fff\uac00-\ud7af]|\.\d)"
_LETTER = r"(?-i:[A-Z])(?!\w)"
_KEY_LENGTH = 3
"""Letters of a keyword that count: "art." and "article" are the same."""

_PREDICATE = r"[^\S\n]+(?-i:[a-zß-öø-ÿа-я])"
"""The beginning of a word in lower case: "Clause 2.2 does not apply" is a sentence about the clause, no heading."""

_NUMBERS = rf"{_NUMBER}(?:\s*(?:,|&|-|–|and|or|to|und|bis|et|y|e|en|и)\s*{_NUMBER})*"
_REFERENCE = rf"({_KEYWORD})[.:]?\s*({_NUMBERS})|(?<!\w)({_APPENDIX})\s({_LETTER})"
_ANY_NUMBER = rf"(?<![\w.])(?:{_NUMBER}|{_LETTER})"
_LINE = (
    r"^[^\S\n]*(?:[#>*_|•-]{1,6}[^\S\n]*)?(?:"
    rf"(?:({_KEYWORD})[.:]?[^\S\n]*({_NUMBER})|({_APPENDIX})\s({_LETTER}))(?!{_PREDICATE})"
    r"|(\d{1,3}(?:\.\d{1,3}){1,5}[a-z]?(?=[.)]?(?:\s|$))"
    rf"|(?:\d{{1,3}}|{_ROMAN})(?=[.)]\s)|\d{{1,3}}(?=[^\S\n][^\W\d_][^\n]{{0,60}}(?<![.!?])$\n?(?:\n|\Z))))"
)
_WRAPPED = re.compile(r"\n[^\n]{40,}[^\s.:;!?)|][^\S\n]*\Z")
"""The end of a long line without a full stop, which continues on the next line."""

_MAX_LINE = 400
"""Characters before a line in which the previous line is looked for."""


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Return a compiled regex, cached by ``pattern``, because compiling at import would take 60 milliseconds."""
    return re.compile(pattern, re.MULTILINE | re.IGNORECASE)


def find_clause_numbers(text: str) -> Iterator[str]:
    r"""Yield a search term for each number at the beginning of a line of a text, and one with its keyword.

    >>> list(find_clause_numbers("2.2 Late payment\nSee clause 3.1\nArt. 5 Fees\nFigure 7: pump\nAnnex B"))
    ['§ 2.2', '§ 5', '§art 5', '§fig 7', '§ b', '§ann b']
    """
    for match in _compile(_LINE).finditer(text):
        if not _WRAPPED.search(text[max(0, match.start() - _MAX_LINE) : max(0, match.start() - 1)]):
            yield from _build_terms(match[1] or match[3] or "", match[2] or match[4] or match[5])


def find_clause_references(question: str) -> Iterator[str]:
    """Yield the search terms for each number of a clause, section, step, figure or table in a question.

    >>> list(find_clause_references("What do clause 2.2 and tables 3 and 4 say since version 3.11?"))
    ['§ 2.2', '§cla 2.2', '§tab 3', '§tab 4']
    """
    for match in _compile(_REFERENCE).finditer(question):
        for number in _compile(_ANY_NUMBER).findall(match[2] or match[4]):
            yield from _build_terms(match[1] or match[3], number)


def begins_next_clause(text: str, clause: str) -> bool:
    """Return whether a text begins with a later number than ``clause``, a search term, and with none of its parts.

    >>> [begins_next_clause(text, "§ 4.1") for text in ("4.2 Oil", "5. Care", "4.1.1 Rings", "1. Open it.")]
    [True, True, False, False]
    """
    number = next((term for term in find_clause_numbers(text.partition("\n")[0])), "")
    parts, clause_parts = (list(map(int, re.findall(r"\d+", term))) for term in (number, clause))
    return parts > clause_parts and parts[: len(clause_parts)] != clause_parts


def _build_terms(keyword: str, number: str) -> Iterator[str]:
    keyword, number = keyword.lower(), number.lower()
    if not re.match(_FIGURE, keyword):
        yield f"{MARK} {number}"
    if keyword := keyword.strip(MARK):
        yield f"{MARK}{keyword[:_KEY_LENGTH]} {number}"
