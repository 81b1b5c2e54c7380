"""Finds names in a text by their capitals: "Ludwig van Beethoven", "Bill & Ted", "University of New South Wales".

One regular expression finds the longest runs of capitalised words and the small words inside names. A run is split into
segments at small words, and gives overlapping names: the whole name, the name without forms of address, and the names
inside the name. If any of these names is the title of another document, retrieval has a link to that document.
"""

# ruff: noqa: RUF001, RUF002  look-alike punctuation is matched

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

from polyad.text.function_words import get_function_words
from polyad.text.keys import CAPITALISED, is_inside_sentence
from polyad.text.lexicon import (
    ABBREVIATIONS,
    CAPITAL,
    COMMON_WORDS,
    FORMS_OF_ADDRESS,
    FUNCTION_WORDS,
    GENERIC_WORDS,
    NOUNS_AFTER_NAME,
    PARTICLES,
    TITLES_AFTER_COMMA,
    WORKS_BEFORE_NAME,
)

_MAX_SEGMENT_WORDS = 8
"""Most capitalised words in a row; a longer row is a heading or a table without rules."""

_MAX_RUN_JOINTS = 24
"""Most joints of a run; a longer run is read in pieces, so that the time is linear in the length of the text."""

_MAX_NAME_CHARACTERS = 160
"""Most characters of a name; a longer match is not a name, but for example a table."""

_LETTER = r"[\w\u0300-\u036f]"
_NEW_SENTENCE = rf"(?!\s(?:{'|'.join(word.capitalize() for word in sorted(FUNCTION_WORDS))})\b)"
_WORD = (
    rf"(?:(?:{ABBREVIATIONS})\.(?=[\s,)]){_NEW_SENTENCE}"  # "St."
    rf"|{CAPITAL}(?:\.\s?{CAPITAL}(?![^\W\d_]))+\.?"  # "J. R. R.", "U.S."
    rf"|{CAPITAL}\.(?=\s?{CAPITAL}){_NEW_SENTENCE}"  # "J. Tolkien"
    rf"|(?:(?:al|el|an|as|ad|ar|at|bin|ul|de|d|l|t)[-'’]|[a-z]{{1,2}})?{CAPITAL}"  # "al-Qaeda", "d'Artagnan", "iPhone"
    rf"{_LETTER}*(?:['’&‑–-]{_LETTER}+)*(?:(?<=in)['’](?=[ ]))?)"  # "O'Brien", "AT&T", "Jean-Luc"
)
_NUMBER = r"\d{1,4}(?![\w%]|[.,:–-]\d)"
_ORDINAL = r"\d{1,3}(?:st|nd|rd|th)"
_SMALL = (
    rf"(?:{PARTICLES}|of|for|in|on|at|to|with|and|from|by|upon|vs\.?|'n'|without|into|under)"
    r"(?:[ ](?:the|a|an|la|las|los|le|les|der|den|el|dem|his|her|my|your))?|the|à|&|\+|a"
)
_JOINT = rf"(?:[ ](?:{_SMALL})[ ]|,[ ](?=(?:{_ORDINAL}[ ])?(?:{TITLES_AFTER_COMMA})\b)|:[ ]|[ ])"
_RUN = re.compile(
    r"(?<![\w'’])(?:(?<!-)|(?<=\bpost-)|(?<=\bpre-)|(?<=\bmid-)|(?<=\bnon-)|(?<=\banti-))"
    rf"(?:(?:\d{{4}}|{_ORDINAL})[ ])?{_WORD}"
    rf"(?:{_JOINT}(?:{_WORD}|{_NUMBER}|{_ORDINAL}(?=[ ]{CAPITAL}))){{0,{_MAX_RUN_JOINTS}}}"
)
_PLACE = (
    rf"\b(?:in|at|from|of|near|to|outside|around|for)[ ](?:the[ ])?"
    rf"({_WORD}(?:[ ](?:of[ ]|de[ ])?{_WORD}){{0,3}},[ ]{_WORD}(?:[ ]{_WORD}){{0,2}})(?!\w)"
)
_NOUN_AFTER = re.compile(rf"[ ](?:{NOUNS_AFTER_NAME})\b(?!-)")
_WORK_BEFORE = re.compile(rf"\b(?:{WORKS_BEFORE_NAME})[ ]\Z")
_NOT_SPACE = re.compile(r"\S+")
_LOWER_SUFFIX = re.compile(r"[-–]([a-z]{4,})$")
_POSSESSIVE = re.compile(r"['’][sS]$")
_TYPICAL_OF_COMMON_WORDS = re.compile(r"(?:ing|ly|tions?|ments?|ness|ists?|ers|ies)$")
_ADVERB = re.compile(r"(?:mente|ement|amment|emment)$")
"""Ending of adverbs in Romance languages."""

