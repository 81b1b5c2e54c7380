"""PDF files through PDFium, the engine of Chromium."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from itertools import accumulate

from polyad.adapters.reading.headings import LONGEST, Heading, sections_of
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

_DEEPEST = 6
"""Levels of an outline that are read, as many as HTML has."""

_NUMBER = r"[^\w\n]*(?:(?-i:\d+(?:\.\d+)*[.)]?|[IVXLC]+[.)]|[A-Z][.)])\s+)?"
"""What may stand before a heading in its line where the outline leaves it out."""

_FILE_NAME = re.compile(
    r"(?i)^(?:microsoft word - .*|untitled(?: document)?(?:[ -]?\d+)?|.*\.(?:docx?|pdf|tex|dvi|indd|rtf|pptx?|xlsx?))$"
)
"""Titles that programs fill in by themselves."""


def read_pdf(data: bytes) -> Content:
    """The text of all pages, one after another; the title is the one in the metadata unless a program made it up.

    The outline, which programs show as bookmarks, gives the sections. A file that only restricts printing or copying is
    read; one that needs a password to be opened is not.

    Raises:
        ReadError: It needs a password, is damaged, or holds no text.
    """
    with _ONE_AT_A_TIME:
        try:
            with pypdfium2.PdfDocument(data) as document:
                title = document.get_metadata_value("Title")
                pages = [_page(document, index) + "\n" for index in range(len(document))]
                headings = sorted(_headings(document, pages), key=lambda heading: heading.start)
        except pypdfium2.PdfiumError as error:
            if error.err_code == raw.FPDF_ERR_PASSWORD:
                raise ReadError("encrypted; it needs a password") from error
            raise ReadError(f"not a PDF, or damaged: {error}") from error
    text = "".join(pages).removesuffix("\n")
    if not text.strip():
        raise ReadError("no text in it; scanned pages need OCR first")
    title = single_line(title)
    return Content("" if _FILE_NAME.match(title) else title, text, sections_of(headings, text))


def _headings(document: pypdfium2.PdfDocument, pages: Sequence[str]) -> Iterator[Heading]:
    """The entries of the outline, each where its page has it as a line, or else where its page begins."""
    starts = [0, *accumulate(map(len, pages))]
    for entry in document.get_toc(max_depth=_DEEPEST):
        try:
            name = single_line(entry.get_title())
        except UnicodeError:  # it is damaged; the text is not
            continue
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is None or page >= len(pages) or not 0 < len(name) <= LONGEST:
            continue
        start, end = _place(name, pages[page])
        yield Heading(entry.level + 1, name, starts[page] + start, starts[page] + end)


def _place(heading: str, page: str) -> tuple[int, int]:
    """Where a page has the heading as a line, else where a line begins with it, else its beginning."""
    words = _NUMBER + r"\s+".join(map(re.escape, heading.split()))
    for ending in (r"[ \t]*$", r"(?!\w)"):
        if line := re.search(f"^{words}{ending}", page, re.MULTILINE | re.IGNORECASE):
            return line.span()
    return 0, 0


def _page(document: pypdfium2.PdfDocument, index: int) -> str:
    page = document[index]
    text_page = page.get_textpage()
    try:
        return clean(_HYPHEN_AT_LINE_END.sub("", text_page.get_text_range()))
    finally:
        text_page.close()
        page.close()
