"""Entity keys: what makes two spellings of a name the same entity.

HyperSU, appendix C.2: lower case, Unicode normalisation, punctuation cleanup, low-value filtering; then exact match.
polyad adds what names in running text need to meet the title of the document about them: possessives, articles,
initials and the disambiguator in parentheses ("Dancing in the Rain (film)").
"""

# ruff: noqa: RUF001, RUF002, SIM905  look-alike punctuation is what is being unified; a word list reads best as words
# ruff: noqa: SIM905  a word list reads best as words

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from polyad.model import Mention
from polyad.text.literals import one_line

_SMALLEST_NUMBER = 100
"""Lone numbers below this name nothing; years and titles such as "300" stay."""

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
_SHORT, _MOST_MARKS = 500, 30
"""Characters of a name in which any number of marks does no harm, and marks on one letter in a longer one."""

_GOES_ON = re.compile(r"[a-z0-9,][ \t]\Z")
"""What a sentence goes on after."""

_KEPT_POINT = "\ue000"
"""Stands for a decimal point while other points become spaces; a private-use character, otherwise removed."""


class _Cleanup(dict[int, str | None]):
    """What each character becomes in a key, decided by its Unicode category the first time it is met."""

    def __missing__(self, code: int) -> str | None:
        replacement = _replacement(chr(code))
        self[code] = replacement
        return replacement


def _replacement(character: str) -> str | None:
    category = unicodedata.category(character)
    if category == "Cc" or category[0] in "PZ":
        return " "
    if category[0] == "C" or category == "Sk":
        return None
    return character


_CLEANUP = _Cleanup({ord(quote): None for quote in "'’‘ʼ`´\"“”„«»"} | {ord("&"): " and ", ord(_KEPT_POINT): "."})
_CLEANUP.update({ord(letter): letter for letter in "%#+°"})


@lru_cache(maxsize=1 << 16)
def entity_key(name: str) -> str:
    """The key under which a name is joined with its other spellings; "" for what names nothing.

    Idempotent, so a key may be passed where a name is expected. An acronym that is spelt like a function word keeps its
    capitals, to be told from it.

    >>> entity_key("Dancing in the Rain (film)"), entity_key("God'S Gift To Women"), entity_key("The Beatles’")
    ('dancing in the rain', 'gods gift to women', 'beatles')
    >>> entity_key("J.R.R. Tolkien") == entity_key("J. R. R. Tolkien")
    True
    >>> entity_key("which"), entity_key("42"), entity_key("WHO"), entity_key("1961")
    ('', '', 'WHO', '1961')
    """
    key = _normalise(name)
    if key.isascii():
        return key
    for _ in range(3):  # folding and removing characters may let others combine
        again = _normalise(key)
        if again == key:
            break
        key = again
    return key


@lru_cache(maxsize=1 << 12)
def name_key(name: str) -> str:
    """The key of what is known to be a name, though it may be spelt like a function word or a small number.

    A title, a type or a capital inside a sentence says so; see :func:`is_inside_sentence`. A key may be passed too.

    >>> name_key("Up (2009 film)"), name_key("It"), name_key("24"), name_key("The Who"), name_key("?!")
    ('up', 'it', '24', 'the who', '')
    """
    return entity_key(name) or _spelt(name)[0]


def given_key(value: str) -> str:
    """The key of an entity that was given as data, by what it is known by.

    It is the key that its name has in running text (:func:`name_key`) where nothing but capitals and
    white space is lost by that: so a fact and a text about Ines Moreau meet. Any other value is its own key, which no
    name has: "Georgia (country)" is not Georgia, "AB-" is not "AB".

    >>> given_key("Ines  Moreau"), given_key("Georgia (country)"), given_key("AB-"), given_key("Us"), given_key("US")
    ('ines moreau', 'Georgia (country)', 'AB-', 'us', 'US')
    """
    text = one_line(value)
    key = name_key(text)
    return key if key == text.casefold() else text


def is_inside_sentence(text: str, start: int) -> bool:
    """Whether a capital at ``start`` is explained by no beginning of a sentence: a name, where a word would have none.

    >>> is_inside_sentence("He saw Up twice. It was good.", 7), is_inside_sentence("He saw Up twice. It was good.", 17)
    (True, False)
    """
    return text[start : start + 1].isupper() and _GOES_ON.search(text, max(0, start - 3), start) is not None


def _normalise(name: str) -> str:
    return _unless_low_value(*_spelt(name))


