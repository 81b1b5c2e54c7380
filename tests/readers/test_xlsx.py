import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font

from polyad.errors import ReadError
from polyad.readers.format import Content, Source
from polyad_readers.office.xlsx import read_xlsx


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
    return read_xlsx(Source.from_bytes(file.getvalue()))


def nothing(_: object) -> None:
    """No change to the workbook."""


def test_each_row_is_a_line_that_names_its_columns() -> None:
    content = read(nothing, Pumps=[["Name", "Flow", "Since"], ["P1", 3.5, date(2020, 5, 1)], ["P2", 4.0, None]])
    assert content.text == "Pumps\n\nName: P1\tFlow: 3.5\tSince: 2020-05-01\nName: P2\tFlow: 4"


def test_each_sheet_is_a_place_and_a_section() -> None:
    content = read(nothing, Pumps=[["Name", "Flow"], ["P1", 3]], Empty=[], Valves=[["Name", "Size"], ["V1", 7]])
    assert [(place.sheet, content.text[place.start : place.end]) for place in content.places] == [
        ("Pumps", "Pumps\n\nName: P1\tFlow: 3"),
        ("Valves", "Valves\n\nName: V1\tSize: 7"),
    ]
    assert [(part.name, part.start, part.end) for part in content.sections] == [
        (place.sheet, place.start, place.end) for place in content.places
    ]


@pytest.mark.parametrize("name", ["Sheet1", "Tabelle2"])
def test_a_sheet_that_nobody_named_is_no_section(name: str) -> None:
    rows: list[list[object]] = [["Name", "Flow"], ["P1", 3]]
    content = read(nothing, **{name: rows})
    assert (content.text, content.sections) == ("Name: P1\tFlow: 3", ())
    assert content.places[0].sheet == name


def test_lines_above_the_names_of_columns_stay_as_they_are() -> None:
    content = read(nothing, Sheet=[["All pumps of Saltby"], [], [None, "Name", "Flow"], ["x", "P1", 3]])
    assert content.text == "All pumps of Saltby\nx\tName: P1\tFlow: 3"


def test_a_table_without_names_of_columns_has_its_values_alone() -> None:
    assert read(nothing, Sheet=[["P1", 3, True], ["P2", 4, "two\nlines"]]).text == "P1\t3\tTrue\nP2\t4\ttwo lines"


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
    monkeypatch.setattr("polyad_readers.office.xlsx._MAX_CELLS", 100_000)
    with pytest.raises(ReadError, match="more than 100,000 cells"):
        read(lambda workbook: [workbook["Sheet"].cell(row, 16_384, "x") for row in range(1, 20)], Sheet=[])
    monkeypatch.setattr("polyad_readers.office.xlsx._MAX_CHARACTERS", 5_000)
    with pytest.raises(ReadError, match="or 5,000 characters"):
        read(nothing, Sheet=[["x" * 1000]] * 6)


def test_a_single_cell_at_the_far_end_of_a_sheet_costs_little() -> None:
    assert read(lambda workbook: workbook["Sheet"].cell(900_000, 3, "Far"), Sheet=[["Near"]]).text == "Near\nFar"


def test_a_merged_cell_labels_each_row_that_it_covers() -> None:
    rows: list[list[object]] = [
        ["Hall", "Machine", "Mass"],
        ["Hall 1", "Lathe", 7],
        [None, "Mill", 8],
        ["Hall 2", "Press", 9],
    ]
    content = read(lambda workbook: workbook["Sheet"].merge_cells("A2:A3"), Sheet=rows)
    assert content.text.split("\n")[1:] == [
        "Hall: Hall 1\tMachine: Mill\tMass: 8",
        "Hall: Hall 2\tMachine: Press\tMass: 9",
    ]


def test_two_header_rows_and_a_second_table_are_read() -> None:
    rows: list[list[object]] = [
        ["Region", "2023", None],
        [None, "Units", "Costs"],
        ["North", 10, 100],
        [],
        ["Supplier", "Phone"],
        ["Lode", 7],
    ]

    def merge(workbook: Any) -> None:
        workbook["Sheet"].merge_cells("B1:C1")
        workbook["Sheet"].merge_cells("A1:A2")

    assert read(merge, Sheet=rows).text == ("Region: North\t2023 Units: 10\t2023 Costs: 100\nSupplier: Lode\tPhone: 7")


def test_a_row_of_bold_texts_names_the_columns() -> None:
    def embolden(workbook: Any) -> None:
        for cell in workbook["Sheet"][1]:
            cell.font = Font(bold=True)

    rows: list[list[object]] = [["Country", "Capital"], ["France", "Paris"]]
    assert read(embolden, Sheet=rows).text == "Country: France\tCapital: Paris"
    assert read(nothing, Sheet=rows).text == "Country\tCapital\nFrance\tParis"


