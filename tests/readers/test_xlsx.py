import io
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import openpyxl
import pytest

from polyad.errors import ReadError
from polyad.readers.plain_text import Content
from polyad.readers.xlsx import read_xlsx


def read(build: Callable[[Any], object], **sheets: Sequence[Sequence[object]]) -> Content:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    build(workbook)
    file = io.BytesIO()
    workbook.save(file)
    return read_xlsx(file.getvalue())


def nothing(_: object) -> None:
    """No change to the workbook."""


def test_each_row_is_a_line_that_names_its_columns() -> None:
    content = read(nothing, Pumps=[["Name", "Flow", "Since"], ["P1", 3.5, date(2020, 5, 1)], ["P2", 4.0, None]])
    assert content.text == "Pumps\n\nName: P1; Flow: 3.5; Since: 2020-05-01\nName: P2; Flow: 4"


def test_each_sheet_is_a_place_and_a_section() -> None:
    content = read(nothing, Pumps=[["Name", "Flow"], ["P1", 3]], Empty=[], Valves=[["Name", "Size"], ["V1", 7]])
    assert [(place.sheet, content.text[place.start : place.end]) for place in content.places] == [
        ("Pumps", "Pumps\n\nName: P1; Flow: 3"),
        ("Valves", "Valves\n\nName: V1; Size: 7"),
    ]
    assert [(part.name, part.start, part.end) for part in content.sections] == [
        (place.sheet, place.start, place.end) for place in content.places
    ]


@pytest.mark.parametrize("name", ["Sheet1", "Tabelle2"])
def test_a_sheet_that_nobody_named_is_no_section(name: str) -> None:
    rows: list[list[object]] = [["Name", "Flow"], ["P1", 3]]
    content = read(nothing, **{name: rows})
    assert (content.text, content.sections) == ("Name: P1; Flow: 3", ())
    assert content.places[0].sheet == name


def test_lines_above_the_names_of_columns_stay_as_they_are() -> None:
    content = read(nothing, Sheet=[["All pumps of Saltby"], [], [None, "Name", "Flow"], ["x", "P1", 3]])
    assert content.text == "All pumps of Saltby\nx; Name: P1; Flow: 3"


def test_a_table_without_names_of_columns_has_its_values_alone() -> None:
    assert read(nothing, Sheet=[["P1", 3, True], ["P2", 4, "two\nlines"]]).text == "P1; 3; True\nP2; 4; two lines"


def test_the_properties_of_a_workbook_are_its_title_and_metadata() -> None:
    def build(workbook: Any) -> None:
        workbook.properties.title = "Pumps of Saltby"
        workbook.properties.creator = "Ines Moreau"
        workbook.properties.keywords = "pumps, wells"
        workbook.properties.created = datetime(2024, 3, 1)

    content = read(build, Sheet=[["Text"]])
    assert content.title == "Pumps of Saltby"
    assert content.metadata["author"] == "Ines Moreau"
    assert content.metadata["keywords"] == ("pumps", "wells")
    assert content.metadata["created"] == "2024-03-01T00:00:00Z"


def test_a_workbook_of_more_cells_or_characters_than_can_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad.readers.xlsx._MAX_CELLS", 100_000)
    with pytest.raises(ReadError, match="more than 100,000 cells"):
        read(lambda workbook: [workbook["Sheet"].cell(row, 16_384, "x") for row in range(1, 20)], Sheet=[])
    monkeypatch.setattr("polyad.readers.xlsx._MAX_CHARACTERS", 5_000)
    with pytest.raises(ReadError, match="or 5,000 characters"):
        read(nothing, Sheet=[["x" * 1000]] * 6)


def test_a_single_cell_at_the_far_end_of_a_sheet_costs_little() -> None:
    assert read(lambda workbook: workbook["Sheet"].cell(900_000, 3, "Far"), Sheet=[["Near"]]).text == "Near\nFar"
