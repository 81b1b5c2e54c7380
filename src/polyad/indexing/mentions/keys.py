"""The entity keys of mentions, those of names included that are spelt like words: "Up", "Her", "It", "24".

Such a word is a name where something says so: the title of its passage, quotation marks, a capital inside a sentence,
or the type that a model gives it. Pronouns and numbers take more than a type, which models give to any of them, unless
it is the type of a work.
"""

from __future__ import annotations

# ruff: noqa: SIM905  a word list reads best as words
from polyad.model import Mention
from polyad.text.keys import entity_key, is_inside_sentence, name_key

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


def mention_key(mention: Mention, text: str) -> str:
    """The key of a mention that was found in ``text``; "" for what names nothing."""
    key = entity_key(mention.name)
    if key or mention.start < 0:
        return key
    word = name_key(mention.name)
    is_capital = word not in CAPITALISED and is_inside_sentence(text, mention.start)
    return word if len(word) > 1 and (mention.type == "work" or is_capital) else ""


def named_key(name: str, kind: str, title: str, text: str, spans: list[tuple[int, int]]) -> str:
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
