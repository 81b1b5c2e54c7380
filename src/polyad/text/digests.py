"""Hashes of questions, which identify a question in any data set."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

_DIGEST = re.compile("[0-9a-f]{16}")


def hash_question(text: str) -> str:
    """Return the hash of a question, independent of case and white space: 16 hexadecimal digits of SHA-256.

    >>> hash_question("Who cast the  bell?") == hash_question("who cast the bell?")
    True
    """
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hash_questions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted hashes of question texts without duplicates; each has 16 hexadecimal digits.

    Model weights list their training questions in this form.
    """
    return tuple(sorted({hash_question(text) for text in texts}))


def is_question_hash(value: object) -> bool:
    """Return whether ``value`` is a string of 16 hexadecimal digits, as :func:`hash_question` returns."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
