"""What a passage is about: its title and headings; without any, what its sentences define or begin with.

A link in retrieval leads from a mention to the passage whose subject it is, so a text without titles, or one that
treats one thing after another, needs subjects too. "Ljubljana is the capital of Slovenia" is about Ljubljana wherever
it stands.

Not all subjects are as sure. A title, a heading and what is defined at the beginning of a paragraph are strong; what is
defined in the middle of one, or begins it, is weaker; what a passage from the middle of a text happens to begin with is
weakest ("Oh", "Take the next step"). Retrieval tells them apart by their strength.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polyad.model import Mention, Passage, Section, Span
from polyad.text.keys import entity_key, name_key
from polyad.text.lexicon import COMMON_WORDS
from polyad.text.paragraphs import begins_paragraph

RULES = "subjects-4"
"""Part of the name of every builder that uses these rules; to be changed with what they find, so that documents indexed
by the earlier ones are indexed again."""

STRONG, WEAKER, WEAKEST = 1.0, 0.5, 0.25

_LONGEST = 12  # words of a name that a sentence defines

_WORDS = r"\w(?:[^.,;:!?()\[\]\"“”«»\n]|(?<=\b[A-Z])\.|(?<=\b[A-Z][a-z])\.){0,100}?"  # the points of "J." and "Jr."
_NICKNAME = r"\s?[\"“]\s?[^\"“”()\n]{1,30}?\s?[\"”]\s?"
_REMARK = r"\s*(?:\((?:[^()]|\([^()]{0,100}\)){0,250}\)|,[^,;()]{1,80}(?=[,(]))"
_IS = re.compile(r"(?:is|was|are|were)\s+(?:also\s+|either\s+|both\s+)?(?:an?|the|one|two|any|part|known|located)\b")
"""What stands in every definition, and is found sooner than what is before it."""

_DEFINITION = re.compile(
    rf"[\"“«']?\s?(?P<name>{_WORDS}(?:{_NICKNAME}{_WORDS})?)[\"”»']?"  # what is defined, up to
    rf"(?P<remarks>(?:{_REMARK}){{0,4}}),?\s*"  # remarks in parentheses or between commas, and
    rf"\b{_IS.pattern}"
)
_ALTERNATIVE = " or "
_CALLED = re.compile(
    r"\b(?:(?:known|credited|billed|styled|perform(?:s|ed|ing)|recording|referred\s+to)\b[^,;()\"“]{0,40}?\bas"
    r"|(?:birth|full|old|pen|real|ring|stage)\s?names?"
    r"|aka|alias|born|called|formerly|n[ée]e|nicknamed|officially|or|pseudonym|simply)\s+(?:the\s+)?[\"“]?\s?"
)
"""What introduces another name in a remark: "known professionally as", "née", "(or "."""

_IN_PARENTHESES = re.compile(r"\(\s*[\"“]?\s?([^();,:]{2,80}?)\s?[\"”]?\s*\)")
_NEVER_ALIASES = frozenset({"date", "quantity", "phrase"})
_NO_NAME = re.compile(
    r"(?:he|she|it|its|his|her|they|their|this|that|these|those|there|here|who|which|what|in|on|at|of|from|by|for|with"
    r"|as|when|where|while|if|after|before|during|since|although|because|and|but|or|so)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(r"[\"“«']?\s?(?:(?:The|An?)\s+)?[\"“«']?")
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a passage and of its sections, and those that single sentences define.

    Attributes:
        sections: Key of each, and the part of the passage that it is the subject of: mostly all of it.
        defined: Key, mention and strength of each. Without a title, which is what others call it, also of the other
            names that its sentence gives it.
    """

    sections: tuple[tuple[str, Section], ...]
    defined: tuple[tuple[str, Mention, float], ...]

    def of(self, span: Span) -> list[tuple[str, Section]]:
        """Key and section of the subjects of what stands at a span, the widest first; not of what is defined in it."""
        return [(key, part) for key, part in self.sections if part.start < span.end and span.start < part.end]


NO_SUBJECTS = Subjects((), ())


def subjects(passage: Passage, sentences: Sequence[Span], mentions: Sequence[tuple[str, Mention]]) -> Subjects:
    """Find the subjects of a passage.

    Args:
        passage: With its sections, if it has any besides its title.
        sentences: Spans of its sentences.
        mentions: Key and mention, ordered by ``start``.
    """
    text = passage.text
    definitions = [found for sentence in sentences if (found := _definition(passage, sentence))]
    sections = passage.sections or (Section(passage.title, 0, len(text)),)
    titled = tuple((key, part) for part in sections if part.strength and (key := _section_key(part, sections)))
    if titled:
        return Subjects(titled, tuple((found.key, found.name, found.strength) for found in definitions))
    defined = tuple((*named, found.strength) for found in definitions for named in _names(text, found, mentions))
    if defined and defined[0][1].end <= sentences[0].end:
        key, mention, strength = defined[0]
        name = mention.name
    else:
        key, name = _leading(text, sentences[0], mentions) if sentences else ("", "")
        strength = WEAKER if sentences and _is_first(passage, sentences[0]) else WEAKEST
    return Subjects(((key, Section(name, 0, len(text), strength)),) if key else (), defined)


