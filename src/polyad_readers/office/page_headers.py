"""Adds the headers and footers of a word processor's document to its text, once and without page numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from polyad.readers.text.plain_text import to_single_line
from polyad_readers.shared.text_builder import TextBuilder

PAGE_MARK = "\ufffc"
"""Character in place of a page number in a header or footer."""

_PAGE_WORDS = "pages?|pp?|pg|seite|página|pagina|sida|side|strona|стр|страница"
_NUMBER = rf"(?:(?:\d{{1,4}}\W?)?{PAGE_MARK}|\d{{1,4}}\b)"
_PAGE_NUMBER = re.compile(
    rf"(?:\b(?:{_PAGE_WORDS})\b\.?\s*{_NUMBER}|第?\s*{PAGE_MARK}\s*[页頁]?)"
    rf"(?:\s*(?:of|von|de|di|van|av|af|sur|z|из|/|\uff0f|-)?\s*{_NUMBER})?",
    re.IGNORECASE,
)
_NO_WORDS = re.compile(r"[\W_]*(?:\d{1,4}[\W_]*)?")


def add_headers(body: TextBuilder, headers: Iterable[str]) -> TextBuilder:
    """Return a text that begins with the lines of headers and footers that the body itself does not contain.

    Args:
        body: The text of the document.
        headers: The text of each header and footer, with :data:`PAGE_MARK` in place of page numbers.
    """
    known_lines = {_normalize(line) for line in re.split(r"[\n\t]", "".join(body.pieces))}
    flow = TextBuilder()
    for line in "\n".join(headers).split("\n"):
        line = _PAGE_NUMBER.sub("", line).strip(" \t|-\u2013\u2014\xb7\u2022")
        if _normalize(line) not in known_lines and not _NO_WORDS.fullmatch(line):
            known_lines.add(_normalize(line))
            flow.write_words(line)
            flow.end_line(2)
    if body.length:
        flow.insert("".join(body.pieces), body.headings)
    return flow


def _normalize(line: str) -> str:
    return to_single_line(line).casefold()
