"""Reads Excel workbooks: a location for each sheet, a line with column names for each row."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, iterparse
from zipfile import BadZipFile, ZipFile

from polyad.errors import ReadError
from polyad.model import Location, Section
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.plain_text import join_texts, to_single_line
from polyad.readers.text.titles import clean_stated_title
from polyad.text.removals import COMMENTS, FILES, PICTURES, merge_removals
from polyad_readers.office.drawings import get_relation_id, iterate_drawing, list_comments, list_undescribed_pictures
from polyad_readers.office.number_formats import BUILT_IN_FORMATS, format_number
from polyad_readers.shared.archives import EMBEDDED_KINDS, open_office_file, parse_xml, read_relations
from polyad_readers.shared.tables import Cell, label_rows

_MAX_EXPANDED = 256 * 1024 * 1024
"""Bytes of XML a workbook may unpack to. They are streamed, so the limit is one of time: 3 MB a second."""

_MAX_CELLS = 20_000_000
"""Cells that are read, including omitted cells before the last cell of a row, which take no byte of the file."""

_MAX_CHARACTERS = 50_000_000
"""Characters of text that cells may add up to; a text that many cells share is stored once in the file."""

_MAX_BLANK_ROWS = 100
"""Blank rows in which a merged cell is followed; a sheet may have a million between two rows."""

_DEFAULT_NAME = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio|planilha|blad|лист|工作表)[ _-]?\d*", re.IGNORECASE)
"""Default names of sheets in several languages."""

_BLOCK, _OVERLAP = 1024 * 1024, 300
"""Bytes of a sheet that are searched at a time, and that are searched again with the next ones."""

_MERGED_CELLS = re.compile(rb"mergeCell\s[^<>]{0,200}?ref=[\"']([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})[\"']")
_REFERENCE = re.compile("([A-Z]{1,3})([0-9]{1,7})")
_BLANK = Cell("")


class _Style(NamedTuple):
    """The number format of a cell, and whether its letters are bold."""

    code: str = ""
    is_bold: bool = False


def read_xlsx(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a workbook: each sheet, with a line for each row: ``column: value`` with tabs between.

    A row of bold texts is a header row; for others, forms and merged cells see :mod:`polyad_readers.shared.tables`. A
    formula is read as its last computed value, or as the formula if there is none.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not an Excel workbook.
    """
    data = source.read()
    with open_office_file(data, "an Excel workbook", max_text=_MAX_EXPANDED) as (title_property, metadata):
        workbook = _Workbook(ZipFile(io.BytesIO(data)))
        sheets = list(workbook.read_sheets())
    texts = [rows if _DEFAULT_NAME.fullmatch(name) else f"{name}\n\n{rows}" for name, rows in sheets]
    text, spans = join_texts(texts)
    names_and_spans = [(name, span) for (name, _), span in zip(sheets, spans, strict=True)]
    places = tuple(Location(*span, sheet=name) for name, span in names_and_spans)
    sections = tuple(Section(name, *span) for name, span in names_and_spans if not _DEFAULT_NAME.fullmatch(name))
    removals = merge_removals([workbook.removals])
    return Content(clean_stated_title(title_property), text, sections, places, metadata, removals=removals)


