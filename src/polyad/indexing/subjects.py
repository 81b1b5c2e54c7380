"""Finds the subjects of a passage: title and headings, or else the entities that sentences define or begin with.

In retrieval, a link leads from a mention to the passage whose subject is mentioned. So a text without titles, or with
many topics, needs subjects too: "Ljubljana is the capital of Slovenia" is about Ljubljana wherever it occurs.

Each subject has a strength. A title, a heading and a definition at the beginning of a paragraph are strong. A
definition in the middle of a paragraph, or an entity at the beginning of a paragraph, is weaker. The first entity of a
passage from the middle of a paragraph is weakest ("Oh", "Take the next step"). Retrieval uses the strength as a
feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polyad.model import Mention, Passage, Section, Span
from polyad.text.keys import build_entity_key, build_name_key
from polyad.text.lexicon import COMMON_WORDS
from polyad.text.sentences import begins_paragraph

RULES_VERSION = "subjects-5"
"""Part of the name of every builder that uses these rules. Change it together with the rules, so that documents that
were indexed with the earlier rules are indexed again."""

STRONG, WEAKER, WEAKEST = 1.0, 0.5, 0.25

_MAX_NAME_WORDS = 12

_WORDS = r"\w(?:[^.,;:!?()\[\]\"“”«»\n]|(?<=\b[A-Z])\.|(?<=\b[A-Z][a-z])\.){0,100}?"  # the full stops of "J." and "Jr."
_NICKNAME = r"\s?[\"“]\s?[^\"“”()\n]{1,30}?\s?[\"”]\s?"
_REMARK = r"\s*(?:\((?:[^()]|\([^()]{0,100}\)){0,250}\)|,[^,;()]{1,80}(?=[,(]))"
_IS = re.compile(r"(?:is|was|are|were)\s+(?:also\s+|either\s+|both\s+)?(?:an?|the|one|two|any|part|known|located)\b")
"""The part that every definition contains; a search for it is faster than a search for the text before it."""

_DEFINITION = re.compile(
    rf"[\"“«']?\s?(?P<name>{_WORDS}(?:{_NICKNAME}{_WORDS})?)[\"”»']?"  # the defined name, up to
    rf"(?P<remarks>(?:{_REMARK}){{0,4}}),?\s*"  # remarks in parentheses or between commas
    rf"\b{_IS.pattern}"  # and the verb
)
_ALTERNATIVE = " or "
_CALLED = re.compile(
    r"\b(?:(?:known|credited|billed|styled|perform(?:s|ed|ing)|recording|referred\s+to)\b[^,;()\"“]{0,40}?\bas"
    r"|(?:birth|full|old|pen|real|ring|stage)\s?names?"
    r"|aka|alias|born|called|formerly|n[ée]e|nicknamed|officially|or|pseudonym|simply)\s+(?:the\s+)?[\"“]?\s?"
)
"""The words before another name in a remark: "known professionally as", "née", "(or "."""

_IN_PARENTHESES = re.compile(r"\(\s*[\"“]?\s?([^();,:]{2,80}?)\s?[\"”]?\s*\)")
_NEVER_ALIASES = frozenset({"date", "quantity", "phrase"})
_NO_NAME = re.compile(
    r"(?:he|she|it|its|his|her|they|their|this|that|these|those|there|here|who|which|what|in|on|at|of|from|by|for|with"
    r"|as|when|where|while|if|after|before|during|since|although|because|and|but|or|so)\b",
    re.IGNORECASE,
)
_PROPERTY = re.compile(r"(?:Title|Author|From|To|Cc|Date): ")
"""The beginning of the properties that precede the text of a document, which say nothing of its subject."""

_OPENING = re.compile(r"[\"“«']?\s?(?:(?:The|An?)\s+)?[\"“«']?")
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a passage (entities that the passage is about), and the entities that its sentences define.

    Attributes:
        sections: Entity key and section of each subject; the section is usually the whole passage.
        definitions: Entity key, mention and strength of each defined entity. In a passage without a title, these
            include the other names that the sentence states.
    """

    sections: tuple[tuple[str, Section], ...]
    definitions: tuple[tuple[str, Mention, float], ...]

    def get_sections(self, span: Span) -> list[tuple[str, Section]]:
        """Return (entity key, section) of each subject whose section overlaps the characters ``span``.

        A subject is an entity that the passage is about. The outermost section is first.
        """
        return [item for item in self.sections if item[1].start < span.end and span.start < item[1].end]


