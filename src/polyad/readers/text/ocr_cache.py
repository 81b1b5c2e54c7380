"""The stored lines of pages that OCR recognised, in a file in the folder of an index."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

FILE_NAME = "ocr.sqlite"
"""File in the folder of an index that stores the recognised lines of pages."""


def forget_pages(folder: Path, digest: str) -> None:
    """Delete the stored lines of the file with this SHA-256, which was removed from the index in ``folder``.

    The lines of pictures inside the file are deleted unless another document contains them.
    """
    if (file := folder / FILE_NAME).exists():
        with closing(open_cache(file)) as cache, cache:
            select = "SELECT picture FROM owners WHERE owner = ? EXCEPT SELECT picture FROM owners WHERE owner != ?"
            pictures = [picture for (picture,) in cache.execute(select, (digest, digest))]
            cache.execute("DELETE FROM owners WHERE owner = ?", (digest,))
            for each in (digest, *pictures):
                cache.execute("DELETE FROM pages WHERE digest LIKE ?", (f"{each}-%",))


def open_cache(file: Path) -> sqlite3.Connection:
    """Open the file of the stored lines, and create its tables if they are missing."""
    cache = sqlite3.connect(file, timeout=60.0)
    cache.execute("PRAGMA journal_mode = WAL")
    cache.execute(
        "CREATE TABLE IF NOT EXISTS pages (digest TEXT, page INTEGER, lines TEXT, PRIMARY KEY (digest, page))"
    )
    cache.execute("CREATE TABLE IF NOT EXISTS owners (owner TEXT, picture TEXT, PRIMARY KEY (owner, picture))")
    return cache
