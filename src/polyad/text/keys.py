"""Keys of entities, by which two spellings of a name are the same entity, and names found in a text by their keys.

HyperSU, appendix C.2: lower case, Unicode normalisation, punctuation cleanup, low-value filtering; then exact match.
polyad also removes possessives, articles, spaces between initials, and a disambiguator in
parentheses ("Dancing in the Rain (film)"), so that names in running text match the title of the document about them.

Some names are spelt like words: "Up", "Her", "It", "24". Such a word is a name if there is evidence: it is the title of
its passage, in quotation marks, has a capital inside a sentence, or has a type from a model. Pronouns and numbers need
more than a type, because models give types to all of them, unless it is the type of a work.
"""

# ruff: noqa: RUF001, RUF002, SIM905  look-alike punctuation is what is being unified; a word list reads best as words

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from polyad.model import Mention
from polyad.text.folding import fold_uncased_letters
from polyad.text.function_words import get_function_words, infer_language
from polyad.text.lexicon import COMMON_WORDS, FORMS_OF_ADDRESS, FUNCTION_WORDS, GENERIC_WORDS
from polyad.text.scripts import HANGUL, KATAKANA, SOUTH_EAST_ASIAN, UNSPACED, has_uncased_letters
from polyad.text.words import normalize_value

_SMALLEST_NUMBER = 100
"""Lone numbers below this are no names; years and titles such as "300" are."""

_LOW_VALUE = frozenset(
    """
    a about above after again against all almost along already also although always am among an and another any anyone
    anything are around as at away back be became because become been before began behind being below between both
    but by came can cannot come could did do does doing done down during each either else ever every everyone
    everything few first for former from further had has have having he hence her here hers herself him himself his
    how however i if in indeed instead into is it its itself just last later latter least less let like made many may
    me meanwhile might mine more moreover most much must my myself neither never nevertheless next no nobody none nor
    not nothing now of off often on once one only onto or other others otherwise our ours ourselves out over own per
    perhaps quite rather same second several shall she should since so some someone something sometimes soon still
    such than that the their theirs them themselves then there therefore these they third this those though three
    through throughout thus to together too toward towards two under unless unlike until up upon us various very via
    was we well were what whatever when whenever where whereas wherever whether which while who whoever whom whose
    why will with within without would yes yet you your yours yourself yourselves
    """.split()
)

_DISAMBIGUATOR_BACKWARDS = re.compile(r"\s*\)[^()]*(?:\(\s+|(?<=\s)\()(?=\S)")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ`´‘]s\W*$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_INITIALS = re.compile(r"(?<!\S)[a-z](?: [a-z])+(?!\S)")
_SAFE_LENGTH, _MAX_MARKS = 500, 30
"""Length of a name up to which any number of marks is harmless, and most marks on a letter of a longer name."""

_MID_SENTENCE = re.compile(r"[a-z0-9,][ \t]\Z")
"""Text before a word that is not the first word of a sentence."""

_DECIMAL_POINT_MARK = "\ue000"
"""Replaces a decimal point while other points become spaces; a private-use character, which is otherwise removed."""


class _CleanupTable(dict[int, str | None]):
    """A ``str.translate`` table for entity keys: replaces punctuation by spaces and removes invisible characters."""

    def __missing__(self, code: int) -> str | None:
        replacement = _get_replacement(chr(code))
        self[code] = replacement
        return replacement


def _get_replacement(character: str) -> str | None:
    category = unicodedata.category(character)
    if category == "Cc" or category[0] in "PZ":
        return " "
    if category[0] == "C" or category == "Sk":
        return None
    return character


_CLEANUP = _CleanupTable(
    {ord(quote): None for quote in "'’‘ʼ`´\"“”„«»"} | {ord("&"): " and ", ord(_DECIMAL_POINT_MARK): "."}
)
_CLEANUP.update({ord(letter): letter for letter in "%#+°"})


@lru_cache(maxsize=1 << 16)
def build_entity_key(name: str) -> str:
    """Return the entity key of a name (normalised form that all its spellings share); empty if it is no name.

    Idempotent, so a key may be passed where a name is expected. An acronym that is spelt like a function word keeps its
    capitals, to be told from it.

    >>> [build_entity_key(name) for name in ("Dancing in the Rain (film)", "God'S Gift To Women", "The Beatles’")]
    ['dancing in the rain', 'gods gift to women', 'beatles']
    """
    key = _build_key(name)
    if key.isascii():
        return key
    for _ in range(3):  # folding and removing characters may let others combine
        again = _build_key(key)
        if again == key:
            break
        key = again
    return key


