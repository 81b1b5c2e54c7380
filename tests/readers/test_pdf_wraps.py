import io
import re
import textwrap
from collections.abc import Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.readers.format import Content, Source
from polyad_readers.pdf.reader import read_pdf

PROSE = (
    "The pumps of the old station were mended in the spring and have run without a fault ever since that day, which "
    "the whole town remembers well because the water was brown for three weeks. Ines Moreau wrote down in the book at "
    "the gate what the two inspectors saw, and nobody has read it since then."
)


def read_pages(pages: Sequence[Sequence[str]], font: str = "Helvetica") -> Content:
    """The content of pages with lines 14 points apart; an empty line is a gap."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    for lines in pages:
        canvas.setFont(font, 11)
        for number, line in enumerate(lines):
            canvas.drawString(72, 760 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return read_pdf(Source.from_bytes(file.getvalue()))


def test_the_lines_of_a_paragraph_are_one_line() -> None:
    assert read_pages([textwrap.wrap(PROSE, 70)]).text == PROSE


def test_a_short_line_ends_a_paragraph() -> None:
    lines = [*textwrap.wrap(PROSE, 70), "A letter came."]
    assert read_pages([[*lines, *textwrap.wrap(PROSE, 70)]]).text == f"{PROSE}\nA letter came.\n{PROSE}"


def test_a_paragraph_over_the_end_of_a_page_is_one_line_and_each_page_has_its_part() -> None:
    lines = textwrap.wrap(PROSE, 70)
    content = read_pages([lines[:2], lines[2:]])
    assert content.text == PROSE
    assert [content.text[place.start : place.end] for place in content.places] == [
        " ".join(lines[:2]),
        " ".join(lines[2:]),
    ]


def test_hyphens_at_the_ends_of_lines_stay_in_compounds_only() -> None:
    lines = [
        "The pumps of the old station were mended in the spring by a well-known infra-",
        "structure company, and they have run without a fault ever since, which is well-",
        "known to all people of the town, who remember the water of the winter of COVID-",
        "19 and the brown river.",
    ]
    text = read_pages([lines]).text
    assert "infrastructure company" in text
    assert text.count("well-known") == 2
    assert "of COVID-19 and" in text
    assert "\n" not in text


VERSE = [
    "The river runs below the mill, and no one hears",
    "The wheel that turned the stone for eighty years,",
    "But in the night, when all the lamps are out, the boy",
    "Who kept the gate comes back, and that is all his joy",
    "And all his work: to hear it turn, and not to sleep.",
]
LOWER_VERSE = ["the river runs below the mill", "and no one hears", "the wheel that turned for eighty years", "but us"]
ADDRESS = ["Ines Moreau, Inspector of the Gates", "Saltby Water Works", "14 Harbour Street", "Saltby"]
ITEMS = [
    f"{number}. Open the {gate} gate and write down the time in the book"
    for number, gate in enumerate(["upper", "lower", "old"], 1)
]
CODE = ["value = read(first_name_of_all_pumps_in_the_station)", "other = read(second_name_of_pumps_in_the_station)"]


@pytest.mark.parametrize(
    ("lines", "font"),
    [(VERSE, "Helvetica"), (LOWER_VERSE, "Helvetica"), (ADDRESS, "Helvetica"), (ITEMS, "Helvetica"), (CODE, "Courier")],
    ids=["verse", "lower-case verse", "address", "list", "code"],
)
@pytest.mark.parametrize("has_prose", [True, False])
def test_lines_that_are_no_prose_stay_apart(lines: list[str], font: str, has_prose: bool) -> None:
    prose = [*textwrap.wrap(PROSE, 70), ""] if has_prose and font == "Helvetica" else []
    text = read_pages([[*prose, *lines]], font).text
    assert re.split(r"\n+", text)[-len(lines) :] == lines
