"""Writes MathML formulas in one line: ``(a+b)/c``."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from polyad.readers.text.plain_text import to_single_line

_SIMPLE = re.compile(r"[\w\u0300-\u036f∞]*|[\d.,]+|\([^()]*\)")
_SKIPPED = frozenset({"annotation", "annotation-xml", "none", "mprescripts"})
_PATTERNS = {
    "mfrac": "{}/{}",
    "msub": "{}_{}",
    "msup": "{}^{}",
    "msubsup": "{}_{}^{}",
    "munder": "{}_{}",
    "mover": "{}^{}",
    "munderover": "{}_{}^{}",
    "mroot": "{}^(1/{})",
}
"""How the parts of an element are joined, by the name of the element."""


def group(text: str) -> str:
    """Return a part of a formula in parentheses unless the part is one number or name, or has parentheses."""
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def format_mathml(element: Element) -> str:
    """Return the text of a formula, or of a part of a formula, in one line."""
    name = element.tag.rpartition("}")[2]
    parts = [format_mathml(child) for child in element if child.tag.rpartition("}")[2] not in _SKIPPED]
    pattern = _PATTERNS.get(name, "")
    if pattern.count("{}") == len(parts) > 0:
        return pattern.format(*map(group, parts))
    text = to_single_line(element.text or "")
    for part in parts:
        is_word = (len(part) > 1 and part.isalpha()) or (text[-2:].isalpha() and len(text) > 1)
        text += f" {part}" if is_word and text[-1:].isalpha() and part[:1].isalpha() else part
    if name == "msqrt":
        return f"√({text})"
    return f" {text}" if name == "mtr" else text
