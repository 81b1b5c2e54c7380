"""HTML through Resiliparse, which lays text out in lines and loses none of it to guesses about what matters."""

from __future__ import annotations

import re
from collections.abc import Callable

from polyad.adapters.reading.headings import Heading, sections_of
from polyad.adapters.reading.plain_text import Content, clean, encoding_of, require_text, single_line
from polyad.errors import MissingExtraError

try:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import DOMNode, HTMLTree
except ImportError as error:
    raise MissingExtraError("resiliparse", "documents") from error

_DECLARED = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARED_WITHIN = 4096
"""Bytes in which a page declares its encoding; the standard asks for 1,024."""

_CELLS = ("td", "th")

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MARK = "\ue0f0{}\ue0f1"
"""Put before a heading, with its rank in it, to find it in the text: characters that no page shows."""
_MARKED = re.compile("\ue0f0([1-6])\ue0f1")


def read_html(data: bytes) -> Content:
    """What a page shows, without scripts, styles and ``<nav>``; the title is its ``<title>``, else its first ``<h1>``.

    Raises:
        ReadError: It is not text.
    """
    return from_markup(_decode(data))


def from_markup(markup: str, *, is_layout: bool = True) -> Content:
    """The same for HTML that is already decoded.

    A row of a table is a line, its cells apart by tabs.

    Args:
        markup: HTML.
        is_layout: Whether a table may be there for the layout of a page, so that a cell of several lines keeps them.
    """
    tree = HTMLTree.parse(markup)
    title = single_line(tree.title or _first_heading(tree))
    _join_lines(tree, _is_lone_paragraph_of_cell if is_layout else _is_break_in_cell)
    _mark_headings(tree)
    text, headings = _without_marks(clean(extract_plain_text(tree, skip_elements=["nav"])))
    if not text.strip():
        text, headings = _without_marks(clean(extract_plain_text(tree)))
    return Content(title, text, sections_of(headings, text))


def _join_lines(tree: HTMLTree, is_joined: Callable[[DOMNode], bool]) -> None:
    """Put the contents of paragraphs and breaks in their place, with a blank before what comes next."""
    # Not by a selector: each step through what it finds searches the page again.
    for node in [node for node in tree.document or () if is_joined(node)]:
        if (parent := node.parent) is None:
            continue
        for child in list(node.child_nodes):
            parent.insert_before(child, node)
        blank = tree.create_text_node(" ")
        if node.next and blank:
            parent.insert_before(blank, node)
        node.decompose()


def _is_lone_paragraph_of_cell(node: DOMNode) -> bool:
    """Whether it is a paragraph and the only element of its cell."""
    is_in_cell = node.tag == "p" and node.parent is not None and node.parent.tag in _CELLS
    return is_in_cell and node.prev_element is None and node.next_element is None


def _is_break_in_cell(node: DOMNode) -> bool:
    """Whether it is a paragraph or a break, anywhere in a cell."""
    if node.tag not in ("p", "br"):
        return False
    above = node.parent
    while above is not None and above.tag not in _CELLS:
        above = above.parent
    return above is not None


def _mark_headings(tree: HTMLTree) -> None:
    ranked = [(node, _HEADINGS.index(node.tag) + 1) for node in tree.document or () if node.tag in _HEADINGS]
    for node, rank in ranked:
        if node.first_child and (mark := tree.create_text_node(_MARK.format(rank))):
            node.insert_before(mark, node.first_child)


def _without_marks(marked: str) -> tuple[str, list[Heading]]:
    """The text, and the headings in it that begin a line or an item of a list."""
    first, *rest = _MARKED.split(marked)
    pieces, length = [first], len(first)
    headings = []
    for rank, following in zip(rest[::2], rest[1::2], strict=True):
        before = pieces[-1].rpartition("\n")[2]
        if not before.strip(" •"):
            following = following.lstrip(" ")
            line = following.partition("\n")[0]
            headings.append(Heading(int(rank), single_line(line), length - len(before), length + len(line)))
        pieces.append(following)
        length += len(following)
    return "".join(pieces), headings


def _first_heading(tree: HTMLTree) -> str:
    heading = tree.document.query_selector("h1") if tree.document else None
    return str(heading.text) if heading else ""


def _decode(data: bytes) -> str:
    """A mark or sound UTF-8 beats what the page declares; that beats a guess."""
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    if declared:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
        try:
            return data.decode(declared[1].decode("ascii"), errors="replace")
        except LookupError:
            pass
    text = data.decode(encoding_of(data), errors="replace")
    require_text(text)
    return text