_CAPITAL_WITHIN_SENTENCE = re.compile(rf"[a-z,] ({CAPITAL}{_LETTER}*)")
_CAPITAL_AFTER_WORD = re.compile(rf"(?:[^\W\d_]|,) ({CAPITAL}{_LETTER}*)")
_ANY_WORD = re.compile(r"[^\W\d_]+")
_LOWER_WORD = re.compile(r"\b[a-z]+\b")

_JOINING_WORDS = frozenset({"of", "the", "&", "+", "'n'", "vs", "vs.", "à", ",", ":"}) | frozenset(PARTICLES.split("|"))
"""Small words that join the names on both sides into one name; words such as "and" and "in" separate two names."""

_BINDING_WORDS = (frozenset(PARTICLES.split("|")) - {"the"}) | {"&", "+", "'n'"}
"""Small words whose sides are not names by themselves: "Ludwig van Beethoven"."""


class _Token(NamedTuple):
    start: int
    end: int
    word: str


class _Segment(NamedTuple):
    """Consecutive capitalised words of a possible name, and the joining words (or comma) ``before`` these words.

    The words before "Netherlands" in "Bank of the Netherlands" are ``("of", "the")``.
    """

    tokens: list[_Token]
    before: tuple[str, ...]


@cache
def _compile_place() -> re.Pattern[str]:
    return re.compile(_PLACE)


def find_names(text: str, language: str = "en") -> Iterator[tuple[int, int]]:
    """Yield start and end of each capitalised name in a text; overlapping names are yielded longest first.

    Text that must not be part of a name has to be masked with characters that are neither letters nor spaces.

    Args:
        text: Any text.
        language: ISO 639-1 code; names do not begin with function words of this language.
    """
    evidence = _CapitalEvidence(text, language)
    for match in _RUN.finditer(text):
        for start, end in dict.fromkeys(_find_names_in_match(match, evidence)):
            end = _trim_possessive(text, start, end)
            if language != "en":
                start, end = _trim_affixes(text, start, end, language)
                if language == "de" and _is_german_noun(text, start, end):
                    continue
            if 1 < end - start <= _MAX_NAME_CHARACTERS:
                yield start, end
                if language != "en" and (tail := _OF.search(text, start, end)):  # the place in "Universidad de Oxford"
                    yield tail.end(), end
    if "," in text:  # compiling the pattern takes 40 ms, and a question rarely has a comma
        yield from (m.span(1) for m in _compile_place().finditer(text) if len(m.group(1)) <= _MAX_NAME_CHARACTERS)


def _find_names_in_match(match: re.Match[str], evidence: _CapitalEvidence) -> list[tuple[int, int]]:
    text = match.string
    tokens = _split_tokens(match)
    spans: list[tuple[int, int]] = []
    if len(tokens) > 1 and _WORK_BEFORE.search(text, max(0, match.start() - 15), match.start()):
        spans.append(match.span())  # "the film Over the Rainbow"
    for reading in _list_word_sequences(tokens, evidence):
        spans += _find_names_in_words(reading)
    if noun := _NOUN_AFTER.match(text, match.end()):
        spans += [(start, noun.end()) for start, end in spans if end == match.end()]
    return spans


