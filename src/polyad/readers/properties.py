"""Cleans titles and keywords that files state in their properties."""

from __future__ import annotations

import re

from polyad.model import MetadataValue
from polyad.readers.plain_text import to_single_line

_SEPARATOR = re.compile("[,;\n]")

_LONGEST_TITLE = 300
"""Characters of the longest title; longer texts are descriptions."""

_GENERATED_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel) -.*|(?:untitled|unknown|none|title|document|slide|presentation|layout|"
    r"powerpoint presentation|book|print|latex document|untitled document|new document)[ _-]?\d*|[\W\d_]*|"
    r".*\.(?:docx?|pdf|te?xi?|dvi|indd|qxd|rtf|od[tp]|pptx?|xlsx?|html?|md|xml|fm|p65|ps|eps)|\S*[\\_]\S*|/\S*|"
    r"[0-9a-f]{8}-?[0-9a-f-]{8,}",
    re.IGNORECASE,
)
"""Titles that programs generate: names of files, placeholders and identifiers."""


def clean_stated_title(title: str) -> str:
    """Return a title property on one line; an empty string if a program generated the title.

    >>> [clean_stated_title(title) for title in ("Pump  manual", "Microsoft Word - pump.doc", "Document1")]
    ['Pump manual', '', '']
    """
    title = to_single_line(title)
    return "" if len(title) > _LONGEST_TITLE or _GENERATED_TITLE.fullmatch(title) else title


def split_keywords(keywords: str) -> tuple[str, ...]:
    """Split a text at commas, semicolons and line breaks into distinct keywords.

    >>> split_keywords("pumps, seals; ,valves")
    ('pumps', 'seals', 'valves')
    """
    parts = map(to_single_line, _SEPARATOR.split(keywords))
    return tuple(dict.fromkeys(part for part in parts if part))


def drop_empty(**values: MetadataValue) -> dict[str, MetadataValue]:
    """Return the values that are neither an empty string nor an empty tuple, by name."""
    return {key: value for key, value in values.items() if value not in ("", ())}