NO_SUBJECTS = Subjects((), ())


def find_subjects(passage: Passage, sentences: Sequence[Span], mentions: Sequence[tuple[str, Mention]]) -> Subjects:
    """Return the subjects of a passage (the entities that it is about), from its title, headings and definitions.

    Args:
        passage: The passage, with its sections if it has any besides its title.
        sentences: The spans of its sentences.
        mentions: Entity key and mention, ordered by ``start``.
    """
    text = passage.text
    people: tuple[tuple[str, Mention, float], ...] = ()
    if not passage.start and sentences and _PROPERTY.match(text):
        people = tuple(_find_people(text, sentences[0], mentions))
        sentences = sentences[1:]
    definitions = [definition for sentence in sentences if (definition := _find_definition(passage, sentence))]
    sections = passage.sections or (Section(passage.title, 0, len(text)),)
    titled = tuple((key, part) for part in sections if part.strength and (key := _find_section_key(part, sections)))
    if titled:
        return Subjects(titled, (*((each.key, each.name, each.strength) for each in definitions), *people))
    defined = tuple(
        (*name, each.strength) for each in definitions for name in _find_defined_names(text, each, mentions)
    )
    if defined and defined[0][1].end <= sentences[0].end:
        key, mention, strength = defined[0]
        name = mention.name
    else:
        key, name = _find_leading_mention(text, sentences[0], mentions) if sentences else ("", "")
        strength = WEAKER if sentences and _is_first_of_paragraph(passage, sentences[0]) else WEAKEST
    return Subjects(((key, Section(name, 0, len(text), strength)),) if key else (), (*defined, *people))


def _find_people(
    text: str, properties: Span, mentions: Sequence[tuple[str, Mention]]
) -> Iterator[tuple[str, Mention, float]]:
    """Yield (entity key, mention, strength) of each name in the lines ``properties``, such as ``Author: ...``."""
    for key, mention in mentions:
        if mention.start >= properties.end:
            return
        if mention.type not in _NEVER_ALIASES and not _PROPERTY.match(text, mention.start):
            yield key, mention, WEAKER


def _find_section_key(section: Section, sections: Sequence[Section]) -> str:
    """Return the entity key of a title or heading; an empty string for a heading that is a common word or a number.

    A title is always a name, be it "Up" or "24".
    """
    is_title = section is sections[0] and (len(sections) == 1 or not section.name.isdecimal())
    return build_name_key(section.name) if is_title else build_entity_key(section.name)


class _Definition(NamedTuple):
    """A definition in a sentence, such as "Ada Lovelace (née Byron) was a mathematician".

    Attributes:
        key: Key of the defined entity.
        name: The defined name, such as "Ada Lovelace".
        remarks: Span of the text between the name and the verb, in parentheses or commas, such as "(née Byron)".
        strength: How certain it is that the passage is about the entity, in (0, 1].
    """

    key: str
    name: Mention
    remarks: tuple[int, int]
    strength: float


def _is_first_of_paragraph(passage: Passage, sentence: Span) -> bool:
    """Return whether a sentence is the first sentence of a paragraph."""
    if not passage.text[: sentence.start].strip():
        return passage.begins_paragraph
    return begins_paragraph(passage.text, sentence.start)