class _CapitalEvidence:
    """Decides whether a capitalised word that begins a sentence is a name, from its other occurrences.

    Attributes:
        text: The text.
        is_vietnamese: Whether the text is in Vietnamese, where a capital often begins a compound of several words.
        foreign_words: Function words of the text's language; empty for English.
        function_words: These and those of English.
    """

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.is_vietnamese = language == "vi"
        self.foreign_words = get_function_words(language)
        self.function_words = FUNCTION_WORDS | self.foreign_words if self.foreign_words else FUNCTION_WORDS

    def begins_sentence(self, start: int) -> bool:
        text = self.text
        before = start - 1
        while before >= 0 and (
            text[before] in " \"“‘(['`\u200e\u200f\ufeff" or (self.foreign_words and text[before] in "«„¿¡)")
        ):
            before -= 1
        return before < 0 or text[before] in ".!?:;\n\r\t”…•。！？"

    def is_name(self, word: str) -> bool:
        """Return whether a capitalised word at the start of a sentence is probably a name."""
        lower = word.lower()
        if lower in self._lower_words:
            return False
        if self.foreign_words and (_ADVERB.search(lower) or self.is_vietnamese):
            return word in self._words_within_sentences
        return not _TYPICAL_OF_COMMON_WORDS.search(lower) or word in self._words_within_sentences

    @cached_property
    def _lower_words(self) -> frozenset[str]:
        if self.foreign_words:
            return frozenset(filter(str.islower, _ANY_WORD.findall(self.text)))
        return frozenset(_LOWER_WORD.findall(self.text))

    @cached_property
    def _words_within_sentences(self) -> frozenset[str]:
        pattern = _CAPITAL_AFTER_WORD if self.foreign_words else _CAPITAL_WITHIN_SENTENCE
        return frozenset(pattern.findall(self.text))


def _split_tokens(match: re.Match[str]) -> list[_Token]:
    offset = match.start()
    run = match.group()
    if " " not in run:
        return [_Token(offset, match.end(), run)]
    return [_Token(offset + word.start(), offset + word.end(), word.group()) for word in _NOT_SPACE.finditer(run)]


def _list_word_sequences(tokens: list[_Token], evidence: _CapitalEvidence) -> Iterator[list[_Token]]:
    """Yield the word sequences that may be names: ``tokens`` with and without first words such as "The" or "Director".

    A leading common noun may be part of the name or not ("Director Harikumar", "Monster Truck"): then both sequences
    are yielded. The same holds for a function word that has a capital inside a sentence ("in From Hong Kong").
    """
    starts = evidence.begins_sentence(tokens[0].start)
    first = _find_name_start(tokens, 0, evidence.function_words)
    if first and not starts and len(tokens) > 1 and tokens[-1].word[0].isupper():
        yield tokens
    name = _find_name_start(tokens, first, COMMON_WORDS) if starts else first
    if name > first and first + 1 < len(tokens) and not _is_lower_case(tokens[first + 1].word):
        yield tokens[first:]
    rest = tokens[name:]
    if len(rest) == 1 and name == 0 and starts and rest[0].word.istitle() and not evidence.is_name(rest[0].word):
        return
    if rest:
        yield rest
    elif len(tokens) <= 2 and _is_capitalised_function_word(tokens[-1], evidence):
        yield tokens[-1:]


def _is_capitalised_function_word(token: _Token, evidence: _CapitalEvidence) -> bool:
    """Return whether a function word is a name: it has a capital in a sentence, as "Up" in "the sequel to Up"."""
    word = token.word.lower()
    is_ordinary = word in CAPITALISED or word in evidence.foreign_words
    return len(word) > 1 and not is_ordinary and is_inside_sentence(evidence.text, token.start)


