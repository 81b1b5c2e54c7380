"""Cleans titles and keywords that files state in their properties."""

from __future__ import annotations

import re

from polyad.model import MetadataValue
from polyad.readers.plain_text import single_line

_SEPARATOR = re.compile("[,;\n]")

_LONGEST_TITLE = 300
"""Characters of a title; what is longer is none."""

_MADE_UP = re.compile(
    r"microsoft (?:word|powerpoint|excel) -.*|(?:untitled|unknown|none|title|document|slide|presentation|layout|"
    r"powerpoint presentation|book|print|latex document|untitled document|new document)[ _-]?\d*|[\W\d_]*|"
    r".*\.(?:docx?|pdf|te?xi?|dvi|indd|qxd|rtf|od[tp]|pptx?|xlsx?|html?|md|xml|fm|p65|ps|eps)|\S*[\\_]\S*|/\S*|"
    r"[0-9a-f]{8}-?[0-9a-f-]{8,}",
    re.IGNORECASE,
)
"""Titles that programs fill in by themselves."""


def clean_stated_title(title: str) -> str:
    """Return the stated title on one line; an empty string if a program generated it, such as from the file name.

    >>> [clean_stated_title(title) for title in ("Pump  manual", "Microsoft Word - pump.doc", "Document1")]
    ['Pump manual', '', '']
    """
    title = single_line(title)
    return "" if len(title) > _LONGEST_TITLE or _MADE_UP.fullmatch(title) else title


def listed(keywords: str) -> tuple[str, ...]:
    """Split a text of keywords at commas, semicolons and line breaks.

    >>> listed("pumps, seals; ,valves")
    ('pumps', 'seals', 'valves')
    """
    parts = map(single_line, _SEPARATOR.split(keywords))
    return tuple(dict.fromkeys(part for part in parts if part))


def stated(**values: MetadataValue) -> dict[str, MetadataValue]:
    """Return the values that are not empty."""
    return {key: value for key, value in values.items() if value not in ("", ())}
