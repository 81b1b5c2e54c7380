"""Lays out a parsed page as text: blank lines between paragraphs, a line for each row and item, code in fences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resiliparse.parse.html import DOMNode, ElementNode, HTMLTree

from polyad.readers.text.headings import MAX_HEADING, Heading
from polyad.readers.text.plain_text import to_single_line
from polyad_readers.shared.tables import Cell, label_rows
from polyad_readers.shared.text_builder import TextBuilder
from polyad_readers.web.clutter import ClutterDetector, is_main, is_note
from polyad_readers.web.inline import get_closing_sign, get_opening_sign

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "details", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "main", "menu", "ol"),
        *("p", "pre", "section", "summary", "table", "tr", "ul"),
    ]
)
_BOUNDARIES = _BLOCKS | {*_HEADINGS, "dd", "dt", "li", "td", "th"}
"""Elements at whose beginning and end a block ends."""

_BLANK_LINES = re.compile(r"\n{2,}")

_MAX_DEPTH = 8
"""Nesting depth up to which tables are laid out as tables; deeper tables become paragraphs."""

_MAIN_SHARE = 0.25
"""Least share of a page's text in its main content for which the other text is omitted."""

_FIRST_COLUMN, _OTHER_COLUMNS = "col-first", frozenset({"col-second", "col-constructor-name", "col-last"})
"""Classes of the cells in Javadoc's tables, which are ``<div>`` elements."""


class Layout(NamedTuple):
    """The plain text of an HTML page and its headings, and the removed texts of navigation."""

    text: str
    headings: list[Heading]
    navigation: tuple[str, ...] = ()


def lay_out_page(tree: HTMLTree, read_image: Callable[[ElementNode], str] = lambda _: "") -> Layout:
    """Return text and headings of an HTML page, without navigation unless the page has no other text.

    Args:
        tree: The parsed page.
        read_image: Returns the text of the picture that an ``img`` element shows.
    """
    if tree.document is None:
        return Layout("", [])
    detector = ClutterDetector(tree)
    layout = _Page(read_image).read(tree.document, detector.remove)
    if layout.text:
        return layout._replace(navigation=(*detector.texts, *layout.navigation))
    return _Page(read_image).read(tree.document, lambda node: node.tag in ("script", "style", "title", "template"))


_FENCE = "```"
"""Line before and after a Markdown code block."""