def _find_name_start(tokens: list[_Token], start: int, ignored_words: frozenset[str]) -> int:
    """Return the position, from ``start`` on, of the first token that may begin a name.

    Such a token is capitalised, and it is an acronym or none of the ``ignored_words``, which are in lower case.
    """
    while start < len(tokens):
        word = tokens[start].word
        is_acronym = len(word) > 1 and word.isupper()
        if not _is_lower_case(word) and (is_acronym or word.lower() not in ignored_words):
            break
        start += 1
    return start


def _is_lower_case(word: str) -> bool:
    return not (word[0].isupper() or word[0].isdigit() or any(map(str.isupper, word)))


def _split_segments(tokens: list[_Token]) -> list[_Segment]:
    segments = [_Segment([], ())]
    small: tuple[str, ...] = ()
    for token in tokens:
        if _is_lower_case(token.word):
            small += (token.word,)
            continue
        if small:
            segments.append(_Segment([], small))
            small = ()
        segments[-1].tokens.append(token)
        if token.word[-1] in ",:":
            small = (token.word[-1],)
    return segments


def _find_names_in_words(words: list[_Token]) -> Iterator[tuple[int, int]]:
    """Yield the spans of names in a word sequence: consecutive capitalised words, also joined by words like "of"."""
    chain: list[_Segment] = []
    for segment in _split_segments(words):
        if chain and segment.before[0] not in _JOINING_WORDS:
            yield from _find_names_in_chain(chain)
            if segment.before == ("and",) and chain[-1].before[:1] == ("of",):  # "Ministry of Health and Welfare"
                yield chain[0].tokens[0].start, segment.tokens[-1].end
            chain = []
        chain.append(segment)
    yield from _find_names_in_chain(chain)


def _find_names_in_chain(chain: list[_Segment]) -> Iterator[tuple[int, int]]:
    if len(chain) == 1:
        yield from _find_names_in_segment(chain[0].tokens)
        return
    last = len(chain) - 1
    end = chain[last].tokens[-1].end
    head_end = chain[0].tokens[-1].end
    heads = {start for start, stop in _find_names_in_segment(chain[0].tokens) if stop == head_end} or {
        chain[0].tokens[0].start
    }
    yield from ((start, end) for start in sorted(heads))
    for segment in chain[1:last]:
        yield max(heads), segment.tokens[-1].end
        yield segment.tokens[0].start, end
    for position, segment in enumerate(chain):
        if _is_separate_name(chain, position):
            yield from _find_names_in_segment(segment.tokens)


def _is_separate_name(segments: list[_Segment], position: int) -> bool:
    """Return whether the segment at ``position`` is itself a name, such as "Oxford" in "University of Oxford".

    Another example is "Prome" in "Bayin Htwe of Prome". A single first word, such as "University", is no name.
    """
    tokens = segments[position].tokens
    if position and segments[position].before[0] in _BINDING_WORDS:
        return False
    if position + 1 < len(segments) and segments[position + 1].before[0] in _BINDING_WORDS:
        return False
    return len(tokens) > 1 or (position > 0 and tokens[0].word.lower() not in COMMON_WORDS)


def _find_names_in_segment(tokens: list[_Token]) -> Iterator[tuple[int, int]]:
    """Yield the spans of names in consecutive capitalised words: with and without titles ("Mr") and numbers."""
    for group in _split_at_suffixes(tokens):
        if len(group) > _MAX_SEGMENT_WORDS or (len(group) == 1 and _is_generic(group[0].word)):
            continue
        start, end = group[0].start, group[-1].end
        yield start, end
        bare = 1 if len(group) > 1 and group[0].word[0].isdigit() else 0
        while bare < len(group) - 1 and group[bare].word.lower().rstrip(".") in FORMS_OF_ADDRESS:
            bare += 1
        yield group[bare].start, end
        if len(group) - bare > 1 and group[-1].word.isdigit():
            yield group[bare].start, group[-2].end
        for position in range(bare, len(group) - 1):
            if _POSSESSIVE.search(group[position].word):
                yield group[bare].start, group[position].end
                yield group[position + 1].start, end


