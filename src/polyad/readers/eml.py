"""Reads e-mail with the standard library: the subject is the title, the body the text."""

from __future__ import annotations

from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any

from polyad.errors import ReadError
from polyad.readers.encodings import decode_text
from polyad.readers.metadata import build_metadata
from polyad.readers.plain_text import Content, clean, decode, to_single_line
from polyad.readers.properties import prepend_lines

_HEADERS = ("from", "to", "cc", "date", "reply-to", "list-id", "message-id", "in-reply-to")
_SHOWN_HEADERS = ("from", "to", "cc", "date")
"""Headers that precede the text."""

_MAX_HEADER = 5000
"""Characters of a header that are read; longer headers are lists of recipients."""

_MAX_PARTS = 1000
"""Parts of a message that are read; a real message has a few."""


class _Message(Message):
    """An e-mail message with shortened headers, because the library parses long headers in quadratic time."""

    def get(self, name: str, failobj: Any = None) -> Any:
        """Return the e-mail header ``name`` without the text beyond a length limit; ``failobj`` if it is missing."""
        value = super().get(name, failobj)
        return value if value is failobj else str(value)[:_MAX_HEADER]


def read_eml(data: bytes) -> Content:
    """Return the text of an e-mail message: sender, recipients and date, then the body with quoted replies.

    HTML parts are read only if the message has no plain text. The headers and the names of attachments are metadata.

    Raises:
        ReadError: The file has no headers, or its parts nest too deeply.
    """
    try:
        message = BytesParser(_Message).parsebytes(data)
        if not message.keys():
            raise ReadError("not an e-mail: no headers at the beginning")
        plain_texts, html_parts, attachments = _split_parts(message)
    except RecursionError as error:
        raise ReadError("its parts are nested too deeply") from error
    headers = [(name, _get_header(message, name)) for name in _HEADERS]
    title = _get_header(message, "subject")
    content = Content("", "\n\n".join(plain_texts))
    if not content.text.strip() and html_parts:
        from polyad.readers.html import parse_markup  # needs an optional package, which plain messages do not need

        content = parse_markup("\n".join(html_parts))
    text = clean(content.text).strip("\n")
    sections = content.sections if text == content.text else ()
    metadata = build_metadata([*headers, ("attachments", attachments)])
    content = Content(title or content.title, text, sections, metadata=metadata)
    lines = [
        (name.title(), _format_date(value) if name == "date" else value)
        for name, value in headers
        if name in _SHOWN_HEADERS
    ]
    return prepend_lines(content, lines)


def _format_date(header: str) -> str:
    """Return the date in a header with the month as a word, as questions write it; an invalid date unchanged.

    >>> _format_date("Tue, 06 Jun 2023 11:00:00 +0200"), _format_date("last week")
    ('6 June 2023, 11:00', 'last week')
    """
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return header
    return f"{date.day} {date:%B %Y, %H:%M}"


def _split_parts(message: Message) -> tuple[list[str], list[str], list[str]]:
    """Return three lists of a message's contents: plain texts, HTML parts, and names of attachments."""
    plain_texts: list[str] = []
    html_parts: list[str] = []
    attachments: list[str] = []
    for count, part in enumerate(message.walk()):
        if count >= _MAX_PARTS:
            break
        name = _get_file_name(part)
        if name or part.get_content_disposition() == "attachment":
            attachments.append(name or part.get_content_type())
        elif part.get_content_type() == "text/html":
            html_parts.append(_decode_part(part))
        elif part.get_content_maintype() == "text":
            plain_texts.append(_decode_part(part))
    return plain_texts, html_parts, attachments


def _decode_part(part: Message) -> str:
    """Return the text of a part in its declared encoding, or in a detected encoding if the declared one fails."""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    return decode(payload, part.get_content_charset() or "")


def _get_header(message: Message, name: str) -> str:
    """Return an e-mail header as one line of text; an empty string if the header is missing or malformed."""
    values = (str(value) for key, value in message.raw_items() if key.lower() == name)
    return _decode_words(next(values, "")[:_MAX_HEADER], message)


def _get_file_name(part: Message) -> str:
    """Return the file name of an attachment; an empty string if it is missing or malformed."""
    try:
        return _decode_words(part.get_filename() or "", part)
    except Exception:  # the library fails on malformed headers in many ways
        return ""


def _decode_words(header: str, message: Message) -> str:
    """Return a header as one line of text, with decoded words ``=?utf-8?q?=C3=BC?=``; empty if it is malformed.

    Bytes that belong to no such word are in the encoding of the message, if it declares one.
    """
    try:
        line = decode_text(header.encode("utf-8", errors="surrogateescape"), message.get_content_charset() or "")
        words = decode_header(to_single_line(line))
        return to_single_line("".join(_decode_word(word, charset or "") for word, charset in words))
    except Exception:  # the library fails on malformed headers in many ways
        return ""


def _decode_word(word: bytes | str, charset: str) -> str:
    """Return a word of a header as text; the library escapes letters of words without encoding."""
    if isinstance(word, str):
        return word
    return decode_text(word, charset) if charset else word.decode("raw_unicode_escape")
