"""Mentions without a model: names, works, acronyms, dates, quantities, and salient phrases in texts with few names.

Phrases are candidates as in RAKE (Rose et al., 2010): runs of words between function words, verbs and punctuation. The
weight of a phrase is the sum of its words' weights, highest for words outside everyday English, and grows with each
further occurrence.
"""

# ruff: noqa: RUF001  look-alike punctuation is matched

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from polyad.errors import ConfigurationError
from polyad.indexing.mentions.capitalised import find_names
from polyad.indexing.mentions.uncapitalised import find_uncapitalised_names, mask_uncased_letters
from polyad.model import Mention
from polyad.protocols.components import LanguageModel
from polyad.text.dates import find_foreign_dates
from polyad.text.function_words import find_part_language, get_function_words, infer_language
from polyad.text.lexicon import BREAKING_WORDS, COMMON_WORDS, NOUNS_BEFORE_OF
from polyad.text.scripts import is_mostly_uncased
from polyad.text.words import count_words

SCORES = {"name": 100.0, "work": 100.0, "acronym": 100.0, "date": 60.0, "quantity": 50.0, "phrase": 40.0}
"""Score of a mention by the rule that found it, in (0, 100]."""

_MASK = "\x00"
_PHRASES_PER_WORD = 0.1
"""Number of phrases for each word of a text without any name; texts with some names have proportionally fewer."""

_MAX_NAME_SHARE = 0.12
"""Share of a text's characters in names above which phrases and quantities are not extracted from the text. The median
of encyclopaedic passages is 0.32 to 0.43."""

_CODE = re.compile(r"(?<![\w.,/-])[a-z]{1,4}-?\d{1,4}[a-z]?(?![\w/-])")

_BROKEN_LINE = re.compile(r"\n(?<=[^\n]{40}[^\s.!?:;]\n)(?=[^\W\d_])")
"""The end of a long line within a sentence, as in manually wrapped text; a list has short lines, bullets or numbers."""


class RuleMentionExtractor:
    """A mention extractor that uses spelling rules; deterministic, without a model or network.

    Attributes:
        name: The mention extractor's name on the command line: ``rules``.
    """

    name = "rules"

    @classmethod
    def from_name(cls, options: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # the signature of all extractors
        """Return the mention extractor ``rules``, which takes no options.

        Args:
            options: The text after the colon, which must be empty.
            language_model: Not used.

        Raises:
            ConfigurationError: there is text after a colon.
        """
        if options:
            raise ConfigurationError(f"no mention extractor 'rules:{options}'; expected rules, and nothing after it")
        return cls()

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return one list of mentions per text, ordered by ``start``, the longest first; mentions may overlap."""
        return [_extract_mentions(text) for text in texts]


def _extract_mentions(text: str) -> list[Mention]:
    flowing = _BROKEN_LINE.sub(" ", text)  # as long as the text: a name may go over the end of a line
    types: dict[tuple[int, int], str] = dict.fromkeys(find_quoted_titles(flowing), "work")
    rest = _mask_spans(flowing, types)
    language = infer_language(text)
    found_dates = list(find_foreign_dates(rest)) if language != "en" else []
    found_dates += find_dates(_mask_spans(rest, found_dates))
    types |= dict.fromkeys(found_dates, "date")
    rest = _mask_spans(rest, (span for span in found_dates if not text[span[0] : span[1]].isdigit()))
    if is_mostly_uncased(text):
        for span, rule in find_uncapitalised_names(rest):
            types.setdefault(span, rule)
        rest = mask_uncased_letters(rest)
        language = find_part_language(rest, language)
    for start, end in find_names(rest, language):
        types.setdefault((start, end), "acronym" if _is_acronym(text[start:end]) else "name")
    for span, rule in _find_technical_mentions(rest, types, language):
        types.setdefault(span, rule)
    spans = sorted(types, key=lambda span: (span[0], -span[1]))
    return [
        Mention(text[start:end], start, end, type=types[start, end], score=SCORES[types[start, end]])
        for start, end in spans
    ]


def _find_technical_mentions(
    text: str, name_spans: Iterable[tuple[int, int]], language: str
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield span and type of codes, quantities and key phrases, if names (at ``name_spans``) cover little of the text.

    In other texts they would link passages by chance. ``language`` is an ISO 639-1 code.
    """
    room = 1 - _compute_share(text, name_spans) / _MAX_NAME_SHARE
    if room <= 0:
        return
    yield from ((match.span(), "acronym") for match in _CODE.finditer(text))
    yield from ((span, "quantity") for span in find_quantities(text))
    count = round(room * _PHRASES_PER_WORD * (text.count(" ") + 1))
    yield from ((span, "phrase") for span in find_phrases(text, count, get_function_words(language)))


def _compute_share(text: str, spans: Iterable[tuple[int, int]]) -> float:
    """Return the share of a text's characters that the spans cover, in [0, 1]."""
    covered = position = 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, position))
        position = max(position, end)
    return covered / len(text) if text else 0.0


