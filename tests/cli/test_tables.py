"""Questions whose answers stand in tables and forms: the printed excerpt shows the value and its column's name."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from typer.testing import CliRunner

from polyad.cli import app

RUNNER = CliRunner()

QUESTIONS = {
    "What does the plan Premium cost for support?": ("plans.docx", "Premium: 25", "Service: Support"),
    "How many saws has the north hall of the mill?": ("mills.odt", "Saws: 3", "Hall: North"),
    "On which day is the ferry to Skarv inspected?": ("ferries.html", "Inspection: Friday", "Ferry: Skarv"),
    "What was the catch of herring in the winter of 2024?": ("catch.xlsx", "2024 Winter: 310", "Fish: Herring"),
    "Which depth has the well Kelda 97?": ("wells.md", "Depth in metres: 297", "Well: Kelda 97"),
    "What is the torque for the bolt M57?": ("bolts.docx", "Torque in Nm: 157", "Bolt: M57"),
    "What is the licence number of the vessel Aurora?": ("vessel.xlsx", "Licence number K-2291", "Vessel Aurora"),
    "Does the applicant want night shifts?": ("application.docx", "[x] Night shifts", "[ ] Day shifts"),
    "Which meal was ordered by guest Ines Moreau?": ("order.html", "Guest: Ines Moreau", "Meal: Fish soup"),
    "Which budget has the ward of surgery for nurses?": ("wards.pptx", "Nurses Budget: 640", "Ward: Surgery"),
    "What is the order number of Moreau Ltd?": ("note.docx", "Customer Moreau Ltd Order number A-7781", "Gate 7"),
    "What is the price of room S136?": ("hotel.docx", "Price in euros: 96", "Floor: Second floor Room: S136"),
    "Has the station Corven a lift?": ("stations.html", "For travellers Lift: ✓", "Station: Corven"),
    "Who is the keeper of the lighthouse of Brae?": ("lights.csv", "keeper: Olaf Berg", "lighthouse: Brae"),
}
"""The document of the answer, and texts that its excerpt must contain, by question."""


def write_docx(folder: Path) -> None:
    plans = docx.Document()
    plans.add_paragraph("The services of the three plans, in euros a month.")
    rows = [["Service", "Basic", "Plus", "Premium"], ["Storage", "", "40", "90"], ["Support", "", "", "25"]]
    table = plans.add_table(rows=0, cols=4)
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    plans.save(str(folder / "plans.docx"))
    bolts = docx.Document()
    bolts.add_heading("Bolts", 1)
    table = bolts.add_table(rows=1, cols=3)
    for cell, text in zip(table.rows[0].cells, ("Bolt", "Length in mm", "Torque in Nm"), strict=True):
        cell.text = text
    for number in range(1, 90):
        for cell, text in zip(table.add_row().cells, (f"M{number}", f"{number + 500}", f"{number + 100}"), strict=True):
            cell.text = text
    bolts.save(str(folder / "bolts.docx"))
    note = docx.Document()
    note.add_heading("Delivery note", 1)
    table = note.add_table(rows=0, cols=4)
    for row in (
        ["Customer", "Moreau Ltd", "Order number", "A-7781"],
        ["Carrier", "Skua Freight", "Pallets", "14"],
        ["Driver", "", "Gate", "7"],
    ):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    note.save(str(folder / "note.docx"))
    write_hotel(folder)
    form = docx.Document()
    form.add_paragraph("Application for work in the laundry of the hospital")
    for is_ticked, label in ((0, "Day shifts"), (1, "Night shifts")):
        box = (
            f'<w:sdt {nsdecls("w")} xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"><w:sdtPr>'
            f'<w14:checkbox><w14:checked w14:val="{is_ticked}"/></w14:checkbox></w:sdtPr><w:sdtContent><w:r><w:t>'
            f"{'☒' if is_ticked else '☐'}</w:t></w:r></w:sdtContent></w:sdt>"
        )
        paragraph = form.add_paragraph()
        paragraph._p.append(parse_xml(box))
        paragraph.add_run(f" {label} are wanted by the applicant")
    form.save(str(folder / "application.docx"))


def write_hotel(folder: Path) -> None:
    """Write a table whose merged cells name the floor of twelve rooms each, over several passages."""
    hotel = docx.Document()
    hotel.add_paragraph("Guests of the hotel Corven ask for the price of a room with a balcony.")
    table = hotel.add_table(rows=1, cols=5)
    for cell, text in zip(table.rows[0].cells, ("Floor", "Room", "Beds", "Balcony", "Price in euros"), strict=True):
        cell.text = text
    for floor, name in enumerate(("Ground floor", "First floor", "Second floor", "Third floor")):
        for number in range(12 * floor + 1, 12 * floor + 13):
            texts = ("", f"{name[0]}{100 + number}", str(1 + number % 3), "" if number % 4 else "yes", str(60 + number))
            for cell, text in zip(table.add_row().cells, texts, strict=True):
                cell.text = text
        table.cell(12 * floor + 1, 0).merge(table.cell(12 * floor + 12, 0)).text = name
    hotel.save(str(folder / "hotel.docx"))


def write_xlsx(folder: Path) -> None:
    catch = Workbook()
    sheet = catch.active
    assert sheet is not None
    sheet.title = "Catch"
    rows: list[list[str | int | None]] = [
        ["Fish", 2023, None, 2024, None],
        [None, "Summer", "Winter", "Summer", "Winter"],
        ["Cod", 120, 80, 140, 75],
        ["Herring", 420, 380, 405, 310],
        ["Sprat", 12, 9, 14, 8],
    ]
    for row in rows:
        sheet.append(row)
    for cells in ("A1:A2", "B1:C1", "D1:E1"):
        sheet.merge_cells(cells)
    catch.save(folder / "catch.xlsx")
    vessel = Workbook()
    sheet = vessel.active
    assert sheet is not None
    rows = [["Vessel", "Aurora"], ["Licence number", "K-2291"], ["Home port", "Aldby"], ["Length in metres", 21]]
    for row in rows:
        sheet.append(row)
    vessel.save(folder / "vessel.xlsx")


def write_html(folder: Path) -> None:
    (folder / "ferries.html").write_text(
        "<h1>Ferries</h1><table><tr><th>Inspection</th><th>Ferry</th><th>Berth</th></tr>"
        "<tr><td rowspan='2'>Monday</td><td>Lunde</td><td>2</td></tr><tr><td>Terne</td><td>4</td></tr>"
        "<tr><td rowspan='3'>Friday</td><td>Alke</td><td>1</td></tr><tr><td>Maake</td><td></td></tr>"
        "<tr><td>Skarv</td><td>3</td></tr></table>"
    )
    services = ("<td>✓</td><td></td><td></td>", "<td></td><td>✓</td><td></td>", "<td></td><td></td><td>✓</td>")
    stations = enumerate(("Aldby", "Brae", "Corven", "Dunmore", "Eskdale"), 2)
    rows = "".join(f"<tr><th>{name}</th>{services[row % 3] * 2}</tr>" for row, name in stations)
    (folder / "stations.html").write_text(
        "<h1>Stations</h1><table><thead><tr><th rowspan=2>Station</th><th colspan=3>For travellers</th>"
        "<th colspan=3>For goods</th></tr><tr><th>Toilet</th><th>Lift</th><th>Kiosk</th><th>Crane</th><th>Ramp</th>"
        f"<th>Scale</th></tr></thead>{rows}</table>"
    )
    (folder / "order.html").write_text(
        "<h1>Order</h1><form><p><label>Guest: <input type='text' value='Ines Moreau'></label></p>"
        "<p><label>Meal: <select><option>Roast</option><option selected>Fish soup</option></select></label></p>"
        "<p><label><input type='checkbox' checked> Wine</label></p></form>"
    )


def write_odt(folder: Path) -> None:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )

    def cell(text: str, attributes: str = "") -> str:
        return f"<table:table-cell{attributes}><text:p>{text}</text:p></table:table-cell>"

    rows = [
        cell("Hall") + cell("Mills") + cell("Saws"),
        cell("South") + cell("4") + cell("7"),
        cell("North") + cell("") + cell("3"),
        cell("East and west", ' table:number-columns-spanned="2"') + "<table:covered-table-cell/>" + cell("9"),
    ]
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    with zipfile.ZipFile(folder / "mills.odt", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:text><text:p>Halls of the mill of Tarn</text:p>"
            f"<table:table>{body}</table:table></office:text></office:body></office:document-content>",
        )


def write_others(folder: Path) -> None:
    lines = [f"| Kelda {number} | {'' if number % 3 else 'clay'} | {number + 200} |" for number in range(1, 120)]
    (folder / "wells.md").write_text(
        "\n".join(["# Wells", "", "| Well | Soil | Depth in metres |", "|---|---|---|", *lines]) + "\n"
    )
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    assert slide.shapes.title is not None
    slide.shapes.title.text = "Wards of the hospital"
    table = slide.shapes.add_table(4, 5, Inches(1), Inches(2), Inches(8), Inches(2)).table
    rows = [
        ["Ward", "Doctors", "", "Nurses", ""],
        ["", "Number", "Budget", "Number", "Budget"],
        ["Surgery", "12", "900", "31", "640"],
        ["Children", "7", "410", "22", "530"],
    ]
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(0, 0).merge(table.cell(1, 0))
    for column in (1, 3):
        table.cell(0, column).merge(table.cell(0, column + 1))
    deck.save(str(folder / "wards.pptx"))
    (folder / "lights.csv").write_text(
        "lighthouse;height;keeper\nAldby;12;Ada King\nBrae;;Olaf Berg\nCorven;31;\n", encoding="utf-8"
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index of all documents with the default settings, in the current folder."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "docs").mkdir()
    for write in (write_docx, write_xlsx, write_html, write_odt, write_others):
        write(folder / "docs")
    before = Path.cwd()
    os.chdir(folder)
    indexed = RUNNER.invoke(app, ["index", "docs", "--store", "kb", "-q"])
    assert indexed.exit_code == 0, indexed.output
    yield "kb"
    os.chdir(before)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_hit_shows_the_value_under_its_columns_name(store: str, question: str) -> None:
    document, *texts = QUESTIONS[question]
    printed = RUNNER.invoke(app, ["search", question, "--store", store, "-k", "1"], env={"COLUMNS": "200"})
    assert printed.exit_code == 0, printed.output
    (hit,) = json.loads(RUNNER.invoke(app, ["search", question, "--store", store, "-k", "1", "--json"]).stdout)["hits"]
    assert hit["document_id"].split(":")[0] == f"docs/{document}"
    for text in texts:
        assert text in " ".join(printed.output.split())
        assert text in " ".join(hit["excerpt"]["text"].split())
