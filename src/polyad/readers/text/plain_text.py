"""Decodes bytes to clean text: rejects binary data and replaces unstorable characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from polyad.errors import ReadError
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.encodings import decode_text
from polyad.text.removals import merge_removals
from polyad.text.words import collapse_whitespace

_MAX_CONTROL_SHARE = 0.1
"""Share of control characters above which a file is binary."""

_HEADER_CHARACTERS = 3000
"""Characters at the beginning of a text in which a header is looked for."""

_CODING = re.compile(rb"(?:coding[ \t]*[=:][ \t]*|\\usepackage\[)([\w.-]+)")
"""The encoding that source code declares for editors or Python, or LaTeX for ``inputenc``."""

_CODING_BYTES = 1000
"""Bytes in which source code declares its encoding."""

_TITLE = re.compile(r"Title:[ \t]+\S")
_HEADER_LINE = re.compile(r"(Title|Author|Editor|Translator|Language|Release date|Date):[ \t]+(\S.*)", re.IGNORECASE)
_NEWLINE = re.compile("\r\n?|[\x0b\x0c\x85]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_BLANK_LINE = "\n\n"
_SURROGATE = re.compile("[\ud800-\udfff]")


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


def join_contents(contents: Sequence[Content]) -> Content:
    """Return one content with the texts of all contents, joined by blank lines, and the first title."""
    text, spans = join_texts([content.text for content in contents])
    sections = tuple(
        replace(section, start=section.start + start, end=section.end + start)
        for content, (start, _) in zip(contents, spans, strict=True)
        for section in content.sections
    )
    title = next((content.title for content in contents if content.title), "")
    return Content(title, text, sections, removals=merge_removals(content.removals for content in contents))


def decode(data: bytes, declared: str = "") -> str:
    """Return ``data`` as cleaned text, in the encoding with the label ``declared`` or in its detected encoding.

    Raises:
        ReadError: The data is binary or in an unknown encoding.
    """
    text = decode_text(data, declared)
    require_text(text)
    return clean(text)


def require_text(text: str) -> None:
    """Raise ReadError if a text has so many control characters that the file must be binary."""
    if len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise ReadError("binary data, not text")


def read_text(data: bytes) -> Content:
    """Return the content of a plain text file, with the title from a line ``Title: ...`` at the beginning.

    Other lines ``Name: value`` of this header, up to the first line of another form, become metadata. The header stays
    in the text.
    """
    text = decode(data)
    fields = _parse_header(text)
    return Content(fields.pop("title", ""), text, metadata=dict(fields))


def read_source_code(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of a source code file, without a title, so that the file name becomes the title.

    Raises:
        ReadError: The file is not text.
    """
    data = source.read()
    declared = _CODING.search(data, 0, _CODING_BYTES)
    return Content("", decode(data, declared[1].decode("ascii") if declared else ""))


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
