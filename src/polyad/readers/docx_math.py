"""Writes the equations of a Word document (OMML) in one line, as a calculator would read them: ``(a+b)/(2·c)``."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from polyad.readers.docx_package import get_value
from polyad.readers.mathml import group

_SKIPPED = frozenset({"m-ctrlPr", "m-rPr", "w-rPr", "w-del", "w-moveFrom"})


def format_math(element: Element) -> str:
    """Return the text of an equation, or of a part of an equation, in one line."""
    name = element.tag.removeprefix("m-")
    if name == "t" or element.tag == "w-t":
        return element.text or ""
    if name == "oMathPara":
        return "\n".join(map(format_math, element.iterfind("m-oMath")))
    if name in _FORMATS:
        return _FORMATS[name](element)
    return "".join(
        format_math(child) for child in element if child.tag not in _SKIPPED and not child.tag.endswith("Pr")
    )


def _get_part(element: Element, name: str) -> str:
    part = element.find(f"m-{name}")
    return "" if part is None else format_math(part).strip()


def _get_property(element: Element, path: str, default: str) -> str:
    """Return a character among the properties of an element; ``default`` if the file does not state it."""
    value = element.find(f"{element.tag}Pr/m-{path}")
    return default if value is None else get_value(value)


def _format_scripts(element: Element, base: str) -> str:
    sub, sup = _get_part(element, "sub"), _get_part(element, "sup")
    return base + (f"_{group(sub)}" if sub else "") + (f"^{group(sup)}" if sup else "")


def _format_fraction(element: Element) -> str:
    return f"{group(_get_part(element, 'num'))}/{group(_get_part(element, 'den'))}"


def _format_root(element: Element) -> str:
    degree = _get_part(element, "deg")
    return f"√{f'[{degree}]' if degree else ''}({_get_part(element, 'e')})"


def _format_sum(element: Element) -> str:
    return f"{_format_scripts(element, _get_property(element, 'chr', '∫'))} {_get_part(element, 'e')}"


def _format_brackets(element: Element) -> str:
    begin, end = _get_property(element, "begChr", "("), _get_property(element, "endChr", ")")
    return begin + _get_property(element, "sepChr", "|").join(map(format_math, element.iterfind("m-e"))) + end


def _format_matrix(element: Element) -> str:
    rows = (", ".join(map(format_math, row.iterfind("m-e"))) for row in element.iterfind("m-mr"))
    return f"[{'; '.join(rows)}]"


_FORMATS: dict[str, Callable[[Element], str]] = {
    "f": _format_fraction,
    "rad": _format_root,
    "nary": _format_sum,
    "d": _format_brackets,
    "m": _format_matrix,
    "sSub": lambda element: _format_scripts(element, _get_part(element, "e")),
    "sSup": lambda element: _format_scripts(element, _get_part(element, "e")),
    "sSubSup": lambda element: _format_scripts(element, _get_part(element, "e")),
    "sPre": lambda element: f"{_format_scripts(element, '')}{_get_part(element, 'e')}",
    "func": lambda element: f"{_get_part(element, 'fName')} {_get_part(element, 'e')}",
    "limLow": lambda element: f"{_get_part(element, 'e')}_{group(_get_part(element, 'lim'))}",
    "limUpp": lambda element: f"{_get_part(element, 'e')}^{group(_get_part(element, 'lim'))}",
    "eqArr": lambda element: "; ".join(map(format_math, element.iterfind("m-e"))),
    "acc": lambda element: _get_part(element, "e") + _get_property(element, "chr", "\u0302"),
}
