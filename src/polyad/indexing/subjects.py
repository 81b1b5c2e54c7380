"""What a passage is about: its title; without one, what its sentences define or begin with.

A link in retrieval leads from a mention to the passage whose subject it is, so a text without titles, or one that
treats one thing after another, needs subjects too. "Ljubljana is the capital of Slovenia" is about Ljubljana wherever
it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from polyad.model import Mention, Span
from polyad.text.keys import entity_key

_LONGEST = 12  # words of a name that a sentence defines

_DEFINITION = re.compile(
    r"[\"“«']?\s?(?P<name>\w[^.,;:!?()\[\]\"“”«»\n]{0,100}?)[\"”»']?"  # what is defined, up to
    r"\s*(?:\([^()]{0,200}\)\s*)?(?:,[^,.;]{1,80},\s*)?"  # a remark in parentheses or between commas, and
    r"\b(?:is|was|are|were)\s+(?:also\s+|either\s+|both\s+)?(?:an?|the|one|two|any|part|known|located)\b"
)
_NO_NAME = re.compile(
    r"(?:he|she|it|its|his|her|they|their|this|that|these|those|there|here|who|which|what|in|on|at|of|from|by|for|with"
    r"|as|when|where|while|if|after|before|during|since|although|because|and|but|or|so)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(r"[\"“«']?\s?(?:(?:The|An?)\s+)?[\"“«']?")
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subject of a whole passage, if it has one, and those that single sentences define.

    Attributes:
        passage: Its key and name; the key is empty where there is none.
        defined: Key and mention of each.
    """

    passage: tuple[str, str]
    defined: tuple[tuple[str, Mention], ...]


def subjects(title: str, text: str, sentences: Sequence[Span], mentions: Sequence[tuple[str, Mention]]) -> Subjects:
    """Find the subjects of a passage.

    Args:
        title: Of its document; may be empty.
        text: Of the passage.
        sentences: Spans in it.
        mentions: Key and mention, ordered by ``start``.
    """
    defined = tuple(found for sentence in sentences if (found := _defined(text, sentence)))
    key = entity_key(title)
    if key:
        return Subjects((key, title), defined)
    if defined and defined[0][1].end <= sentences[0].end:
        return Subjects((defined[0][0], defined[0][1].name), defined)
    return Subjects(_leading(text, sentences[0], mentions) if sentences else ("", ""), defined)


def _defined(text: str, sentence: Span) -> tuple[str, Mention] | None:
    """What a sentence of the form "X is a ..." defines."""
    found = _DEFINITION.match(text, sentence.start, sentence.end)
    if not found or _NO_NAME.match(found["name"]):
        return None
    name = found["name"].rstrip()
    article = _ARTICLE.match(name)
    bare = name[article.end() :] if article else name
    if not bare or not (bare[0].isupper() or bare[0].isdigit()) or len(name.split()) > _LONGEST:
        return None
    key = entity_key(name)
    start = found.start("name")
    return (key, Mention(name, start, start + len(name), type="name")) if key else None


def _leading(text: str, sentence: Span, mentions: Sequence[tuple[str, Mention]]) -> tuple[str, str]:
    """The longest mention that a sentence begins with, an article or a quotation mark apart."""
    opening = _OPENING.match(text, sentence.start, sentence.end)
    starts = {sentence.start, opening.end() if opening else sentence.start}
    leading = [(key, mention) for key, mention in mentions if mention.start in starts]
    if not leading:
        return "", ""
    key, mention = max(leading, key=lambda item: item[1].end)
    return key, mention.name
