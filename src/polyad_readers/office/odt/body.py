"""Reads the paragraphs, lists, tables and forms of an OpenDocument text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from polyad.readers.text.plain_text import to_single_line
from polyad.text.removals import COMMENTS, CONTENTS, PICTURES
from polyad_readers.office.mathml import format_mathml
from polyad_readers.office.odt.lists import HEADINGS, ListCounter, parse_number
from polyad_readers.office.page_headers import PAGE_MARK
from polyad_readers.shared.archives import create_xml_parser, parse_xml
from polyad_readers.shared.tables import Cell
from polyad_readers.shared.text_builder import TICKED, UNTICKED, TextBuilder

_MAX_SPACES = 100
"""Spaces that one element may stand for."""

_MAX_DEPTH = 8
"""Nesting depth up to which tables are laid out as tables; deeper tables become paragraphs."""

_MAX_REPEATED = 100
"""Blank cells that one element may stand for."""

_BLOCK, _PREFIX_BYTES = 64 * 1024, 1024
"""Bytes that are parsed at a time, and bytes at the beginning of a part that name its first element."""

_LEFT_OUT = {
    "office:annotation": COMMENTS,
    **dict.fromkeys(
        ("text:table-of-content", "text:alphabetical-index", "text:illustration-index", "text:table-index"), CONTENTS
    ),
}
"""Elements whose paragraphs are left out and counted, and the kind of each."""

_SKIPPED = frozenset(
    [
        *("text:note-citation", "text:tracked-changes", "text:ruby-text", "text:number", "table:covered-table-cell"),
        *_LEFT_OUT,
    ]
)
"""Footnote marks, deleted text, readings, generated numbers, cells that are merged, and what is counted."""

_PAGE_NUMBERS = frozenset({"text:page-number", "text:page-count"})
_DESCRIPTIONS = ("svg-compatible:title", "svg-compatible:desc")
_VALUE_CONTROLS = ("form:text", "form:textarea", "form:formatted-text", "form:combobox", "form:listbox")
_Attributes = Mapping[str, str]


@dataclass(slots=True)
class _Paragraph:
    """An open paragraph, with its rank as a heading (0 if it is none), and its label and level in a list."""

    rank: int = 0
    label: str = ""
    level: int = 0
    is_title: bool = False
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    """An open frame: its name, whether it has a picture, and whether it has a description or an object."""

    name: str
    has_picture: bool = False
    has_text: bool = False


class _ShortNames(dict[str, str]):
    """Short names of XML elements, such as ``text:p``, by the names ``namespace}name`` that the parser reports."""

    def __missing__(self, name: str) -> str:
        namespace, _, local_name = name.rpartition("}")
        short_name = self[name] = f"{''.join(namespace.split(':')[-2:-1])}:{local_name}"
        return short_name


class OdtReader:
    """Reads parts of an OpenDocument text by callbacks of an XML parser, without building a tree.

    Attributes:
        title: The first paragraph in the style *Title* or in a style derived from it; empty if there is none.
        removals: What the text leaves out, by kind (see :mod:`polyad.text.removals`).
    """

    def __init__(self, archive: ZipFile) -> None:
        self.title = ""
        self.removals: dict[str, list[str]] = {CONTENTS: [], COMMENTS: [], PICTURES: []}
        self._left_out = ""  # kind of the element that is skipped
        self._removed_pieces: list[str] = []
        self._frames: list[_Frame] = []
        self._archive = archive
        self._names = _ShortNames()
        self._lists = ListCounter()
        self._title_styles = {"Title"}
        self._list_style = ""  # list style that is being defined
        self._flows = [TextBuilder()]
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[list[list[Cell]]] = []  # the rows of each open table
        self._cells: list[_Attributes] = []  # the attributes of each open table cell
        self._flattened_tables = self._header_depth = self._note_depth = self._note_start = self._skip_depth = 0
        self._marks_pages = False
        self._controls: dict[str, str] = {}  # state of each form control, by id
        self._control = ""  # id of the last form control
        self._objects = set(archive.namelist())  # parts that no embedded object has used
        self._begin: dict[str, Callable[[_Attributes], None]] = {
            "text:p": self._begin_paragraph,
            "text:h": lambda attributes: self._begin_paragraph(attributes, is_heading=True),
            "text:tab": lambda _: self._add_text(" "),
            "text:line-break": lambda _: self._add_text("\n"),
            "text:s": lambda attributes: self._add_text(" " * min(parse_number(attributes.get("c"), 1), _MAX_SPACES)),
            "text:note-body": lambda _: self._begin_note(),
            "style:style": self._define_style,
            "text:list-style": lambda attributes: setattr(self, "_list_style", attributes.get("name", "")),
            "text:outline-style": lambda _: setattr(self, "_list_style", HEADINGS),
            "text:list-level-style-number": lambda attributes: self._lists.define_level(self._list_style, attributes),
            "text:outline-level-style": lambda attributes: self._lists.define_level(self._list_style, attributes),
            "text:list": self._lists.begin_list,
            "text:list-item": self._lists.begin_item,
            "table:table": lambda _: self._begin_table(),
            "table:table-header-rows": lambda _: self._change_header_depth(1),
            "table:table-row": lambda _: self._begin_row(),
            "table:table-cell": self._begin_cell,
            "form:option": self._choose_option,
            **dict.fromkeys(("form:checkbox", "form:radio"), self._add_box),
            **dict.fromkeys(_VALUE_CONTROLS, self._add_value),
            "drawing:control": lambda attributes: self._add_block(
                self._controls.get(attributes.get("control", ""), "")
            ),
            "drawing:object": self._add_object,
            "drawing:frame": lambda attributes: self._frames.append(_Frame(attributes.get("name") or "picture")),
            "drawing:image": lambda _: self._change_frame(has_picture=True),
            **dict.fromkeys(_DESCRIPTIONS, lambda _: self._change_frame(has_text=True)),
            "field:param": self._read_field_parameter,
        }
        self._end: dict[str, Callable[[], None]] = {
            **dict.fromkeys(("text:p", "text:h"), self._end_paragraph),
            "text:list": self._lists.end_list,
            "text:note-body": self._end_note,
            "table:table-cell": self._end_cell,
            "table:table": self._end_table,
            "table:table-header-rows": lambda: self._change_header_depth(-1),
            "drawing:frame": self._end_frame,
            **dict.fromkeys(_DESCRIPTIONS, lambda: self._add_text(" ")),
        }

    def read(self, part: str, *, marks_pages: bool = False) -> TextBuilder:
        """Return the text of a part; with ``marks_pages``, page numbers become marks."""
        self._marks_pages, self._flows = marks_pages, [TextBuilder()]
        parser = create_xml_parser()
        parser.StartElementHandler = self._begin_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._add_text
        with self._archive.open(part) as file:
            while block := file.read(_BLOCK):
                parser.Parse(block)
        parser.Parse(b"", True)
        return self._flows[0]

    def _begin_element(self, tag: str, attributes: _Attributes) -> None:
        name = self._names[tag]
        is_page_number = self._marks_pages and name in _PAGE_NUMBERS
        if is_page_number and not self._skip_depth:
            self._add_text(PAGE_MARK)
        if self._skip_depth or is_page_number or name in _SKIPPED:
            if not self._skip_depth:
                self._left_out = _LEFT_OUT.get(name, "")
            if name == "text:p":
                self._removed_pieces.clear()
            self._skip_depth += 1
        elif name in self._begin:
            self._begin[name]({key.rpartition("}")[2]: value for key, value in attributes.items()})

    def _end_element(self, tag: str) -> None:
        name = self._names[tag]
        if self._skip_depth:
            self._skip_depth -= 1
            if self._left_out and name == "text:p":
                self.removals[self._left_out] += filter(None, [to_single_line("".join(self._removed_pieces))])
        elif name in self._end:
            self._end[name]()

    def _add_text(self, text: str) -> None:
        if self._skip_depth:
            self._removed_pieces.append(text)
        elif self._paragraphs:
            self._paragraphs[-1].pieces.append(text)

    def _add_block(self, text: str) -> None:
        """Add a text that is no child of a paragraph in some documents."""
        if self._paragraphs:
            self._add_text(text)
        elif text:
            self._flows[-1].write_paragraph(text)

    def _define_style(self, attributes: _Attributes) -> None:
        if attributes.get("parent-style-name") == "Title":
            self._title_styles.add(attributes.get("name", ""))

    # Paragraphs

    def _begin_paragraph(self, attributes: _Attributes, *, is_heading: bool = False) -> None:
        if self._note_depth:
            self._add_text(" ")
            return
        paragraph = _Paragraph(is_title=not self.title and attributes.get("style-name") in self._title_styles)
        self._paragraphs.append(paragraph)
        label = self._lists.next_label()
        if is_heading:
            level = parse_number(attributes.get("outline-level"), 1) - 1
            paragraph.rank = min(level, 5) + 1
            label = label or (self._lists.next_heading_label(level, attributes), level)
        if label is not None:
            paragraph.label, paragraph.level = label

    def _end_paragraph(self) -> None:
        if self._note_depth:
            return
        paragraph, flow = self._paragraphs.pop(), self._flows[-1]
        text = "".join(paragraph.pieces)
        if not text.strip():
            return
        if paragraph.is_title:
            self.title = self.title or to_single_line(text)
        flow.write_paragraph(text, rank=paragraph.rank, label=paragraph.label, level=paragraph.level)

    def _begin_note(self) -> None:
        if self._paragraphs and not self._note_depth:
            self._note_start = len(self._paragraphs[-1].pieces)
        self._note_depth += 1

    def _end_note(self) -> None:
        self._note_depth -= 1
        if self._paragraphs and not self._note_depth:
            pieces = self._paragraphs[-1].pieces
            pieces[self._note_start :] = [f" [{''.join(pieces[self._note_start :]).strip()}]"]

    # Tables

    def _begin_table(self) -> None:
        if len(self._tables) >= _MAX_DEPTH or self._flattened_tables:
            self._flattened_tables += 1
        else:
            self._tables.append([])

    def _change_header_depth(self, change: int) -> None:
        self._header_depth += change

    def _begin_row(self) -> None:
        if self._tables and not self._flattened_tables:
            self._tables[-1].append([])

    def _begin_cell(self, attributes: _Attributes) -> None:
        if not self._flattened_tables:
            self._cells.append(attributes)
            self._flows.append(TextBuilder())

    def _end_cell(self) -> None:
        if self._flattened_tables:
            return
        flow, attributes = self._flows.pop(), self._cells.pop()
        flow.strip_end()
        rows, columns = (parse_number(attributes.get(f"number-{name}-spanned"), 1) for name in ("rows", "columns"))
        cell = Cell("".join(flow.pieces), self._header_depth > 0, rows, columns, flow.headings)
        repeated = 1 if cell.text else min(parse_number(attributes.get("number-columns-repeated"), 1), _MAX_REPEATED)
        if self._tables and self._tables[-1]:
            self._tables[-1][-1].extend(cell._replace() for _ in range(repeated))

    def _end_table(self) -> None:
        if self._flattened_tables:
            self._flattened_tables -= 1
        elif self._tables:
            self._flows[-1].write_table(self._tables.pop())

    # Forms and formulas

    def _add_box(self, attributes: _Attributes) -> None:
        """Store the state of a check box, which stands where a ``draw:control`` names its id."""
        is_ticked = attributes.get("current-state") == "checked" or attributes.get("current-selected") == "true"
        self._controls[attributes.get("id", "")] = f"{TICKED if is_ticked else UNTICKED} {attributes.get('label', '')}"

    def _add_value(self, attributes: _Attributes) -> None:
        self._control = attributes.get("id", "")
        self._controls[self._control] = attributes.get("current-value") or attributes.get("value", "")

    def _choose_option(self, attributes: _Attributes) -> None:
        if attributes.get("current-selected") == "true":
            self._controls[self._control] = attributes.get("label", "")

    def _read_field_parameter(self, attributes: _Attributes) -> None:
        """Write the state of a check box that comes from a Word document."""
        if attributes.get("name", "").lower().endswith(("checkbox_checked", "checkbox.result")):
            self._add_text(TICKED if attributes.get("value") in ("true", "1") else UNTICKED)

    # Objects and pictures

    def _add_object(self, attributes: _Attributes) -> None:
        """Write a formula, or the text of an embedded chart, sheet or other document."""
        part = f"{attributes.get('href', '').removeprefix('./')}/content.xml"
        if part not in self._objects:
            return
        self._objects.remove(part)
        self._change_frame(has_text=True)
        reader = OdtReader(self._archive)
        reader._objects = self._objects
        try:
            with self._archive.open(part) as file:
                is_document = b"document-content" in file.read(_PREFIX_BYTES)
            if is_document:
                inner, flow = reader.read(part), self._flows[-1]
                flow.end_line(2)
                flow.insert("".join(inner.pieces), inner.headings)
                flow.end_line(2)
            else:
                self._add_block(format_mathml(parse_xml(self._archive.read(part))))
        except (ParseError, ExpatError, BadZipFile):  # LibreOffice shows a document with damaged objects
            return

    def _change_frame(self, *, has_picture: bool = False, has_text: bool = False) -> None:
        if self._frames:
            self._frames[-1].has_picture |= has_picture
            self._frames[-1].has_text |= has_text

    def _end_frame(self) -> None:
        frame = self._frames.pop()
        if frame.has_picture and not frame.has_text:
            self.removals[PICTURES].append(frame.name)
