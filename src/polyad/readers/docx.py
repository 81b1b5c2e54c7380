"""Reads Word documents: mammoth converts them to HTML, with footnotes, text boxes, tables and tracked changes."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from polyad.errors import MissingExtraError
from polyad.readers.archives import open_office_file
from polyad.readers.html import parse_markup
from polyad.readers.plain_text import Content, to_single_line
from polyad.readers.titles import clean_stated_title

try:
    import mammoth  # type: ignore[import-untyped]  # has no stubs
    from mammoth.raw_text import extract_raw_text_from_element  # type: ignore[import-untyped]  # likewise
except ImportError as error:
    raise MissingExtraError("mammoth", "documents") from error

_MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes of XML a document may unpack to; a thousand pages are 20 MB. Each byte takes some ten in memory."""

_MAX_TAGS = 1_500_000
"""Tags of the XML of a document; a thousand pages have 400,000. Each takes mammoth some 30 microseconds."""

_TITLE_STYLE = "title"


def read_docx(data: bytes) -> Content:
    """Return the text of a Word document, without page locations, since only Word lays out pages.

    The title is the first paragraph in the style *Title*, else the title in the properties, else the first heading of
    level 1.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not a Word document.
    """
    titles: list[str] = []

    def collect_titles(document: Any) -> Any:
        titles.extend(_find_title_paragraphs(document))
        return document

    with open_office_file(data, "a Word document", max_text=_MAX_EXPANDED, max_tags=_MAX_TAGS) as (
        title_property,
        metadata,
    ):
        markup = mammoth.convert_to_html(
            io.BytesIO(data),
            convert_image=mammoth.images.img_element(lambda _: {"src": ""}),  # does not encode pictures
            transform_document=collect_titles,
        ).value
        content = parse_markup(markup, is_layout=False)
    title = next(filter(None, titles), "") or clean_stated_title(title_property) or content.title
    if title_property and title_property != title:
        metadata["title"] = title_property
    return replace(content, title=title, metadata=metadata)


def _find_title_paragraphs(document: Any) -> list[str]:
    """Return the paragraphs with Word's style *Title*, in a document of any language."""
    return [
        to_single_line(extract_raw_text_from_element(child))
        for child in document.children
        if (getattr(child, "style_name", None) or "").lower() == _TITLE_STYLE
    ]
