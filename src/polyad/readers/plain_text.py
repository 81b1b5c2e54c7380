"""Decodes bytes to clean text: detects the encoding, rejects binary data and replaces unstorable characters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from charset_normalizer import from_bytes

from polyad.errors import ReadError
from polyad.model import Location, MetadataValue, Section

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark begins the same
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_SAMPLE = 64 * 1024
"""Bytes that the encoding is guessed from."""

_COMMON = ("cp1252", "cp1251")
"""Preferred over rarer encodings that explain the bytes equally well: Western European, then Cyrillic."""

_DAMAGE = 0.1
"""Share of undecodable sequences among the non-ASCII ones up to which text counts as damaged UTF-8."""

_NOISE = 0.1
"""Share of control characters above which a file is binary."""

_HEADER_WITHIN = 3000
"""Characters at the beginning of a text in which it may say what it is called."""

_TITLE = re.compile(r"Title:[ \t]+\S")
_HEADER_LINE = re.compile(r"(Title|Author|Editor|Translator|Language|Release date|Date):[ \t]+(\S.*)", re.IGNORECASE)
_NEWLINE = re.compile("\r\n?|[\x0b\x0c\x85]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


class Content(NamedTuple):
    """The content of a file.

    Attributes:
        title: A single line; empty where the file has none.
        text: Every span refers to it.
        sections: Parts of it under headings.
        places: Its pages, sheets or slides, in order, as spans that do not overlap.
        metadata: What else the file says of itself.
        url: Where a browser finds it, if the file says so.
    """

    title: str
    text: str
    sections: tuple[Section, ...] = ()
    places: tuple[Location, ...] = ()
    metadata: Mapping[str, MetadataValue] = MappingProxyType({})
    url: str = ""


def clean(text: str) -> str:
    r"""Return ``text`` with ``\n`` as line ending, blanks for control characters and U+FFFD for lone surrogates.

    Apart from ``\r\n`` each character stays where it was, so that spans fit the original too.
    """
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", _NEWLINE.sub("\n", text)))


def single_line(text: str) -> str:
    """Return cleaned ``text`` on one line, with single blanks between words."""
    return _SPACES.sub(" ", clean(text)).strip()


def detect_encoding(sample: bytes, *, complete: bool = True) -> str:
    """Return the name of the codec of ``sample``.

    A byte order mark decides; then UTF-16 shows by its zero bytes; then whatever is UTF-8 is UTF-8, even slightly
    damaged; the rest is left to charset-normalizer.

    Args:
        sample: The beginning of a file.
        complete: Whether it is all of it; otherwise a character cut off at the end is forgiven.

    Raises:
        ReadError: It is not text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding
    if encoding := _utf16_without_mark(sample):
        return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=complete)
    except UnicodeDecodeError:
        return "utf-8" if _is_damaged_utf8(sample) else _guess(sample)
    return "utf-8"


def decode(data: bytes) -> str:
    """Decode ``data`` to cleaned text.

    Raises:
        ReadError: It is binary, or in an encoding that nothing recognises.
    """
    text = data.decode(detect_encoding(data), errors="replace")
    require_text(text)
    return clean(text)


def require_text(text: str) -> None:
    """Raise ReadError if a text is binary data; a few control characters are allowed.

    Raises:
        ReadError: It is binary.
    """
    if len(_CONTROL.findall(text)) > _NOISE * len(text):
        raise ReadError("binary data, not text")


def _utf16_without_mark(sample: bytes) -> str:
    """Return UTF-16's codec if nearly every other byte is zero, as in Western text; else an empty string."""
    head = sample[:_SAMPLE]
    pairs = len(head) // 2
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 0.5 * pairs and even < 0.05 * pairs:
        return "utf-16-le"
    if even > 0.5 * pairs and odd < 0.05 * pairs:
        return "utf-16-be"
    return ""


def _is_damaged_utf8(sample: bytes) -> bool:
    text = sample.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    sound = sum(character > "\x7f" for character in text) - broken
    return broken <= _DAMAGE * sound


def _guess(sample: bytes) -> str:
    matches = from_bytes(_first_lines(sample))
    best = matches.best()
    if best is None:
        raise ReadError("neither UTF-8 nor any other known text encoding; is it binary?")
    is_one_byte_a_character = len(str(best)) == len(best.raw)
    for encoding in _COMMON if is_one_byte_a_character else ():
        for match in matches:
            if encoding in (match.encoding, *match.could_be_from_charset) and match.chaos <= best.chaos:
                return encoding
    return best.encoding


def _first_lines(data: bytes) -> bytes:
    """Return the beginning of ``data`` up to white space, so that no multi-byte character is cut."""
    end = max(data.rfind(b"\n", 0, _SAMPLE), data.rfind(b" ", 0, _SAMPLE)) + 1
    return data[:end] if len(data) > _SAMPLE and end > 0 else data


def read_text(data: bytes) -> Content:
    """Return the content of a plain text file. A line ``Title: ...`` at the beginning gives the title.

    What other such lines say is metadata, as far as the first that is none; the text is whole.
    """
    text = decode(data)
    known = _header(text)
    return Content(known.pop("title", ""), text, metadata=dict(known))


def _header(text: str) -> dict[str, str]:
    """Parse a header like Project Gutenberg's into fields by lower-case name; empty if it has no title."""
    lines = text[:_HEADER_WITHIN].split("\n")
    first = next((place for place, line in enumerate(lines) if _TITLE.match(line)), len(lines))
    found: dict[str, str] = {}
    name = ""
    for line in lines[first:]:
        if field := _HEADER_LINE.match(line):
            name = field[1].lower()
            found.setdefault(name, single_line(field[2]))
        elif line.startswith((" ", "\t")) and line.strip() and name:
            found[name] = single_line(f"{found[name]} {line}")
        elif line.strip():
            break
        else:
            name = ""
    return found
