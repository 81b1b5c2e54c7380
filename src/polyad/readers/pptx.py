"""Reads PowerPoint presentations with python-pptx: a location for each slide, a section for each slide title."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from polyad.errors import MissingExtraError
from polyad.model import Location, Section
from polyad.readers.archives import open_office_file
from polyad.readers.plain_text import Content, clean, join_texts, to_single_line
from polyad.readers.titles import clean_stated_title

try:
    from pptx import Presentation
    from pptx.enum.shapes import PP_PLACEHOLDER
    from pptx.table import _Row
except ImportError as error:
    raise MissingExtraError("python-pptx", "documents") from error

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of XML a presentation may unpack to; a thousand slides are 10 MB."""

_FURNITURE = (PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER)
"""Placeholders that repeat on every slide."""


def read_pptx(data: bytes) -> Content:
    """Return the content of a presentation: for each slide, its text, tables and speaker notes.

    The title is the title in the properties unless a program generated it, else the first title of a slide. The title
    is the heading above all slides; the subject of each slide is its own title.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not a PowerPoint presentation.
    """
    with open_office_file(data, "a PowerPoint presentation", max_text=_MAX_EXPANDED) as (title_property, metadata):
        slides = [_read_slide(slide) for slide in Presentation(io.BytesIO(data)).slides]
    text, spans = join_texts([text for _, text in slides])
    places = tuple(Location(*span, slide=number) for number, span in enumerate(spans, 1))
    sections = [Section(title, *span) for (title, _), span in zip(slides, spans, strict=True) if title]
    title = clean_stated_title(title_property) or next((section.name for section in sections), "")
    if title and spans:
        # The title is a heading above all slides, but the subject (strength 1) only of the first slide, so that links
        # to the presentation lead to its beginning.
        sections = [Section(title, 0, len(text), strength=0.0), Section(title, *spans[0]), *sections]
    metadata["slides"] = len(slides)
    return Content(title, text, tuple(dict.fromkeys(sections)), places, metadata)


def _read_slide(slide: Any) -> tuple[str, str]:
    """Return the title of a slide, and the whole text of the slide, which starts with the title."""
    heading = slide.shapes.title
    title = to_single_line(heading.text_frame.text) if heading is not None else ""
    heading_id = heading.shape_id if heading is not None else None
    blocks = [
        title,
        *(block for shape in _list_shapes(slide) if shape.shape_id != heading_id for block in _read_blocks(shape)),
    ]
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        blocks.append(clean(notes.text).strip())
    return title, "\n\n".join(filter(None, blocks))


def _list_shapes(slide: Any) -> Iterator[Any]:
    """Yield the shapes of a slide, and the shapes inside groups.

    The walk is iterative, since groups may nest deeper than Python's stack.
    """
    pending = list(slide.shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):
            pending.extend(list(shape.shapes)[::-1])
        elif not (shape.is_placeholder and shape.placeholder_format.type in _FURNITURE):
            yield shape


def _read_blocks(shape: Any) -> Iterator[str]:
    """Yield the text of a shape, or the rows of its table as lines with tabs between cells."""
    if shape.has_text_frame:
        yield clean(shape.text_frame.text).strip()
    elif getattr(shape, "has_table", False):
        table = shape.table
        rows = (_Row(row, table.rows) for row in table._tbl.tr_lst)  # python-pptx's iterator takes quadratic time
        yield "\n".join("\t".join(to_single_line(cell.text) for cell in row.cells) for row in rows)