def _section_key(section: Section, sections: Sequence[Section]) -> str:
    """The key of a title or heading. A title is a name, be it "Up" or "24"; a heading may be a word or a number."""
    is_title = section is sections[0] and (len(sections) == 1 or not section.name.isdecimal())
    return name_key(section.name) if is_title else entity_key(section.name)


class _Definition(NamedTuple):
    """What a sentence of the form "X is a ..." defines, and the span of the remarks between X and its verb."""

    key: str
    name: Mention
    remarks: tuple[int, int]
    strength: float


def _is_first(passage: Passage, sentence: Span) -> bool:
    """Whether a sentence is the first of a paragraph."""
    if not passage.text[: sentence.start].strip():
        return passage.begins_paragraph
    return begins_paragraph(passage.text, sentence.start)


def _names_something(name: str) -> bool:
    """Whether it is a proper name: a capital within it, or at its beginning one that no everyday word has there."""
    first, *others = name.split()
    return any(word[0].isupper() or word[0].isdigit() for word in others) or first.casefold() not in COMMON_WORDS


def _definition(passage: Passage, sentence: Span) -> _Definition | None:
    text = passage.text
    if not _IS.search(text, sentence.start, sentence.end):
        return None
    found = _DEFINITION.match(text, sentence.start, sentence.end)
    if not found or _NO_NAME.match(found["name"]):
        return None
    name = found["name"].rstrip()
    article = _ARTICLE.match(name)
    bare = name[article.end() :] if article else name
    if not bare or not (bare[0].isupper() or bare[0].isdigit()) or len(name.split()) > _LONGEST:
        return None
    key = entity_key(name)
    if not key:
        return None
    start = found.start("name")
    strengths = (STRONG, WEAKER) if _names_something(bare) else (WEAKER, WEAKEST)
    mention = Mention(name, start, start + len(name), type="name")
    return _Definition(
        key, mention, found.span("remarks"), strengths[0] if _is_first(passage, sentence) else strengths[1]
    )


def _names(
    text: str, definition: _Definition, mentions: Sequence[tuple[str, Mention]]
) -> Iterator[tuple[str, Mention]]:
    """The names of what is defined, the fullest first: in "John Stuart, Lord Bute, is a" it goes on after the comma."""
    _, name, remarks, _ = definition
    longer = [item for item in mentions if item[1].start == name.start and item[1].end > name.end]
    if longer:
        yield max(longer, key=lambda item: item[1].end)
    yield definition.key, name
    yield from _alternatives(name)
    yield from _aliases(text, remarks, mentions)


def _alternatives(name: Mention) -> Iterator[tuple[str, Mention]]:
    """The names in "Damerjog or Damerdjog"."""
    parts = name.name.split(_ALTERNATIVE)
    start = name.start
    for part in parts if len(parts) > 1 else ():
        if part[:1].isupper() and (key := entity_key(part)):
            yield key, Mention(part, start, start + len(part), type="name")
        start += len(part) + len(_ALTERNATIVE)


def _aliases(
    text: str, remarks: tuple[int, int], mentions: Sequence[tuple[str, Mention]]
) -> Iterator[tuple[str, Mention]]:
    """The longest mention after each word that introduces a name, and each alone in parentheses."""
    start, end = remarks
    inside = {
        mention.start: (key, mention)
        for key, mention in sorted(mentions, key=lambda item: item[1].end)  # of those with one start, the last stays
        if start <= mention.start < end and mention.type not in _NEVER_ALIASES
    }
    yield from (inside[cue.end()] for cue in _CALLED.finditer(text, start, end) if cue.end() in inside)
    for name in _IN_PARENTHESES.finditer(text, start, end):
        if name.start(1) in inside and inside[name.start(1)][1].end == name.end(1):
            yield inside[name.start(1)]


def _leading(text: str, sentence: Span, mentions: Sequence[tuple[str, Mention]]) -> tuple[str, str]:
    """The longest mention that a sentence begins with, an article or a quotation mark apart."""
    opening = _OPENING.match(text, sentence.start, sentence.end)
    starts = {sentence.start, opening.end() if opening else sentence.start}
    leading = [(key, mention) for key, mention in mentions if mention.start in starts]
    if not leading:
        return "", ""
    key, mention = max(leading, key=lambda item: item[1].end)
    return key, mention.name