def _mask_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with each character inside ``spans`` replaced by a NUL character, so that offsets stay."""
    pieces = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], _MASK * (end - start)]
            position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _is_acronym(name: str) -> bool:
    return len(name) > 1 and name.isupper() and " " not in name


_MAX_WORK_WORDS = 12
"""Most words of a work's title; longer text in quotation marks is speech."""

_MAX_WORK_CHARACTERS = 24
"""Most characters of a work's title in scripts without spaces."""

_MAX_QUOTATION = 122
"""Most characters between straight quotation marks, marks included."""

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Jun\.?|Jul\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?)"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATE = re.compile(
    rf"""(?=[\dJFMASOND])(?:(?<![\w.,$£€-])(?:
        {_DAY}(?:\ of)?\ {_MONTH}(?:,?\ {_YEAR})?
      | {_MONTH}\ (?:{_DAY},?\ )?{_YEAR}
      | {_MONTH}\ {_DAY}
      | {_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])
      | {_YEAR}s?
      )(?![\w%]|[.,]\d)
      | (?<=\d[-–]){_YEAR}(?![\w%]|[.,]\d))""",
    re.VERBOSE,
)
"""A date. The pattern checks the first character before the lookbehind, because a lookbehind at the beginning would be
tried at each letter."""

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_UNIT = r"""(?:
    %|°\s?[CF]|percent|per\ cent|million|billion|trillion
    |(?:[kcmnµμ]?m|[kmµμn]?g|[dcmµμ]?[lL]|[kMGT]?Hz|[kMGT]?W|[kMGT]?B|[kMGT]?bit|[kM]?J|[kM]?Pa|[mkM]?V|[mnµμkp]?mol|mEq|IU|U|
      ha|ft|lb|oz|mph|rpm|hp|kn|bar|mmHg|dB|eV|kcal|cal|K|s|ms|h|min)
     (?:[²³23]|(?:/|\ per\ )(?:[dcmµμ]?[lL]|[km]?g|min|h|s|day|kg|m[²³23]?))*
    |(?:square\ |cubic\ |nautical\ )?
     (?:met(?:re|er)|kilomet(?:re|er)|centimet(?:re|er)|mile|acre|hectare|inch|pound|gram|kilogram|ton|tonne|lit(?:re|er)
       |day|week|month|year|hour|minute|second|dollar|euro)(?:e?s)?
    |feet|foot
    )"""
