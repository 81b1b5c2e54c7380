"""Puts properties of a file, such as the author, before the text, so that searches for a property find the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyad.readers.format import Content
from polyad.readers.text.plain_text import to_single_line
from polyad.readers.text.titles import clean_stated_title
from polyad.text.words import collapse_whitespace, shorten_at_word

_LONGEST_LINE = 500
"""Characters of a property that precedes a text; a longer one is a list of recipients."""

_BEGINNING = 3000
"""Characters at the beginning of a text in which its author is looked for."""

_NO_AUTHOR = ("", "admin", "administrator", "anonymous", "author", "openpyxl", "python-docx", "root", "unknown", "user")
"""Authors that programs write."""


def prepend_properties(content: Content) -> Content:
    """Return the content with title and author from the metadata as first lines, unless the text begins with these."""
    beginning = collapse_whitespace(f"{content.title}\n{content.text[:_BEGINNING]}").casefold()
    properties = {key.lower(): value for key, value in content.metadata.items()}
    lines = {name: _join_missing_values(properties.get(name.lower()), beginning) for name in ("Title", "Author")}
    title = clean_stated_title(lines["Title"])
    author = "" if lines["Author"].casefold() in _NO_AUTHOR else lines["Author"]
    return prepend_lines(content, [("Title", title), ("Author", author)])


def _join_missing_values(value: object, beginning: str) -> str:
    """Return the strings of a metadata value that are missing in the text ``beginning``, joined by commas."""
    values = [value] if isinstance(value, str) else value if isinstance(value, tuple) else ()
    return ", ".join(line for line in map(to_single_line, values) if line.casefold() not in beginning)


def prepend_lines(content: Content, lines: Sequence[tuple[str, str]]) -> Content:
    r"""Return the content with a line ``name: value`` before its text for each pair, so that searches find the values.

    The section and the page at the beginning of the text include the lines; empty values are omitted.

    >>> from polyad.model import Section
    >>> content = Content("Pumps", "They are old.", (Section("Pumps", 0, 13),))
    >>> prepend_lines(content, [("Author", "Ines Moreau")]).sections
    (Section(name='Pumps', start=0, end=34, strength=1.0),)
    """
    header = "\n".join(f"{name}: {shorten_at_word(value, _LONGEST_LINE)}" for name, value in lines if value)
    if not header or not content.text.strip():
        return content
    offset = len(header) + 2

    def move(start: int) -> int:
        return start + offset if start else 0

    return replace(
        content,
        text=f"{header}\n\n{content.text}",
        sections=tuple(replace(item, start=move(item.start), end=item.end + offset) for item in content.sections),
        places=tuple(replace(item, start=move(item.start), end=item.end + offset) for item in content.places),
    )