def _is_proper_name(name: str) -> bool:
    """Return whether a name looks proper: a later word has a capital or digit, or the first word is not common."""
    first, *following = name.split()
    return any(word[0].isupper() or word[0].isdigit() for word in following) or first.casefold() not in COMMON_WORDS


def _find_definition(passage: Passage, sentence: Span) -> _Definition | None:
    """Return the definition that a sentence states about its first name ("Ada Lovelace was a ..."), or None."""
    text = passage.text
    if not _IS.search(text, sentence.start, sentence.end):
        return None
    match = _DEFINITION.match(text, sentence.start, sentence.end)
    if not match or _NO_NAME.match(match["name"]):
        return None
    name = match["name"].rstrip()
    article = _ARTICLE.match(name)
    bare = name[article.end() :] if article else name
    if not bare or not (bare[0].isupper() or bare[0].isdigit()) or len(name.split()) > _MAX_NAME_WORDS:
        return None
    key = build_entity_key(name)
    if not key:
        return None
    start = match.start("name")
    strengths = (STRONG, WEAKER) if _is_proper_name(bare) else (WEAKER, WEAKEST)
    mention = Mention(name, start, start + len(name), type="name")
    return _Definition(
        key, mention, match.span("remarks"), strengths[0] if _is_first_of_paragraph(passage, sentence) else strengths[1]
    )


def _find_defined_names(
    text: str, definition: _Definition, mentions: Sequence[tuple[str, Mention]]
) -> Iterator[tuple[str, Mention]]:
    """Yield (entity key, mention) of the name that a sentence defines, and of other names of the same entity.

    The longest name is first. The name in "John Stuart, Lord Bute, is a" continues after the comma.
    """
    _, name, remarks, _ = definition
    longer = [item for item in mentions if item[1].start == name.start and item[1].end > name.end]
    if longer:
        yield max(longer, key=lambda item: item[1].end)
    yield definition.key, name
    yield from _split_alternatives(name)
    yield from _find_remark_names(text, remarks, mentions)


def _split_alternatives(name: Mention) -> Iterator[tuple[str, Mention]]:
    """Yield (entity key, mention) of both names in "Damerjog or Damerdjog"; nothing for a single name."""
    parts = name.name.split(_ALTERNATIVE)
    start = name.start
    for part in parts if len(parts) > 1 else ():
        if part[:1].isupper() and (key := build_entity_key(part)):
            yield key, Mention(part, start, start + len(part), type="name")
        start += len(part) + len(_ALTERNATIVE)


def _find_remark_names(
    text: str, remark_span: tuple[int, int], mentions: Sequence[tuple[str, Mention]]
) -> Iterator[tuple[str, Mention]]:
    """Yield (entity key, mention) of other names in the text after a defined name, such as "(née Byron)".

    Such a name is in parentheses, or after "called" and similar words.
    """
    start, end = remark_span
    inside = {
        mention.start: (key, mention)
        for key, mention in sorted(
            mentions, key=lambda item: item[1].end
        )  # of mentions with the same start, the last one is used
        if start <= mention.start < end and mention.type not in _NEVER_ALIASES
    }
    yield from (inside[cue.end()] for cue in _CALLED.finditer(text, start, end) if cue.end() in inside)
    for name in _IN_PARENTHESES.finditer(text, start, end):
        if name.start(1) in inside and inside[name.start(1)][1].end == name.end(1):
            yield inside[name.start(1)]


def _find_leading_mention(text: str, sentence: Span, mentions: Sequence[tuple[str, Mention]]) -> tuple[str, str]:
    """Return entity key and name of the longest mention at the start of a sentence; empty strings without one.

    An article or quotation mark may precede the mention.
    """
    opening = _OPENING.match(text, sentence.start, sentence.end)
    starts = {sentence.start, opening.end() if opening else sentence.start}
    leading = [(key, mention) for key, mention in mentions if mention.start in starts]
    if not leading:
        return "", ""
    key, mention = max(leading, key=lambda item: item[1].end)
    return key, mention.name
