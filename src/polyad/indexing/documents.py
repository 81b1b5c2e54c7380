"""Documents on their way into the index: validation, content hashes, and the cut into passages with titles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import islice, takewhile

from polyad.errors import SettingError
from polyad.model import METADATA_KEYS, Argument, Document, Failure, MetadataValue, Pagination, Passage, Section, Span
from polyad.protocols.components import Splitter
from polyad.text.json_types import is_metadata_number
from polyad.text.languages import LANGUAGE, find_language, parse_language_code
from polyad.text.pictures import MAX_LIST_CHARACTERS, PICTURE_LIST
from polyad.text.sentences import HEADING_SEPARATOR, MAX_HEADINGS, begins_paragraph, join_headings
from polyad.text.validity import VALIDITY_KEYS, parse_interval
from polyad.text.words import collapse_whitespace, replace_surrogates, sanitize, shorten_at_word

MAX_METADATA_CHARACTERS = 1000
"""Longest stored string, and the most characters of a stored list of strings, except that of pictures, together."""

MAX_TITLE_CHARACTERS = 1000
"""Longest title: every passage of a document is stored and embedded with the title."""

_MAX_SHOWN = 40
_EXPECTED = "expected a string, a number of 64 bits, true or false, or a list of strings"

TITLE_FROM = "title_from"
"""Metadata key for the origin of a title that the document does not state, such as its file name."""

CONTINUED = 0.5
"""Subject strength of a section in a passage that does not contain the beginning of the section."""

UNSTATED = 0.0
"""Subject strength of a title that the document does not state."""

HEADING_FORMAT = 2
"""Version of the format of headings in passages. Increment it to index documents with sections again."""

_MAX_BLANK = 16
"""White space that a passage may lack at the beginning of its section and still contain that beginning."""


# Validation


def validate_document(document: Document) -> Document | Failure:
    """Return the document with normalised values, or a :class:`Failure` that names the first invalid value.

    Lists become tuples. Strings longer than :data:`MAX_METADATA_CHARACTERS` are shortened and end with a note. Control
    characters and marks that change the direction of text are removed from metadata, title, URL and roles, but not from
    the text and the values of arguments. The dates ``valid_from`` and ``valid_to`` must be readable. A title that is
    longer than :data:`MAX_TITLE_CHARACTERS` is shortened, and becomes the first paragraph of the text.
    """
    metadata: object = document.metadata
    if not isinstance(metadata, Mapping):
        return Failure(document.id, f"its metadata is {_format_value(metadata)}; expected a mapping from strings")
    if len(metadata) > METADATA_KEYS:
        return Failure(document.id, f"its metadata has {len(metadata):,} keys; expected at most {METADATA_KEYS}")
    url: object = document.url
    if not isinstance(url, str):
        return Failure(document.id, f"its url is {_format_value(url)}; expected a string")
    valid: dict[str, MetadataValue] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            return Failure(document.id, f"a key of its metadata is {_format_value(key)}; expected a string")
        limit = MAX_LIST_CHARACTERS if key == PICTURE_LIST else MAX_METADATA_CHARACTERS
        valid_value = _normalize_metadata_value(value, limit)
        if valid_value is None:
            return Failure(document.id, f"its metadata {_format_value(key)} is {_format_value(value)}; {_EXPECTED}")
        valid[_shorten(key)] = valid_value
    try:
        if not valid.keys().isdisjoint(VALIDITY_KEYS):
            parse_interval(valid)
    except SettingError as error:
        return Failure(document.id, f"its metadata {error}")
    clean = replace(
        document,
        title=sanitize(document.title),
        url=sanitize(url),
        arguments=tuple(map(_sanitize_argument, document.arguments)),
        relation=sanitize(document.relation),
        metadata=valid,
    )
    clean = _limit_title(clean)
    return document if clean == document else clean


def _limit_title(document: Document) -> Document:
    """Return the document with a short title; a title that is too long also becomes the first paragraph of the text."""
    if len(document.title) <= MAX_TITLE_CHARACTERS:
        return document
    paragraph = f"{document.title}\n\n"
    shift = len(paragraph)
    return replace(
        document,
        title=shorten_at_word(document.title, MAX_TITLE_CHARACTERS),
        text=paragraph + document.text,
        places=tuple(replace(item, start=item.start + shift, end=item.end + shift) for item in document.places),
        sections=tuple(replace(item, start=item.start + shift, end=item.end + shift) for item in document.sections),
    )


def _sanitize_argument(argument: Argument) -> Argument:
    names = tuple(map(sanitize, argument.names))
    role, unit = sanitize(argument.role), sanitize(argument.unit)
    return replace(argument, role=role, value=replace_surrogates(argument.value), unit=unit, names=names)


def _normalize_metadata_value(value: object, max_list: int) -> MetadataValue | None:
    """Return a metadata value as one of the valid types, shortened to the length limits; None if invalid.

    Args:
        value: The value.
        max_list: Most characters of a list of strings taken together.
    """
    if isinstance(value, str):
        return _shorten(value)
    if is_metadata_number(value):
        return value
    if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
        return _shorten_list(value, max_list)
    return None


def _shorten(text: str) -> str:
    text = sanitize(text)
    if len(text) <= MAX_METADATA_CHARACTERS:
        return text
    note = f" ... (cut; {len(text):,} characters)"
    return text[: MAX_METADATA_CHARACTERS - len(note)] + note


def _shorten_list(items: tuple[str, ...] | list[str], limit: int) -> tuple[str, ...]:
    """Return the first strings of a list that fit the length limit, then a note such as "... (12 more)"."""
    remaining, shortened = limit, list[str]()
    for item in map(_shorten, items):
        remaining -= len(item) + 1
        if remaining < 0:
            return (*shortened, f"... ({len(items) - len(shortened):,} more)")
        shortened.append(item)
    return tuple(shortened)


def _format_value(value: object) -> str:
    """Return the ASCII ``repr`` of a value, shortened for an error message, even if the value's own ``repr`` raises."""
    try:
        text = ascii(value)
    except Exception:  # the value's own __repr__
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def add_language(document: Document) -> Document:
    """Return the document with the code of its language in the metadata.

    The language is stated by the metadata, or detected. Any other value there, such as ``German``, is not changed. A
    document that is one fact has no language: its text joins values.
    """
    metadata = document.metadata
    stated = metadata.get(LANGUAGE)
    is_free = stated is None or parse_language_code(stated)
    if document.arguments or not is_free or (stated is None and len(metadata) == METADATA_KEYS):
        return document
    language = find_language(document.text, stated if stated is not None else metadata.get("lang"))
    return replace(document, metadata={**metadata, LANGUAGE: language}) if language else document


