"""Writes the equations of a Word document (OMML) in one line, as a calculator would read them: ``(a+b)/(2·c)``."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from polyad_readers.office.docx.package import get_value
from polyad_readers.office.mathml import group

_PATTERNS = {
    "m-f": ("", "num", "/", "den"),
    "m-rad": ("√", "e", "^1/", "deg"),
    "m-nary": ("", "chr", "_", "sub", "^", "sup", " ", "e"),
    "m-sSub": ("", "e", "_", "sub"),
    "m-sSup": ("", "e", "^", "sup"),
    "m-sSubSup": ("", "e", "_", "sub", "^", "sup"),
    "m-sPre": ("_", "sub", "^", "sup", "", "e"),
    "m-limLow": ("", "e", "_", "lim"),
    "m-limUpp": ("", "e", "^", "lim"),
    "m-func": ("", "fName", " ", "e"),
    "m-acc": ("", "e", "", "chr"),
}
"""The parts of an element, each with the sign that precedes the part, by the name of the element."""

_SEPARATORS = {"m-eqArr": "; ", "m-m": "; ", "m-mr": ", ", "m-oMathPara": "\n"}
_CHARACTERS = {"m-nary": "∫", "m-acc": "\u0302"}
"""The character of an element that states none."""


def format_math(element: Element) -> str:
    """Return the text of an equation, or of a part of an equation, in one line."""
    if element.tag in ("m-t", "w-t"):
        return element.text or ""
    if pattern := _PATTERNS.get(element.tag):
        return "".join(_format_part(element, *pair) for pair in zip(pattern[::2], pattern[1::2], strict=True))
    separator = _SEPARATORS.get(element.tag, "")
    if element.tag == "m-d":
        separator = _get_character(element, "sepChr", "|")
    parts = [format_math(child) for child in element if not child.tag.endswith("Pr") and child.tag != "w-del"]
    text = separator.join(parts)
    if element.tag == "m-d":
        return _get_character(element, "begChr", "(") + text + _get_character(element, "endChr", ")")
    return f"[{text}]" if element.tag == "m-m" else text


def _format_part(element: Element, sign: str, name: str) -> str:
    """Return a part of an element after its sign; an empty string if the part is missing or blank."""
    if name == "chr":
        return sign + _get_character(element, "chr", _CHARACTERS[element.tag])
    part = element.find(f"m-{name}")
    text = "" if part is None else format_math(part).strip()
    is_whole = sign == " " or name in ("fName", "chr") or (sign == "" and name == "e" and element.tag == "m-sPre")
    return sign + (text if is_whole else group(text)) if text else ""


def _get_character(element: Element, name: str, default: str) -> str:
    value = element.find(f"{element.tag}Pr/m-{name}")
    return default if value is None else get_value(value)
