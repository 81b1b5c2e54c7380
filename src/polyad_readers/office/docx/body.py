"""Reads the paragraphs, lists and tables of a part of a Word document."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from xml.etree.ElementTree import Element

from polyad.readers.text.plain_text import to_single_line
from polyad.text.removals import CONTENTS, PICTURES
from polyad_readers.office.docx.code import count_indent, indent_code, is_code
from polyad_readers.office.docx.fields import (
    CONTENTS_FIELDS,
    PAGE_FIELDS,
    find_generated_texts,
    format_form_field,
    get_field_name,
)
from polyad_readers.office.docx.math import format_math
from polyad_readers.office.docx.numbering import Numbering
from polyad_readers.office.docx.package import get_number, get_value, is_on
from polyad_readers.office.docx.pictures import WordPictures
from polyad_readers.office.docx.styles import Styles, is_monospaced
from polyad_readers.office.docx.symbols import decode_symbol, decode_symbols
from polyad_readers.office.drawings import GRAPHICS, read_graphic
from polyad_readers.office.page_headers import PAGE_MARK
from polyad_readers.shared.numbering import BULLET
from polyad_readers.shared.tables import Cell
from polyad_readers.shared.text_builder import TICKED, UNTICKED, TextBuilder

_CHARACTERS = {"w-tab": "\t", "w-ptab": " ", "w-br": "\n", "w-cr": "\n", "w-noBreakHyphen": "\u2011"}
_SKIPPED = frozenset({"w-del", "w-moveFrom", "w-rt", "w-pPr", "w-rPr", "w-sdtPr"})
"""Deleted text, readings over base text, properties."""

_WRAPPERS = frozenset({"w-sdt", "w-sdtContent", "w-ins", "w-moveTo", "w-customXml", "w-smartTag"})
_TEXTS = frozenset({"w-t", "m-t", "w-altChunk", *GRAPHICS})


class BodyReader:
    """Reads the text of the main part, of a note, or of a header or footer.

    Attributes:
        flow: The text so far.
        titles: Paragraphs in Word's style *Title*.
        notes: The notes to which the text so far refers, by kind (``footnote`` or ``endnote``) and id, with numbers.
    """

    def __init__(
        self,
        styles: Styles,
        numbering: Numbering,
        note_keys: Container[tuple[str, str]],
        read_chunk: Callable[[str, TextBuilder], None],
        parse_drawing: Callable[[str], Element],
        *,
        marks_pages: bool = False,
    ) -> None:
        """Create a reader.

        Args:
            styles: The styles of the document.
            numbering: The lists of the document.
            note_keys: Kind and id of each note of the document.
            read_chunk: Adds the embedded document with a relation id to a text.
            parse_drawing: Returns the root of the chart or diagram with a relation id.
            marks_pages: Whether page numbers become :data:`PAGE_MARK`.
        """
        self.flow = TextBuilder()
        self.titles: list[str] = []
        self.notes: dict[tuple[str, str], int] = {}
        self.removals: dict[str, list[str]] = {CONTENTS: [], PICTURES: []}
        self._styles = styles
        self._numbering = numbering
        self._note_keys = note_keys
        self._read_chunk = read_chunk
        self._parse_drawing = parse_drawing
        self._marks_pages = marks_pages
        self._generated_fields = CONTENTS_FIELDS | (PAGE_FIELDS if marks_pages else frozenset())
        self._generated_texts: set[int] = set()
        self._pieces: list[str] = []  # text of the current paragraph
        self._boxes: list[Element | str] = []  # text boxes and texts of charts of the current paragraph
        self._is_code = False  # whether the last paragraph was code
        self._font = self._undescribed = ""  # the latter is the name of a picture
        self._description = ""  # of the same picture
        self._pictures: WordPictures | None = None
        self._has_picture = False  # whether the current paragraph has one
        self._table_depth = 0
        self._readers: dict[str, Callable[[Element], None]] = {
            "w-t": self._read_text,
            "w-r": self._read_run,
            "w-sym": self._read_symbol,
            "w-fldChar": lambda field: self._pieces.append(format_form_field(field)),
            "w-fldSimple": self._read_field,
            "w-sdt": self._read_control,
            "w-footnoteReference": self._read_note_reference,
            "w-endnoteReference": self._read_note_reference,
            "w-txbxContent": self._boxes.append,
            "wp-docPr": self._read_picture,
            "v-imagedata": self._read_picture,
            "blip": self._count_picture,
            "m-oMath": lambda math: self._pieces.append(format_math(math)),
            "m-oMathPara": lambda math: self._pieces.append(format_math(math)),
            **dict.fromkeys(GRAPHICS, self._read_graphic),
            "mc-AlternateContent": lambda element: self._read_inline(_choose_branch(element)),
        }

    def use_pictures(self, pictures: WordPictures) -> None:
        """Read the text of pictures too."""
        self._pictures = pictures

    def read(self, root: Element) -> None:
        """Add the text of a part or of a note."""
        self._generated_texts = find_generated_texts(root, self._generated_fields, self._styles.get_rank)
        self._read_blocks(root)

    def _read_blocks(self, parent: Element) -> None:
        for child in parent:
            if child.tag == "w-p":
                self._read_paragraph(child)
            elif child.tag == "w-tbl":
                self._read_table(child)
            elif child.tag == "w-altChunk":
                self._read_chunk(get_value(child, "id"), self.flow)
            elif child.tag == "mc-AlternateContent":
                self._read_blocks(_choose_branch(child))
            elif child.tag in ("m-oMath", "m-oMathPara"):
                self.flow.write_paragraph(format_math(child))
            elif _is_contents(child):
                self.removals[CONTENTS] += filter(None, map(join_texts, child.iter("w-p")))
            elif child.tag not in _SKIPPED:
                self._read_blocks(child)
        if self._pieces:  # the end of the last paragraph is deleted
            self._write_paragraph(Element("w-p"))

    def _read_paragraph(self, paragraph: Element) -> None:
        if self._styles.get_style(paragraph).is_contents:
            self.removals[CONTENTS] += filter(None, [join_texts(paragraph)])
            return
        self._read_inline(paragraph)
        if not _continues(paragraph):
            self._write_paragraph(paragraph)

    def _write_paragraph(self, paragraph: Element) -> None:
        """Write the text that was read since the end of the last paragraph, and then its text boxes."""
        text, boxes, self._pieces = "".join(self._pieces), self._boxes[:], []
        self._boxes.clear()
        if self._pictures:
            style = self._styles.get_style(paragraph).name
            self._pictures.end_paragraph(text, style, has_picture=self._has_picture)
            self._has_picture = False
        label = self._numbering.next_label(paragraph)
        if label is not None and not text.strip() and self._table_depth and label.text != BULLET:
            text, label = label.text, None  # a column of row numbers
        if text.strip():
            if self._styles.get_style(paragraph).name == "title":
                self.titles.append(to_single_line(text))
            mark, level = label or ("", 0)
            rank = self._styles.get_rank(paragraph)
            after_code, self._is_code = self._is_code, not (rank or label) and self._is_line_of_code(paragraph, text)
            if self._is_code:
                self.flow.write_code(indent_code(paragraph, text), is_continued=after_code)
            else:
                self.flow.write_paragraph(text, rank=rank, label=mark, level=level)
        for box in boxes:
            if isinstance(box, str):
                self.flow.end_line(2)
                self.flow.insert(box, [])
                self.flow.end_line(2)
            else:
                self._read_blocks(box)

    def _is_line_of_code(self, paragraph: Element, text: str) -> bool:
        if self._styles.get_style(paragraph).is_code:
            return True
        runs = [run for run in paragraph.iter("w-r") if run.find("w-t") is not None]
        is_fixed, is_indented = bool(runs) and all(map(is_monospaced, runs)), count_indent(paragraph) > 0
        return is_code(text, is_fixed=is_fixed, is_indented=is_indented, after_code=self._is_code)

    def _read_inline(self, parent: Element) -> None:
        for child in parent:
            if child.tag in self._readers:
                self._readers[child.tag](child)
            elif child.tag in _CHARACTERS:
                self._pieces.append(_CHARACTERS[child.tag])
            elif child.tag not in _SKIPPED:
                self._read_inline(child)

    def _read_text(self, element: Element) -> None:
        if id(element) in self._generated_texts:
            self._pieces.append(PAGE_MARK if self._marks_pages else "")
            self.removals[CONTENTS] += filter(None, [(element.text or "").strip()])
        else:
            self._pieces.append(decode_symbols(element.text or "", self._font))

    def _read_run(self, run: Element) -> None:
        properties = run.find("w-rPr")
        if properties is None:
            self._read_inline(run)
            return
        before = self._pieces[-1][-1:] if self._pieces else ""
        start = len(self._pieces)
        self._font = get_value(properties.find("w-rFonts"), "ascii")
        self._read_inline(run)
        self._font = ""
        is_power = get_value(properties.find("w-vertAlign")) == "superscript" and before.isdecimal()
        if is_power and "".join(self._pieces[start:])[:1] in "0123456789-\u2212":
            self._pieces.insert(start, "^")

    def _read_symbol(self, symbol: Element) -> None:
        self._pieces.append(decode_symbol(get_value(symbol, "char"), get_value(symbol, "font")))

    def _read_field(self, field: Element) -> None:
        if get_field_name(get_value(field, "instr")) not in self._generated_fields:
            self._read_inline(field)
        elif self._marks_pages:
            self._pieces.append(PAGE_MARK)

    def _read_control(self, control: Element) -> None:
        """Read a content control in a paragraph; a check box is written as its state."""
        box = control.find("w-sdtPr/w14-checkbox")
        if box is not None:
            self._pieces.append(TICKED if is_on(box.find("w14-checked")) else UNTICKED)
        elif not _is_contents(control):
            self._read_inline(control)

    def _read_note_reference(self, reference: Element) -> None:
        key = reference.tag[2:].removesuffix("Reference"), get_value(reference, "id")
        if key in self._note_keys:
            self._pieces.append(f"[{self.notes.setdefault(key, len(self.notes) + 1)}]")

    def _read_picture(self, picture: Element) -> None:
        if description := to_single_line(get_value(picture, "descr")) or to_single_line(get_value(picture, "title")):
            self._pieces.append(f" {description} ")
        self._undescribed = "" if description else get_value(picture, "name") or "picture"
        self._description = description
        if picture.tag == "v-imagedata":
            self._count_picture(picture)

    def _read_graphic(self, reference: Element) -> None:
        if text := read_graphic(reference, self._parse_drawing):
            self._boxes.append(text)

    def _count_picture(self, picture: Element) -> None:
        """Read the picture whose properties were read, and count it if they have no description and it has no text."""
        has_text = False
        if self._pictures:
            text, has_text = self._pictures.read(picture, self._description)
            self._boxes += filter(None, [text])
            self._has_picture = True
        self.removals[PICTURES] += filter(None, [self._undescribed] if not has_text else [])
        self._undescribed = ""

    def _read_table(self, table: Element) -> None:
        self._table_depth += 1
        rows: list[list[Cell]] = []
        origins: dict[int, tuple[int, int]] = {}  # by column: row and place of the cell that may continue downwards
        for row in _find_children(table, "w-tr"):
            if row.find("w-trPr/w-del") is not None:
                continue
            column = get_number(row.find("w-trPr/w-gridBefore"))
            cells = [Cell("", columns=column)] if column else []
            rows.append(cells)
            for element in _find_children(row, "w-tc"):
                text, merge = self._read_cell(element), element.find("w-tcPr/w-vMerge")
                columns = max(1, get_number(element.find("w-tcPr/w-gridSpan")))
                if merge is not None and get_value(merge) != "restart" and column in origins and not text.length:
                    upper_row, place = origins[column]
                    rows[upper_row][place] = rows[upper_row][place]._replace(rows=len(rows) - upper_row)
                else:
                    origins[column] = len(rows) - 1, len(cells)
                    is_header = is_on(row.find("w-trPr/w-tblHeader"))
                    cells.append(Cell("".join(text.pieces), is_header, 1, columns, text.headings))
                column += columns
        self._table_depth -= 1
        self.flow.write_table(rows)

    def _read_cell(self, cell: Element) -> TextBuilder:
        flow, self.flow = self.flow, TextBuilder()
        self._read_blocks(cell)
        flow, self.flow = self.flow, flow
        flow.strip_end()
        return flow


def _continues(paragraph: Element) -> bool:
    """Return whether a paragraph continues in the next: its end is deleted, or it is a large first letter."""
    properties = paragraph.find("w-pPr")
    if properties is None:
        return False
    is_deleted = any(properties.find(f"w-rPr/{name}") is not None for name in ("w-del", "w-moveFrom"))
    return is_deleted or get_value(properties.find("w-framePr"), "dropCap") in ("drop", "margin")


def _is_contents(element: Element) -> bool:
    """Return whether an element is a content control with a generated table of contents."""
    gallery = element.find("w-sdtPr/w-docPartObj/w-docPartGallery") if element.tag == "w-sdt" else None
    return get_value(gallery).casefold() in ("table of contents", "bibliographies toc")


def join_texts(paragraph: Element) -> str:
    """Return the text of a paragraph without its structure."""
    return "".join(node.text or "" for node in paragraph.iter("w-t")).strip()


def _choose_branch(element: Element) -> Element:
    """Return the alternative that has text, of content that a file states in several forms."""
    branches = [child for child in element if child.tag in ("mc-Choice", "mc-Fallback")]
    with_text = (branch for branch in branches if any(node.tag in _TEXTS for node in branch.iter()))
    return next(with_text, branches[-1] if branches else element)


def _find_children(parent: Element, name: str) -> Iterator[Element]:
    """Yield the rows of a table or the cells of a row, also those in content controls and insertions."""
    for child in parent:
        if child.tag == name:
            yield child
        elif child.tag in _WRAPPERS:
            yield from _find_children(child, name)
