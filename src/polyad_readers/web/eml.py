"""Reads e-mail with the standard library: the subject is the title, the body the text."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import datetime
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from polyad.errors import ReadError
from polyad.model import Section
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Pictures, Source
from polyad.readers.text.encodings import decode_text
from polyad.readers.text.metadata import build_metadata
from polyad.readers.text.plain_text import decode, join_contents, to_single_line
from polyad.readers.text.properties import prepend_lines
from polyad.text.removals import FILES, PICTURES, merge_removals

_HEADERS = ("from", "to", "cc", "date", "reply-to", "list-id", "message-id", "in-reply-to")
_SHOWN_HEADERS = ("from", "to", "cc", "date")
"""Headers that precede the text."""

_MAX_HEADER = 5000
"""Characters of a header that are read; longer headers are lists of recipients."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of messages that a text editor saved."""

_TEXT_NAME = re.compile(r".*\.(?:txt|text|md|csv|log|ics|html?)", re.IGNORECASE)
"""Names of attached texts whose type many programs declare as ``application/octet-stream``."""

_MAX_MISSING = 0.3
"""Share of the words of an HTML part that its plain text may lack; a stub ("use another program") lacks nearly all."""

_EVENT = re.compile(r"^BEGIN:VEVENT\n(.*?)^END:VEVENT$", re.DOTALL | re.MULTILINE)
_EVENT_LINE = re.compile(
    r"^(SUMMARY|LOCATION|DTSTART|DTEND|STATUS|ORGANIZER|DESCRIPTION)((?:;(?:\"[^\"\n]*+\"|[^\":\n])*+)?):(.*)$",
    re.MULTILINE,
)
_EVENT_NAMES = {"SUMMARY": "Event", "DTSTART": "Start", "DTEND": "End"}
_PARAMETER = re.compile(r";(?:CN|TZID)=\"?([^;\"]*)")


class _Message(Message):
    """An e-mail message with shortened headers, because the library parses long headers in quadratic time."""

    def get(self, name: str, failobj: Any = None) -> Any:
        """Return the e-mail header ``name`` without the text beyond a length limit; ``failobj`` if it is missing."""
        value = super().get(name, failobj)
        return value if value is failobj else str(value)[:_MAX_HEADER]


class _Attachments(NamedTuple):
    """The names of the attachments of a message, and the reader of its pictures."""

    names: list[str]
    pictures: Pictures | None


class _Part(NamedTuple):
    """The content of a part of a message, and whether the part is plain text or HTML of the body, or something else."""

    kind: str
    content: Content