def _spelt(name: str) -> tuple[str, str]:
    """The key of a name whatever it says, "" without a letter or digit; and the spelling that it was made from."""
    text = name if name.isascii() else unicodedata.normalize("NFKC", with_few_marks(name.replace(_KEPT_POINT, "")))
    if "(" in text:
        text = _without_disambiguators(text)
    spelling = text
    text = text.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _POSSESSIVE.sub("", text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if "." in text:
        text = _DECIMAL_POINT.sub(_KEPT_POINT, text)
    words = text.translate(_CLEANUP).split()
    key = " ".join(words)
    if len(words) > 1:
        key = _without_articles(_INITIALS.sub(_joined, key))
    return key if any(map(str.isalnum, key)) else "", spelling


def with_few_marks(name: str) -> str:
    """The name with at most 30 marks on a letter (UAX 15, D4): to normalise them takes the square of their number."""
    if len(name) <= _SHORT:
        return name
    kept: list[str] = []
    marks = 0
    for character in name:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _without_disambiguators(text: str) -> str:
    backwards, length = text[::-1], 0
    while found := _DISAMBIGUATOR_BACKWARDS.match(backwards, length):
        length = found.end()
    return text[: len(text) - length]


def _joined(initials: re.Match[str]) -> str:
    return initials.group().replace(" ", "")


def _without_articles(key: str) -> str:
    """Drop leading articles, unless too little would be left: "The Who" and "The A-Team" are names."""
    words = key.split(" ")
    first, last = 0, len(words) - 1
    while first < last and words[first] in ("the", "a", "an"):
        is_name = first + 1 < last or (words[first] == "the" and words[last] not in _LOW_VALUE)
        if not is_name:
            break
        first += 1
    return " ".join(words[first:])


def _unless_low_value(key: str, spelling: str) -> str:
    if key in _LOW_VALUE:
        acronym = key.upper()
        return acronym if len(key) > 1 and acronym in spelling.replace(".", "").replace(" ", "") else ""
    if key.isdecimal():
        return key if len(key) > 2 and int(key[:9]) >= _SMALLEST_NUMBER else ""
    if len(key) == 1:
        return key if _is_ideograph(key) else ""
    return key


def _is_ideograph(character: str) -> bool:
    return unicodedata.name(character, "").startswith("CJK UNIFIED")


def build_labelled_key(key: str, label: str) -> str:
    """The key of an entity that is told from others of its name by what kind of thing it is.

    It is spelt as a name of an entity given as data would be, and as no name in running text is.

    >>> build_labelled_key("washington", "Location"), build_labelled_key("washington", "")
    ('washington (location)', 'washington')
    """
    label = " ".join(label.casefold().split())
    return f"{key} ({label})" if key and label else key


CAPITALISED = frozenset(
    """
    the an and or of may no he him his himself you your my our we first second third former latter other last next
    """.split()
)
"""Words that have a capital inside a sentence without being names: before names and numbers, months, in reverence."""

_WORKS = frozenset(
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
_NO_NAMES = frozenset("number numeral quantity count amount word adverb preposition pronoun date time ordinal".split())


def find_mention_key(mention: Mention, text: str) -> str:
    """The key of a mention that was found in ``text``; "" for what names nothing."""
    key = entity_key(mention.name)
    if key or mention.start < 0:
        return key
    word = name_key(mention.name)
    is_capital = word not in CAPITALISED and is_inside_sentence(text, mention.start)
    return word if len(word) > 1 and (mention.type == "work" or is_capital) else ""


def find_named_key(name: str, kind: str, title: str, text: str, spans: list[tuple[int, int]]) -> str:
    """The key of what a model calls an entity; "" for what names nothing.

    Args:
        name: As the model spells it.
        kind: The type it gives; may be empty.
        title: Of the passage.
        text: Of the passage.
        spans: Where the name stands in the text.
    """
    key = entity_key(name)
    word = name_key(name)
    if key or len(word) < 2:
        return key
    kinds = set(kind.casefold().replace("-", " ").split())
    is_plain = word in _PRONOUNS or word.isdecimal()
    is_name = (
        word == name_key(title)
        or (word not in CAPITALISED and any(is_inside_sentence(text, start) for start, _ in spans))
        or not kinds.isdisjoint(_WORKS)
        or (bool(kinds) and not is_plain and name[:1].isupper() and kinds.isdisjoint(_NO_NAMES))
    )
    return word if is_name else ""