# Content hashes


def hash_document(document: Document, method: str) -> str:
    """Return a SHA-256 digest of a document and of ``method`` (splitter and builder), to detect changes.

    The time when the file was last written is left out: a file that was only touched is unchanged.

    Args:
        document: The document; its source without the line of a record.
        method: Names of splitter and builder with their settings.

    Raises:
        UnicodeEncodeError: a text contains half of a surrogate pair.
    """
    metadata = {key: value for key, value in document.metadata.items() if key != "modified"}
    context: dict[str, object] = {"url": document.url, "metadata": metadata, "places": [*map(astuple, document.places)]}
    if document.sections:
        context["headings"] = HEADING_FORMAT
    return _hash_texts(
        method, document.id, document.source, *_list_content(document), json.dumps(context, sort_keys=True)
    )


def hash_content(document: Document) -> str:
    """Return a SHA-256 digest of a document's title, text, arguments and sections; equal digests mark duplicates."""
    return _hash_texts(*_list_content(document))


def hash_passage(passage: Passage, method: str) -> str:
    """Return the SHA-256 digest of a passage and of ``method``, the names of splitter and builder.

    Passages with equal digests have equal hyperedges.
    """
    return _hash_texts(method, *_list_content(passage), str(passage.begins_paragraph))


def _list_content(item: Document | Passage) -> list[str]:
    """Return the title, text, arguments and sections of a document or passage as strings to be hashed."""
    arguments = [item.relation]
    for each in item.arguments:
        arguments += each.role, each.value, each.type, each.unit, json.dumps(each.names)
    sections = (
        str(part) for section in item.sections for part in (section.name, section.start, section.end, section.strength)
    )
    return [item.title, item.text, *(arguments if item.arguments else ()), *sections]