def read_eml(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the text of an e-mail message: sender, recipients and date, then the body with quoted replies.

    An HTML part is read if the message has no plain text, or a plain text without the words of the HTML. Attached
    texts, messages, pictures with text and invitations follow the body. The headers and the names of attachments are
    metadata.

    Raises:
        ReadError: The file has no headers, or its parts nest too deeply.
    """
    data = source.read()
    attachments = _Attachments([], context.pictures)
    try:
        message = BytesParser(_Message).parsebytes(decode_text(data).encode() if data.startswith(_MARKS) else data)
        if not message.keys():
            raise ReadError("not an e-mail: no headers at the beginning")
        content = _read_message(message, attachments, _SHOWN_HEADERS)
    except RecursionError as error:
        raise ReadError("its parts are nested too deeply") from error
    headers = [(name, _get_header(message, name)) for name in _HEADERS]
    metadata = build_metadata([*headers, ("attachments", attachments.names)])
    return replace(content, title=_get_header(message, "subject") or content.title, metadata=metadata)


def _read_message(message: Message, attachments: _Attachments, names: tuple[str, ...]) -> Content:
    """Return the headers ``names`` of a message as lines, then its text; append the names of its attachments."""
    first = len(attachments.names)
    contents = [part.content for part in _read_parts(message, attachments)]
    content = join_contents([one for one in contents if one.text.strip()])
    content = replace(content, removals=merge_removals(one.removals for one in contents))
    lines = [(name.title(), _get_header(message, name)) for name in names]
    lines = [(name, _format_date(value) if name == "Date" else value) for name, value in lines]
    return prepend_lines(content, [*lines, ("Attachments", ", ".join(attachments.names[first:]))])


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


def _read_parts(part: Message, attachments: _Attachments) -> list[_Part]:
    """Return the contents of a part and of the parts in it that have text; append the names of attachments."""
    kind, name = part.get_content_type(), _get_file_name(part)
    parts = [inner for inner in part.get_payload() if isinstance(inner, Message)] if part.is_multipart() else []
    if kind == "message/rfc822" and parts:
        content = _read_message(parts[0], attachments, ("subject", *_SHOWN_HEADERS))
        return [_Part("message", _add_section(content, _get_header(parts[0], "subject")))]
    if part.is_multipart():
        contents = [content for inner in parts for content in _read_parts(inner, attachments)]
        return _choose_alternatives(contents, is_alternative=kind == "multipart/alternative")
    is_attachment = bool(name) or part.get_content_disposition() == "attachment"
    if is_attachment:
        attachments.names.append(name or kind)
    if kind.startswith("image/") and attachments.pictures:
        return [_Part("picture", _read_picture(part, name or kind, attachments.pictures))]
    unread = Content("", "", removals={PICTURES if kind.startswith("image/") else FILES: (name or kind,)})
    if part.get_content_maintype() != "text" and not _TEXT_NAME.fullmatch(name):
        return [_Part("unread", unread)]
    try:
        content = _read_text_part(part, kind, name)
    except ReadError:
        if is_attachment:
            return [_Part("unread", unread)]
        raise
    if is_attachment:
        content = _add_section(prepend_lines(content, [("Attachment", name)]), name)
    return [_Part("attachment" if is_attachment else kind, content)] if content.text.strip() else []


def _read_picture(part: Message, name: str, pictures: Pictures) -> Content:
    """Return the text of a picture; it is counted as a picture without text if it has none."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    text = pictures.read(f"{name} {hashlib.sha256(data).hexdigest()[:8]}", lambda: data, name=name)
    return Content("", text, removals={} if text else {PICTURES: (name,)})


def _read_text_part(part: Message, kind: str, name: str) -> Content:
    """Return the content of a part that is plain text, HTML or an invitation, by its type or file name."""
    payload = part.get_payload(decode=True)
    text = decode(payload, part.get_content_charset() or "") if isinstance(payload, bytes) else ""
    if kind == "text/html" or name.lower().endswith((".htm", ".html")):
        from polyad_readers.web.html import parse_markup  # needs an optional package, which plain messages do not need

        return parse_markup(text)
    is_calendar = kind == "text/calendar" or name.lower().endswith(".ics")
    return Content("", (_format_events(text) if is_calendar else text).strip("\n"))


def _add_section(content: Content, name: str) -> Content:
    """Return the content as one section with its other sections inside; without a name, the content itself."""
    return replace(content, sections=(Section(name, 0, len(content.text)), *content.sections)) if name else content


def _choose_alternatives(parts: list[_Part], *, is_alternative: bool) -> list[_Part]:
    """Return the parts without the plain text or the HTML that says the same as the other.

    Plain text of alternatives is omitted if it lacks the words of the HTML.
    """
    words: dict[str, set[str]] = {"text/plain": set(), "text/html": set()}
    for part in parts:
        words.get(part.kind, set()).update(re.findall(r"\w+", part.content.text.casefold()))
    plain_words, html_words = words.values()
    if not plain_words or not html_words:
        return parts
    is_missing = len(html_words - plain_words) > _MAX_MISSING * len(html_words)
    if is_missing and not is_alternative:
        return parts
    is_stub = is_missing and 2 * len(html_words) > len(plain_words)
    return [part for part in parts if part.kind != ("text/plain" if is_stub else "text/html")]


def _format_events(calendar: str) -> str:
    r"""Return the events of an iCalendar text as lines ``name: value``; the calendar itself if it has no events.

    >>> _format_events("BEGIN:VEVENT\nDTSTART:20240612T090000Z\nSUMMARY:Lock\\, gate\nEND:VEVENT\n")
    'Start: 12 June 2024, 09:00 UTC\nEvent: Lock, gate'
    """
    unfolded = re.sub(r"\n[ \t]", "", calendar)
    events = [map(_format_event_line, _EVENT_LINE.finditer(event[1])) for event in _EVENT.finditer(unfolded)]
    return "\n\n".join("\n".join(event) for event in events) or calendar


def _format_event_line(line: re.Match[str]) -> str:
    """Return a line of an event, such as ``DTSTART;TZID=Europe/Paris:20240612T090000``, in words."""
    name, value = line[1], line[3].strip()
    parameter = _PARAMETER.search(line[2])
    if name.startswith("DT"):
        value = _format_event_time(value) + (f" ({parameter[1]})" if parameter else "")
    elif name == "ORGANIZER":
        value = re.sub("^mailto:", f"{parameter[1]}, " if parameter else "", value, flags=re.IGNORECASE)
    value = re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] in "nN" else escaped[1], value)
    return f"{_EVENT_NAMES.get(name, name.capitalize())}: {value}"


def _format_event_time(value: str) -> str:
    """Return a date or time of an event with the month as a word; a malformed value unchanged."""
    try:
        date = datetime.fromisoformat(value)
    except ValueError:
        return value
    time = f", {date:%H:%M}" + " UTC" * value.endswith("Z") if "T" in value else ""
    return f"{date.day} {date:%B %Y}{time}"


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
