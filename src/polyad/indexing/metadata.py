"""What may be known of a document beside its text: looked at where documents enter, so that nothing fails later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from polyad.model import METADATA_KEYS, Argument, Document, Failure, MetadataValue
from polyad.text.outside import sanitize, writable

LONGEST = 1000
"""Characters of a string, or of a list of strings together, that are kept."""

_SHOWN = 40
_EXPECTED = "expected a string, a number of 64 bits, true or false, or a list of strings"


def checked(document: Document) -> Document | Failure:
    """The document with what is known of it as it is kept, or a failure that names what cannot be kept.

    Lists become tuples. Strings beyond :data:`LONGEST` characters are cut, and say so at their end. Metadata, title,
    address and the roles of arguments lose what drives a terminal or turns letters around; the text and the values of
    arguments keep all they say.
    """
    given: object = document.metadata
    if not isinstance(given, Mapping):
        return Failure(document.id, f"its metadata is {_shown(given)}; expected a mapping from strings")
    if len(given) > METADATA_KEYS:
        return Failure(document.id, f"its metadata has {len(given):,} keys; expected at most {METADATA_KEYS}")
    url: object = document.url
    if not isinstance(url, str):
        return Failure(document.id, f"its url is {_shown(url)}; expected a string")
    kept: dict[str, MetadataValue] = {}
    for key, value in given.items():
        if not isinstance(key, str):
            return Failure(document.id, f"a key of its metadata is {_shown(key)}; expected a string")
        found = _kept(value)
        if found is None:
            return Failure(document.id, f"its metadata {_shown(key)} is {_shown(value)}; {_EXPECTED}")
        kept[_cut(key)] = found
    clean = replace(
        document,
        title=sanitize(document.title),
        url=sanitize(url),
        arguments=tuple(map(_checked_argument, document.arguments)),
        relation=sanitize(document.relation),
        metadata=kept,
    )
    return document if clean == document else clean


def _checked_argument(argument: Argument) -> Argument:
    names = tuple(map(sanitize, argument.names))
    role, unit = sanitize(argument.role), sanitize(argument.unit)
    return replace(argument, role=role, value=writable(argument.value), unit=unit, names=names)


def _kept(value: object) -> MetadataValue | None:
    """The value as it is kept; None where it cannot be."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, bool | int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
        return _fitting(value)
    return None


def _cut(text: str) -> str:
    text = sanitize(text)
    if len(text) <= LONGEST:
        return text
    note = f" ... (cut; {len(text):,} characters)"
    return text[: LONGEST - len(note)] + note


def _fitting(items: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """As many of the first items as fit, and a last one that counts the others."""
    room, kept = LONGEST, list[str]()
    for item in map(_cut, items):
        room -= len(item) + 1
        if room < 0:
            return (*kept, f"... ({len(items) - len(kept):,} more)")
        kept.append(item)
    return tuple(kept)


def _shown(value: object) -> str:
    """A value for a message, cut short; nothing that it is may fail here."""
    try:
        text = ascii(value)
    except Exception:  # a value's own way to show itself
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