_QUANTITY = re.compile(
    rf"(?=[\d$£€¥])(?<![\w.,])(?:[$£€¥]\s?{_NUMBER}(?:\s(?:million|billion|trillion))?"
    rf"|{_NUMBER}(?:\s?[-–]\s?{_NUMBER}|\s?±\s?{_NUMBER})?[\s-]?{_UNIT})(?!\w|[./-]\w)",
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""(?=[“„`«《〈「『‘'])(?:
        “([^“”\n]{1,120})”
      | „([^„“”\n]{1,120})[“”]
      | ``\s?([^`'\n]{1,120}?)\s?''
      | «\s?([^«»\n]{1,120}?)\s?»
      | 《([^《》\n]{1,60})》
      | 〈([^〈〉\n]{1,60})〉
      | 「([^「」\n]{1,60})」
      | 『([^『』\n]{1,60})』
      | (?<![\w'])[‘']([A-Z][^'‘’"\n]{1,60}?)['’](?!\w))""",
    re.VERBOSE,
)


def find_dates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of dates in a text: days, months of a year, years and decades."""
    return (match.span() for match in _DATE.finditer(text))


def find_quantities(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of quantities in a text: numbers with a unit or a currency."""
    return (match.span() for match in _QUANTITY.finditer(text))


def find_quoted_titles(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of quotations that may be titles of works: short, and not part of a sentence."""
    for start, end in _find_quotations(text):
        while end > start and text[end - 1] in " ,.;:":
            end -= 1
        while end > start and text[start] == " ":
            start += 1
        work = text[start:end]
        if not work or work[0].islower() or work.count(" ") >= _MAX_WORK_WORDS:
            continue
        if work.isascii() or count_words(work) <= _MAX_WORK_CHARACTERS:
            yield start, end


def _find_quotations(text: str) -> Iterator[tuple[int, int]]:
    for match in _QUOTED.finditer(text):
        yield match.span(match.lastindex or 0)
    if '"' in text:
        yield from _find_straight_quotations(text)


def _find_straight_quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between pairs of straight quotation marks on one line; an unpaired last mark is ignored."""
    offset = 0
    for line in text.splitlines(keepends=True):
        marks = [match.start() + offset for match in re.finditer('"', line)]
        offset += len(line)
        for opening, closing in zip(marks[::2], marks[1::2], strict=False):
            if closing - opening <= _MAX_QUOTATION:
                yield opening + 1, closing


_MAX_PHRASE_WORDS = 4
"""Most words of a phrase."""

_MIN_WORD_LETTERS = 6
"""Fewest letters of a single word that is a phrase."""

_RARE_WEIGHT = 3.0
"""Weight of a word outside everyday English, relative to an everyday word."""

_PIECE = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|[^\w\s]|\w+")
_BREAKING_ENDING = re.compile(r"(?:ly|ed|n[’']t|[’'](?:re|ll|ve|d|m))$")
_SENTENCE_END = re.compile(r"(?:\A|[.!?:;]|\n)\s*\Z")


def find_phrases(text: str, count: int, function_words: frozenset[str] = frozenset()) -> list[tuple[int, int]]:
    """Return the spans of all occurrences of the ``count`` most characteristic noun phrases of ``text``, in order.

    ``function_words`` are those of the text's language, in lower case, if it is not English.
    """
    if count <= 0:
        return []
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in _find_candidates(text, BREAKING_WORDS | function_words if function_words else BREAKING_WORDS):
        spans[text[start:end].lower()].append((start, end))
    weights = {phrase: _compute_weight(phrase, len(occurrences)) for phrase, occurrences in spans.items()}
    best = sorted((phrase for phrase in weights if weights[phrase] > 0), key=lambda phrase: (-weights[phrase], phrase))
    return sorted(span for phrase in best[:count] for span in spans[phrase])


def _find_candidates(text: str, breaking_words: frozenset[str]) -> Iterator[tuple[int, int]]:
    run: list[re.Match[str]] = []
    for piece in _PIECE.finditer(text):
        adjoins = bool(run) and text[run[-1].end() : piece.start()].isspace()
        if _is_boundary(text, piece, breaking_words):
            if adjoins and piece.group() == "of" and run[-1].group().lower() in NOUNS_BEFORE_OF:
                run.append(piece)
                continue
            yield from _trim_run(run)
            run = []
        elif adjoins:
            run.append(piece)
        else:
            yield from _trim_run(run)
            run = [piece]
    yield from _trim_run(run)


def _trim_run(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield the span of a noun phrase with the words ``run``; a longer phrase is cut to its last four words."""
    if run and run[-1].group() == "of":
        run = run[:-1]
    if run:
        yield run[max(0, len(run) - _MAX_PHRASE_WORDS)].start(), run[-1].end()


def _is_boundary(text: str, piece: re.Match[str], breaking_words: frozenset[str]) -> bool:
    word = piece.group()
    if not word.islower():
        if not word.istitle() or not _SENTENCE_END.search(text, max(0, piece.start() - 3), piece.start()):
            return True
        word = word.lower()
    return len(word) < 3 or word in breaking_words or _BREAKING_ENDING.search(word) is not None


def _compute_weight(phrase: str, count: int) -> float:
    words = phrase.split()
    rare = sum(word not in COMMON_WORDS for word in words)
    if len(words) == 1 and (not rare or len(phrase) < _MIN_WORD_LETTERS):
        return 0.0
    return (_RARE_WEIGHT * rare + len(words) - rare) * (1 + 0.5 * (count - 1))
