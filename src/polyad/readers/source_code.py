"""Source code and settings as text: what a file defines is found by its words, and by the name of the file."""

from __future__ import annotations

from polyad.readers.plain_text import Content, decode


def read_source_code(data: bytes) -> Content:
    """A file of source code. It has no title; the file's name is one.

    Raises:
        ReadError: It is not text.
    """
    return Content("", decode(data))
