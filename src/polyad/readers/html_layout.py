"""Lays out a parsed page as text: blank lines between paragraphs, a line for each row and item, code in fences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from resiliparse.parse.html import DOMNode, ElementNode, HTMLTree

from polyad.readers.headings import MAX_HEADING, Heading
from polyad.readers.html_clutter import ClutterDetector, is_main, is_note
from polyad.readers.plain_text import to_single_line
from polyad.readers.text_builder import TextBuilder

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "details", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "main", "menu", "ol"),
        *("p", "pre", "section", "summary", "table", "tr", "ul"),
    ]
)
_BLANK_LINES = re.compile(r"\n{2,}")

_MAX_DEPTH = 8
"""Nesting depth up to which tables are laid out as tables; deeper tables become paragraphs."""

_MAX_COLUMN_NAME = 40
"""Characters of the longest column name that precedes each cell of its column."""

_MAIN_SHARE = 0.25
"""Least share of a page's text in its main content for which the other text is omitted."""

_FIRST_COLUMN, _OTHER_COLUMNS = "col-first", frozenset({"col-second", "col-constructor-name", "col-last"})
"""Classes of the cells in Javadoc's tables, which are ``<div>`` elements."""


class Layout(NamedTuple):
    """The plain text of an HTML page and its headings."""

    text: str
    headings: list[Heading]


def lay_out_page(tree: HTMLTree, *, is_layout: bool = True) -> Layout:
    """Return text and headings of an HTML page, without navigation unless the page has no other text.

    Args:
        tree: The parsed page.
        is_layout: Whether a table may serve the layout of the page, so that a cell of several lines keeps its lines.
    """
    if tree.document is None:
        return Layout("", [])
    layout = _Page(is_layout).read(tree.document, ClutterDetector(tree).is_clutter)
    if layout.text:
        return layout
    return _Page(is_layout).read(tree.document, lambda node: node.tag in ("script", "style", "title", "template"))


_FENCE = "```"
"""Line before and after a Markdown code block."""


class _Cell(NamedTuple):
    """The text and headings of one cell of an HTML table."""

    text: str
    headings: list[Heading]
    is_header: bool


@dataclass(slots=True)
class _Table:
    """The state of an HTML table during its conversion to text, such as its column names.

    Attributes:
        may_name: Whether the first row may name the columns: no cell spans several rows or columns.
        names: Names of the columns.
        row: Cells of the current row.
        is_first: Whether the current row is the first.
        are_names_written: Whether the column names were written, with cells or on a line of their own.
        is_data: Whether the first row is a header, so that the table does not serve the layout of the page.
    """

    may_name: bool
    names: list[str] = field(default_factory=list)
    row: list[_Cell] = field(default_factory=list)
    is_first: bool = True
    are_names_written: bool = False
    is_data: bool = False


