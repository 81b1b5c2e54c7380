"""Digests of questions, by which they are known again whatever data set they are in."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

_DIGEST = re.compile("[0-9a-f]{16}")


def question_digest(text: str) -> str:
    """16 hexadecimal digits (8 bytes of SHA-256) of a question's text, whatever its case and white space.

    >>> question_digest("Who cast the  bell?") == question_digest("who cast the bell?")
    True
    """
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def question_digests(texts: Iterable[str]) -> tuple[str, ...]:
    """The digests of questions, sorted, each once: as weights keep those that they were trained on."""
    return tuple(sorted({question_digest(text) for text in texts}))


def is_digest(value: object) -> bool:
    """Whether it could be what :func:`question_digest` gives."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
