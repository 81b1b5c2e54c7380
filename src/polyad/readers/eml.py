"""Reads e-mail with the standard library: the subject is the title, the body the text."""

from __future__ import annotations

from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser

from polyad.errors import ReadError
from polyad.readers.metadata import build_metadata
from polyad.readers.plain_text import Content, clean, decode, single_line

_HEADERS = ("from", "to", "cc", "date", "reply-to", "list-id", "message-id", "in-reply-to")
_LONGEST_HEADER = 5000
"""Characters of a header that are read; what is longer is a list of people."""

_MOST_PARTS = 1000
"""Parts of a message that are looked at; real ones have a few."""


def read_eml(data: bytes) -> Content:
    """Return the text of an e-mail message, including quoted replies.

    Of a message in several forms plain text is read, and HTML where there is no other. Who wrote it to whom and when
    is metadata, as are the names of what is attached.

    Raises:
        ReadError: It is not a message, or holds no text.
    """
    try:
        message = BytesParser().parsebytes(data)
        plain, pages, attached = _parts(message)
    except RecursionError as error:
        raise ReadError("parts within parts too deep to follow") from error
    if not message.keys():
        raise ReadError("not an e-mail: it begins with no headers")
    known = [(name, _header(message, name)) for name in _HEADERS]
    title = _header(message, "subject")
    content = Content("", "\n\n".join(plain))
    if not content.text.strip() and pages:
        from polyad.readers.html import parse_markup  # needs what plain messages do not

        content = parse_markup("\n".join(pages))
    text = clean(content.text).strip("\n")
    sections = content.sections if text == content.text else ()
    return Content(title or content.title, text, sections, metadata=build_metadata([*known, ("attachments", attached)]))


def _parts(message: Message) -> tuple[list[str], list[str], list[str]]:
    """Return the plain texts, the HTML parts and the attachment names of a message."""
    plain: list[str] = []
    pages: list[str] = []
    attached: list[str] = []
    for count, part in enumerate(message.walk()):
        if count >= _MOST_PARTS:
            break
        name = _named(part)
        if name or part.get_content_disposition() == "attachment":
            attached.append(name or part.get_content_type())
        elif part.get_content_type() == "text/html":
            pages.append(_text(part))
        elif part.get_content_maintype() == "text":
            plain.append(_text(part))
    return plain, pages, attached


def _text(part: Message) -> str:
    """Return the text of a part in its declared encoding; detect the encoding if the declared one fails."""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    try:
        return payload.decode(part.get_content_charset() or "utf-8")
    except (LookupError, ValueError):
        return decode(payload)


def _header(message: Message, name: str) -> str:
    """Return a header on one line; an empty string if it is missing or malformed."""
    try:
        given = str(message.get(name, ""))[:_LONGEST_HEADER]
        return single_line(str(make_header(decode_header(given))))
    except Exception:  # the library fails on malformed headers in many ways
        return ""


def _named(part: Message) -> str:
    try:
        return single_line(part.get_filename() or "")
    except Exception:  # likewise
        return ""
