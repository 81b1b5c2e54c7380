import pytest

from polyad_readers.shared.tables import Cell, format_table, label_rows


def read(*rows: list[str | int | Cell]) -> list[str]:
    cells = [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in rows]
    return format_table(cells).split("\n")


def test_each_value_follows_the_name_of_its_column_and_blank_cells_move_none() -> None:
    assert read(["Service", "Basic", "Plus"], ["Storage", "", 40], ["Backup", 15, 60]) == [
        "Service: Storage\tPlus: 40",
        "Service: Backup\tBasic: 15\tPlus: 60",
    ]


def test_the_names_of_columns_without_a_value_are_kept() -> None:
    assert read(["Service", "Basic", "Plus"], ["Storage", "", 40])[0] == "Service\tBasic\tPlus"
    assert read(["Number", "Place", "Injury"]) == ["Number\tPlace\tInjury"]


def test_without_names_of_columns_blank_cells_keep_their_place() -> None:
    assert read(["P1", 3, 7], ["P2", "", 4]) == ["P1\t3\t7", "P2\t\t4"]


def test_a_merged_cell_belongs_to_each_row_and_column_that_it_covers() -> None:
    rows = read(
        ["Hall", "Mill", "Saw"],
        [Cell("North", rows=2), 1, 2],
        [3, 4],
        ["South", Cell("closed", columns=2)],
        ["West", 5, 6],
    )
    assert rows == [
        "Hall: North\tMill: 1\tSaw: 2",
        "Hall: North\tMill: 3\tSaw: 4",
        "Hall: South\tMill: closed\tSaw: closed",
        "Hall: West\tMill: 5\tSaw: 6",
    ]


def test_a_cell_over_the_whole_row_is_a_line_of_its_own() -> None:
    rows = read(
        [Cell("Fees", columns=3)], ["Service", "Basic", "Plus"], ["Storage", 1, 2], [Cell("Without tax", columns=3)]
    )
    assert rows == ["Fees", "Service: Storage\tBasic: 1\tPlus: 2", "Without tax"]


@pytest.mark.parametrize(
    "rows",
    [
        (
            [Cell("Region", rows=2), Cell("2023", columns=2), Cell("2024", columns=2)],
            ["Units", "Costs", "Units", "Costs"],
        ),
        (["Region", Cell("2023", columns=2), Cell("2024", columns=2)], ["", "Units", "Costs", "Units", "Costs"]),
        (
            [Cell("Region", True), Cell("2023", True, columns=2), Cell("2024", True, columns=2)],
            ["", "Units", "Costs", "Units", "Costs"],
        ),
        (["Region", "2023", "", "2024", ""], ["", "Units", "Costs", "Units", "Costs"]),
    ],
)
def test_two_header_rows_are_joined(rows: tuple[list[str | int | Cell], ...]) -> None:
    assert read(*rows, ["North", 1, 2, 3, 4]) == [
        "Region: North\t2023 Units: 1\t2023 Costs: 2\t2024 Units: 3\t2024 Costs: 4"
    ]


def test_years_and_dates_may_name_columns() -> None:
    assert read(["Town", 2023, 2024], ["Aldby", 7, 9]) == ["Town: Aldby\t2023: 7\t2024: 9"]
    assert read(["Town", "From", "To"], ["Aldby", 2023, 2024])[0] == "Town: Aldby\tFrom: 2023\tTo: 2024"
    assert read(["Aldby", 2021, 2022], ["Saltby", 2023, 2024]) == ["Aldby\t2021\t2022", "Saltby\t2023\t2024"]


def test_a_form_of_names_and_values_has_no_header_row() -> None:
    assert read(["Client", "Port of Saltby"], ["Budget", 4200], ["Manager", "Ines Moreau"]) == [
        "Client\tPort of Saltby",
        "Budget\t4200",
        "Manager\tInes Moreau",
    ]


def test_a_form_with_several_names_in_a_row_has_no_header_row() -> None:
    assert read(
        ["Customer", "Moreau Ltd", "Order number", "A-7781"],
        ["Carrier", "Skua Freight", "Pallets", 14],
        ["Driver", "", "Gate", 7],
    )[1:] == ["Carrier\tSkua Freight\tPallets\t14", "Driver\t\tGate\t7"]
    assert read(["Born:", 1815, "Sea:", "Irish"], ["City:", "Aldby", "Sons:", 3])[0] == "Born:\t1815\tSea:\tIrish"
    table = read(["Saw", "Q1 2023", "Place", "Q2 2023"], ["S1", 30, "Aldby", 500], ["S2", 40, "Brae", 700])
    assert table[0] == "Saw: S1\tQ1 2023: 30\tPlace: Aldby\tQ2 2023: 500"


def test_after_a_blank_row_another_table_may_begin() -> None:
    first: list[list[str | int | Cell]] = [["Part", "Stock", "Least"], ["Seal", 14, 10]]
    assert read(*first, [], ["Supplier", "Phone", "City"], ["Lodewell", "555 0110", "Aldby"]) == [
        "Part: Seal\tStock: 14\tLeast: 10",
        "Supplier: Lodewell\tPhone: 555 0110\tCity: Aldby",
    ]
    assert read(*first, [], ["Suppliers"], ["Supplier", "Town", "City"], ["Lode", "Ald", "By"])[1:] == [
        "Suppliers",
        "Supplier: Lode\tTown: Ald\tCity: By",
    ]
    assert read(*first, [], ["Ring", 2, 1], ["Cap", 3, 2])[1:] == [
        "Part: Ring\tStock: 2\tLeast: 1",
        "Part: Cap\tStock: 3\tLeast: 2",
    ]


def test_groups_of_a_table_that_blank_rows_part_keep_its_column_names() -> None:
    rows = read(
        ["Name", "Role", "City"], ["Ann", "Cook", "Aldby"], [], ["Bob", "Smith", "Saltby"], ["Eva", "Cook", "Aldby"]
    )
    assert rows[1:] == ["Name: Bob\tRole: Smith\tCity: Saltby", "Name: Eva\tRole: Cook\tCity: Aldby"]


def test_in_a_document_an_unmarked_header_row_needs_evidence() -> None:
    def read_document(*rows: list[str]) -> list[list[str]]:
        cells = [[Cell(text) for text in row] for row in rows]
        return [[cell.text for cell in row] for row in label_rows(cells, is_layout=True)]

    people = ["Ann Berg", "Engineer", "Aldby"], ["Eva Lind", "Cook", "Saltby"]
    assert read_document(*people) == [*map(list, people)]
    work = ["Task", "Owner", "Due"], ["Replace the seal", "Ines Moreau", "May or later"]
    assert read_document(*work) == [["Task: Replace the seal", "Owner: Ines Moreau", "Due: May or later"]]
    terms = [[f"Term {letter}", f"What {letter} means"] for letter in "abcde" * 6]
    assert read_document(*terms) == terms


def test_spans_of_millions_of_cells_are_limited() -> None:
    rows = [[Cell("a"), Cell("b"), Cell("c", rows=10**9, columns=10**9)], *[[Cell("x"), Cell("y")]] * 5_000]
    assert [cell.text for cell in list(label_rows(rows))[-1]] == ["a: x", "b: y"]
