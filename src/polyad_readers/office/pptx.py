"""Reads PowerPoint presentations: a location for each slide, a section for each slide title."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Container, Iterator
from functools import partial
from typing import NamedTuple
from xml.etree.ElementTree import Element, fromstring
from zipfile import ZipFile

from polyad.model import Location, Section
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Pictures, Source
from polyad.readers.text.plain_text import join_texts, to_single_line
from polyad.readers.text.titles import clean_stated_title
from polyad.text.removals import COMMENTS, FILES, HEADERS, PICTURES, merge_removals
from polyad_readers.office.drawings import (
    describe_picture,
    get_relation_id,
    list_comments,
    list_paragraphs,
    list_undescribed_pictures,
    read_graphic,
)
from polyad_readers.shared.archives import EMBEDDED_KINDS, open_office_file, read_relations
from polyad_readers.shared.tables import Cell, format_table

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of XML a presentation may unpack to; a thousand slides are 10 MB."""

_TITLES = ("title", "ctrTitle")
_FOOTERS = ("ftr", "hdr", "dt")
"""Placeholders whose text most slides repeat, like text of a layout; the first slide with the text keeps it."""

_SHAPES = ("sp", "graphicFrame", "grpSp", "AlternateContent")
_FORM_COLUMNS = 2
_MAX_SORTED = 100
"""Shapes of a slide that are sorted by columns, which takes the square of their number."""


class _Box(NamedTuple):
    """The position and size of a shape on a slide, in English Metric Units (914,400 to an inch)."""

    left: int
    top: int
    right: int
    bottom: int


_Unit = tuple[_Box, list[Element]]
"""A shape with its box, and the shapes without a box that follow."""


