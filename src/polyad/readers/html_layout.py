"""Lays out a parsed page as text: blank lines between paragraphs, a line for each row and item, code unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from resiliparse.parse.html import DOMNode, ElementNode, HTMLTree

from polyad.readers.flow import Flow
from polyad.readers.headings import LONGEST, Heading
from polyad.readers.html_clutter import Clutter, is_main, is_note
from polyad.readers.plain_text import single_line

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "details", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "main", "menu", "ol"),
        *("p", "pre", "section", "summary", "table", "tr", "ul"),
    ]
)
_EMPTY_LINES = re.compile(r"\n{2,}")

_DEEPEST = 8
"""Tables inside one another that are laid out as tables; what is deeper is taken as paragraphs."""

_LONGEST_NAME = 40
"""Characters of a column's name that is put before each of its cells."""

_MAIN_SHARE = 0.25
"""Of a page's text, at least, that must stand in its main content for the rest to be left out."""

_FIRST_COLUMN, _OTHER_COLUMNS = "col-first", frozenset({"col-second", "col-constructor-name", "col-last"})
"""Classes of the cells of Javadoc's tables, which are not marked as tables."""


class Layout(NamedTuple):
    """The text of a page and its headings."""

    text: str
    headings: list[Heading]


def laid_out(tree: HTMLTree, *, is_layout: bool = True) -> Layout:
    """Lay out the text of a page; if only navigation remains, keep it.

    Args:
        tree: What was parsed.
        is_layout: Whether a table may be there for the layout of a page, so that a cell of several lines keeps them.
    """
    if tree.document is None:
        return Layout("", [])
    found = _Page(is_layout).read(tree.document, Clutter(tree).holds)
    if found.text:
        return found
    return _Page(is_layout).read(tree.document, lambda node: node.tag in ("script", "style", "title", "template"))


class _Cell(NamedTuple):
    text: str
    headings: list[Heading]
    is_header: bool


@dataclass(slots=True)
class _Table:
    """State of a table during layout.

    Attributes:
        may_name: Whether its first row may name the columns: no cell takes the place of several.
        names: Of the columns.
        row: The cells of the row that is being read.
        is_first: Whether no row came before.
        is_shown: Whether the names were written, with cells or by themselves.
        is_data: Whether its first row is a header, so that it is not there for the layout of a page.
    """

    may_name: bool
    names: list[str] = field(default_factory=list)
    row: list[_Cell] = field(default_factory=list)
    is_first: bool = True
    is_shown: bool = False
    is_data: bool = False


