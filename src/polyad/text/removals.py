"""Counts of what readers leave out of a document's text, in its metadata and in the report of an indexing run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from polyad.model import MetadataValue

HEADERS, CONTENTS, NAVIGATION = "removed_headers", "removed_contents", "removed_navigation"
PICTURES, PAGES = "pictures_without_text", "unreadable_pages"
COMMENTS, FILES = "removed_comments", "embedded_files"
SCANS, UNREAD_SCANS, UNCERTAIN = "scanned_pages", "unread_scans", "uncertain_words"
READ_PICTURES, UNREAD_PICTURES, OMITTED_PICTURES = "read_pictures", "unread_pictures", "omitted_pictures"
INSTALL_OCR = 'run: pip install "polyad[ocr]"'
NOTES = {
    HEADERS: "removed lines of page headers and footers",
    CONTENTS: "removed lines of tables of contents and indexes",
    NAVIGATION: "removed texts of site navigation",
    PICTURES: "pictures without text",
    PAGES: "pages that cannot be read",
    COMMENTS: "removed comments",
    FILES: "embedded or attached files that are not read",
    SCANS: "scanned pages, read by OCR",
    UNREAD_SCANS: f"scanned pages that are not read; for their text, {INSTALL_OCR}",
    READ_PICTURES: "pictures in documents, read by OCR",
    UNREAD_PICTURES: f"pictures in documents that are not read; for their text, {INSTALL_OCR}",
    OMITTED_PICTURES: "pictures in documents that cannot be read",
    UNCERTAIN: "words of which OCR is not certain",
}
"""Kinds of removed text, of scanned pages, of pictures and of uncertain words, as keys of metadata, and the note on
each in the report."""

Removals = Mapping[str, tuple[str, ...]]
"""Removed texts, or names of pictures and pages, by kind."""


def merge_removals(parts: Iterable[Mapping[str, Sequence[str]]]) -> Removals:
    """Return the removed texts of the parts of a document together.

    >>> merge_removals([{HEADERS: ["Pumps"]}, {HEADERS: ["Seals"], CONTENTS: []}])
    {'removed_headers': ('Pumps', 'Seals')}
    """
    merged: dict[str, list[str]] = {}
    for part in parts:
        for kind, texts in part.items():
            if texts:
                merged.setdefault(kind, []).extend(texts)
    return {kind: tuple(texts) for kind, texts in merged.items()}


def count_removals(removals: Removals) -> dict[str, MetadataValue]:
    """Return the number of removed texts by kind, as metadata of the document."""
    return {kind: len(texts) for kind, texts in removals.items() if texts}


def build_notes(metadata: Mapping[str, MetadataValue]) -> Counter[str]:
    """Return the number of removed texts that a document's metadata state, by note.

    >>> build_notes({"removed_headers": 40, "pages": 20})
    Counter({'removed lines of page headers and footers': 40})
    """
    counts = ((note, metadata.get(kind)) for kind, note in NOTES.items())
    return Counter({note: count for note, count in counts if isinstance(count, int)})