class _Page:
    """Converts the nodes of one HTML page to text."""

    def __init__(self, is_layout: bool) -> None:
        self._is_layout = is_layout
        self._flows = [TextBuilder()]
        self._tables: list[_Table] = []
        self._item_counts: list[int | None] = []  # number of items of each open list; None for a list without numbers
        self._note_depth = self._verbatim_depth = self._flattened_tables = 0
        self._heading_start: tuple[int, int] | None = None  # length and number of pieces before the open heading
        self._main_spans: list[tuple[int, int]] = []

    def read(self, root: DOMNode, is_clutter: Callable[[ElementNode], bool]) -> Layout:
        """Return text and headings of an HTML element, without child elements for which ``is_clutter`` is true."""
        for node, is_entered in _walk_nodes(root, is_clutter):
            if not isinstance(node, ElementNode):
                self._add_text(node.value or "")
            elif is_entered:
                self._enter(node.tag or "", node)
            else:
                self._leave(node.tag or "", node)
        return self._layout()

    @property
    def _flow(self) -> TextBuilder:
        return self._flows[-1]

    def _add_text(self, text: str) -> None:
        if self._verbatim_depth:
            self._flow.write_verbatim(text)
        else:
            self._flow.write_words(text)

    def _enter(self, tag: str, node: ElementNode) -> None:
        if is_note(node):
            self._note_depth += 1
        if tag in _HEADINGS:
            self._flow.end_line(2)
            self._heading_start = self._flow.length, len(self._flow.pieces)
        elif tag in ("li", "dt", "dd"):
            self._enter_item(tag, node)
        elif tag in ("table", "tr", "td", "th"):
            self._enter_table(tag, node)
        elif tag == "br":
            if self._verbatim_depth:
                self._flow.write_verbatim("\n")
            else:
                self._flow.end_line(min(2, self._flow.gap + 1))
        elif tag == "img":
            self._flow.write_words(node.getattr("alt") or "")
        elif tag in _BLOCKS:
            self._enter_block(tag, node)

    def _enter_block(self, tag: str, node: ElementNode) -> None:
        if is_main(node) and len(self._flows) == 1:
            self._main_spans.append((self._flow.length, self._flow.length))
        classes = (node.getattr("class") or "").split() if tag == "div" else []
        if _FIRST_COLUMN in classes:
            self._flow.continue_after(1)
        elif not _OTHER_COLUMNS.isdisjoint(classes):
            self._flow.continue_after(0)
            self._flow.space = "\t"
        elif not self._verbatim_depth:
            self._flow.end_line(1 if "line" in classes else 2)
        if tag in ("ul", "ol", "menu"):
            self._item_counts.append(_parse_number(node.getattr("start"), 1) - 1 if tag == "ol" else None)
        elif tag == "pre":
            self._verbatim_depth += 1
            if self._verbatim_depth == 1:
                self._flows.append(TextBuilder())

    def _enter_item(self, tag: str, node: ElementNode) -> None:
        preceding = node.prev_element
        if tag == "li":
            if self._item_counts and (count := self._item_counts[-1]) is not None:
                self._item_counts[-1] = count + 1
                mark = f"{count + 1}. "
            else:
                mark = "• "
            gap = max(1, self._flow.gap) if preceding is None else 1
            self._flow.continue_after(gap, "  " * max(1, min(len(self._item_counts), _MAX_DEPTH)) + mark)
        elif preceding is not None and preceding.tag == "dt":
            self._flow.continue_after(1)
        else:
            self._flow.end_line(2)

    def _enter_table(self, tag: str, node: ElementNode) -> None:
        if tag == "table":
            if len(self._tables) >= _MAX_DEPTH or self._flattened_tables:
                self._flattened_tables += 1
            else:
                self._tables.append(_Table(node.query_selector("[colspan],[rowspan]") is None))
        if self._flattened_tables or not self._tables or tag == "table":
            self._flow.end_line(2)
        elif tag == "tr":
            self._tables[-1].row = []
        else:
            self._flows.append(TextBuilder())

    def _leave(self, tag: str, node: ElementNode) -> None:
        is_note_ended = self._note_depth and is_note(node)
        self._note_depth -= 1 if is_note_ended else 0
        if tag in _HEADINGS:
            self._leave_heading(int(tag[1]))
        elif tag in ("table", "tr", "td", "th"):
            self._leave_table(tag)
        elif tag in _BLOCKS or tag in ("dt", "dd", "li"):
            self._leave_block(tag, node)

    def _leave_block(self, tag: str, node: ElementNode) -> None:
        if tag == "pre":
            self._verbatim_depth -= 1
            self._flow.strip_end()
            if not self._verbatim_depth:
                self._write_code(self._flows.pop())
            self._flow.end_line(2)  # also after a <pre> inside another <pre>
        elif tag in ("ul", "ol", "menu"):
            self._item_counts.pop()
        if tag == "li":
            self._flow.bullet, self._flow.is_continued = "", False
        if not self._verbatim_depth:
            if tag == "dd" or (tag == "div" and not self._note_depth):
                self._flow.is_continued = False
            is_line = tag in ("dt", "li") or (tag == "div" and "line" in (node.getattr("class") or "").split())
            self._flow.end_line(1 if is_line else 2)
        if self._note_depth and "title" in (node.getattr("class") or ""):
            self._flow.continue_after(1)
        if self._main_spans and is_main(node) and len(self._flows) == 1:
            self._main_spans[-1] = (self._main_spans[-1][0], self._flow.length)

    def _write_code(self, code: TextBuilder) -> None:
        """Write the content of a ``pre`` element as a Markdown code block, except in table cells and after a bullet."""
        flow = self._flow
        begins_line = (flow.gap or not flow.length) and not flow.bullet
        if not code.length:
            return
        if begins_line and len(self._flows) == 1 and not code.headings and _FENCE not in (text := "".join(code.pieces)):
            flow.insert(f"{_FENCE}\n{text}\n{_FENCE}", [])
        else:
            flow.insert("".join(code.pieces), code.headings)

    def _leave_heading(self, rank: int) -> None:
        flow, heading_start, self._heading_start = self._flow, self._heading_start, None
        if heading_start is None or flow.length == heading_start[0]:
            return
        if self._note_depth:
            flow.continue_after(1)
            return
        heading_text = "".join(flow.pieces[heading_start[1] :]).lstrip("\n")
        name = to_single_line(heading_text).removeprefix("• ")
        if len(name) > MAX_HEADING:
            name = to_single_line(heading_text.partition("\n")[0]).removeprefix("• ")
        start = flow.length - len(heading_text)
        flow.headings.append(Heading(rank, name, start, flow.length))
        flow.end_line(2)

    def _leave_table(self, tag: str) -> None:
        if self._flattened_tables or not self._tables:
            self._flattened_tables -= tag == "table"
            self._flow.end_line(2)
        elif tag == "table":
            table = self._tables.pop()
            self._write_column_names(table)
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
                table.names = [to_single_line(cell.text) for cell in row]
                return
        if table.names and len(row) == len(table.names):
            row = [
                cell._replace(text=_prefix_name(name, cell.text)) for name, cell in zip(table.names, row, strict=True)
            ]
        else:
            self._write_column_names(table)
        self._write_row([cell for cell in row if cell.text], table.is_data)
        table.are_names_written = table.are_names_written or bool(table.names)

    def _write_column_names(self, table: _Table) -> None:
        """Write the column names of an HTML table on a line of their own, unless the first row contains them."""
        if table.names and not table.are_names_written:
            table.are_names_written = True
            self._write_row([_Cell(name, [], True) for name in table.names if name], table.is_data)

    def _write_row(self, row: list[_Cell], is_data: bool) -> None:
        if not self._is_layout:
            row = [_Cell(to_single_line(cell.text), [], cell.is_header) for cell in row]
        if is_data and any("\n" in cell.text for cell in row):
            self._flow.end_line(2)
            self._flow.insert("\n".join(_BLANK_LINES.sub("\n", cell.text) for cell in row), [])
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
        """Return text and headings of a page's main content if it is large enough, otherwise of the whole page."""
        flow = self._flows[0]
        text = "".join(flow.pieces)
        start, end = max(self._main_spans, key=lambda span: span[1] - span[0], default=(0, 0))
        if end - start < _MAIN_SHARE * len(text):
            start, end = 0, len(text)
        content = text[start:end]
        start += len(content) - len(content.lstrip("\n"))
        headings = [
            heading._replace(start=heading.start - start, end=heading.end - start)
            for heading in flow.headings
            if start <= heading.start and heading.end <= end
        ]
        return Layout(content.strip("\n"), headings)


def _walk_nodes(root: DOMNode, is_clutter: Callable[[ElementNode], bool]) -> Iterator[tuple[DOMNode, bool]]:
    """Yield each node under ``root`` with True at its start, and again with False at the end of an element."""
    ancestors: list[DOMNode] = []  # iterative: pages nest deeper than Python's stack
    node = root.first_child
    while node is not None or ancestors:
        if node is None:
            node = ancestors.pop()
            yield node, False
        elif isinstance(node, ElementNode):
            if not is_clutter(node):
                yield node, True
                ancestors.append(node)
                node = node.first_child
                continue
        elif node.tag == "#text":
            yield node, True
        node = node.next


def _prefix_name(column: str, text: str) -> str:
    """Return a table cell as ``column: text`` if the column name is short and differs from the text."""
    return f"{column}: {text}" if column and text and len(column) <= _MAX_COLUMN_NAME and column != text else text


def _parse_number(text: str | None, default: int) -> int:
    """Return the number in an HTML attribute such as ``colspan``; ``default`` if the number is missing or invalid."""
    return int(text) if text and re.fullmatch("[0-9]{1,6}", text) else default
