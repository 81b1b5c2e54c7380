"""Cleans, counts and stems the words of a text, by rules that are the same on every machine and for every store.

White space and punctuation separate words. Chinese, Japanese and Korean text has no spaces: each character counts as a
word, and overlapping pairs of characters are search terms, as is usual. Thai, Lao, Burmese and Khmer words have several
letters, so pairs and groups of four letters are search terms. The parts of a number or code are also one term together:
``P-17`` is more than a P and a 17. So is a number of a clause; see :mod:`polyad.text.clause_numbers`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import Stemmer

from polyad.text.clause_numbers import find_clause_numbers, find_clause_references

if TYPE_CHECKING:
    from polyad.model import Span

T = TypeVar("T")

_CONTROL = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"]
_DIRECTION = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_REPLACEMENTS = {**dict.fromkeys(_CONTROL, " "), **dict.fromkeys((ord("\r"), *_DIRECTION))}


def collapse_whitespace(text: str) -> str:
    r"""Return ``text`` with each run of white space replaced by one space, and none at the ends.

    In a prompt, no part of the result can imitate a line of the prompt.

    >>> collapse_whitespace(" Ada\n Lovelace ")
    'Ada Lovelace'
    """
    return " ".join(text.split())


def normalize_value(value: str) -> str:
    r"""Return a text in the form in which values are compared: single spaces, composed letters (Unicode NFC).

    >>> normalize_value(" Port\n Lisle "), normalize_value("e\u0301") == "\u00e9"
    ('Port Lisle', True)
    """
    return unicodedata.normalize("NFC", collapse_whitespace(value))


def sanitize(text: str) -> str:
    r"""Return ``text`` without control characters, text direction marks and unpaired surrogates (invalid Unicode).

    Such characters control a terminal or show letters in another order. Each character is treated alone, so a text may
    be cleaned in pieces.

    >>> sanitize("red \x1b[31m alert"), sanitize("pay \u202eeno\u202c")
    ('red  [31m alert', 'pay eno')
    """
    return replace_surrogates(text).translate(_REPLACEMENTS)


def sanitize_line(text: str) -> str:
    r"""Return ``text`` on one line, without control characters and with single spaces.

    >>> sanitize_line("Ada\r\n \x1b[1mLovelace\u202e ")
    'Ada [1mLovelace'
    """
    return collapse_whitespace(sanitize(collapse_whitespace(text)))


def replace_surrogates(text: str) -> str:
    r"""Return ``text`` with surrogate pairs combined, and each unpaired surrogate replaced by U+FFFD.

    JSON can contain surrogates ("\\ud83d"), which no file, database or terminal accepts.

    >>> replace_surrogates("\ud83d\ude00") == "\N{GRINNING FACE}", replace_surrogates("a\ud83d") == "a\ufffd"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def shorten_at_word(text: str, max_characters: int) -> str:
    """Return ``text``, cut after a word within ``max_characters`` and followed by "…" if it is longer.

    >>> shorten_at_word("King of Italy from 476", 15)
    'King of Italy …'
    """
    if len(text) <= max_characters:
        return text
    end = text.rfind(" ", 0, max_characters + 1)
    end = end if end > max_characters // 2 else max_characters  # some scripts have no blanks to cut at
    return text[:end].rstrip() + " …"


TOKEN = re.compile(r"[a-zA-Z\u00c0-\u024f]{1,8}|[0-9]{1,4}|\S")
"""An estimated token: up to 8 Latin letters, up to 4 digits, or any other character that is not white space."""


def count_tokens(text: str) -> int:
    """Estimate the number of tokens of ``text`` without a tokenizer.

    The estimate of joined texts is never above the sum of their estimates.

    Against the WordPiece tokenizer of all-MiniLM-L6-v2 the estimate is off by -4, 0 and +2 % in total on the
    2WikiMultiHopQA, HotpotQA and MuSiQue passages (6 to 7 % for the average passage), by -1 % on Chinese prose and by
    -5 % on source code and scientific English. Good for limits, budgets and servers that report no usage.

    >>> count_tokens("Who funded the trial?")
    5
    """
    return TOKEN.subn("", text)[1]


