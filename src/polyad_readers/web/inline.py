"""Finds the signs that replace inline markup in plain text: exponents, formulas, form fields, pictures, furigana."""

from __future__ import annotations

import re

from resiliparse.parse.html import DOMNode, ElementNode

_EXPONENT = re.compile(r"[-+\u2212\u2013\xb1]?[\d(].*|[b-df-np-z](?:[-+\u2212*/].*)?")
"""Raised text that is no ordinal ("1st", "2e", "no") and no mark ("TM")."""

_TOKENS = ("mi", "mn", "mo", "ms", "mtext")
_SCRIPTS = {
    "mfrac": " / ",
    **dict.fromkeys(("msub", "munder"), "_"),
    **dict.fromkeys(("msup", "mover"), "^"),
    **dict.fromkeys(("msubsup", "munderover"), "_^"),
}
"""Signs that are written between the children of a MathML element, by the element's tag: "^" in "x^2"."""

_TEXT_FIELDS = frozenset(
    ["", "date", "datetime-local", "email", "month", "number", "tel", "text", "time", "url", "week"]
)
_TOGGLE = re.compile(
    r"__|toggle|tab[-_sb]|\btab\b|\bnav|menu|drawer|accordion|collaps|spoiler|theme|switch", re.IGNORECASE
)
"""Names of check boxes that are not for readers: their styles show and hide parts of the page."""


def get_opening_sign(tag: str, node: ElementNode) -> str:
    """Return the text to write before the content of an inline element; an empty string for most elements.

    Examples: the exponent in ``10<sup>-3</sup>`` gets ``^``, a check box is ``[x]`` or ``[ ]``, a field its value.
    """
    if tag == "sup":
        return _get_exponent_signs(node)[0]
    if tag in ("img", "input"):
        return node.getattr("alt") or "" if tag == "img" else _format_field(node)
    if tag in ("option", "textarea"):
        return " "
    if tag == "rt":
        return " ("
    if tag == "msqrt" or (tag == "mrow" and _is_group(node)):
        return (_get_script_sign(node) or " ") + ("\u221a(" if tag == "msqrt" else "(")
    if tag.startswith("m") and isinstance(node.parent, ElementNode) and (node.parent.tag or "").startswith("m"):
        is_first = node.prev_element is None and (node.parent.tag == "msqrt" or _is_group(node.parent))
        return _get_script_sign(node) or (" " if tag in _TOKENS and not is_first else "")
    return ""


def get_closing_sign(tag: str, node: ElementNode) -> str:
    """Return the text to write after the content of an inline element; an empty string for most elements."""
    if tag == "sup":
        return _get_exponent_signs(node)[1]
    if tag in ("option", "textarea"):
        return " "
    return ")" if tag in ("rt", "msqrt") or (tag == "mrow" and _is_group(node)) else ""


def is_reading(node: ElementNode) -> bool:
    """Return whether an ``rt`` element shows how ideographs are read, which would split the words of the text."""
    return isinstance(node.parent, ElementNode) and re.search("[\u3400-\u9fff]", get_start(node.parent)[0]) is not None


def get_start(node: ElementNode, max_nodes: int = 12) -> tuple[str, bool]:
    """Return the text in the first nodes of an HTML element, and whether a link is among the nodes.

    The number of nodes is limited, so that elements inside each other do not take quadratic time.
    """
    texts, has_link = [], False
    pending: list[DOMNode | None] = [node.first_child]
    for _ in range(max_nodes):
        while pending and pending[-1] is None:
            pending.pop()
        if not pending or (child := pending.pop()) is None:
            break
        pending += [child.next, child.first_child]
        texts.append(child.value or "" if child.tag == "#text" else "")
        has_link |= child.tag == "a"
    return "".join(texts), has_link


def _get_exponent_signs(node: ElementNode) -> tuple[str, str]:
    """Return the signs around raised text that follows a letter or digit directly: ``^``, or brackets for a link."""
    (text, has_link), preceding = get_start(node, 5), node.prev
    text = text.strip()
    if preceding is None or (preceding.tag == "#text" and not (preceding.value or "")[-1:].strip()):
        return "", ""
    if has_link:
        return ("[", "]") if text.isdigit() else ("", "")
    if not _EXPONENT.fullmatch(text):
        return "", ""
    return ("^", "") if re.fullmatch(r"\W?\w+(?:[.,]\d+)?|\(.*\)", text) else ("^(", ")")


def _get_script_sign(node: ElementNode) -> str:
    """Return the sign before a child of an element of MathML with several parts, such as ``^`` before an exponent."""
    signs, first = _SCRIPTS.get(node.parent.tag or "" if node.parent else "", ""), node.prev_element
    if not signs or first is None:
        return ""
    return signs if len(signs) != 2 else signs[first.prev_element is not None]


def _is_group(node: DOMNode) -> bool:
    """Return whether a row of MathML needs parentheses: it has several elements and is one part of a larger element."""
    if not isinstance(node, ElementNode) or node.parent is None or node.parent.tag not in _SCRIPTS:
        return False
    return node.first_element_child is not node.last_element_child


def _format_field(node: ElementNode) -> str:
    """Return the state of a form field: a box or a value; an empty string for buttons and fields of the page itself."""
    kind = (node.getattr("type") or "").strip().lower()
    if kind in ("checkbox", "radio"):
        names = " ".join(node.getattr(name) or "" for name in ("id", "name", "class"))
        return "" if _TOGGLE.search(names) else " [x] " if node.hasattr("checked") else " [ ] "
    value = node.getattr("value") or ""
    return f" {value} " if kind in _TEXT_FIELDS and value.strip() else ""