def _split_at_suffixes(tokens: list[_Token]) -> Iterator[list[_Token]]:
    """Yield the tokens in groups; a common word after a hyphen ends a group, as in "Malayalam-language film"."""
    group: list[_Token] = []
    for token in tokens:
        suffix = _LOWER_SUFFIX.search(token.word)
        if suffix and suffix.group(1) in COMMON_WORDS:
            stem = token.word[: suffix.start()]
            yield [*group, _Token(token.start, token.start + len(stem), stem)]
            group = []
        else:
            group.append(token)
    if group:
        yield group


def _is_generic(word: str) -> bool:
    lower = word.lower().rstrip(".,:")
    return lower.isdigit() or (
        (lower in GENERIC_WORDS or lower in FORMS_OF_ADDRESS) and lower not in ("us", "u.s", "u.k")
    )


_ELISION = re.compile(r"(?:[dl]|dell|nell|all|dall|sull|un)['’](?=\w)", re.IGNORECASE)
_SUFFIX_AFTER_APOSTROPHE = re.compile(r"['’]\w{1,6}\Z")
_GERMAN_NOUN = re.compile(
    r"(?:ung|heit|keit|schaft|tion|tät|ismus|nis|tum|ment|enz|anz|ierung)(?:en|s|se|e)?\Z", re.IGNORECASE
)
_OF = re.compile(r".* (?:von|van|de|del|du|des|di|della|da|do|dos) (?=\w{3})")
_GERMAN_JOINT = re.compile(r" (?:de[mnrs]|zu[mr]|[ai]m) ")
_GERMAN_COMPOUND = 9
"""Fewest letters of a German compound that may be a name."""

_DEFINITE = ("der ", "die ", "das ", "den ", "dem ", "des ", "zum ", "zur ", "im ", "am ", "vom ", "beim ")
_GERMAN_DETERMINER = re.compile(
    r"\b(?:d(?:er|ie|as|en|em|es)|(?:[dms]?ein|ihr|kein|unser|dies|jed|all|viel|mehrer|einig|manch|welch|beid)"
    r"(?:e[mnrs]?)?|zu[mr]|[ai]m|[ai]ns|vo[mn]|beim|als|[a-zäöü]+(?:isch|lich|ig|haft|bar|sam|los|end)e[mnrs]?|ohne)"
    r"[ ]\Z"
)


def _trim_affixes(text: str, start: int, end: int, language: str) -> tuple[int, int]:
    """Return the span of a name without an elided article ("l'Église") or a Turkish ending ("Ankara'nın")."""
    if language in ("fr", "it") and (elision := _ELISION.match(text, start, end)):
        start = elision.end()
    if language == "tr" and (suffix := _SUFFIX_AFTER_APOSTROPHE.search(text, start, end)):
        end = suffix.start()
    return start, end


def _is_german_noun(text: str, start: int, end: int) -> bool:
    """Return whether a capitalised word of a German text is an ordinary noun, which has a capital too.

    Ordinary nouns follow articles, numbers and adjectives, or have an ending for nouns; a noun that the text repeats
    may be its topic, and a long compound after a definite article its name ("die Marienkirche").
    """
    word = text[start:end]
    if _GERMAN_JOINT.search(word):  # "dem Haus der Stadt"
        return _GERMAN_DETERMINER.search(text, max(0, start - 24), start) is not None
    if " " in word or any(map(str.isupper, word[1:])) or any(map(str.isdigit, word)):
        return False
    if _GERMAN_NOUN.search(word):
        return True
    determiner = _GERMAN_DETERMINER.search(text, max(0, start - 24), start)
    is_named = len(word) >= _GERMAN_COMPOUND and determiner is not None and determiner[0] in _DEFINITE
    return text.count(word) == 1 and determiner is not None and not is_named


def _trim_possessive(text: str, start: int, end: int) -> int:
    while end > start:
        if text[max(start, end - 2) : end].lower() in ("'s", "’s"):
            end -= 2
        elif text[end - 1] in ",:;'’-–&":
            end -= 1
        else:
            break
    return end
