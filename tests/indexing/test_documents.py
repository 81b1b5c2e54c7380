"""Documents before they are indexed: a title that is too long for a title."""

from __future__ import annotations

from dataclasses import replace

from polyad import Document
from polyad.indexing.documents import MAX_TITLE_CHARACTERS, validate_document
from polyad.model import Location, Section


def test_a_title_that_is_too_long_becomes_the_first_paragraph_of_the_text() -> None:
    title = "A bell of Tarn. " * 99 + "End."
    document = Document("a", title, "It rings.", places=(Location(0, 9, 1),), sections=(Section("Bells", 3, 9),))
    valid = validate_document(document)
    assert isinstance(valid, Document)
    assert len(valid.title) <= MAX_TITLE_CHARACTERS + 2
    assert title.startswith(valid.title.removesuffix(" …"))
    assert valid.text == f"{title}\n\nIt rings."
    [place], [section] = valid.places, valid.sections
    assert (valid.text[place.start : place.end], place.page) == ("It rings.", 1)
    assert (valid.text[section.start : section.end], section.name) == ("rings.", "Bells")


def test_a_title_within_the_limit_stays() -> None:
    document = Document("a", "x" * MAX_TITLE_CHARACTERS, "It rings.")
    assert validate_document(document) is document
    assert validate_document(replace(document, title="Bell")) == replace(document, title="Bell")
