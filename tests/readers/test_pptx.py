import io
from collections.abc import Callable
from typing import Any

import pptx
import pytest
from pptx.util import Inches

from polyad.indexing.documents import build_title, find_headings, find_sections
from polyad.model import Document, Span
from polyad.readers.plain_text import Content
from polyad.readers.pptx import read_pptx

TITLE, BULLETS, TITLE_ONLY, BLANK = 0, 1, 5, 6


def read(build: Callable[[Any], object], title: str = "") -> Content:
    presentation = pptx.Presentation()
    presentation.core_properties.title = title
    build(presentation)
    file = io.BytesIO()
    presentation.save(file)
    return read_pptx(file.getvalue())


def slide(presentation: Any, layout: int, title: str = "", body: str = "") -> Any:
    made = presentation.slides.add_slide(presentation.slide_layouts[layout])
    if title:
        made.shapes.title.text = title
    if body:
        made.placeholders[1].text = body
    return made


def test_each_slide_is_a_place_and_its_title_a_section() -> None:
    def build(presentation: Any) -> None:
        slide(presentation, BULLETS, "Pumps", "Old\nWorn")
        slide(presentation, BLANK)
        slide(presentation, BULLETS, "Valves", "New")

    content = read(build)
    assert [(place.slide, content.text[place.start : place.end]) for place in content.places] == [
        (1, "Pumps\n\nOld\nWorn"),
        (2, ""),
        (3, "Valves\n\nNew"),
    ]
    assert {part.name: content.text[part.start : part.end] for part in content.sections if part.strength} == {
        "Pumps": "Pumps\n\nOld\nWorn",
        "Valves": "Valves\n\nNew",
    }
    assert content.metadata["slides"] == 3


def test_the_text_of_boxes_groups_tables_and_notes_is_read() -> None:
    def build(presentation: Any) -> None:
        made = slide(presentation, TITLE_ONLY, "Pumps")
        box = (Inches(1), Inches(1), Inches(2), Inches(1))
        made.shapes.add_group_shape().shapes.add_group_shape().shapes.add_textbox(*box).text_frame.text = "In a group"
        table = made.shapes.add_table(2, 2, *box).table
        for place, text in enumerate(["Name", "Flow", "P1", "3\nl/s"]):
            table.cell(place // 2, place % 2).text = text
        made.notes_slide.notes_text_frame.text = "Say why."

    assert read(build).text == "Pumps\n\nIn a group\n\nName\tFlow\nP1\t3 l/s\n\nSay why."


def test_the_title_of_a_presentation_is_the_one_in_its_properties_else_that_of_its_first_slide() -> None:
    def build(presentation: Any) -> None:
        slide(presentation, TITLE, "Pumps of  Saltby", "Spring meeting")

    assert read(build, "The pumps").title == "The pumps"
    assert read(build, "PowerPoint Presentation").title == "Pumps of Saltby"


@pytest.mark.parametrize("title", ["The pumps of Saltby", ""])
def test_each_slide_stands_below_the_title_of_its_presentation_and_is_about_its_own(title: str) -> None:
    def build(presentation: Any) -> None:
        slide(presentation, TITLE, "Pumps of Saltby", "Spring meeting")
        slide(presentation, BULLETS, "Valves", "New")
        slide(presentation, BLANK).shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Otters"

    content = read(build, title)
    deck = title or "Pumps of Saltby"
    document = Document("d", content.title, content.text, sections=content.sections, places=content.places)
    spans = [Span(place.start, place.end) for place in content.places]
    first, *others = find_sections(document, spans)
    assert {section.strength for section in first if section.name == deck} >= {1.0}
    subjects = [[section.name for section in sections if section.strength] for sections in others]
    assert subjects == [["Valves"], []]
    titles = [build_title(sections, span.end - span.start) for sections, span in zip(others, spans[1:], strict=True)]
    assert titles == [f"{deck} / Valves", deck]
    assert list(find_headings(document, spans))[1:] == titles