class _Workbook:
    """Reads the sheets of a workbook in the transitional or strict format of ISO 29500, which have other namespaces.

    Attributes:
        removals: What the texts leave out, by kind (see :mod:`polyad.text.removals`).
    """

    def __init__(self, archive: ZipFile) -> None:
        self.removals: dict[str, list[str]] = {PICTURES: [], COMMENTS: [], FILES: []}
        self._archive = archive
        part = next(part for kind, part in read_relations(archive, "").values() if kind == "officeDocument")
        relations = read_relations(archive, part)
        parts = dict(relations.values())
        workbook = parse_xml(archive.read(part))
        if not workbook.tag.endswith("workbook"):
            raise ValueError(f"a file of {workbook.tag.rpartition('}')[2]}")
        self._is_1904 = any(element.get("date1904") in ("1", "true") for element in workbook.iterfind("{*}workbookPr"))
        self._sheets = [
            (to_single_line(sheet.get("name", "")), *relations.get(get_relation_id(sheet, "id"), ("", "")))
            for sheet in workbook.iterfind("{*}sheets/{*}sheet")
        ]
        self._styles = _read_styles(parse_xml(archive.read(parts["styles"]))) if "styles" in parts else []
        strings = _iterate_elements(archive, parts["sharedStrings"], "si") if "sharedStrings" in parts else ()
        self._strings = [_join_runs(string) for string in strings]
        self._cells = self._characters = 0

    def read_sheets(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of each sheet that has text."""
        for name, kind, part in self._sheets:
            lines = []
            for row in label_rows(self._read_rows(part)) if kind == "worksheet" else ():
                lines.append("\t".join(cell.text for cell in row))
                self._count(characters=len(lines[-1]))
            blocks = ["\n".join(lines), *self._read_relations(part)]
            if text := "\n\n".join(filter(None, blocks)):
                yield name, text

    def _read_relations(self, part: str) -> Iterator[str]:
        """Yield the texts of the shapes, charts and diagrams on a sheet; comments and embedded files are counted."""
        for kind, path in read_relations(self._archive, part).values():
            if kind == "drawing":
                for text in self._iterate_drawing(path):
                    self._count(characters=len(text))
                    yield text
            elif kind == "comments":
                self.removals[COMMENTS] += list_comments(self._parse(path))
            elif kind in EMBEDDED_KINDS:
                self.removals[FILES].append(posixpath.basename(path))

    def _iterate_drawing(self, part: str) -> Iterator[str]:
        drawing, relations = self._parse(part), read_relations(self._archive, part)
        self.removals[PICTURES] += list_undescribed_pictures(drawing)
        return iterate_drawing(drawing, lambda key: self._parse(relations.get(key, ("", ""))[1]))

    def _parse(self, part: str) -> Element:
        """Return the root of a part; an empty element if the part is missing or damaged, as Excel shows the sheet."""
        try:
            return parse_xml(self._archive.read(part))
        except (KeyError, ParseError, BadZipFile):
            return Element("missing")

    def _count(self, *, cells: int = 0, characters: int = 0) -> None:
        self._cells += cells
        self._characters += characters
        if self._cells > _MAX_CELLS or self._characters > _MAX_CHARACTERS:
            raise ReadError(f"more than {_MAX_CELLS:,} cells or {_MAX_CHARACTERS:,} characters; export a part of it")

    def _read_rows(self, part: str) -> Iterator[list[Cell]]:
        """Yield the cells of each row of a sheet, without the cells that a merged cell covers; a blank row is empty."""
        spans = _find_merged_cells(self._archive, part)
        covered: dict[int, int] = {}  # by column: the last row that a merged cell above covers
        last_row = 0
        for element in _iterate_elements(self._archive, part, "row"):
            row = int(element.get("r") or last_row + 1)
            yield from ([] for _ in range(min(row - last_row - 1, _MAX_BLANK_ROWS)))
            last_row = row
            values = self._read_cells(element)
            self._count(cells=max(values, default=0) + 2)
            cells: list[Cell] = []
            end = 0
            for column in range(max(values, default=-1) + 1):
                if column < end or covered.get(column, 0) >= row:
                    continue
                cell = values.get(column, _BLANK)
                if span := spans.get((row, column)):
                    cell = cell._replace(rows=span[0], columns=span[1])
                    end = column + span[1]
                    covered |= dict.fromkeys(range(column, end), row + span[0] - 1)
                cells.append(cell)
            yield cells

    def _read_cells(self, row: Element) -> dict[int, Cell]:
        """Return the cells of a row that have text, by column from 0."""
        cells: dict[int, Cell] = {}
        column = -1
        for element in row:
            reference = _REFERENCE.match(element.get("r", ""))
            column = _parse_column(reference[1]) if reference else column + 1
            if len(element) and (cell := self._read_cell(element)).text:
                cells[column] = cell
        return cells

    def _read_cell(self, element: Element) -> Cell:
        children = {child.tag.rpartition("}")[2]: child for child in element}
        kind = element.get("t", "n")
        style_number = int(element.get("s", 0))
        style = self._styles[style_number] if style_number < len(self._styles) else _Style()
        text = children["v"].text or "" if "v" in children else ""
        if kind == "inlineStr":
            text = _join_runs(children["is"]) if "is" in children else text
        elif not text:
            formula = children["f"].text if "f" in children and kind != "str" else ""
            text = f"={formula}" if formula else ""
        elif kind == "s":
            text = self._strings[int(text)]
        elif kind == "b":
            text = str(text == "1")
        elif kind == "d":
            text = text.removesuffix("T00:00:00")
        elif kind == "n" and (style.code or not text.lstrip("-").isdecimal()):
            text = format_number(float(text), style.code, is_1904=self._is_1904)
        return Cell(to_single_line(text), style.is_bold)


def _read_styles(styles: Element) -> list[_Style]:
    """Return the style of each format number of a cell."""
    codes = dict(BUILT_IN_FORMATS)
    for element in styles.iterfind("{*}numFmts/{*}numFmt"):
        codes[int(element.get("numFmtId", 0))] = element.get("formatCode", "")
    fonts = [font.find("{*}b") for font in styles.iterfind("{*}fonts/{*}font")]
    bold = {place for place, mark in enumerate(fonts) if mark is not None and mark.get("val") not in ("0", "false")}
    return [
        _Style(codes.get(int(style.get("numFmtId", 0)), ""), int(style.get("fontId", 0)) in bold)
        for style in styles.iterfind("{*}cellXfs/{*}xf")
    ]


def _find_merged_cells(archive: ZipFile, part: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Return how many rows and columns each merged cell covers, by its row and column.

    A sheet states them behind its rows, so that a first pass searches the bytes.
    """
    spans = {}
    tail = b""
    with archive.open(part) as file:
        while block := file.read(_BLOCK):
            for first, top, last, bottom in _MERGED_CELLS.findall(tail + block):
                column = _parse_column(first.decode())
                spans[int(top), column] = (int(bottom) - int(top) + 1, _parse_column(last.decode()) - column + 1)
            tail = block[-_OVERLAP:]
    return spans


def _iterate_elements(archive: ZipFile, part: str, name: str) -> Iterator[Element]:
    """Yield each element called ``name`` of an XML part, in any namespace, and remove it from the tree."""
    parents: list[Element] = []
    with archive.open(part) as file:
        for event, element in iterparse(file, ("start", "end")):
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if element.tag.endswith(name) and element.tag.rpartition("}")[2] == name:
                yield element
                parents[-1].clear()


def _join_runs(element: Element) -> str:
    """Return the text of a string, without the phonetic readings of Japanese words."""
    texts = (text for child in element for text in [child, *child] if not child.tag.endswith("rPh"))
    return "".join(text.text or "" for text in texts if text.tag.rpartition("}")[2] == "t")


@cache
def _parse_column(letters: str) -> int:
    """Return the number of a column from 0; at most 18,277, for ``ZZZ``."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
