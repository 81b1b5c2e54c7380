"""Reads texts that lie on a PDF page and are not part of its content: form fields, typed text and notes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from html import unescape
from typing import Any, Literal, NamedTuple

from polyad.errors import MissingExtraError
from polyad.readers.text.plain_text import clean, to_single_line

try:
    import pypdfium2  # type: ignore[import-untyped]  # has no stubs
    from pypdfium2 import raw
except ImportError as error:
    raise MissingExtraError("pypdfium2", "documents") from error

_PASSWORD = 1 << 13
"""Flag of a text field whose value is secret."""

_NOTES = tuple(
    getattr(raw, f"FPDF_ANNOT_{name}")
    for name in (
        *("TEXT", "HIGHLIGHT", "UNDERLINE", "SQUIGGLY", "STRIKEOUT", "CARET", "STAMP", "INK"),
        *("LINE", "SQUARE", "CIRCLE", "POLYGON", "POLYLINE"),
    )
)
"""Kinds of annotations whose contents are a note on the page."""

_INVISIBLE = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW

_BOXES = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_CHOICES = (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
TICKED, UNTICKED = "[x]", "[ ]"

_INDEX = re.compile(r"\[\d+\]")
_GENERATED = re.compile(r"(?:check|list|combo|text|radio)?[ _]?[^\W_]*\d|[a-z]\d+_\d+|undefined.*", re.IGNORECASE)
"""A name that a program gives, such as "Text29", "Check Box1" and "f1_01"."""

_TAG = re.compile("<[^<>]*>")
_BLANK = re.compile(r"[\s._/\\-]*")
"""A value that only fills a field."""

_MAX_ANNOTATIONS = 5_000
"""Annotations of a page that are looked at; the fullest forms have a thousand."""

_EDGE = 1.0
"""Points around an annotation in which the page's text is compared with it."""


class Annotation(NamedTuple):
    """A text that lies on a page: the value of a form field, a box that is ticked or not, typed text, or a note.

    Attributes:
        kind: What the text is.
        text: The text; one line for each line of the value. Empty for an empty field.
        left: Left edge, in points, as the other edges.
        bottom: Lower edge.
        right: Right edge.
        top: Upper edge.
        name: Name of the form field, for a value that has no label on the page.
    """

    kind: Literal["field", "text", "note"]
    text: str
    left: float
    bottom: float
    right: float
    top: float
    name: str


def read_annotations(
    document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage
) -> list[Annotation]:
    """Return the values of form fields, the typed texts and the notes on a page that the page's own text lacks.

    Secret values, hidden fields and hidden notes are omitted. Empty fields and boxes are returned beside values or
    ticked boxes, so that a blank form has the text of its page alone.
    """
    values = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        if annotation := raw.FPDFPage_GetAnnot(page, index):
            try:
                value = _read_annotation(document, page, annotation)
            finally:
                raw.FPDFPage_CloseAnnot(annotation)
            if value and not (value.text and _is_on_page(value, text_page)):
                values.append(value)
    if any(value.kind == "field" and value.text not in ("", UNTICKED) for value in values):
        return values
    return [value for value in values if value.kind != "field"]


def _read_annotation(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, annotation: Any) -> Annotation | None:
    """Return a visible form field, text or note; None for a text without letters, links, windows of notes and media."""
    if raw.FPDFAnnot_GetFlags(annotation) & _INVISIBLE:
        return None
    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    kind: Literal["field", "text", "note"] = "note"
    text = name = ""
    if subtype == raw.FPDF_ANNOT_WIDGET:
        _open_form(document, page)
        kind, text, name = "field", _read_field(page.formenv, annotation), _read_name(page.formenv, annotation)
    elif subtype == raw.FPDF_ANNOT_FREETEXT:
        kind, text = "text", _read_contents(annotation)
    elif subtype in _NOTES and not raw.FPDFAnnot_HasKey(annotation, b"StateModel"):  # "Accepted set by Jane"
        text = _read_contents(annotation)
    if _BLANK.fullmatch(text):
        if kind != "field":
            return None
        text = ""
    box = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, box)
    (left, right), (bottom, top) = sorted((box.left, box.right)), sorted((box.bottom, box.top))
    return Annotation(kind, text, left, bottom, right, top, name)


def _read_contents(annotation: Any) -> str:
    """Return the contents of an annotation, as plain text or else from its rich text (XHTML)."""
    contents = _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
    return clean(contents or unescape(_TAG.sub(" ", _read_text(raw.FPDFAnnot_GetStringValue, annotation, b"RC"))))


def _open_form(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> None:
    """Let PDFium read the form fields of a page, and of the pages after it.

    ``PdfDocument.init_forms`` prints a warning about each XFA form, omits the fields of pages that were taken out of a
    form, and takes memory for the links of all pages.
    """
    if document.formenv is None:
        config = raw.FPDF_FORMFILLINFO(version=2)
        document.formenv = pypdfium2.PdfFormEnv(raw.FPDFDOC_InitFormFillEnvironment(document, config), config)
    if page.formenv is None:
        page.formenv = document.formenv
        raw.FORM_OnAfterLoadPage(page, page.formenv)


def _read_field(form: Any, annotation: Any) -> str:
    """Return the value of a form field, or a sign for a ticked or empty box; an empty string for other annotations."""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _BOXES:
        return TICKED if raw.FPDFAnnot_IsChecked(form, annotation) else UNTICKED
    if kind in _CHOICES:
        options = range(raw.FPDFAnnot_GetOptionCount(form, annotation))
        selected = (index for index in options if raw.FPDFAnnot_IsOptionSelected(form, annotation, index))
        labels = [_read_text(raw.FPDFAnnot_GetOptionLabel, form, annotation, index) for index in selected]
        if labels:
            return ", ".join(map(to_single_line, labels))
    is_secret = raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
    if kind in _CHOICES or (kind == raw.FPDF_FORMFIELD_TEXTFIELD and not is_secret):
        return clean(_read_text(raw.FPDFAnnot_GetFormFieldValue, form, annotation))
    return ""


def _read_name(form: Any, annotation: Any) -> str:
    """Return the name of a form field for readers, or its technical name unless a program gave it."""
    alternate_name = to_single_line(_read_text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation))
    name = to_single_line(_read_text(raw.FPDFAnnot_GetFormFieldName, form, annotation))
    technical_name = _INDEX.sub("", name).rpartition(".")[2]
    return alternate_name or ("" if _GENERATED.fullmatch(technical_name) else technical_name)


def _read_text(get_text: Callable[..., int], *arguments: Any) -> str:
    """Return the text that a function of PDFium writes as UTF-16 into a buffer of the size that it states."""
    size = get_text(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(size + 1)
    get_text(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "ignore").rstrip("\0")


def _is_on_page(value: Annotation, text_page: pypdfium2.PdfTextPage) -> bool:
    """Return whether the page's own text has the words of an annotation at its place, as in a flattened form."""
    edges = (value.left - _EDGE, value.bottom - _EDGE, value.right + _EDGE, value.top + _EDGE)
    words, page_words = value.text.split(), text_page.get_text_bounded(*edges).split()
    return any(page_words[start : start + len(words)] == words for start in range(len(page_words)))
