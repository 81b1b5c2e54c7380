"""Digests of questions, by which they are known again whatever data set they are in."""

from __future__ import annotations

import hashlib
import unicodedata


def question_digest(text: str) -> str:
    """16 hexadecimal digits (8 bytes of SHA-256) of a question's text, whatever its case and white space.

    >>> question_digest("Who cast the  bell?") == question_digest("who cast the bell?")
    True
    """
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