class _Page:
    """Lays out one page."""

    def __init__(self, is_layout: bool) -> None:
        self._is_layout = is_layout
        self._flows = [Flow()]
        self._tables: list[_Table] = []
        self._counts: list[int | None] = []  # of the items of each list around; None for a list without numbers
        self._notes = self._verbatim = self._deep = 0
        self._heading: tuple[int, int] | None = None  # its length and pieces before
        self._main: list[tuple[int, int]] = []

    def read(self, root: DOMNode, is_clutter: Callable[[ElementNode], bool]) -> Layout:
        """Lay out the children of a node."""
        for node, is_entered in _walk(root, is_clutter):
            if not isinstance(node, ElementNode):
                self._text(node.value or "")
            elif is_entered:
                self._enter(node.tag or "", node)
            else:
                self._leave(node.tag or "", node)
        return self._layout()

    @property
    def _flow(self) -> Flow:
        return self._flows[-1]

    def _text(self, text: str) -> None:
        if self._verbatim:
            self._flow.verbatim(text)
        else:
            self._flow.words(text)

    def _enter(self, tag: str, node: ElementNode) -> None:
        if is_note(node):
            self._notes += 1
        if tag in _HEADINGS:
            self._flow.end_line(2)
            self._heading = self._flow.length, len(self._flow.pieces)
        elif tag in ("li", "dt", "dd"):
            self._enter_item(tag, node)
        elif tag in ("table", "tr", "td", "th"):
            self._enter_table(tag, node)
        elif tag == "br":
            if self._verbatim:
                self._flow.verbatim("\n")
            else:
                self._flow.end_line(min(2, self._flow.gap + 1))
        elif tag == "img":
            self._flow.words(node.getattr("alt") or "")
        elif tag in _BLOCKS:
            self._enter_block(tag, node)

    def _enter_block(self, tag: str, node: ElementNode) -> None:
        if is_main(node) and len(self._flows) == 1:
            self._main.append((self._flow.length, self._flow.length))
        classes = (node.getattr("class") or "").split() if tag == "div" else []
        if _FIRST_COLUMN in classes:
            self._flow.continue_after(1)
        elif not _OTHER_COLUMNS.isdisjoint(classes):
            self._flow.continue_after(0)
            self._flow.space = "\t"
        elif not self._verbatim:
            self._flow.end_line(1 if "line" in classes else 2)
        if tag in ("ul", "ol", "menu"):
            self._counts.append(_number(node.getattr("start"), 1) - 1 if tag == "ol" else None)
        elif tag == "pre":
            self._verbatim += 1

    def _enter_item(self, tag: str, node: ElementNode) -> None:
        before = node.prev_element
        if tag == "li":
            if self._counts and (count := self._counts[-1]) is not None:
                self._counts[-1] = count + 1
                mark = f"{count + 1}. "
            else:
                mark = "• "
            gap = max(1, self._flow.gap) if before is None else 1
            self._flow.continue_after(gap, "  " * max(1, min(len(self._counts), _DEEPEST)) + mark)
        elif before is not None and before.tag == "dt":
            self._flow.continue_after(1)
        else:
            self._flow.end_line(2)

    def _enter_table(self, tag: str, node: ElementNode) -> None:
        if tag == "table":
            if len(self._tables) >= _DEEPEST or self._deep:
                self._deep += 1
            else:
                self._tables.append(_Table(node.query_selector("[colspan],[rowspan]") is None))
        if self._deep or not self._tables or tag == "table":
            self._flow.end_line(2)
        elif tag == "tr":
            self._tables[-1].row = []
        else:
            self._flows.append(Flow())

    def _leave(self, tag: str, node: ElementNode) -> None:
        is_note_ended = self._notes and is_note(node)
        self._notes -= 1 if is_note_ended else 0
        if tag in _HEADINGS:
            self._leave_heading(int(tag[1]))
        elif tag in ("table", "tr", "td", "th"):
            self._leave_table(tag)
        elif tag in _BLOCKS or tag in ("dt", "dd", "li"):
            self._leave_block(tag, node)

    def _leave_block(self, tag: str, node: ElementNode) -> None:
        if tag == "pre":
            self._verbatim -= 1
            self._flow.strip_end()
            self._flow.end_line(2)  # also inside of another one
        elif tag in ("ul", "ol", "menu"):
            self._counts.pop()
        if tag == "li":
            self._flow.mark, self._flow.is_fresh = "", False
        if not self._verbatim:
            if tag == "dd" or (tag == "div" and not self._notes):
                self._flow.is_fresh = False
            is_line = tag in ("dt", "li") or (tag == "div" and "line" in (node.getattr("class") or "").split())
            self._flow.end_line(1 if is_line else 2)
        if self._notes and "title" in (node.getattr("class") or ""):
            self._flow.continue_after(1)
        if self._main and is_main(node) and len(self._flows) == 1:
            self._main[-1] = (self._main[-1][0], self._flow.length)

    def _leave_heading(self, rank: int) -> None:
        flow, opened, self._heading = self._flow, self._heading, None
        if opened is None or flow.length == opened[0]:
            return
        if self._notes:
            flow.continue_after(1)
            return
        written = "".join(flow.pieces[opened[1] :]).lstrip("\n")
        name = single_line(written).removeprefix("• ")
        if len(name) > LONGEST:
            name = single_line(written.partition("\n")[0]).removeprefix("• ")
        start = flow.length - len(written)
        flow.headings.append(Heading(rank, name, start, flow.length))
        flow.end_line(2)

    def _leave_table(self, tag: str) -> None:
        if self._deep or not self._tables:
            self._deep -= tag == "table"
            self._flow.end_line(2)
        elif tag == "table":
            table = self._tables.pop()
            self._show_names(table)
            self._flow.end_line(2)
        elif tag == "tr":
            self._end_row(self._tables[-1])
        else:
            flow = self._flows.pop()
            flow.strip_end()
            self._tables[-1].row.append(_Cell("".join(flow.pieces), flow.headings, tag == "th"))

    def _end_row(self, table: _Table) -> None:
        row, is_first, table.row, table.is_first = table.row, table.is_first, [], False
        if is_first and row and all(cell.is_header for cell in row):
            table.is_data = True
            if table.may_name and len(row) > 1:
                table.names = [single_line(cell.text) for cell in row]
                return
        if table.names and len(row) == len(table.names):
            row = [cell._replace(text=_named(name, cell.text)) for name, cell in zip(table.names, row, strict=True)]
        else:
            self._show_names(table)
        self._write_row([cell for cell in row if cell.text], table.is_data)
        table.is_shown = table.is_shown or bool(table.names)

    def _show_names(self, table: _Table) -> None:
        """Write the column names that no cell has shown."""
        if table.names and not table.is_shown:
            table.is_shown = True
            self._write_row([_Cell(name, [], True) for name in table.names if name], table.is_data)

    def _write_row(self, row: list[_Cell], is_data: bool) -> None:
        if not self._is_layout:
            row = [_Cell(single_line(cell.text), [], cell.is_header) for cell in row]
        if is_data and any("\n" in cell.text for cell in row):
            self._flow.end_line(2)
            self._flow.insert("\n".join(_EMPTY_LINES.sub("\n", cell.text) for cell in row), [])
            self._flow.end_line(2)
        elif any("\n" in cell.text or cell.headings for cell in row):
            for cell in row:
                self._flow.end_line(2)
                self._flow.insert(cell.text, cell.headings)
            self._flow.end_line(2)
        elif row:
            self._flow.end_line(1)
            self._flow.insert("\t".join(cell.text for cell in row), [])
            self._flow.end_line(1)

    def _layout(self) -> Layout:
        flow = self._flows[0]
        text = "".join(flow.pieces)
        start, end = max(self._main, key=lambda span: span[1] - span[0], default=(0, 0))
        if end - start < _MAIN_SHARE * len(text):
            start, end = 0, len(text)
        kept = text[start:end]
        start += len(kept) - len(kept.lstrip("\n"))
        headings = [
            heading._replace(start=heading.start - start, end=heading.end - start)
            for heading in flow.headings
            if start <= heading.start and heading.end <= end
        ]
        return Layout(kept.strip("\n"), headings)


def _walk(root: DOMNode, is_left_out: Callable[[ElementNode], bool]) -> Iterator[tuple[DOMNode, bool]]:
    """Yield every text and element under a node, elements both on entry and on exit."""
    above: list[DOMNode] = []  # not by recursion: pages nest deeper than Python's stack
    node = root.first_child
    while node is not None or above:
        if node is None:
            node = above.pop()
            yield node, False
        elif isinstance(node, ElementNode):
            if not is_left_out(node):
                yield node, True
                above.append(node)
                node = node.first_child
                continue
        elif node.tag == "#text":
            yield node, True
        node = node.next


def _named(name: str, text: str) -> str:
    return f"{name}: {text}" if name and text and len(name) <= _LONGEST_NAME and name != text else text


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch("[0-9]{1,6}", text) else otherwise
