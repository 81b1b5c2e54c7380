"""Decodes bytes to clean text: detects the encoding, rejects binary data and replaces unstorable characters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from charset_normalizer import from_bytes

from polyad.errors import ReadError
from polyad.model import Location, MetadataValue, Section
from polyad.text.words import collapse_whitespace

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark begins the same
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_SAMPLE_BYTES = 64 * 1024
"""Bytes from which the encoding is guessed."""

_PREFERRED_ENCODINGS = ("cp1252", "cp1251")
"""Preferred over rarer encodings that explain the bytes equally well: Western European, then Cyrillic."""

_MAX_DAMAGE = 0.1
"""Share of undecodable sequences among the non-ASCII ones up to which text counts as damaged UTF-8."""

_MAX_CONTROL_SHARE = 0.1
"""Share of control characters above which a file is binary."""

_HEADER_CHARACTERS = 3000
"""Characters at the beginning of a text in which a header is looked for."""

_TITLE = re.compile(r"Title:[ \t]+\S")
_HEADER_LINE = re.compile(r"(Title|Author|Editor|Translator|Language|Release date|Date):[ \t]+(\S.*)", re.IGNORECASE)
_NEWLINE = re.compile("\r\n?|[\x0b\x0c\x85]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_BLANK_LINE = "\n\n"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: title, text, sections, page locations, URL and metadata.

    Attributes:
        title: A single line; empty if the file states no title.
        text: The text that every span refers to.
        sections: Sections of the text under headings.
        places: Pages, sheets or slides, in order, as spans that do not overlap.
        metadata: Other properties that the file states.
        url: Web address of the document if the file states it.
    """

    title: str
    text: str
    sections: tuple[Section, ...] = ()
    places: tuple[Location, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    url: str = ""


def clean(text: str) -> str:
    r"""Return ``text`` with ``\n`` as line ending; control characters become spaces, lone surrogates U+FFFD.

    Only ``\r\n`` changes the length of the text, so that spans fit the original text too.
    """
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", _NEWLINE.sub("\n", text)))


def to_single_line(text: str) -> str:
    """Return cleaned ``text`` on one line, with single spaces between words."""
    return collapse_whitespace(clean(text))


def join_texts(texts: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the texts joined by blank lines, and the span of each text in the joined text."""
    starts = accumulate((len(text) + len(_BLANK_LINE) for text in texts), initial=0)
    return _BLANK_LINE.join(texts), [(start, start + len(text)) for start, text in zip(starts, texts, strict=False)]


def detect_encoding(sample: bytes, *, is_whole_file: bool = True) -> str:
    """Return the name of Python's codec for the encoding of ``sample``, the beginning or the whole of a file.

    A byte order mark decides; then zero bytes reveal UTF-16; then valid or slightly damaged UTF-8 is UTF-8; otherwise
    charset-normalizer guesses.

    Args:
        sample: The beginning of a file.
        is_whole_file: Whether the sample is the whole file; otherwise its last character may be cut off.

    Raises:
        ReadError: The sample is not text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding
    if encoding := _detect_utf16(sample):
        return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=is_whole_file)
    except UnicodeDecodeError:
        return "utf-8" if _is_damaged_utf8(sample) else _guess_encoding(sample)
    return "utf-8"


def decode(data: bytes) -> str:
    """Return ``data`` as cleaned text, in its detected encoding.

    Raises:
        ReadError: The data is binary or in an unknown encoding.
    """
    text = data.decode(detect_encoding(data), errors="replace")
    require_text(text)
    return clean(text)


def require_text(text: str) -> None:
    """Raise ReadError if a text has so many control characters that the file must be binary."""
    if len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise ReadError("binary data, not text")


def _detect_utf16(sample: bytes) -> str:
    """Return the UTF-16 codec if nearly every other byte is zero, as in Western text; otherwise an empty string."""
    head = sample[:_SAMPLE_BYTES]
    pairs = len(head) // 2
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 0.5 * pairs and even < 0.05 * pairs:
        return "utf-16-le"
    if even > 0.5 * pairs and odd < 0.05 * pairs:
        return "utf-16-be"
    return ""


def _is_damaged_utf8(sample: bytes) -> bool:
    """Return whether a sample is UTF-8 with a few invalid sequences, rather than in another encoding."""
    text = sample.decode("utf-8", errors="replace")
    invalid = text.count("\ufffd")
    valid = sum(character > "\x7f" for character in text) - invalid
    return invalid <= _MAX_DAMAGE * valid


def _guess_encoding(sample: bytes) -> str:
    """Return the codec of the most likely encoding; among equally likely ones, prefer a common encoding."""
    if len(sample) > _SAMPLE_BYTES:  # cut at white space, so that no multi-byte character is cut
        end = max(sample.rfind(b"\n", 0, _SAMPLE_BYTES), sample.rfind(b" ", 0, _SAMPLE_BYTES)) + 1
        sample = sample[: end or None]
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        raise ReadError("neither UTF-8 nor any other known text encoding; is it binary?")
    is_one_byte_a_character = len(str(best)) == len(best.raw)
    for encoding in _PREFERRED_ENCODINGS if is_one_byte_a_character else ():
        for match in matches:
            if encoding in (match.encoding, *match.could_be_from_charset) and match.chaos <= best.chaos:
                return encoding
    return best.encoding


def read_text(data: bytes) -> Content:
    """Return the content of a plain text file, with the title from a line ``Title: ...`` at the beginning.

    Other lines ``Name: value`` of this header, up to the first line of another form, become metadata. The header stays
    in the text.
    """
    text = decode(data)
    fields = _parse_header(text)
    return Content(fields.pop("title", ""), text, metadata=dict(fields))


def read_source_code(data: bytes) -> Content:
    """Return the content of a source code file, without a title, so that the file name becomes the title.

    Raises:
        ReadError: The file is not text.
    """
    return Content("", decode(data))


def _parse_header(text: str) -> dict[str, str]:
    """Return the fields of a header like Project Gutenberg's (``Title: ...``); empty if no field is a title."""
    lines = text[:_HEADER_CHARACTERS].split("\n")
    first = next((place for place, line in enumerate(lines) if _TITLE.match(line)), len(lines))
    fields: dict[str, str] = {}
    name = ""
    for line in lines[first:]:
        if match := _HEADER_LINE.match(line):
            name = match[1].lower()
            fields.setdefault(name, to_single_line(match[2]))
        elif line.startswith((" ", "\t")) and line.strip() and name:
            fields[name] = to_single_line(f"{fields[name]} {line}")
        elif line.strip():
            break
        else:
            name = ""
    return fields
