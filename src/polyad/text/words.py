"""Cleans, counts and stems the words of a text, by rules that are the same on every machine and for every store.

White space and punctuation separate words. Chinese, Japanese and Korean text has no spaces: each character counts as a
word, and overlapping pairs of characters are search terms, as is usual. In Thai, Lao, Burmese and Khmer, pairs of
clusters are: a letter with its vowel signs. Other words are stemmed by the rules of the text's language. The parts of a
number or code are also one term together: ``P-17`` is more than a P and a 17. So is a number of a clause; see
:mod:`polyad.text.clause_numbers`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, TypeVar

import Stemmer

from polyad.text.clause_numbers import find_clause_numbers, find_clause_references
from polyad.text.date_terms import find_date_references, find_date_terms
from polyad.text.file_names import find_file_references
from polyad.text.folding import ARABIC_ARTICLE, build_letter_table
from polyad.text.function_words import (
    find_language_evidence,
    find_part_language,
    infer_language,
    read_function_words,
)

if TYPE_CHECKING:
    from polyad.model import IntArray, Span

T = TypeVar("T")

_CONTROL = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"]
_DIRECTION = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_REPLACEMENTS = {**dict.fromkeys(_CONTROL, " "), **dict.fromkeys((ord("\r"), *_DIRECTION))}

_MARKUP = re.compile(r"\](?=[(:])|<(?=[a-z/!?])", re.IGNORECASE)
"""Ends of link texts, and beginnings of HTML tags."""


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


def separate_markup(text: str) -> str:
    r"""Return the text with Markdown links, images and HTML tags made inactive by a space.

    So a document can neither redirect a citation nor load an image, whose address may contain what others wrote.

    >>> separate_markup("Amber [1](javascript:x) ![](http://x).\n[1]: http://x")
    'Amber [1] (javascript:x) ![] (http://x).\n[1] : http://x'
    >>> separate_markup("Amber <img src=http://x> < 5")
    'Amber < img src=http://x> < 5'
    """
    return _MARKUP.sub(r"\g<0> ", text)


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


TOKEN = re.compile(
    r"[a-zA-Z\u00c0-\u024f]{1,8}|[0-9]{1,4}|[\u0370-\u06ff\u10a0-\u10ff\u1f00-\u1fff]{1,4}"
    r"|[\u0900-\u0dff]{1,3}|[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]{1,2}|\S"
)
"""An estimated token: up to 8 Latin letters, up to 4 letters of other alphabets (such as Greek, Cyrillic and Arabic),
up to 3 signs of the scripts of India, 2 of those of South-East Asia, up to 4 digits, or any other character but white
space."""


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
WORD_LETTERS = "[a-z\u00df-\u024f\u0370-\u052f\u0560-\u0587\u05d0-\u05ea\u0620-\u06d3\u1e00-\u1fff]{4,24}"
"""Pattern of a word, in lower case, whose spelling is compared: at least four letters of an alphabet."""

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

_CLUSTER = (
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3]*"
)
"""A letter with the vowel signs before and behind it."""

_VOWEL_CODES = range(0x900, 0x1800)
"""Characters among which are the vowel signs of India and South-East Asia, which Python's ``\\w`` does not match."""
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"(?<!\S)[^\s\d]*+\d\S*+")  # with a digit; nothing is tried twice
_JOINED = re.compile(r"(?<!\w)\w++(?:[-./:]\w++)+")  # nothing is tried twice: questions may be long

_ARABIC = "[\u0620-\u06d3]"
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


