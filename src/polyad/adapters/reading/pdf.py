"""PDF files through PDFium, the engine of Chromium."""

from __future__ import annotations

import re
import threading

from polyad.adapters.reading.plain_text import Content, clean, single_line
from polyad.errors import MissingExtraError, ReadError

try:
    import pypdfium2  # type: ignore[import-untyped]  # has no stubs
    from pypdfium2 import raw
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_ONE_AT_A_TIME = threading.Lock()
"""PDFium keeps global state and must not run in two threads."""

_HYPHEN_AT_LINE_END = re.compile("[\x02\ufffe](?:\r\n?|\n)?")
"""How PDFium writes a hyphen that only breaks a word into two lines."""

_FILE_NAME = re.compile(
    r"(?i)^(?:microsoft word - .*|untitled(?: document)?(?:[ -]?\d+)?|.*\.(?:docx?|pdf|tex|dvi|indd|rtf|pptx?|xlsx?))$"
)
"""Titles that programs fill in by themselves."""


def read_pdf(data: bytes) -> Content:
    """The text of all pages, one after another; the title is the one in the metadata unless a program made it up.

    A file that only restricts printing or copying is read; one that needs a password to be opened is not.

    Raises:
        ReadError: It needs a password, is damaged, or holds no text.
    """
    with _ONE_AT_A_TIME:
        try:
            with pypdfium2.PdfDocument(data) as document:
                title = document.get_metadata_value("Title")
                text = "\n".join(_page(document, index) for index in range(len(document)))
        except pypdfium2.PdfiumError as error:
            if error.err_code == raw.FPDF_ERR_PASSWORD:
                raise ReadError("encrypted; it needs a password") from error
            raise ReadError(f"not a PDF, or damaged: {error}") from error
    text = clean(_HYPHEN_AT_LINE_END.sub("", text))
    if not text.strip():
        raise ReadError("no text in it; scanned pages need OCR first")
    title = single_line(title)
    return Content("" if _FILE_NAME.match(title) else title, text)


def _page(document: pypdfium2.PdfDocument, index: int) -> str:
    page = document[index]
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_range())
    finally:
        text_page.close()
        page.close()