def test_a_row_of_names_without_values_is_a_line() -> None:
    assert read(nothing, Sheet=[["Number", "Reported by", "Place"]]).text == "Number\tReported by\tPlace"


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.125, "0.0%", "12.5%"),
        (1234.5, '#,##0.00 "€"', "1,234.50 €"),
        (1234.5, "[$$-409]#,##0.00", "$1,234.50"),
        (-3, '#,##0 "kg";[Red]#,##0 "kg"', "-3 kg"),
        (7, "000", "007"),
        (7, r"\1\.0#", "1.07"),
        (5550123, "000-0000", "555-0123"),
        (timedelta(hours=36), "[h]:mm", "36:00"),
        (12345678901, "0.00E+00", "1.23E+10"),
        (2_500_000, '0.0,,"M"', "2.5M"),
        (1234.5, "#,##0.00", "1234.5"),
        (0.1 + 0.2, "General", "0.3"),
        (3.75, "# ?/?", "3.75"),
        (datetime(2024, 3, 1, 10, 30), "dd/mm/yyyy hh:mm", "2024-03-01T10:30:00"),
        (45000, "mmm yy", "2023-03-15"),
    ],
)
def test_a_number_is_as_displayed_where_that_tells_more(value: object, code: str, text: str) -> None:
    def set_format(workbook: Any) -> None:
        workbook["Sheet"]["B2"].number_format = code

    assert read(set_format, Sheet=[["Item", "Amount"], ["Pump", value]]).text == f"Item: Pump\tAmount: {text}"


def test_errors_are_texts_and_a_formula_without_a_value_is_itself() -> None:
    assert read(nothing, Sheet=[["Item", "Sum", "Share"], ["Pump", "=B3*2", "#DIV/0!"], ["Seal", 3, 4]]).text == (
        "Item: Pump\tSum: =B3*2\tShare: #DIV/0!\nItem: Seal\tSum: 3\tShare: 4"
    )


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/styles.xml", "<patternFill />", ""),
        (
            "xl/worksheets/sheet1.xml",
            "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
            "http://purl.oclc.org/ooxml/spreadsheetml/main",
        ),
        (
            "xl/workbook.xml",
            "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
            "http://purl.oclc.org/ooxml/spreadsheetml/main",
        ),
        ("xl/worksheets/sheet1.xml", ' r="A1"', ""),
    ],
)
def test_workbooks_of_other_programs_are_read(part: str, old: str, new: str) -> None:
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    sheet = workbook.worksheets[0]
    sheet.append(["Name", "Flow"])
    sheet.append(["P1", 3])
    workbook.save(file)
    changed = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            data = source.read(name).decode()
            target.writestr(
                name, data.replace(old, new).replace(old.replace(" />", "/>"), new) if name == part else data
            )
    assert read_xlsx(Source.from_bytes(changed.getvalue())).text == "Name: P1\tFlow: 3"


def write_parts(**parts: str) -> bytes:
    """A workbook with one sheet, whose relations name the parts; a drawing may refer to the part ``chart``."""
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    workbook.worksheets[0].append(["Flow"])
    workbook.save(file)
    with zipfile.ZipFile(file, "a") as archive:
        for folder in ("worksheets/_rels/sheet1.xml.rels", "_rels/drawing.xml.rels"):
            relations = (f'<Relationship Id="{kind}" Type="x/{kind}" Target="/xl/{kind}.xml"/>' for kind in parts)
            archive.writestr(f"xl/{folder}", f"<Relationships>{''.join(relations)}</Relationships>")
        for kind, content in parts.items():
            archive.writestr(f"xl/{kind}.xml", content)
    return file.getvalue()


MAIN = "http://schemas.openxmlformats.org/drawingml/2006/main"


def test_text_boxes_charts_and_descriptions_of_pictures_on_a_sheet_are_read() -> None:
    drawing = (
        f'<x:wsDr xmlns:x="urn:x" xmlns:a="{MAIN}" xmlns:r="urn:r"><x:sp><x:txBody><a:p><a:r><a:t>Mind the units'
        '</a:t></a:r></a:p></x:txBody></x:sp><x:frame><x:chart r:id="chart"/></x:frame>'
        '<x:pic><x:nvPicPr><x:cNvPr name="A" descr="The hall"/></x:nvPicPr></x:pic>'
        '<x:pic><x:nvPicPr><x:cNvPr name="B" descr="hall 2.png"/></x:nvPicPr></x:pic></x:wsDr>'
    )
    chart = f'<c:title xmlns:c="urn:c" xmlns:a="{MAIN}"><a:p><a:r><a:t>Output</a:t></a:r></a:p></c:title>'
    content = read_xlsx(Source.from_bytes(write_parts(drawing=drawing, chart=f"<root>{chart}</root>")))
    assert content.text == "Flow\n\nMind the units\n\nOutput\n\nThe hall"
    assert content.removals == {"pictures_without_text": ("B",)}


def test_comments_and_embedded_files_are_listed_and_a_damaged_drawing_loses_no_sheet() -> None:
    comments = '<c:comments xmlns:c="urn:c"><c:comment><c:text><c:r><c:t>In litres</c:t></c:r></c:text></c:comment>'
    content = read_xlsx(
        Source.from_bytes(write_parts(drawing="<damaged", comments=f"{comments}</c:comments>", package=""))
    )
    assert content.text == "Flow"
    assert content.removals == {"removed_comments": ("In litres",), "embedded_files": ("package.xml",)}
