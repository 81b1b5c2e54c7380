import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed

from polyad.readers.docx import read_docx
from polyad.readers.plain_text import Content


def read(build: Callable[[Any], object]) -> Content:
    document = docx.Document()
    properties = document.core_properties
    properties.title = properties.author = ""
    properties.created = properties.modified = datetime(2024, 3, 1, 12)
    build(document)
    file = io.BytesIO()
    document.save(file)
    return read_docx(file.getvalue())


def test_text_in_the_style_title_is_the_title() -> None:
    def build(document: Any) -> None:
        document.add_heading("Revision history", 1)
        document.add_paragraph("Handbook  of\tPumps", style="Title")
        document.core_properties.title = "Report template"

    content = read(build)
    assert content.title == "Handbook of Pumps"
    assert content.metadata["title"] == "Report template"
    assert "Handbook" in content.text


def test_an_empty_title_names_nothing_and_a_made_up_one_in_the_properties_neither() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("", style="Title")
        document.core_properties.title = "Microsoft Word - pumps.doc"
        document.add_heading("Pumps", 1)

    assert read(build).title == "Pumps"


def test_the_properties_of_a_word_document_are_metadata() -> None:
    def build(document: Any) -> None:
        document.core_properties.author = "Ines Moreau"
        document.core_properties.keywords = "bells; casting"
        document.core_properties.subject = "Bells"
        document.add_paragraph("Text.")

    assert read(build).metadata == {
        "author": "Ines Moreau",
        "subject": "Bells",
        "keywords": ("bells", "casting"),
        "created": "2024-03-01T12:00:00Z",
        "modified": "2024-03-01T12:00:00Z",
    }


def test_a_word_document_has_no_places_since_word_alone_knows_its_pages() -> None:
    assert read(lambda document: document.add_paragraph("Text.")).places == ()
