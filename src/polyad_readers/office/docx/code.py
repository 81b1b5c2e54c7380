"""Recognises lines of code in Word documents, and restores their indentation."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from polyad_readers.office.docx.package import get_number

_MAX_LINE = 160
"""Characters of the longest line of code without a style for code."""

_TWIPS = 120
"""Width of a monospaced letter of 10 points, in twentieths of a point."""

_SIGNS = re.compile(r"[={}<>;]|\w\(|\)[:;]?\s*$|^\s*(?:[#@$\\/*\"']|[\w ]+:\s*$)|\w\.\w+\(|\w\[\w*\]")
"""Signs that code has and prose mostly has not."""

_SENTENCE_END = re.compile(r"\w\w[.!?]\s*$")


def is_code(text: str, *, is_fixed: bool, is_indented: bool, after_code: bool) -> bool:
    """Return whether a paragraph is a line of code: it has two marks of code, and is not a sentence.

    Args:
        text: The text of the paragraph.
        is_fixed: Whether the text is monospaced.
        is_indented: Whether the paragraph is indented as a whole.
        after_code: Whether the paragraph before is code.
    """
    lines = text.split("\n")
    if max(map(len, lines)) > _MAX_LINE or _SENTENCE_END.search(text):
        return False
    has_spaces = any(line.startswith(("  ", "\t")) for line in lines)
    return [is_fixed, has_spaces or (is_indented and is_fixed), after_code, bool(_SIGNS.search(text))].count(True) > 1


def count_indent(paragraph: Element) -> int:
    """Return the indent of a paragraph in monospaced letters."""
    indent = paragraph.find("w-pPr/w-ind")
    twips = 0 if indent is None else max(get_number(indent, "left"), get_number(indent, "start"))
    return min(twips // _TWIPS, _TWIPS)


def indent_code(paragraph: Element, text: str) -> str:
    """Return lines of code with spaces for the indentation of their paragraph."""
    spaces = " " * count_indent(paragraph)
    return "\n".join(spaces + line.rstrip() for line in text.strip("\n").split("\n"))