def split_by_size(items: Iterable[T], get_size: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """Yield consecutive groups of items whose sizes sum to at most ``max_size``; a larger item is a group alone.

    >>> list(split_by_size(["a", "bcd", "e", "fg"], len, 3))
    [['a'], ['bcd'], ['e', 'fg']]
    """
    group: list[T] = []
    total = 0
    for item in items:
        size = get_size(item)
        if group and total + size > max_size:
            yield group
            group, total = [], 0
        group.append(item)
        total += size
    if group:
        yield group


_WITHOUT_SPACES = "\u2e80-\U0003ffff"
"""Scripts without spaces between words, in which each character counts as a word."""

_WORD = rf"(?=\S)[{_WITHOUT_SPACES}]|[^\s{_WITHOUT_SPACES}]+"
_SHORT = 3
"""Letters of the longest word that is in lower case inside names: "of", "and", "von"."""

_IDEOGRAPH = rf"[{_WITHOUT_SPACES}]"
_TERM = rf"(?=\w)[{_WITHOUT_SPACES}]|[^\W{_WITHOUT_SPACES}]+"


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Return a compiled regex, cached by ``pattern``, because compiling at import would take milliseconds."""
    return re.compile(pattern)


def count_words(text: str) -> int:
    r"""Return the number of words in a text; in scripts without spaces, each character is a word.

    >>> count_words("Who funded the trial?"), count_words("\u6771\u4eac tower")
    (4, 3)
    """
    is_divided = text.isascii() or not _compile(_IDEOGRAPH).search(text)
    return len(text.split()) if is_divided else _compile(_WORD).subn("", text)[1]


def find_words(text: str) -> list[Span]:
    """Return the character span of each word of a text, in order."""
    from polyad.model import Span  # imports numpy, which the help of the command line does not need

    return [Span(*match.span()) for match in _compile(_WORD).finditer(text)]


def normalize_words(text: str) -> list[str]:
    """Return the words of a text in lower case without punctuation, to compare texts of different file formats.

    >>> normalize_words("The Trial -- it was FUNDED.")
    ['the', 'trial', 'it', 'was', 'funded']
    """
    return _compile(_TERM).findall(text.casefold())


def is_capitalized_name(text: str) -> bool:
    """Return whether all words of more than three letters begin with a capital, as in "University of Leeds".

    True for text in scripts without capitals.

    >>> is_capitalized_name("University of Leeds"), is_capitalized_name("root directory"), is_capitalized_name("東京")
    (True, False, True)
    """
    words = text.split()
    longer = [word for word in words if len(word) > _SHORT] or words
    return not any(word[0].islower() for word in longer)


def format_count(number: int, noun: str) -> str:
    """Return a number with a noun in singular or plural: "1 page", "2 pages".

    >>> format_count(1, "hyperedge"), format_count(2000, "hyperedge"), format_count(0, "entity")
    ('1 hyperedge', '2,000 hyperedges', '0 entities')
    """
    plural = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


_IDEOGRAPHS = re.compile("[\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uac00-\\ud7af]+")
_SOUTH_EAST_ASIAN = re.compile(
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109d\u1780-\u17d3]+"
)
"""Thai, Lao, Burmese or Khmer text without digits and punctuation."""

_VOWEL_CODES = range(0x900, 0x1800)
"""Characters among which are the vowel signs of India and South-East Asia, which Python's ``\\w`` does not match."""
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"(?<!\S)[^\s\d]*+\d\S*+")  # with a digit; nothing is tried twice
_JOINED = re.compile(r"(?<!\w)\w++(?:[-./:]\w++)+")  # nothing is tried twice: questions may be long

_VOICING = (0x3099, 0x309A)

_MARK_CODES = range(0x300, 0x20000)
"""Characters among which all combining marks of Unicode are."""

_LETTERS = {
    **dict(zip("ßæœþ", ("ss", "ae", "oe", "th"), strict=True)),
    **dict(zip("øłđðħŧıŋɓɗƙƴɛɔə", "olddhtinbdkyeoe", strict=True)),
}
"""Replacements of letters that Unicode does not decompose into a basic letter and an accent."""

_MAX_STEMMED = 64
"""Most characters of a word that is stemmed; a longer word belongs to no language."""