@lru_cache(maxsize=1 << 12)
def build_name_key(name: str) -> str:
    """Return the entity key (normalised form) of a text that is certainly a name, even "24" or "It".

    A title, a type or a capital inside a sentence says so; see :func:`is_inside_sentence`. A key may be passed too.

    >>> [build_name_key(name) for name in ("Up (2009 film)", "It", "24", "The Who", "?!")]
    ['up', 'it', '24', 'the who', '']
    """
    return build_entity_key(name) or _normalize_spelling(name)[0]


def build_argument_key(value: str) -> str:
    """Return the entity key (normalised name) of a value in a fact that the user supplied as data.

    It is the key that its name has in running text (:func:`build_name_key`) where nothing but capitals and
    white space is lost by that: so a fact and a text about Ines Moreau meet. Any other value is its own key, which no
    name has: "Georgia (country)" is not Georgia, "AB-" is not "AB".

    >>> [build_argument_key(value) for value in ("Ines  Moreau", "Georgia (country)", "AB-", "Us", "US")]
    ['ines moreau', 'Georgia (country)', 'AB-', 'us', 'US']
    """
    text = normalize_value(value)
    key = build_name_key(text)
    return key if key == fold_uncased_letters(text.casefold()) else text


def is_inside_sentence(text: str, start: int) -> bool:
    """Return whether the character at ``start`` is a capital letter that does not begin a sentence, as in names.

    >>> is_inside_sentence("He saw Up twice. It was good.", 7), is_inside_sentence("He saw Up twice. It was good.", 17)
    (True, False)
    """
    return text[start : start + 1].isupper() and _MID_SENTENCE.search(text, max(0, start - 3), start) is not None


def _build_key(name: str) -> str:
    return _drop_low_value(*_normalize_spelling(name))