def read_pptx(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a presentation: for each slide, its text, tables, charts, diagrams and speaker notes.

    The title is the title in the properties unless a program generated it, else the first title of a slide. The title
    is the heading above all slides; the subject of each slide is its own title.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not a PowerPoint presentation.
    """
    data = source.read()
    with open_office_file(data, "a PowerPoint presentation", max_text=_MAX_EXPANDED) as (title_property, metadata):
        presentation = _Presentation(ZipFile(io.BytesIO(data)), context.pictures)
        slides = list(presentation.read_slides())
    text, spans = join_texts([text for _, text in slides])
    places = tuple(Location(*span, slide=number) for number, span in enumerate(spans, 1))
    sections = [Section(title, *span) for (title, _), span in zip(slides, spans, strict=True) if title]
    title = clean_stated_title(title_property) or next((section.name for section in sections), "")
    if title and spans:
        # The title is a heading above all slides, but the subject (strength 1) only of the first slide, so that links
        # to the presentation lead to its beginning.
        sections = [Section(title, 0, len(text), strength=0.0), Section(title, *spans[0]), *sections]
    metadata["slides"] = len(slides)
    removals = merge_removals([presentation.removals])
    return Content(title, text, tuple(dict.fromkeys(sections)), places, metadata, removals=removals)


class _Presentation:
    """Reads the slides of a presentation. A part that is missing has no text.

    Attributes:
        removals: What the texts leave out, by kind (see :mod:`polyad.text.removals`).
    """

    def __init__(self, archive: ZipFile, pictures: Pictures | None = None) -> None:
        self.removals: dict[str, list[str]] = {HEADERS: [], PICTURES: [], COMMENTS: [], FILES: []}
        self._archive = archive
        self._names = frozenset(archive.namelist())
        part = next(part for kind, part in read_relations(archive, "").values() if kind == "officeDocument")
        root = fromstring(archive.read(part))
        if not root.tag.endswith("}presentation"):
            raise ValueError(f"a file of {root.tag.rpartition('}')[2]}")
        relations = read_relations(archive, part)
        slides = root.iterfind("{*}sldIdLst/{*}sldId")
        self._slides = [relations.get(get_relation_id(slide, "id"), ("", ""))[1] for slide in slides]
        self._pictures = pictures
        self._picture_texts: dict[int, str] = {}  # by shape of the current slide
        if pictures:
            parts = (read_relations(archive, part).values() for part in self._slides)
            pictures.count(path for relations in parts for kind, path in relations if kind == "image")
        self._repeated_texts: set[str] = set()
        self._backgrounds: set[str] = set()  # parts of layouts and masters that were read
        self._boxes: dict[str, dict[tuple[str, str], _Box]] = {}  # by part: those of the placeholders of a layout

    def read_slides(self) -> Iterator[tuple[str, str]]:
        """Yield the title of each slide, and the whole text of the slide, which starts with the title."""
        for part in self._slides:
            relations = read_relations(self._archive, part)
            layouts = [path for kind, path in relations.values() if kind == "slideLayout"]
            inherited = self._read_boxes(layouts[0]) if layouts else {}
            slide = self._parse(part)
            self._picture_texts = self._read_pictures(slide, relations)
            shapes = list(_iterate_shapes(slide, inherited, self._picture_texts.keys()))
            heading = next((shape for shape in shapes if _get_placeholder(shape)[0] in _TITLES), None)
            title = to_single_line(" ".join(_list_lines(heading))) if heading is not None else ""
            blocks = [title, *(self._read_shape(shape, relations) for shape in shapes if shape is not heading)]
            blocks += self._read_background(slide, layouts[:1])
            self.removals[PICTURES] += list_undescribed_pictures(slide, self._picture_texts.keys())
            for kind, path in relations.values():
                if kind == "comments":
                    self.removals[COMMENTS] += list_comments(self._parse(path))
                elif kind in EMBEDDED_KINDS:
                    self.removals[FILES].append(posixpath.basename(path))
                elif kind == "notesSlide":
                    related = read_relations(self._archive, path)
                    blocks += [self._read_shape(shape, related) for shape in _iterate_shapes(self._parse(path), {})]
            yield title, "\n\n".join(filter(None, map(str.strip, blocks)))

    def _read_pictures(self, slide: Element, relations: dict[str, tuple[str, str]]) -> dict[int, str]:
        """Return the texts of the pictures of a slide by shape; the text of a repeated picture is empty."""
        texts: dict[int, str] = {}
        for shape in slide.iter() if self._pictures else ():
            blip = shape.find("{*}blipFill/{*}blip") if shape.tag.endswith("}pic") else None
            path = relations.get(get_relation_id(blip, "embed"), ("", ""))[1] if blip is not None else ""
            if self._pictures and path in self._names:
                text = self._pictures.read(path, partial(self._pictures.load_part, path), describe_picture(shape))
                texts |= {id(shape): text} if self._pictures.has_text(path) else {}
        return texts

    def _read_background(self, slide: Element, layouts: list[str]) -> Iterator[str]:
        """Yield the texts of a layout and its master that are no placeholders, unless an earlier slide has them."""
        if slide.get("showMasterSp") in ("0", "false"):
            return
        for part in layouts:
            if part not in self._backgrounds:
                self._backgrounds.add(part)
                layout, relations = self._parse(part), read_relations(self._archive, part)
                for shape in _iterate_shapes(layout, {}):
                    if _get_placeholder(shape) == ("", ""):
                        yield self._omit_repetition(self._read_shape(shape, relations))
                yield from self._read_background(
                    layout, [path for kind, path in relations.values() if kind == "slideMaster"]
                )

    def _omit_repetition(self, text: str) -> str:
        """Return a text of the background or of a footer; an empty string if an earlier slide has it."""
        text = text.replace("\u2039#\u203a", "")  # placeholder of the number of the slide
        if text in self._repeated_texts:
            self.removals[HEADERS] += filter(None, text.split("\n"))
            return ""
        self._repeated_texts.add(text)
        return text

    def _parse(self, part: str) -> Element:
        return fromstring(self._archive.read(part)) if part in self._names else Element("missing")

    def _read_boxes(self, layout: str) -> dict[tuple[str, str], _Box]:
        """Return the boxes of the placeholders of a layout, or else of its master, by type and index."""
        if layout not in self._boxes:
            self._boxes[layout] = {}  # a layout that is its own master ends here
            for kind, part in read_relations(self._archive, layout).values():
                if kind == "slideMaster":
                    self._boxes[layout] |= self._read_boxes(part)
            for shape in self._parse(layout).iterfind("{*}cSld/{*}spTree/{*}sp"):
                kind, index = _get_placeholder(shape)
                if box := _get_box(shape, self._boxes[layout]):
                    self._boxes[layout] |= {(kind, ""): box, ("", index): box}
        return self._boxes[layout]

    def _read_shape(self, shape: Element, relations: dict[str, tuple[str, str]]) -> str:
        """Return the text of a shape, the rows of its table, or the text of its chart or diagram."""
        kind, _ = _get_placeholder(shape)
        if kind == "sldNum" or (kind == "dt" and shape.find(".//{*}fld") is not None):  # today's date
            self.removals[HEADERS] += filter(None, _list_lines(shape))
            return ""
        if shape.tag.endswith("}pic"):
            return "\n\n".join(filter(None, [describe_picture(shape), self._picture_texts.get(id(shape))]))
        if kind in _FOOTERS:
            return self._omit_repetition("\n".join(_list_lines(shape)))
        if (table := shape.find("{*}graphic/{*}graphicData/{*}tbl")) is not None:
            return _read_table(table)
        references = shape.iterfind("{*}graphic/{*}graphicData/*")
        graphics = (read_graphic(one, lambda key: self._parse(relations.get(key, ("", ""))[1])) for one in references)
        return next(filter(None, graphics), "") or "\n".join(_list_lines(shape))


def _iterate_shapes(
    slide: Element, inherited: dict[tuple[str, str], _Box], pictures: Container[int] = ()
) -> Iterator[Element]:
    """Yield the shapes of a slide and of its groups in reading order.

    The walk is iterative, since groups may nest deeper than Python's stack. Of pictures, those with a description and
    those with text, whose identities are in ``pictures``, are yielded.
    """
    pending = list(slide.iterfind("{*}cSld/{*}spTree"))
    while pending:
        shape = pending.pop()
        name = shape.tag.rpartition("}")[2]
        if name == "AlternateContent":  # the same shape for newer and for older programs
            pending.extend(shape[:1])
        elif name in ("sp", "graphicFrame", "pic"):
            yield shape
        else:
            shapes = [
                one
                for one in shape
                if one.tag.rpartition("}")[2] in _SHAPES or describe_picture(one) or id(one) in pictures
            ]
            pending.extend(reversed(_sort_shapes(shapes, inherited)))


def _sort_shapes(shapes: list[Element], inherited: dict[tuple[str, str], _Box]) -> list[Element]:
    """Return shapes from top to bottom and in columns; a shape without a place follows the shape before it."""
    units: list[_Unit] = []
    for shape in shapes:
        box = _get_box(shape, inherited)
        if box is None and units:
            units[-1][1].append(shape)
        else:
            units.append((box or _Box(0, 0, 0, 0), [shape]))
    ordered = _sort_columns(units) if len(units) <= _MAX_SORTED else _sort_lines(units)
    return [shape for _, unit in ordered for shape in unit]


def _sort_columns(units: list[_Unit]) -> list[_Unit]:
    """Return shapes in reading order by recursive cuts through the widest gap (Nagy and Seth, 1984)."""
    cuts = []
    for axis in (0, 1):
        ordered = sorted(units, key=lambda unit: unit[0][axis])
        end = ordered[0][0][axis + 2] if ordered else 0
        for place in range(1, len(ordered)):
            cuts.append((ordered[place][0][axis] - end, -axis, place, ordered))
            end = max(end, ordered[place][0][axis + 2])
    gap, _, place, ordered = max(cuts, key=lambda cut: cut[:3], default=(-1, 0, 0, units))
    if gap < 0:
        return _sort_lines(units)
    return [*_sort_columns(ordered[:place]), *_sort_columns(ordered[place:])]


def _sort_lines(units: list[_Unit]) -> list[_Unit]:
    return sorted(units, key=lambda unit: (unit[0].top, unit[0].left))


def _get_box(shape: Element, inherited: dict[tuple[str, str], _Box]) -> _Box | None:
    """Return the box of a shape, a placeholder's from its layout if it has none of its own; None without a box."""
    for path in ("{*}spPr/{*}xfrm", "{*}xfrm", "{*}grpSpPr/{*}xfrm"):
        offset, size = shape.find(f"{path}/{{*}}off"), shape.find(f"{path}/{{*}}ext")
        if offset is not None and size is not None:
            left, top = int(offset.get("x", 0)), int(offset.get("y", 0))
            return _Box(left, top, left + int(size.get("cx", 0)), top + int(size.get("cy", 0)))
    kind, index = _get_placeholder(shape)
    return inherited.get(("", index)) or inherited.get((kind, "")) if kind else None


def _get_placeholder(shape: Element) -> tuple[str, str]:
    """Return type and index of a placeholder; two empty strings for another shape."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return ("", "") if placeholder is None else (placeholder.get("type", "obj"), placeholder.get("idx", "0"))


def _list_lines(shape: Element) -> list[str]:
    body = shape.find("{*}txBody")
    return [] if body is None else list_paragraphs(body)


def _read_table(table: Element) -> str:
    """Return a line for each row of a table; its first row is a header row if it looks different.

    PowerPoint gives every table such a row, so that in two columns it may as well be the first line of a form.
    """
    properties = table.find("{*}tblPr")
    has_header = properties is not None and properties.get("firstRow") in ("1", "true")
    rows: list[list[Cell]] = []
    for row in table.iterfind("{*}tr"):
        cells = [cell for cell in row.iterfind("{*}tc") if cell.get("hMerge") != "1" and cell.get("vMerge") != "1"]
        is_header = has_header and not rows and len(cells) > _FORM_COLUMNS
        rows.append(
            [
                Cell(
                    to_single_line(" ".join(_list_lines(cell))),
                    is_header,
                    int(cell.get("rowSpan", 1)),
                    int(cell.get("gridSpan", 1)),
                )
                for cell in cells
            ]
        )
    return format_table(rows)
