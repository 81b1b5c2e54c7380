"""Reads source code and settings as plain text."""

from __future__ import annotations

from polyad.readers.plain_text import Content, decode


def read_source_code(data: bytes) -> Content:
    """Return the content of a source code file, without a title: the file name serves as title.

    Raises:
        ReadError: It is not text.
    """
    return Content("", decode(data))
