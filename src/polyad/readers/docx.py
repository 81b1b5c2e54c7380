"""Reads Word documents: mammoth converts them to HTML, with footnotes, text boxes, tables and tracked changes."""

from __future__ import annotations

import io
from typing import Any

from polyad.errors import MissingExtraError
from polyad.readers.archives import opened, read_core_properties, reject_document_types
from polyad.readers.html import parse_markup
from polyad.readers.plain_text import Content, single_line
from polyad.readers.properties import clean_stated_title

try:
    import mammoth  # type: ignore[import-untyped]  # has no stubs
    from mammoth.raw_text import extract_raw_text_from_element  # type: ignore[import-untyped]  # likewise
except ImportError as error:
    raise MissingExtraError("mammoth", "documents") from error

_MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes of XML a document may unpack to; those of a thousand pages are 20 MB. Each takes some ten in memory."""

_TITLE_STYLE = "title"


def read_docx(data: bytes) -> Content:
    """Return the text of a Word document, without page locations, since only Word lays out pages.

    The title is what is set in the style *Title*, else the one in its properties, else its first heading of level 1.

    Raises:
        ReadError: It is encrypted, damaged, too large or no Word document.
    """
    titles: list[str] = []

    def note_titles(document: Any) -> Any:
        titles.extend(_titles(document))
        return document

    with opened(data, "a Word document", max_text=_MAX_EXPANDED) as archive:
        reject_document_types(archive)
        stated, metadata = read_core_properties(archive)
        markup = mammoth.convert_to_html(
            io.BytesIO(data),
            convert_image=mammoth.images.img_element(_no_image),
            transform_document=note_titles,
        ).value
        content = parse_markup(markup, is_layout=False)
    title = next(filter(None, titles), "") or clean_stated_title(stated) or content.title
    if stated and stated != title:
        metadata["title"] = stated
    return content._replace(title=title, metadata=metadata)


def _titles(document: Any) -> list[str]:
    """Return the paragraphs in the style *Title*, which has this name in every language of Word."""
    return [
        single_line(extract_raw_text_from_element(child))
        for child in document.children
        if (getattr(child, "style_name", None) or "").lower() == _TITLE_STYLE
    ]


def _no_image(_: object) -> dict[str, str]:
    """Return an empty image source: mammoth adds the alternative text, and the picture is not encoded."""
    return {"src": ""}