_STOP_WORDS = frozenset(
    """
    a an and are as at be been by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()  # noqa: SIM905  # a list of 50 strings is no easier to read
)
"""Words that do not distinguish passages."""


def extract_terms_and_codes(text: str) -> tuple[list[str], list[str]]:
    """Return two lists for a text: its word stems, and its other terms: codes ("P-17") and numbers of clauses."""
    folded = _fold(text)
    return _stem_words(folded), [*_join_codes(folded), *find_clause_numbers(text)]


def extract_terms(text: str) -> list[str]:
    r"""Return the search terms of a text: the stem of each word, in order.

    >>> extract_terms("Caf\u00e9s were noticed by WATCHMEN.")
    ['cafe', 'were', 'notic', 'by', 'watchmen']
    """
    return _stem_words(_fold(text))


def extract_codes(text: str) -> list[str]:
    """Return the codes in a text, such as "P-17" or "3.2", each as one search term such as "p 17".

    >>> extract_codes("P-17 and/or chapter 3.2, in Smith-Jones(1999)")
    ['p 17', '3 2', 'smith jones']
    """
    return _join_codes(_fold(text))


def extract_query_terms(question: str) -> list[str]:
    """Return the distinct word stems of a question without stop words; with stop words if there are no others."""
    words = dict.fromkeys(_find_term_words(_fold(question)))
    telling = [word for word in words if word not in _STOP_WORDS] or list(words)
    return list(dict.fromkeys(map(stem_word, telling)))


def extract_search_terms(question: str) -> list[str]:
    """Return the terms that a BM25 search looks up for a question: word stems, codes, and numbers of clauses."""
    return list(
        dict.fromkeys([*extract_query_terms(question), *extract_codes(question), *find_clause_references(question)])
    )


def split_ideographs(text: str) -> str:
    """Split text of scripts without spaces between words into overlapping groups of characters (n-grams).

    Chinese, Japanese and Korean text is split into pairs: ``东京塔`` becomes ``东京 京塔``. Thai, Lao, Burmese and
    Khmer text is split into pairs and groups of four.
    """
    text = _IDEOGRAPHS.sub(lambda run: _join_n_grams(run[0], (2,)), text)
    return _SOUTH_EAST_ASIAN.sub(lambda run: _join_n_grams(run[0], (2, 4)), text)


def _join_n_grams(run: str, sizes: Sequence[int]) -> str:
    n_grams = [run[start : start + size] for size in sizes for start in range(len(run) - size + 1)]
    return f" {' '.join(n_grams) or run} "


def _find_term_words(folded: str) -> list[str]:
    return _compile_term_word().findall(folded)


@cache
def _compile_term_word() -> re.Pattern[str]:
    """Return a regex for a word of a folded text: letters, digits and vowel signs."""
    signs = "".join(filter(lambda sign: unicodedata.category(sign)[0] == "M", map(chr, _VOWEL_CODES)))
    return re.compile(rf"[{signs}]*+[^\W_]+(?:[{signs}]+[^\W_]*)*")


def _stem_words(folded: str) -> list[str]:
    return [stem_word(word) for word in _find_term_words(folded)]


def _join_codes(folded: str) -> list[str]:
    """Return the codes in a folded text: words joined by a hyphen, dot or slash, with a digit; each with spaces."""
    codes = []
    for run in _RUN.findall(folded):
        last_digit = max(match.start() for match in _DIGIT.finditer(run))
        matches = (match for match in _JOINED.finditer(run) if match.start() <= last_digit)
        codes += [" ".join(_find_term_words(match[0])) for match in matches]
    return codes


def _fold(text: str) -> str:
    lower = text.lower()
    if lower.isascii():
        return lower
    plain = unicodedata.normalize("NFKD", lower).translate(_build_accent_table())
    # Composed again: NFKD takes hangul apart, and kana from their voicing marks.
    return split_ideographs(unicodedata.normalize("NFC", plain))


@cache
def _build_accent_table() -> dict[int, str | None]:
    """Return a table for ``str.translate`` that deletes accents and replaces letters, as search terms ignore them."""
    accents = (code for code in _MARK_CODES if unicodedata.combining(chr(code)) and code not in _VOICING)
    return {**dict.fromkeys(accents), **{ord(letter): plain for letter, plain in _LETTERS.items()}}


_local = threading.local()


@cache
def stem_word(word: str) -> str:
    """Return the Porter stem of a lower-case word; a long or non-ASCII word is returned unchanged."""
    if len(word) > _MAX_STEMMED or not word.isascii():
        return word
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("porter")
    stem: str = _local.stemmer.stemWord(word)
    return stem
