import io
from collections.abc import Sequence

from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.readers.format import Source
from polyad_readers.pdf.reader import read_pdf

CODE = [
    "def count(pumps):",
    "    total = 0",
    "    for pump in pumps:",
    "        total += 1   # each",
    "    return total",
]


def read_lines(pages: Sequence[Sequence[str]], *, by_spaces: bool = False) -> str:
    """The text of pages of monospaced lines, indented by spaces or by position."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    for lines in pages:
        canvas.setFont("Courier", 10)
        for number, line in enumerate(lines):
            indent = 0 if by_spaces else len(line) - len(line.lstrip())
            canvas.drawString(72 + 6 * indent, 700 - 12 * number, line[indent:])
        canvas.showPage()
    canvas.save()
    return read_pdf(Source.from_bytes(file.getvalue())).text


def test_lines_of_code_keep_their_indentation_and_columns() -> None:
    assert read_lines([CODE]).split("\n") == CODE
    assert read_lines([CODE], by_spaces=True).split("\n") == CODE


def test_code_that_continues_on_the_next_page_keeps_its_indentation() -> None:
    assert read_lines([CODE[:3], CODE[3:]]).split("\n\n") == ["\n".join(CODE[:3]), "\n".join(CODE[3:])]


def test_a_typed_letter_is_no_code() -> None:
    lines = [
        "     The pumps of the old station were mended in spring",
        "and have run without a fault ever since that day, which",
        "the whole town remembers very well because of the water.",
    ]
    assert read_lines([lines]).startswith("The pumps of the old station")
