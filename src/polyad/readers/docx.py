"""Word documents through mammoth, which follows footnotes, text boxes, tables and tracked changes, then as HTML."""

from __future__ import annotations

import io
from typing import Any

from polyad.errors import MissingExtraError
from polyad.readers.archives import core_properties, opened, require_no_types
from polyad.readers.html import from_markup
from polyad.readers.plain_text import Content, single_line
from polyad.readers.properties import title_stated

try:
    import mammoth  # type: ignore[import-untyped]  # has no stubs
    from mammoth.raw_text import extract_raw_text_from_element  # type: ignore[import-untyped]  # likewise
except ImportError as error:
    raise MissingExtraError("mammoth", "documents") from error

_MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes of XML a document may unpack to; those of a thousand pages are 20 MB. Each takes some ten in memory."""

_TITLE_STYLE = "title"


def read_docx(data: bytes) -> Content:
    """The text of a document, without places, since only Word knows its pages.

    The title is what is set in the style *Title*, else the one in its properties, else its first heading of level 1.

    Raises:
        ReadError: It is encrypted, damaged, too large or no Word document.
    """
    titles: list[str] = []

    def note_titles(document: Any) -> Any:
        titles.extend(_titles(document))
        return document

    with opened(data, "a Word document", max_text=_MAX_EXPANDED) as archive:
        require_no_types(archive)
        stated, metadata = core_properties(archive)
        markup = mammoth.convert_to_html(
            io.BytesIO(data),
            convert_image=mammoth.images.img_element(_no_image),
            transform_document=note_titles,
        ).value
        content = from_markup(markup, is_layout=False)
    title = next(filter(None, titles), "") or title_stated(stated) or content.title
    if stated and stated != title:
        metadata["title"] = stated
    return content._replace(title=title, metadata=metadata)


def _titles(document: Any) -> list[str]:
    """The paragraphs of a document in the style *Title*, which is called so in every language of Word."""
    return [
        single_line(extract_raw_text_from_element(child))
        for child in document.children
        if (getattr(child, "style_name", None) or "").lower() == _TITLE_STYLE
    ]


def _no_image(_: object) -> dict[str, str]:
    """Keeps the alternative text, which mammoth adds, and spares the encoding of the picture."""
    return {"src": ""}