class _Page:
    """Converts the nodes of one HTML page to text."""

    def __init__(self, read_image: Callable[[ElementNode], str]) -> None:
        self._flows = [TextBuilder()]
        self._read_image = read_image
        self._picture_texts: list[str] = []  # of the current block
        self._tables: list[list[list[Cell]]] = []  # the rows of each open table
        self._item_counts: list[int | None] = []  # number of items of each open list; None for a list without numbers
        self._note_depth = self._verbatim_depth = self._flattened_tables = self._head_depth = 0
        self._heading_start: tuple[int, int] | None = None  # length and number of pieces before the open heading
        self._main_spans: list[tuple[int, int]] = []

    def read(self, root: DOMNode, is_clutter: Callable[[ElementNode], bool]) -> Layout:
        """Return text and headings of an HTML element, without child elements for which ``is_clutter`` is true."""
        for node, is_entered in _walk_nodes(root, is_clutter):
            if self._picture_texts and node.tag in _BOUNDARIES:
                self._write_pictures()
            if not isinstance(node, ElementNode):
                self._add_text(node.value or "")
            elif is_entered:
                self._enter(node.tag or "", node)
            else:
                self._leave(node.tag or "", node)
                if node.tag == "img" and (text := self._read_image(node)):
                    self._picture_texts.append(text)
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
        elif tag in ("table", "thead", "tr", "td", "th"):
            self._enter_table(tag)
        elif tag == "br":
            if self._verbatim_depth:
                self._flow.write_verbatim("\n")
            else:
                self._flow.end_line(min(2, self._flow.gap + 1))
        elif tag in _BLOCKS:
            self._enter_block(tag, node)
        elif sign := get_opening_sign(tag, node):
            self._flow.write_words(sign)

    def _write_pictures(self) -> None:
        """Write the texts of the pictures of a block as paragraphs at its end, but not in a heading."""
        if not self._verbatim_depth and self._heading_start is None:
            for text in self._picture_texts:
                self._flow.end_line(2)
                self._flow.insert(text, [])
                self._flow.end_line(2)
            self._picture_texts.clear()

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
        elif preceding is not None and (preceding.tag == "dt" or tag == preceding.tag == "dd"):
            self._flow.continue_after(1)
        else:
            self._flow.end_line(2)

    def _enter_table(self, tag: str) -> None:
        if tag == "thead":
            self._head_depth += 1
            return
        if tag == "table":
            if len(self._tables) >= _MAX_DEPTH or self._flattened_tables:
                self._flattened_tables += 1
            else:
                self._tables.append([])
        if self._flattened_tables or not self._tables or tag == "table":
            self._flow.end_line(2)
        elif tag == "tr":
            self._tables[-1].append([])
        else:
            self._flows.append(TextBuilder())

    def _leave(self, tag: str, node: ElementNode) -> None:
        is_note_ended = self._note_depth and is_note(node)
        self._note_depth -= 1 if is_note_ended else 0
        if tag in _HEADINGS:
            self._leave_heading(int(tag[1]))
        elif tag in ("table", "tr", "td", "th"):
            self._leave_table(tag, node)
        elif tag == "thead":
            self._head_depth -= 1
        elif tag in _BLOCKS or tag in ("dt", "dd", "li"):
            self._leave_block(tag, node)
        elif sign := get_closing_sign(tag, node):
            self._flow.write_words(sign)

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

    def _leave_table(self, tag: str, node: ElementNode) -> None:
        if self._flattened_tables or not self._tables:
            self._flattened_tables -= tag == "table"
            self._flow.end_line(2)
        elif tag == "table":
            self._write_table(self._tables.pop())
        elif tag != "tr":
            flow = self._flows.pop()
            flow.strip_end()
            row_span, column_span = (_parse_number(node.getattr(name), 1) or 1 for name in ("rowspan", "colspan"))
            cell = Cell("".join(flow.pieces), tag == "th" or self._head_depth > 0, row_span, column_span, flow.headings)
            self._tables[-1][-1].append(cell)

    def _write_table(self, rows: list[list[Cell]]) -> None:
        filled = [cell for row in rows[:1] for cell in row if cell.text]
        is_data = bool(filled) and all(cell.is_header for cell in filled)
        has_blocks = any("\n" in cell.text or cell.headings for row in rows for cell in row)
        if has_blocks and not is_data:
            rows = [[cell._replace(rows=1, columns=1) for cell in row if cell.text] for row in rows]
        labelled = list(label_rows(rows, is_layout=True))
        columns = sorted({column for row in labelled for column, cell in enumerate(row) if cell.text})
        for row in labelled:
            self._write_row([row[column] for column in columns if column < len(row)], is_data)
        self._flow.end_line(2)

    def _write_row(self, row: list[Cell], is_data: bool) -> None:
        cells = [cell for cell in row if cell.text]
        if not any("\n" in cell.text or cell.headings for cell in cells):
            self._flow.end_line(1)
            self._flow.insert("\t".join(cell.text for cell in (cells if len(cells) < 2 else row)), [])
            self._flow.end_line(1)
        elif is_data:
            self._flow.end_line(2)
            self._flow.insert("\n".join(_BLANK_LINES.sub("\n", cell.text) for cell in cells), [])
            self._flow.end_line(2)
        else:
            for cell in cells:
                self._flow.end_line(2)
                self._flow.insert(cell.text, [*cell.headings])
            self._flow.end_line(2)

    def _layout(self) -> Layout:
        """Return text and headings of a page's main content if it is large enough, otherwise of the whole page."""
        flow = self._flows[0]
        text = "".join(flow.pieces)
        start, end = max(self._main_spans, key=lambda span: span[1] - span[0], default=(0, 0))
        if end - start < _MAIN_SHARE * len(text):
            start, end = 0, len(text)
        content, outside = text[start:end], (*text[:start].splitlines(), *text[end:].splitlines())
        start += len(content) - len(content.lstrip("\n"))
        headings = [
            heading._replace(start=heading.start - start, end=heading.end - start)
            for heading in flow.headings
            if start <= heading.start and heading.end <= end
        ]
        return Layout(content.strip("\n"), headings, tuple(filter(str.strip, outside)))


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


def _parse_number(text: str | None, default: int) -> int:
    """Return the number in an HTML attribute such as ``colspan``; ``default`` if the number is missing or invalid."""
    return int(text) if text and re.fullmatch("[0-9]{1,6}", text) else default
