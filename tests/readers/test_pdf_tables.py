import io
from collections.abc import Sequence

import pytest
from reportlab.lib import colors  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
from reportlab.lib.styles import (  # type: ignore[import-untyped, unused-ignore]
    getSampleStyleSheet,
)
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
from reportlab.platypus import (  # type: ignore[import-untyped, unused-ignore]
    Paragraph,
    SimpleDocTemplate,
    Table,
    TableStyle,
)

from polyad.readers.format import Source
from polyad_readers.pdf.reader import read_pdf

LEFTS = (72, 200, 300, 400)


def read_rows(rows: Sequence[Sequence[str]], *, lefts: Sequence[float] = LEFTS, font: str = "Helvetica") -> str:
    """The text of a page with rows of cells 18 points apart; a cell of several lines has 12 points between them."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    canvas.setFont(font, 10)
    top = 760
    for row in rows:
        cells = [cell.split("\n") for cell in row]
        for left, lines in zip(lefts, cells, strict=False):
            for number, line in enumerate(lines):
                canvas.drawString(left, top - 12 * number, line)
        top -= 18 + 12 * (max(map(len, cells)) - 1)
    canvas.save()
    return read_pdf(Source.from_bytes(file.getvalue())).text


def test_blank_cells_of_a_table_stay_in_their_columns() -> None:
    rows = [
        ["Service", "Basic", "Plus", "Premium"],
        ["Storage", "", "40", "90"],
        ["Backup", "15", "", "60"],
        ["Support", "", "", "25"],
    ]
    assert read_rows(rows).split("\n") == [
        "Service: Storage\tPlus: 40\tPremium: 90",
        "Service: Backup\tBasic: 15\tPremium: 60",
        "Service: Support\tPremium: 25",
    ]


def test_a_wrapped_cell_is_one_text_if_cells_are_drawn_one_by_one() -> None:
    rows = [
        ["Check the seal of the\nUpper Gate", "Every month", "Ines Moreau"],
        ["Grease the bearings", "Every quarter\nor after floods", "Tom Ashdown"],
        ["Paint the railings", "Every year", "Ines Moreau\nand others"],
    ]
    assert read_rows(rows).split("\n") == [
        "Check the seal of the Upper Gate\tEvery month\tInes Moreau",
        "Grease the bearings\tEvery quarter or after floods\tTom Ashdown",
        "Paint the railings\tEvery year\tInes Moreau and others",
    ]


def test_a_blank_cell_of_a_table_without_column_names_leaves_an_empty_place() -> None:
    assert read_rows([["North", "12", "7"], ["South", "", "9"], ["West", "4", "1"]]) == (
        "North\t12\t7\nSouth\t\t9\nWest\t4\t1"
    )


def test_ruling_lines_separate_the_rows_wherever_their_cells_stand() -> None:
    style = getSampleStyleSheet()["BodyText"]
    rows = [
        ["Part", "Material", "Interval", "Note"],
        [
            Paragraph("Gate valve with a long name that wraps", style),
            "Cast iron",
            "12",
            Paragraph("Before Winter " * 4, style),
        ],
        ["Pump", "", "6", ""],
        ["Weir", Paragraph("Oak and elm from the North Wood", style), "", "Paint"],
    ]
    file = io.BytesIO()
    table = Table(rows, colWidths=[100, 90, 60, 140], style=TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)]))
    SimpleDocTemplate(file).build([table])
    assert read_pdf(Source.from_bytes(file.getvalue())).text.split("\n") == [
        "Part: Gate valve with a long name that wraps\tMaterial: Cast iron\tInterval: 12"
        "\tNote: Before Winter Before Winter Before Winter Before Winter",
        "Part: Pump\tInterval: 6",
        "Part: Weir\tMaterial: Oak and elm from the North Wood\tNote: Paint",
    ]


PROSE = [
    ["The pumps of the old station were mended in", "The valves are opened each spring and closed"],
    ["the spring and have run without a fault ever", "again before the frost, by two people who have"],
    ["since that day, which the town remembers well", "learned it from those before them, and written"],
    ["because the water was brown for three weeks.", "down what they saw in the book at the gate."],
]
CONTENTS = [["Parts", "Page"], ["Pumps", "3"], ["Valves and seals", "7"], ["Weirs", "12"], ["Gates", "19"]]
INDEX = [["apple, 3", "lock, 9"], ["beam, 14", "mill, 2"], ["chain, 5, 8", "oak, 31"]]
VERSE = [
    ["    The river runs", ""],
    ["        below the mill", ""],
    ["    and no one hears", ""],
    ["        it but the gate", ""],
]


@pytest.mark.parametrize("rows", [PROSE, CONTENTS, INDEX, VERSE], ids=["prose", "contents", "index", "verse"])
def test_columns_of_prose_contents_indexes_and_verse_are_no_tables(rows: list[list[str]]) -> None:
    text = read_rows(rows, lefts=(72, 320))
    assert "\t\t" not in text
    assert not any(f"{cell.strip()}: " in text for row in rows for cell in row if cell)