def _hash_texts(*parts: str) -> str:
    """Return one SHA-256 digest of several strings; ``("ab",)`` and ``("a", "b")`` have different digests."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


# Passages


def split_document(document: Document, splitter: Splitter) -> list[Passage]:
    """Return the passages of a document, divided by ``splitter``.

    A document with arguments states one fact and becomes a single passage.
    """
    if document.arguments:
        spans = [Span(0, len(document.text))]
    else:
        spans = splitter.passages(document.text, [section.start for section in document.sections])
    passages, pagination = [], Pagination(document.places)
    parts = zip(spans, find_sections(document, spans), find_headings(document, spans), strict=True)
    for position, (span, sections, heading) in enumerate(parts):
        text = span.of(document.text)
        location = pagination.find(span.start)
        passages.append(
            Passage(
                f"{document.id}#{position:04}",  # up to 10,000 ids sort by position
                document.id,
                build_title(sections, len(text)),
                text,
                span.start,
                span.end,
                location.page,
                heading,
                location.sheet,
                location.slide,
                document.arguments,
                sections,
                begins_paragraph(document.text, span.start),
                document.relation,
            )
        )
    return passages


def find_sections(document: Document, spans: Sequence[Span]) -> Iterator[tuple[Section, ...]]:
    """Yield for each passage span a tuple of the document's sections that overlap the passage, outermost first.

    The offsets of these sections are relative to the passage's text.

    The document's title is one of the sections. A title that is also a heading applies only below that heading and to
    text without a heading. A section that continues from an earlier passage has lower strength, because the title of a
    manual applies to hundreds of passages and should lead to the beginning. A title that the document does not state,
    such as its file name, is shown and embedded with the passage, but is not the passage's subject.

    Args:
        document: The document; empty sections are ignored.
        spans: The spans of its passages, ordered by start.
    """
    sections = [section for section in document.sections if section.start < section.end]
    upcoming = sorted(sections, key=lambda section: (section.start, -section.end))[::-1]
    headings = {section.name for section in upcoming}
    strength = UNSTATED if TITLE_FROM in document.metadata else 1.0
    title = Section(document.title, 0, len(document.text), strength)
    near: list[Section] = []
    for span in spans:
        while upcoming and upcoming[-1].start < span.end:
            near.append(upcoming.pop())
        near = [section for section in near if section.end > span.start]
        inside = [_clip_section(section, span, document.text) for section in near]
        if document.title and not (document.title in headings and _list_covering_names(inside, span.end - span.start)):
            inside.insert(0, _clip_section(title, span, document.text))
        yield tuple(inside)


def _clip_section(section: Section, span: Span, text: str) -> Section:
    """Return the part of a section that lies in the passage at ``span``, with offsets relative to the passage.

    ``text`` is the text of the whole document.
    """
    start, end = max(section.start, span.start), min(section.end, span.end)
    is_continued = start - section.start > _MAX_BLANK or text[section.start : start].strip()
    strength = section.strength * (CONTINUED if is_continued else 1.0)
    return Section(collapse_whitespace(section.name), start - span.start, end - span.start, strength)


def build_title(sections: Sequence[Section], length: int) -> str:
    """Return the title of a passage of ``length`` characters: names of all sections that contain the whole passage.

    The names are joined, outermost section first. ``sections`` are the sections of the passage.
    """
    return HEADING_SEPARATOR.join(dict.fromkeys(_list_covering_names(sections, length)))


def _list_covering_names(sections: Sequence[Section], length: int) -> list[str]:
    return [section.name for section in sections if section.start == 0 and section.end == length]


def find_headings(document: Document, spans: Sequence[Span]) -> Iterator[str]:
    """Yield for each passage span one line of text with the headings above and inside the passage, or "".

    Args:
        document: The document with its sections.
        spans: The spans of its passages, ordered by start.
    """
    upcoming = sorted(document.sections, key=lambda section: (section.start, -section.end))[::-1]
    above: list[Section] = []
    for span in spans:
        while upcoming and upcoming[-1].start <= span.start:
            above.append(upcoming.pop())
        above = [section for section in above if section.end > span.start]
        yield join_headings(_list_heading_paths(above, reversed(upcoming), span))


def _list_heading_paths(
    enclosing: Sequence[Section], later: Iterable[Section], passage_span: Span
) -> Iterator[Iterable[str]]:
    """Yield the headings, outermost first, at the start of a passage and of each section that begins in it.

    Args:
        enclosing: The sections that contain the beginning of the passage.
        later: The later sections, in order.
        passage_span: The span of the passage.
    """
    yield _list_names(enclosing)
    for section in islice(takewhile(lambda section: section.start < passage_span.end, later), MAX_HEADINGS + 1):
        enclosing = [*(outer for outer in enclosing if outer.end > section.start), section]
        yield _list_names(enclosing)


def _list_names(sections: Iterable[Section]) -> Iterable[str]:
    return dict.fromkeys(collapse_whitespace(section.name) for section in sections)
