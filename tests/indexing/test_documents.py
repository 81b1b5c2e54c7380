"""Documents before they are indexed: a title that is too long for a title, and the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from polyad import Document
from polyad.indexing.documents import MAX_TITLE_CHARACTERS, add_language, validate_document
from polyad.model import METADATA_KEYS, Argument, Location, MetadataValue, Section
from polyad.text.pictures import MAX_LISTED, PICTURE_LIST, build_label


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


GERMAN = "Die Glocke im Turm wurde von Ines Moreau gegossen, die aus Port Lisle kam."


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "de"),
        ({"language": "de-AT"}, "de"),
        ({"language": "fr"}, "fr"),
        ({"language": "zh"}, "de"),
        ({"language": "German"}, "German"),
        ({"lang": "nl"}, "nl"),
        ({f"key {number}": number for number in range(METADATA_KEYS)}, None),
    ],
)
def test_a_document_gets_the_language_that_is_stated_or_detected(
    metadata: Mapping[str, MetadataValue], language: str | None
) -> None:
    document = Document("d", "Bell", GERMAN, metadata=metadata)
    assert add_language(document).metadata.get("language") == language


def test_a_document_without_words_or_of_one_fact_gets_no_language() -> None:
    assert "language" not in add_language(Document("d", "", "17.5 18.0")).metadata
    fact = Document("d", "", GERMAN, arguments=(Argument("founder", "Ines Moreau"),))
    assert "language" not in add_language(fact).metadata


def test_all_pictures_that_a_document_lists_are_stored() -> None:
    labels = tuple(build_label(f"Figure {number}: " + "The pump of the station " * 9) for number in range(MAX_LISTED))
    for key, is_whole in ((PICTURE_LIST, True), ("authors", False)):
        valid = validate_document(Document("a", "", "It rings.", metadata={key: labels}))
        assert isinstance(valid, Document)
        assert (valid.metadata[key] == labels) is is_whole