def _normalize_spelling(name: str) -> tuple[str, str]:
    """Return a pair: the name in normalised spelling, and the name without a suffix such as "(film)"."""
    text = name if name.isascii() else unicodedata.normalize("NFKC", limit_marks(name.replace(_DECIMAL_POINT_MARK, "")))
    if "(" in text:
        text = _remove_disambiguators(text)
    spelling = text
    text = text.casefold()
    if not text.isascii():
        text = fold_uncased_letters(unicodedata.normalize("NFKC", text))
    text = _POSSESSIVE.sub("", text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if "." in text:
        text = _DECIMAL_POINT.sub(_DECIMAL_POINT_MARK, text)
    words = text.translate(_CLEANUP).split()
    key = " ".join(words)
    if len(words) > 1:
        key = _remove_articles(_INITIALS.sub(lambda initials: initials[0].replace(" ", ""), key))
    return key if any(map(str.isalnum, key)) else "", spelling


def limit_marks(name: str) -> str:
    """Return the name with at most 30 combining marks (such as accents) on a letter (UAX 15, D4).

    Unicode normalisation takes quadratic time in the number of marks.
    """
    if len(name) <= _SAFE_LENGTH:
        return name
    limited: list[str] = []
    marks = 0
    for character in name:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MAX_MARKS:
            limited.append(character)
    return "".join(limited)


def _remove_disambiguators(text: str) -> str:
    backwards, length = text[::-1], 0
    while match := _DISAMBIGUATOR_BACKWARDS.match(backwards, length):
        length = match.end()
    return text[: len(text) - length]


def _remove_articles(key: str) -> str:
    """Return an entity key without leading articles, unless too little would remain: "the who" stays."""
    words = key.split(" ")
    first, last = 0, len(words) - 1
    while first < last and words[first] in ("the", "a", "an"):
        is_name = first + 1 < last or (words[first] == "the" and words[last] not in _LOW_VALUE)
        if not is_name:
            break
        first += 1
    return " ".join(words[first:])


def _drop_low_value(key: str, spelling: str) -> str:
    if key in _LOW_VALUE:
        acronym = key.upper()
        return acronym if len(key) > 1 and acronym in spelling.replace(".", "").replace(" ", "") else ""
    if key.isdecimal():
        return key if len(key) > 2 and int(key[:9]) >= _SMALLEST_NUMBER else ""
    if len(key) == 1:
        return key if unicodedata.name(key, "").startswith("CJK UNIFIED") else ""
    return key


def build_labelled_key(key: str, entity_type: str) -> str:
    """Return an entity key with the entity's type appended, to separate entities of the same name.

    It is spelt as a name of an entity given as data would be, and as no name in running text is.

    >>> build_labelled_key("washington", "Location"), build_labelled_key("washington", "")
    ('washington (location)', 'washington')
    """
    entity_type = " ".join(entity_type.casefold().split())
    return f"{key} ({entity_type})" if key and entity_type else key


CAPITALISED = frozenset(
    """
    the an and or of may no he him his himself you your my our we first second third former latter other last next
    """.split()
)
"""Words that have a capital inside a sentence without being names: before names and numbers, and as a mark of
respect."""

_WORK_TYPES = frozenset(
    """
    film movie documentary book novel story song single album ep track series sitcom show episode season game play
    musical opera work band group magazine newspaper painting poem title franchise
    """.split()
)
_PRONOUNS = frozenset(
    """
    he her hers herself him himself his i it its itself me mine my myself our ours ourselves she that their theirs them
    themselves these they this those us we what which who whom whose you your yours yourself yourselves
    """.split()
)
_NON_NAME_TYPES = frozenset(
    "number numeral quantity count amount word adverb preposition pronoun date time ordinal".split()
)


def find_mention_key(mention: Mention, text: str) -> str:
    """Return the entity key (normalised name) of a mention in ``text``; empty if the mention is no name."""
    key = build_entity_key(mention.name)
    if key or mention.start < 0:
        return key
    word = build_name_key(mention.name)
    is_capital = word not in CAPITALISED and is_inside_sentence(text, mention.start)
    return word if len(word) > 1 and (mention.type == "work" or is_capital) else ""


def find_named_key(name: str, kind: str, title: str, text: str, spans: list[tuple[int, int]]) -> str:
    """Return the entity key of a name in a model's reply; empty if the passage shows that it is no name.

    Args:
        name: The name in the model's spelling.
        kind: The type that the model states; may be empty.
        title: Title of the passage.
        text: Text of the passage.
        spans: Spans of the name in the text.
    """
    key = build_entity_key(name)
    word = build_name_key(name)
    if key or len(word) < 2:
        return key
    kinds = set(kind.casefold().replace("-", " ").split())
    is_plain = word in _PRONOUNS or word.isdecimal()
    is_name = (
        word == build_name_key(title)
        or (word not in CAPITALISED and any(is_inside_sentence(text, start) for start, _ in spans))
        or not kinds.isdisjoint(_WORK_TYPES)
        or (bool(kinds) and not is_plain and name[:1].isupper() and kinds.isdisjoint(_NON_NAME_TYPES))
    )
    return word if is_name else ""


_MAX_NAME_WORDS = 12
"""Most words of a name that is searched for."""

_MAX_NAME_CHARACTERS = 24
"""Most characters of a name in a script without spaces that is searched for."""

_ENDINGS = {
    "de": re.compile(r"(?<=\w{3})(?<=[^\Ws])(?:es|s)\b"),
    "tr": re.compile(r"(?<=\w)['’]\w{1,6}\b"),
}
"""Endings of names in running text, by language."""

_MIN_UNSPACED_NAME, _MIN_THAI_NAME = 2, 4
"""Fewest characters of a name inside a run of characters: of Chinese, Japanese or Korean, and of Thai and its
neighbours, which have several characters a syllable."""

_PREFIX = re.compile(r"[وف]?[بكل]|[وف]|[ובהלמשכ]{1,2}")
"""Prefixes of Arabic and Hebrew words: prepositions, conjunctions, and the Hebrew article."""

_CHARACTERS = f"{UNSPACED}{HANGUL}"
_WORD = re.compile(
    rf"[{_CHARACTERS}]|[^{_CHARACTERS}\s\x00-\x1f!\"(),\-./:;<=>?@\[\\\]^_{{|}}~*‐‑‒–—―…“”„«»‹›《》〈〉「」『』【】、。，·・？！；：؟،؛।]+"
)
_IS_CHARACTER = re.compile(f"[{_CHARACTERS}]")
_KATAKANA, _HANGUL, _THAI = (re.compile(f"[{letters}]") for letters in (KATAKANA, HANGUL, SOUTH_EAST_ASIAN))
_UNSPACED = ("zh", "ja", "ko", "th", "lo", "my", "km")
_APOSTROPHES = str.maketrans("", "", "'’‘ʼ`´")
_POSSESSIVE_ENDING = re.compile(r"(?<=\w)['’ʼ`´‘]s['’ʼ`´‘]*$", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:\A|[.!?:…][\"”’)]?\s|\()\W*\Z")
_MIN_CONTENT_WORDS = 2
_ARTICLES = frozenset({"the", "a", "an"})
_ARTICLE_STARTS = ("the ", "a ", "an ")
_EVERYDAY_WORDS = COMMON_WORDS | FUNCTION_WORDS | GENERIC_WORDS | FORMS_OF_ADDRESS


class _Token(NamedTuple):
    """A word of a text in two normalised forms: for the inside of an entity key, and for its end.

    Attributes:
        start, end: Span of the word.
        inner: The word before other words of a key.
        last: The word at the end of a key, without a possessive ending.
        irregular: Whether it is a letter, an acronym or digits, whose form in a key depends on the neighbouring words,
            or a word in a script without capitals.
        unspaced: Whether it is a character of a script without spaces, or of Korean, whose endings are suffixes.
    """

    start: int
    end: int
    inner: str
    last: str
    irregular: bool
    unspaced: bool = False


class EntityNameMatcher:
    """Finds the names of an index's entities in a text, ignoring case, punctuation and possessive endings.

    A single word of everyday English that happens to be an entity ("film", "heat") counts only where the text gives
    it a capital that its place in the sentence does not explain. Nor do several words without a capital count when they
    are function words but for one ("came out"). In scripts without spaces each character is a word; Arabic and Hebrew
    names are also found behind prefixes such as prepositions.

    Args:
        find_existing_keys: Returns which of the entity keys exist; called once with all keys of a text.
    """

    def __init__(self, find_existing_keys: Callable[[Iterable[str]], Container[str]]) -> None:
        self._find_existing_keys = find_existing_keys

    def find(self, text: str) -> list[Mention]:
        """Return all mentions of entity names in ``text``, without overlap; the longest name wins.

        Names with a German genitive or a Turkish ending are looked for again without it.
        """
        mentions = self._find_as_spelt(text)
        ending = _ENDINGS.get(infer_language(text))
        bare = ending.sub(lambda letters: " " * len(letters[0]), text) if ending else text
        if bare != text:
            places = {place for mention in mentions for place in range(mention.start, mention.end)}
            others = self._find_as_spelt(bare)
            mentions += [mention for mention in others if places.isdisjoint(range(mention.start, mention.end))]
        return sorted(mentions, key=lambda mention: mention.start)

    def _find_as_spelt(self, text: str) -> list[Mention]:
        words = list(_split_words(text))
        most = _MAX_NAME_CHARACTERS if any(word.unspaced for word in words) else _MAX_NAME_WORDS
        windows = [_build_keys(text, words[start : start + most]) for start in range(len(words))]
        existing = self._find_existing_keys(
            {v for keys in windows for key in keys for v in _get_key_variants(key) if v}
        )
        lengths = [
            self._count_name_words(text, words[start : start + most], keys, existing)
            for start, keys in enumerate(windows)
        ]
        mentions: list[Mention] = []
        position = 0
        while position < len(words):
            length = lengths[position]
            if words[position].unspaced and max(lengths[position + 1 : position + length], default=0) >= length:
                length = 0  # a name as long begins within this one; in Chinese, names end with their noun
            if length:
                matched = _skip_article(text, words[position : position + length])
                start = _skip_prefix(text, matched, existing)
                name = _POSSESSIVE_ENDING.sub("", text[start : matched[-1].end])
                mentions.append(Mention(name, start, start + len(name)))
            position += max(1, length)
        return mentions

    def _count_name_words(self, text: str, words: list[_Token], keys: Sequence[str], existing: Container[str]) -> int:
        """Return how many of the next ``words`` form the longest entity name; 0 if they form none.

        ``keys`` are the entity keys of the first word, of the first two words, and so on; ``existing`` those of the
        index.
        """
        for length in range(len(words), 0, -1):
            if not any(key in existing for key in _get_key_variants(keys[length - 1])):
                continue
            key = build_entity_key(text[words[0].start : words[length - 1].end])
            is_known = (
                key in existing
                or (bool(key) and key in self._find_existing_keys([key]))
                or any(variant in existing for variant in _list_without_prefix(key))
            )
            if is_known and _is_name_here(text, _skip_article(text, words[:length])):
                return length
        return 0


def _build_keys(text: str, words: Sequence[_Token]) -> list[str]:
    """Return the entity key (normalised name) of the first word, of the first two words, and so on, up to all."""
    keys = []
    joined = ""
    irregular = False
    end = words[0].start
    for word in words:
        joined += " " if word.start > end else ""  # characters of a script without spaces adjoin
        end = word.end
        irregular = irregular or word.irregular
        keys.append(build_entity_key(text[words[0].start : end]) if irregular else joined + word.last)
        joined += word.inner
    return keys


def _get_key_variants(key: str) -> list[str]:
    """Return the entity key and, if it begins with an article or an Arabic prefix, also the key without that."""
    if key.isascii():
        return [key, key.partition(" ")[2]] if key.startswith(_ARTICLE_STARTS) else [key]
    return [key, *_list_without_prefix(key)]


def _list_without_prefix(key: str) -> list[str]:
    """Return an Arabic or Hebrew key without the first letters that may be prefixes; empty for other keys."""
    return [key[size:] for size in (1, 2) if len(key) > size + 2 and _PREFIX.fullmatch(key, 0, size)]


def _skip_prefix(text: str, name: list[_Token], existing: Container[str]) -> int:
    """Return the offset at which a matched name begins, behind an Arabic or Hebrew prefix that is not part of it."""
    start, end = name[0].start, name[-1].end
    if build_entity_key(text[start:end]) in existing:
        return start
    without = (start + size for size in (1, 2) if _PREFIX.fullmatch(text, start, start + size))
    return next((place for place in without if build_entity_key(text[place:end]) in existing), start)


def _skip_article(text: str, name: list[_Token]) -> list[_Token]:
    """Return the words of a name without a leading article, unless the article belongs to the name."""
    first, end = name[0], name[-1].end
    if len(name) == 1 or first.inner not in _ARTICLES:
        return name
    without = build_entity_key(text[name[1].start : end])
    return name[1:] if without == build_entity_key(text[first.start : end]) else name


def _split_words(text: str) -> Iterator[_Token]:
    for match in _WORD.finditer(text):
        word = match.group()
        folded = word.casefold()
        if not folded.isascii():
            folded = unicodedata.normalize("NFKC", limit_marks(folded))
        inner = "and" if folded == "&" else folded.translate(_APOSTROPHES)
        last = _POSSESSIVE_ENDING.sub("", folded).translate(_APOSTROPHES)
        unspaced = _IS_CHARACTER.match(word) is not None
        irregular = not unspaced and (len(inner) == 1 or not inner.isalpha() or word.isupper() or _is_uncased(inner))
        yield _Token(match.start(), match.end(), inner, last, irregular, unspaced)


def _is_uncased(word: str) -> bool:
    return not word.isascii() and has_uncased_letters(word)


def _is_name_here(text: str, name: list[_Token]) -> bool:
    """Return whether the words ``name`` in ``text`` are used as an entity's name, not as ordinary words ("it").

    Ordinary words are everyday English, or the end and the beginning of two clauses.
    """
    if any(word.unspaced for word in name):
        return _is_name_in_run(text, name[0].start, name[-1].end)
    if any(text[word.start].isupper() or text[word.start].isdigit() for word in name[1:]):
        first = text[name[0].start]
        return first.isupper() or first.isdigit() or not _crosses_punctuation(text, name)
    if len(name) > 1:
        content = sum(word.last not in FUNCTION_WORDS for word in name)
        is_term = content == len(name) or content >= _MIN_CONTENT_WORDS
        return is_term and not _crosses_punctuation(text, name)
    word = name[0]
    if word.last not in _EVERYDAY_WORDS:
        return True
    return text[word.start].isupper() and not _SENTENCE_START.search(text, max(0, word.start - 4), word.start)


def _is_name_in_run(text: str, start: int, end: int) -> bool:
    """Return whether the characters from ``start`` to ``end`` of a text without spaces may be a name.

    They are not, if they are few, are a function word, or cut a syllable, a word of Katakana or a Korean word.
    """
    name, before, after = text[start:end], text[start - 1 : start] if start else "", text[end : end + 1]
    shortest = _MIN_THAI_NAME if _THAI.match(name) else _MIN_UNSPACED_NAME
    cuts = (
        unicodedata.category(after or " ")[0] == "M"
        or (_HANGUL.match(before) and _HANGUL.match(name))
        or (_KATAKANA.match(before) and _KATAKANA.match(name))
        or (_KATAKANA.match(after) and _KATAKANA.match(name[-1]))
    )
    return len(name) >= shortest and not cuts and not any(name in get_function_words(one) for one in _UNSPACED)


def _crosses_punctuation(text: str, words: list[_Token]) -> bool:
    return any(text[left.end : right.start].strip(" -") for left, right in pairwise(words))
