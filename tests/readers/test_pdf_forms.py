import io
from collections.abc import Callable

import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.readers.format import Source
from polyad_readers.pdf.reader import read_pdf


def read_form(draw: Callable[[Canvas], object]) -> str:
    """The text of a PDF form with what ``draw`` draws."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    canvas.setFont("Helvetica", 11)
    draw(canvas)
    canvas.save()
    return read_pdf(Source.from_bytes(file.getvalue())).text


def read_page(content: str, *annotations: str, form: str = "") -> str:
    """The text of a PDF with one page, whose annotations and form are PDF dictionaries without their brackets.

    Annotations are the objects 6, 7 and so on.
    """
    numbers = range(6, 6 + len(annotations))
    references = " ".join(f"{number} 0 R" for number in numbers)
    resources = "/Resources<</Font<</F 5 0 R>>>>"
    bodies = [
        f"<</Type/Catalog/Pages 2 0 R{form}>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R{resources}/Annots[{references}]>>",
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *(f"<</Type/Annot{annotation}>>" for annotation in annotations),
    ]
    data, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    rows = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(bodies) + 1
    trailer = f"xref\n0 {size}\n0000000000 65535 f \n{rows}trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(data)}\n"
    return read_pdf(Source.from_bytes(f"{data}{trailer}%%EOF".encode("latin-1"))).text


def join_paragraphs(text: str) -> list[str]:
    """The paragraphs of a text with single spaces."""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def write(text: str, left: int, baseline: int, size: int = 11) -> str:
    return f"BT /F {size} Tf {left} {baseline} Td ({text}) Tj ET\n"


def field(value: str, *, rectangle: str = "120 695 270 713", name: str = "boat", more: str = "") -> str:
    return f"/Subtype/Widget/FT/Tx/T({name})/V({value})/Rect[{rectangle}]{more}"


FORM = "/AcroForm<</Fields[6 0 R]>>"


def test_values_follow_the_labels_of_their_row() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "Name:")
        canvas.drawString(300, 700, "Length:")
        canvas.drawString(72, 670, "Home ............................................ Flag ..............")
        canvas.drawString(72, 640, "Berth")
        form = canvas.acroForm
        form.textfield(name="a", value="Grey Plover", x=120, y=695, width=150, height=18)
        form.textfield(name="b", value="11.4", x=350, y=695, width=100, height=18)
        form.textfield(name="c", value="Saltby", x=106, y=667, width=130, height=14)
        form.textfield(name="d", value="North 4", x=106, y=635, width=100, height=18)
        form.textfield(name="e", value="May", x=306, y=635, width=100, height=18)

    assert join_paragraphs(read_form(draw)) == [
        "Name: Grey Plover Length: 11.4",
        "Home Saltby Flag ..............",
        "Berth North 4 May",
    ]


def test_boxes_show_whether_they_are_ticked() -> None:
    def draw(canvas: Canvas) -> None:
        form = canvas.acroForm
        for row, choice in enumerate([True, False]):
            for column, season in enumerate(["Winter", "Summer"]):
                left, baseline = 72 + 100 * column, 700 - 30 * row
                canvas.drawString(left + 20, baseline, season)
                form.checkbox(name=f"{row}{column}", checked=choice == (column == 0), x=left, y=baseline - 2, size=14)
        canvas.drawString(72, 640, "Insured? Yes")
        canvas.drawString(170, 640, "No")
        form.radio(name="r", value="yes", selected=True, x=144, y=638, size=12)
        form.radio(name="r", value="no", selected=False, x=190, y=638, size=12)

    rows = ["[x] Winter [ ] Summer", "[ ] Winter [x] Summer", "Insured? Yes [x] No [ ]"]
    assert " ".join(join_paragraphs(read_form(draw))) == " ".join(rows)


def test_values_follow_the_labels_over_their_fields() -> None:
    content = write("Name", 72, 700) + write("Length", 300, 700) + write("Signed at Saltby", 72, 600)
    fields = [field("Grey Plover", rectangle="72 676 250 696"), field("11.4", rectangle="300 676 400 696", name="b")]
    words = read_page(content, *fields, form="/AcroForm<</Fields[6 0 R 7 0 R]>>").split()
    assert words == ["Name", "Grey", "Plover", "Length", "11.4", "Signed", "at", "Saltby"]


def test_rows_of_a_table_of_fields_stay_together() -> None:
    content = write("Name", 72, 700) + write("Length", 300, 700)
    rows = [("Grey Plover", "11.4"), ("Heron", "9.2"), ("Whimbrel", "")]
    fields = [
        field(value, rectangle=f"{left} {676 - 20 * row} {left + 150} {696 - 20 * row}", name=value)
        for row, values in enumerate(rows)
        for left, value in zip((72, 300), values, strict=True)
    ]
    text = read_page(content, *fields, form="/AcroForm<</Fields[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]>>")
    places = [text.index(value) for row in rows for value in row if value]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Harbour.Boat[0]", "Boat: Grey Plover"),
        ("Text29", "Grey Plover"),
        ("Check Box1", "Grey Plover"),
        ("Boat name_2", "Boat name_2: Grey Plover"),
        ("Text29)/TU(Name of the boat", "Name of the boat: Grey Plover"),
    ],
)
def test_a_value_without_a_label_has_the_name_of_its_field(name: str, text: str) -> None:
    assert read_page(write("Harbour", 72, 760), field("Grey Plover", name=name), form=FORM) == f"Harbour\n\n{text}"


def test_lines_of_a_value_stay() -> None:
    value = field("4 Quay Road\\nSaltby", rectangle="120 640 270 713")
    assert read_page(write("Address:", 72, 700), value, form=FORM) == "Address: 4 Quay Road\nSaltby"


@pytest.mark.parametrize("lists_field", [True, False])
def test_a_choice_is_read_as_it_is_displayed_also_on_a_page_taken_out_of_a_form(*, lists_field: bool) -> None:
    choice = "/Subtype/Widget/FT/Ch/Ff 131072/T(c)/Opt[[(1)(Oak)][(2)(Ash)]]/V(2)/Rect[120 695 270 713]"
    assert read_page(write("Wood:", 72, 700), choice, form=FORM if lists_field else "") == "Wood: Ash"


@pytest.mark.parametrize(
    "annotation",
    [
        field(""),
        field("secret", more="/Ff 8192"),
        field("Grey Plover", more="/F 2"),
        field("Grey Plover", more="/F 32"),
        field("--"),
        "/Subtype/Widget/FT/Btn/T(w)/V/Off/AS/Off/Rect[120 695 134 709]",
        "/Subtype/Widget/FT/Btn/Ff 65536/T(w)/MK<</CA(Send)>>/Rect[120 695 134 709]",
    ],
)
def test_secret_hidden_and_empty_fields_and_blank_forms_leave_the_text_as_it_is(annotation: str) -> None:
    assert read_page(write("Name:", 72, 700), annotation, form=FORM) == "Name:"


def test_a_value_that_is_part_of_the_page_is_read_once() -> None:
    content = write("Name:", 72, 700) + write("Grey Plover", 124, 700)
    assert read_page(content, field("Grey Plover"), form=FORM).split() == ["Name:", "Grey", "Plover"]


def note(text: str, subtype: str = "Text", rectangle: str = "400 695 420 715", more: str = "") -> str:
    return f"/Subtype/{subtype}/Contents({text})/Rect[{rectangle}]{more}"


def test_typed_text_stands_where_it_lies_on_the_page_and_is_no_title() -> None:
    content = (
        write("Inspection of the crane", 72, 740, 24) + write("Next inspection:", 72, 700) + write("Next", 72, 686)
    )
    typed = note("14 October 2025", "FreeText", "170 697 300 712"), note("Saltby", "FreeText", "400 740 500 760")
    paragraphs = join_paragraphs(read_page(content, *typed))
    assert paragraphs == ["Inspection of the crane Saltby", "Next inspection: 14 October 2025 Next"]


def test_notes_follow_the_paragraph_that_they_are_attached_to() -> None:
    lines = [
        "The brake of the north crane is old and",
        "worn. It was",
        "mended in the spring of the last year.",
        "It holds.",
    ]
    content = "".join(write(line, 72, 700 - 14 * number) for number, line in enumerate(lines))
    notes = [
        note("Replace the lining", "Highlight", "72 697 140 709"),
        note("Ask Jane.\\nAnd Tom.", rectangle="500 10 520 30"),
    ]
    assert join_paragraphs(read_page(content, *notes)) == [
        " ".join(lines[:3]),
        "[Note: Replace the lining]",
        lines[3],
        "[Note: Ask Jane. And Tom.]",
    ]


@pytest.mark.parametrize(
    "annotation",
    [
        note("Open the page", "Link"),
        note("Replace the lining", "Popup"),
        note("Replace the lining", more="/F 2"),
        note("Accepted set by Jane", more="/StateModel(Review)/State(Accepted)"),
        note("north crane", "Highlight", "72 697 300 712"),
        note(" ", "FreeText"),
    ],
)
def test_links_windows_of_notes_hidden_notes_and_copies_of_the_page_are_no_text(annotation: str) -> None:
    assert read_page(write("The north crane is old.", 72, 700), annotation) == "The north crane is old."


def test_a_note_of_rich_text_alone_is_read() -> None:
    text = read_page(write("Crane", 72, 700), "/Subtype/Text/RC(<p>Replace <b>it</b> &amp; test</p>)/Rect[9 9 29 29]")
    assert text == "Crane\n\n[Note: Replace it & test]"


def test_notes_on_every_page_leave_running_heads_out() -> None:
    def draw(canvas: Canvas) -> None:
        for part in ("brake", "cable", "drum", "engine", "hook", "jib"):
            canvas.drawString(72, 790, "Handbook of Cranes")
            canvas.drawString(72, 700, f"The {part} was mended.")
            canvas.textAnnotation("Checked", Rect=[400, 780, 420, 800])
            canvas.showPage()

    text = read_form(draw)
    assert "Handbook" not in text
    assert text.count("[Note: Checked]") == 6


def test_a_value_in_a_form_field_of_a_turned_page_follows_its_label() -> None:
    content = "BT /F 11 Tf 0 1 -1 0 100 72 Tm (Name:) Tj ET"
    assert read_page(content, field("Grey Plover", rectangle="86 120 104 270"), form=FORM) == "Name: Grey Plover"