_STEMMERS = {
    "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "es": "spanish", "fi": "finnish", "fr": "french",
    "hi": "hindi", "hu": "hungarian", "id": "indonesian", "it": "italian", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""Snowball's name of each language with a stemmer, by ISO 639-1 code; English has the older Porter stemmer."""

_TURKISH_I = str.maketrans("I\u0130", "\u0131i")


_MARKERS, _COUNTED_MARKERS = 64, 8
"""Function words of a single language that are looked up in an index, and the most frequent of these that count."""

_ENGLISH_MARKERS = ("the", "and", "by", "with", "from", "which", "that", "this", "were", "it", "has", "its", "their")


def infer_question_language(question: str, count_passages: Callable[[Sequence[str]], IntArray]) -> str:
    """Return the ISO 639-1 code of a question's language; that of the index if the question is too short to tell.

    Args:
        question: A question or a name.
        count_passages: Returns how many passages of the index contain each of some search terms.
    """
    if language := find_language_evidence(question):
        return language
    markers = _list_markers()
    counts = iter(count_passages([term for _, terms in markers for term in terms]).tolist())
    totals = {}
    for language, terms in markers:
        frequent = sorted((next(counts) for _ in terms), reverse=True)[:_COUNTED_MARKERS]
        totals[language] = sum(frequent) if frequent[1] else 0  # one word may be a name
    return max(totals, key=lambda language: totals[language])


@cache
def _list_markers() -> list[tuple[str, list[str]]]:
    """Return each language with search terms of function words that no other language has; English first."""
    from polyad.text.lexicon import FUNCTION_WORDS  # takes milliseconds, and the help of the command line needs none

    terms = {
        language: dict.fromkeys(term for word in words if len(word) > 1 for term in extract_terms(word, language)[:1])
        for language, words in read_function_words().items()
    }
    languages = Counter(chain(FUNCTION_WORDS, *terms.values()))
    markers = [("en", list(_ENGLISH_MARKERS))]
    for language, words in terms.items():
        distinct = [word for word in words if languages[word] == 1 and (len(word) > 2 or not word.isascii())]
        markers.append((language, distinct[:_MARKERS]))
    return markers


def extract_terms_and_codes(text: str, language: str | None = None) -> tuple[list[str], list[str]]:
    """Return two lists for a text: its word stems, and its other terms: codes ("P-17"), numbers of clauses and dates.

    Args:
        text: Any text.
        language: ISO 639-1 code; by default that of the function words in the text.
    """
    folded = fold_letters(text)
    codes = [*_join_codes(folded), *find_clause_numbers(text), *find_date_terms(text)]
    return _stem_words(text, folded, language), codes


def extract_terms(text: str, language: str | None = None) -> list[str]:
    r"""Return the search terms of a text: the stem of each word, in order.

    Args:
        text: Any text.
        language: ISO 639-1 code; by default that of the function words in the text.

    >>> extract_terms("Caf\u00e9s were noticed by WATCHMEN.")
    ['cafe', 'were', 'notic', 'by', 'watchmen']
    """
    return _stem_words(text, fold_letters(text), language)


def list_possible_terms(word: str) -> list[str]:
    """Return the terms under which an index may have an ASCII word, whatever the language of the text around it.

    >>> list_possible_terms("Watching")[:2]
    ['watch', 'watching']
    """
    return list(dict.fromkeys(term for code in ("en", *_STEMMERS) for term in extract_terms(word, code)))


def extract_codes(text: str) -> list[str]:
    """Return the codes in a text, such as "P-17" or "3.2", each as one search term such as "p 17".

    >>> extract_codes("P-17 and/or chapter 3.2, in Smith-Jones(1999)")
    ['p 17', '3 2', 'smith jones']
    """
    return _join_codes(fold_letters(text))


def extract_query_terms(question: str, language: str | None = None) -> list[str]:
    """Return the distinct word stems of a question without stop words; with stop words if there are no others.

    Args:
        question: A question, or part of one.
        language: ISO 639-1 code; by default that of the function words in the question.
    """
    folded = fold_letters(question)
    language = language or infer_language(question)
    if language in _STEMMERS:
        return list(dict.fromkeys(_stem_words(question, folded, language)))
    words = dict.fromkeys(_find_term_words(folded))
    telling = [word for word in words if word not in _STOP_WORDS] or list(words)
    return list(dict.fromkeys(map(stem_word, telling)))


def extract_search_terms(question: str, language: str | None = None) -> list[str]:
    """Return the terms that a BM25 search looks up for a question: word stems, codes, clauses, dates and file names.

    ``language`` is an ISO 639-1 code; by default that of the function words in the question.
    """
    terms = [*extract_query_terms(question, language), *extract_codes(question), *find_clause_references(question)]
    return list(dict.fromkeys([*terms, *extract_references(question)]))


def extract_references(question: str) -> list[str]:
    """Return the search terms of the dates in a question, and of names of files that it may contain.

    >>> extract_references("view-4.3.md of June 2026")
    ['@2026-06', '/view 4 3 md', '/view 4 3 md of june 2026']
    """
    return [*find_date_references(question), *find_file_references(question)]


def split_ideographs(text: str) -> str:
    """Split text of scripts without spaces between words into overlapping groups of characters (n-grams).

    Chinese, Japanese and Korean text is split into pairs: ``东京塔`` becomes ``东京 京塔``. Thai, Lao, Burmese and
    Khmer text is split into pairs of clusters (letters with their vowel signs).
    """
    text = _IDEOGRAPHS.sub(lambda run: _join_pairs(run[0]), text)
    return _SOUTH_EAST_ASIAN.sub(lambda run: _join_pairs(_compile(_CLUSTER).findall(run[0])), text)


def _join_pairs(characters: Sequence[str]) -> str:
    return f" {' '.join(map(''.join, pairwise(characters))) or ''.join(characters)} "


def _find_term_words(folded: str) -> list[str]:
    return _compile_term_word().findall(folded)


@cache
def _compile_term_word() -> re.Pattern[str]:
    """Return a regex for a word of a folded text: letters, digits and vowel signs."""
    signs = "".join(filter(lambda sign: unicodedata.category(sign)[0] == "M", map(chr, _VOWEL_CODES)))
    return re.compile(rf"[{signs}]*+[^\W_]+(?:[{signs}]+[^\W_]*)*")


def _stem_words(text: str, folded: str, language: str | None) -> list[str]:
    """Return the word stems of a text; ``folded`` is the text without accents.

    Outside English, words are stemmed with their accents: the rules of the stemmers depend on them.
    """
    if not language:
        main = infer_language(text)
        lines = groupby(text.splitlines(keepends=True), lambda line: find_part_language(line, main))
        parts = [(text, main)] if main == "en" else [("".join(of_language), code) for code, of_language in lines]
        if len(parts) > 1:
            return [stem for part, code in parts for stem in _stem_words(part, fold_letters(part), code)]
        language = parts[0][1] if parts else main
    if language not in _STEMMERS:
        return [stem_word(word) for word in _find_term_words(folded)]
    lower = unicodedata.normalize("NFC", (text.translate(_TURKISH_I) if language == "tr" else text).lower())
    stemmed = _compile_term_word().sub(lambda word: stem_word(word[0], language), lower)
    return _find_term_words(fold_letters(stemmed))


def _join_codes(folded: str) -> list[str]:
    """Return the codes in a folded text: words joined by a hyphen, dot or slash, with a digit; each with spaces."""
    codes = []
    for run in _RUN.findall(folded):
        last_digit = max(match.start() for match in _DIGIT.finditer(run))
        matches = (match for match in _JOINED.finditer(run) if match.start() <= last_digit)
        codes += [" ".join(_find_term_words(match[0])) for match in matches]
    return codes


def find_vocabulary(text: str) -> list[str]:
    """Return the words of a text in lower case with their accents, of alphabetic scripts and without digits.

    >>> find_vocabulary("The M\u00fcller's HP-2211 pump")
    ['m\u00fcller', 'pump']
    """
    return _compile(rf"(?<!\w){WORD_LETTERS}(?!\w)").findall(unicodedata.normalize("NFC", text.lower()))


def fold_letters(text: str) -> str:
    """Return ``text`` in lower case without accents; pairs of characters in scripts without spaces between words."""
    lower = text.lower()
    if lower.isascii():
        return lower
    plain = unicodedata.normalize("NFKD", lower).translate(_build_accent_table())
    # Composed again: NFKD takes hangul apart, and kana from their voicing marks.
    plain = unicodedata.normalize("NFC", plain)
    return split_ideographs(_compile(ARABIC_ARTICLE).sub("", plain) if _compile(_ARABIC).search(plain) else plain)


@cache
def _build_accent_table() -> dict[int, str | None]:
    """Return a table for ``str.translate`` that deletes accents and replaces letters, as search terms ignore them."""
    accents = (code for code in _MARK_CODES if unicodedata.combining(chr(code)) and code not in _VOICING)
    letters = {ord(letter): plain for letter, plain in _LETTERS.items()}
    return {**build_letter_table(), **dict.fromkeys(accents), **letters}


_local = threading.local()


@cache
def stem_word(word: str, language: str = "en") -> str:
    """Return the stem of a lower-case word by Snowball's rules for its language, or Porter's for English.

    A long word, and a non-ASCII word of an unknown language, is returned unchanged.
    """
    name = _STEMMERS.get(language, "porter")
    if len(word) > _MAX_STEMMED or (name == "porter" and not word.isascii()):
        return word
    if not hasattr(_local, name):
        setattr(_local, name, Stemmer.Stemmer(name))
    stem: str = getattr(_local, name).stemWord(word)
    return stem
