import io
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from PIL import Image
from reportlab.pdfbase.pdfdoc import (  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
    PDFPageLabel,
    PDFPageLabels,
)
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.errors import ReadError
from polyad.model import Document, Failure
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Content, Context, Source
from polyad.text.page_labels import find_page_label
from polyad.text.removals import CONTENTS, HEADERS, PAGES, PICTURES
from polyad_readers.pdf.reader import read_pdf

WORDS = "The pumps of the old station were mended in the spring and have run without a fault ever since that day"


def drawn(draw: Callable[[Canvas], object], **properties: str) -> bytes:
    """A PDF with what ``draw`` draws; the title, the author and such are those in ``properties``."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    canvas.setTitle(properties.get("title", ""))
    for name in ("author", "subject", "keywords"):
        getattr(canvas, f"set{name.title()}")(properties.get(name, ""))
    draw(canvas)
    canvas.save()
    return file.getvalue()


def write_lines(canvas: Canvas, lines: Sequence[str], *, top: float = 700, left: float = 72, font: str = "") -> float:
    """Lines of body text 14 points apart, an empty one for a gap; the height of the next."""
    canvas.setFont(font or "Helvetica", 11)
    for line in lines:
        canvas.drawString(left, top, line)
        top -= 14
    return top


def read_pages(pages: Iterable[Sequence[str]], **properties: str) -> Content:
    def draw(canvas: Canvas) -> None:
        for lines in pages:
            write_lines(canvas, lines)
            canvas.showPage()

    return read_pdf(Source.from_bytes(drawn(draw, **properties)))


def names(content: Content) -> list[str]:
    return [section.name for section in content.sections]


# Places


def test_each_page_is_a_place_that_holds_its_text() -> None:
    content = read_pages([["Pumps are old."], [], ["Valves are new.", "They shut."]])
    assert [(place.page, content.text[place.start : place.end]) for place in content.places] == [
        (1, "Pumps are old."),
        (2, ""),
        (3, "Valves are new.\nThey shut."),
    ]


def test_places_do_not_overlap_where_a_word_goes_over_the_end_of_a_page() -> None:
    content = read_pages([["The pumps of the infra-"], ["structure are old."]])
    assert content.text == "The pumps of the infrastructure are old."
    first, second = content.places
    assert first.end == second.start
    assert content.text[second.start : second.end] == "structure are old."


# Title


def test_a_pdf_without_a_title_in_its_properties_is_called_by_the_largest_line_of_its_first_page() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 13)
        canvas.drawString(72, 780, "Saltby Water Works")
        canvas.setFont("Helvetica-Bold", 22)
        canvas.drawString(72, 740, "Handbook of Pumps")
        canvas.drawString(72, 714, "and Valves")
        write_lines(canvas, [WORDS] * 20, top=660)

    assert read_pdf(Source.from_bytes(drawn(draw))).title == "Handbook of Pumps and Valves"
    assert read_pdf(Source.from_bytes(drawn(draw, title="Pumps at Saltby"))).title == "Pumps at Saltby"
    assert (
        read_pdf(Source.from_bytes(drawn(draw, title="Microsoft Word - pumps_v2.doc"))).title
        == "Handbook of Pumps and Valves"
    )


@pytest.mark.parametrize("large", ["Contents", "7", "Chapter 1", "and so it goes on"])
def test_a_large_line_that_names_nothing_is_no_title(large: str) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica-Bold", 22)
        canvas.drawString(72, 740, large)
        write_lines(canvas, [WORDS] * 20, top=660)

    assert read_pdf(Source.from_bytes(drawn(draw))).title == ""


def test_a_pdf_of_one_size_is_called_by_the_entry_of_its_outline_that_all_others_stand_below() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, [WORDS] * 20)
        for level, name in enumerate(["Handbook of Pumps", "Seals"]):
            canvas.bookmarkPage(name)
            canvas.addOutlineEntry(name, name, level)

    assert read_pdf(Source.from_bytes(drawn(draw))).title == "Handbook of Pumps"


def test_a_title_that_is_drawn_last_stands_before_the_text_below_it() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 9)
        canvas.drawString(72, 800, "Saltby Water Works")
        write_lines(canvas, [WORDS] * 20, top=660)
        canvas.setFont("Helvetica-Bold", 22)
        canvas.drawString(72, 740, "Handbook of Pumps")
        canvas.drawString(72, 714, "and Valves")

    content = read_pdf(Source.from_bytes(drawn(draw)))
    assert content.title == "Handbook of Pumps and Valves"
    lines = [line for line in content.text.splitlines() if line]
    assert lines[:4] == ["Saltby Water Works", "Handbook of Pumps", "and Valves", WORDS]
    assert lines.count("Handbook of Pumps") == 1


def test_a_headline_over_the_second_column_stays_there() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, ["The pumps are old."] * 20, top=740)
        canvas.setFont("Helvetica-Bold", 22)
        canvas.drawString(320, 740, "New valves")
        write_lines(canvas, ["The valves shut."] * 18, top=710, left=320)

    assert read_pdf(Source.from_bytes(drawn(draw))).text.startswith("The pumps are old.")


# What is no text of the document


def numbered_pages(count: int, head: str, foot: str) -> Content:
    """Pages of prose, each different, with a head and a foot in which {} is the number of the page."""

    def draw(canvas: Canvas) -> None:
        for number in range(1, count + 1):
            canvas.setFont("Helvetica", 9)
            canvas.drawString(72, 790, head.format(number))
            canvas.drawString(300, 30, foot.format(number))
            write_lines(canvas, [f"In year {number} {word} were mended." for word in WORDS.split()])
            canvas.showPage()

    return read_pdf(Source.from_bytes(drawn(draw)))


@pytest.mark.parametrize(
    ("head", "foot"),
    [("Handbook of Pumps", "{}"), ("{} Handbook of Pumps 2.1", "- {} -"), ("Pumps", "Page {} of 20")],
)
def test_running_heads_feet_and_page_numbers_are_left_out(head: str, foot: str) -> None:
    content = numbered_pages(6, head, foot)
    assert content.text.count("were mended.") == 6 * len(WORDS.split())
    assert all(line.startswith("In year") for line in content.text.splitlines() if line)


def test_roman_numbers_of_pages_are_left_out() -> None:
    def draw(canvas: Canvas) -> None:
        for number, word in zip(["i", "ii", "iii", "iv", "v"], WORDS.split(), strict=False):
            canvas.drawString(300, 30, number)
            write_lines(canvas, [f"Here {word} is mended."])
            canvas.showPage()

    assert all(line.startswith("Here") for line in read_pdf(Source.from_bytes(drawn(draw))).text.splitlines() if line)


def test_the_head_of_a_chapter_of_one_page_is_left_out_where_all_other_pages_have_one() -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(1, 22):
            head = f"Pumps {number}" if number != 11 else "Seals"
            canvas.drawString(72, 790, head)
            write_lines(canvas, [f"In year {number} {word} were mended." for word in WORDS.split()])
            canvas.showPage()

    assert "Seals" not in read_pdf(Source.from_bytes(drawn(draw))).text


def headed_pages(heads: Sequence[str], *, size: float = 11, font: str = "Helvetica") -> Content:
    """Pages of prose, each different, with a line at the top."""

    def draw(canvas: Canvas) -> None:
        for number, head in enumerate(heads):
            canvas.setFont(font, size)
            canvas.drawString(72, 790, head)
            write_lines(canvas, [f"In year {number} {word} were mended." for word in WORDS.split()])
            canvas.showPage()

    return read_pdf(Source.from_bytes(drawn(draw)))


@pytest.mark.parametrize(
    ("head", "size"),
    [
        ("Invoice {0}4711", 11),
        ("Patient no. {0}7", 9),
        ("Certificate 88{0} for Rope R-10{0}", 11),
        ("Day {0}", 16),
        ("Step {0} of 4", 18),
        ("202{0}", 18),
        ("Lesson {0}", 11),
    ],
)
def test_lines_with_numbers_that_tell_pages_apart_stay(head: str, size: float) -> None:
    heads = [head.format(number) for number in range(1, 5)]
    content = headed_pages(heads, size=size)
    assert [text for text in heads if text in content.text] == heads
    assert content.title not in heads


@pytest.mark.parametrize("head", ["Act {}", "Day {}"])
def test_bold_headings_with_numbers_stay(head: str) -> None:
    heads = [head.format(number) for number in range(1, 6)]
    assert all(text in headed_pages(heads, font="Helvetica-Bold").text for text in heads)


def test_page_numbers_that_begin_anew_in_each_chapter_are_left_out() -> None:
    assert "2-3" not in headed_pages([f"{page // 4 + 1}-{page % 4 + 1}" for page in range(12)]).text


def test_page_numbers_of_an_extract_on_alternating_sides_are_left_out() -> None:
    heads = [f"{page} Smith and Lee" if page % 2 else f"Annals of Pumps {page}" for page in range(211, 219)]
    content = headed_pages(heads)
    assert not any(head in content.text for head in heads)
    assert "Annals of Pumps, S. 2" not in headed_pages([f"Annals of Pumps, S. {page}" for page in range(1, 5)]).text


def test_a_heading_that_begins_many_pages_with_different_numbers_stays() -> None:
    releases = [[f"{number} Release 0.{minor}.1", "", WORDS] for number, minor in enumerate([1, 3, 4, 8, 9], 7)]
    content = read_pages(releases[::-1])
    assert content.text.count("Release") == 5


def test_prose_at_the_bottom_of_pages_stays_though_footnotes_count_as_pages_do() -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(40):
            write_lines(canvas, [f"In year {number} {word} were mended." for word in WORDS.split()])
            if number in (7, 8, 9):
                canvas.drawString(72, 80, f"{number - 3} This note is about pump {WORDS.split()[number]}.")
            canvas.showPage()

    assert read_pdf(Source.from_bytes(drawn(draw))).text.count("This note is about pump") == 3


def test_a_table_of_contents_is_left_out_and_prose_on_its_page_stays() -> None:
    entries = [f"{number} Pumps of kind {number} {'. ' * 20}{number * 2}" for number in range(1, 9)]
    content = read_pages(
        [["Contents", "Part one 1", *entries, "", "This book was made in Saltby."], *[["Part.", WORDS]] * 16]
    )
    assert content.text.startswith("This book was made in Saltby.\n\nPart.\n")
    assert content.text.count(WORDS) == 16


def test_repeated_text_is_retained_if_a_pdf_has_no_other() -> None:
    assert read_pages([["Pumps are old."]] * 5).text.count("Pumps are old.") == 5


def test_a_data_sheet_with_leaders_stays() -> None:
    sizes = zip(["Inlet", "Outlet", "Height", "Width", "Weight"], [20, 25, 90, 95, 120], strict=True)
    assert (
        read_pages([["Sizes of pump 1:", *(f"{name} {'. ' * 20}{size}" for name, size in sizes)]]).text.count("\n") == 5
    )


def test_a_table_of_contents_without_leaders_is_left_out() -> None:
    entries = [f"{number}.1 Pumps of kind {kind}   {number + 1}" for number, kind in enumerate("abcdefghij", 1)]
    content = read_pages([["Contents", *entries], *[[f"Part {number}", WORDS] for number in range(14)]])
    assert "kind" not in content.text


def test_an_index_at_the_end_is_left_out() -> None:
    entries = [
        "bearings, 3",
        "flow, 1, 4-5",
        "gaskets, 2",
        "oil, 6, 7",
        "pumps, 1",
        "seals, 2",
        "valves, 3, 8",
        "wells, 9",
    ]
    pages = [[f"Part {number}", WORDS] for number in range(10)]
    content = read_pages([*pages, ["Index", "B", *entries]])
    assert "gaskets" not in content.text
    assert content.text.count(WORDS) == 10


def test_a_table_of_numbers_is_no_table_of_contents() -> None:
    rows = [
        f"Pump {name} moved litres {litres}" for name, litres in zip("GAEBDCFH", [9, 4, 8, 1, 7, 3, 12, 2], strict=True)
    ]
    years = [f"Pumps sold in the year {year}" for year in range(2001, 2012)]
    text = read_pages([rows, years, [WORDS]]).text
    assert text.count("moved litres") == 8
    assert text.count("Pumps sold") == 11


HARBOURS = ("Aldby", "Corven", "Ferrand", "Heron", "Lodewell", "Moreau", "Ottermere", "Saltby", "Tarn", "Varde")


def list_harbours(numbers: Sequence[int], leader: str = " ") -> list[str]:
    return [f"{harbour}{leader}{number}" for harbour, number in zip(HARBOURS, numbers, strict=True)]


@pytest.mark.parametrize("leader", [" ", " . . . . . . . . "])
@pytest.mark.parametrize("numbers", [(2, 3, 4, 5, 7, 8, 9, 11, 13, 15), (9, 3, 14, 2, 8, 3, 1, 7, 4, 5)])
@pytest.mark.parametrize("page", [0, 3, 17])
def test_statistics_and_prices_whose_numbers_could_be_pages_stay(
    page: int, numbers: Sequence[int], leader: str
) -> None:
    rows = ["Boats lost", *list_harbours(numbers, leader)]
    pages = [rows if number == page else [f"Part {number}", WORDS] for number in range(20)]
    assert all(row in read_pages(pages).text for row in rows)


def test_prices_on_the_page_after_a_table_of_contents_stay() -> None:
    contents = ["Contents", *list_harbours(range(6, 16), " . . . . . . ")]
    prices = [f"{boat} . . . . . . {fee}" for boat, fee in (("Canoe", 2), ("Barge", 4), ("Ferry", 5), ("Tug", 9))]
    text = read_pages([contents, ["Fees in euros", *prices], *[["Part.", WORDS]] * 16]).text
    assert "Heron" not in text
    assert all(price in text for price in prices)


def test_prose_and_prices_below_a_table_of_contents_stay() -> None:
    contents = ["Contents", *list_harbours(range(6, 16), " . . . . . . ")]
    prices = [f"{boat} . . . . . . {fee}" for boat, fee in (("Canoe", 2), ("Barge", 4), ("Ferry", 5), ("Tug", 9))]
    text = read_pages([[*contents, *[WORDS[:60]] * 6, *prices], *[["Part.", WORDS]] * 16]).text
    assert "Heron" not in text
    assert all(price in text for price in prices)


@pytest.mark.parametrize("title", ["Inhaltsverzeichnis", "Table des matières", "Índice general", "2 Contents"])
def test_tables_of_contents_with_titles_in_other_languages_are_left_out(title: str) -> None:
    content = read_pages([[title, *list_harbours(range(2, 12))], *[["Part.", WORDS]] * 16])
    assert title not in content.text
    assert "Heron" not in content.text


def test_a_table_of_contents_without_a_title_is_left_out_if_its_entries_are_headings() -> None:
    pages = [list_harbours(range(2, 12)), *[[f"{harbour}", WORDS] for harbour in HARBOURS]]
    assert read_pages(pages).text.startswith("Aldby\nThe pumps")


def test_an_index_of_two_pages_is_left_out() -> None:
    index = list_harbours([9, 3, 14, 2, 8, 3, 1, 7, 4, 5], ", ")
    more = [f"wharf {letter}, {page}" for letter, page in zip("abcdefgh", [2, 1, 6, 5, 9, 9, 3, 4], strict=True)]
    text = read_pages([*[["Part.", WORDS]] * 14, ["Sachregister", "A", *index], ["W", *more]]).text
    assert "Heron" not in text
    assert "wharf" not in text


def test_lines_that_are_left_out_can_be_listed() -> None:
    pages = [["Contents", "Pumps . . . . . 2", "Seals . . . . . 3", "Valves . . . . . 4", "Wells . . . . . 5"]]
    pages += [[f"In year {year} the pumps ran.", "", "", f"{year} of 6"] for year in range(2, 7)]
    removals = read_pages(pages).removals
    assert removals[CONTENTS] == tuple(f"p. 1: {line}" for line in pages[0])
    assert removals[HEADERS] == tuple(f"p. {page}: {page} of 6" for page in range(2, 7))


def test_pages_that_are_pictures_are_counted() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, [WORDS])
        canvas.showPage()
        canvas.drawInlineImage(Image.new("RGB", (20, 20), "red"), 72, 600, 200, 100)
        canvas.showPage()
        canvas.showPage()

    assert read_pdf(Source.from_bytes(drawn(draw))).removals == {PICTURES: ("p. 2",)}


def test_the_pages_beside_a_damaged_page_are_read_and_it_is_named(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for number in (1, 2, 3):
            write_lines(canvas, [f"Gate {number} was painted."])
            canvas.showPage()

    sound = drawn(draw)
    damaged = re.sub(
        rb"(/Kids \[ \d+ 0 R) \d+ 0 R", lambda match: match[1] + b" null".ljust(len(match[0]) - len(match[1])), sound
    )
    content = read_pdf(Source.from_bytes(damaged))
    assert content.text == "Gate 1 was painted.\n\nGate 3 was painted."
    assert [place.page for place in content.places if place.start < place.end] == [1, 3]
    assert content.removals == {PAGES: ("p. 2",)}
    (tmp_path / "a.pdf").write_bytes(damaged)
    document, failure = FileReader().read([tmp_path / "a.pdf"])
    assert isinstance(document, Document)
    assert document.metadata[PAGES] == 1
    assert isinstance(failure, Failure)
    assert "p. 2 cannot be read" in failure.reason


# Lines and paragraphs


def test_paragraphs_are_apart_by_blank_lines_and_lines_stay_wrapped() -> None:
    content = read_pages([["The pump is old", "and worn.", "", "The valve is new", "and shuts."]])
    assert content.text == "The pump is old\nand worn.\n\nThe valve is new\nand shuts."


def test_a_first_line_that_is_moved_in_begins_a_paragraph() -> None:
    def draw(canvas: Canvas) -> None:
        for place, (indent, line) in enumerate([(0, "The pump is old."), (15, "The valve"), (0, "is new.")]):
            write_lines(canvas, [line], top=700 - 14 * place, left=72 + indent)

    assert read_pdf(Source.from_bytes(drawn(draw))).text == "The pump is old.\n\nThe valve\nis new."


def test_a_paragraph_goes_on_over_the_end_of_a_page_and_a_finished_one_does_not() -> None:
    assert (
        read_pages([["The pump is"], ["old."], ["The valve is new."]]).text == "The pump is\nold.\n\nThe valve is new."
    )


def test_a_hyphen_that_is_part_of_a_word_stays_at_the_end_of_a_line() -> None:
    lines = ["This is a well-known pump. The self-", "made infra-", "structure of a well-", "known town is self made."]
    assert read_pages([lines]).text == (
        "This is a well-known pump. The self-made infrastructure of a well-known town is self made."
    )


def test_a_mark_that_stands_above_its_line_stays_with_it() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 7)
        canvas.drawString(72, 704, "3")
        write_lines(canvas, ["Before the war."], left=80)

    assert read_pdf(Source.from_bytes(drawn(draw))).text == "3 Before the war."


def test_ligatures_and_accents_apart_from_their_letters_become_letters() -> None:
    stream = b"BT /F 12 Tf 100 700 Td <0102> Tj 0 -14 Td <030402> Tj ET"
    letters = {1: "FB01", 2: "0078", 3: "00A8", 4: "006F"}
    assert read_pdf(Source.from_bytes(coded(stream, letters))).text == "fix\nöx"


def test_letters_beyond_the_basic_plane_are_read() -> None:
    assert (
        read_pdf(Source.from_bytes(coded(b"BT /F 12 Tf 100 700 Td <010201> Tj ET", {1: "D835DC00", 2: "0041"}))).text
        == "\U0001d400A\U0001d400"
    )


# Sections


def test_a_pdf_without_an_outline_has_its_sections_from_the_type_of_its_lines() -> None:
    def draw(canvas: Canvas) -> None:
        top = 780.0
        for size, text in [(24, "Handbook"), (16, "1 Pumps"), (12, "1.1 Seals"), (16, "2 Valves")]:
            canvas.setFont("Helvetica-Bold", size)
            canvas.drawString(72, top, text)
            top = write_lines(canvas, [WORDS] * 8, top=top - 30) - 20

    content = read_pdf(Source.from_bytes(drawn(draw)))
    assert content.title == "Handbook"
    spans = {section.name: content.text[section.start : section.end].count(WORDS) for section in content.sections}
    assert spans == {"1 Pumps": 16, "1.1 Seals": 8, "2 Valves": 8}


def test_bold_lines_that_stand_alone_are_headings_and_bold_words_in_prose_are_none() -> None:
    def draw(canvas: Canvas) -> None:
        top = 780.0
        for text in ("Seals", "Bearings"):
            write_lines(canvas, [text], top=top, font="Helvetica-Bold")
            top = write_lines(canvas, [WORDS] * 8, top=top - 28)
            top = write_lines(canvas, ["Beware of hot oil."], top=top, font="Helvetica-Bold")
            top = write_lines(canvas, [WORDS], top=top) - 20

    assert names(read_pdf(Source.from_bytes(drawn(draw)))) == ["Seals", "Bearings"]


def test_large_type_that_is_most_of_a_page_makes_no_sections() -> None:
    def draw(canvas: Canvas) -> None:
        for place in range(12):
            canvas.setFont("Helvetica-Bold", 20)
            canvas.drawString(72, 780 - 60 * place, f"Pump {place}")
            write_lines(canvas, ["is old"], top=750 - 60 * place)

    assert names(read_pdf(Source.from_bytes(drawn(draw)))) == []


def test_an_outline_costs_time_that_grows_with_its_entries_and_the_pages_alone() -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(4000):
            if number % 800 == 0:
                canvas.showPage()
                canvas.setFont("Helvetica", 1)
            name = f"Topic {'abcde'[number // 800]}{number}"  # other words on each page than a running header
            canvas.drawString(10, 830 - number % 800, name)
            canvas.bookmarkPage(str(number))
            canvas.addOutlineEntry(name, str(number), 0)

    content = read_pdf(Source.from_bytes(drawn(draw)))
    assert len(content.sections) == 4000
    assert all(part.name in content.text[part.start : part.start + 40] for part in content.sections)


def test_entries_of_one_name_are_the_lines_of_that_name_in_their_order() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, ["Usage", WORDS, "Usage", WORDS])
        for key in "ab":
            canvas.bookmarkPage(key)
            canvas.addOutlineEntry("Usage", key, 0)

    content = read_pdf(Source.from_bytes(drawn(draw)))
    assert [content.text[part.start : part.end].strip() for part in content.sections] == [f"Usage\n{WORDS}"] * 2


def test_an_entry_that_is_no_line_of_its_page_begins_where_it_points() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, ["Pumps", WORDS, "About seals", WORDS])
        for key, name, top in [("a", "Pumps", 712), ("b", "Rings", 684)]:
            canvas.bookmarkPage(key, fit="XYZ", left=0, top=top, zoom=0)
            canvas.addOutlineEntry(name, key, 0)

    content = read_pdf(Source.from_bytes(drawn(draw)))
    assert content.text[content.sections[1].start :].startswith("About seals")


# What the file says of itself


def test_the_properties_of_a_pdf_are_metadata() -> None:
    assert dict(read_pages([["Text."]], author="anonymous", subject="unspecified").metadata).keys() == {
        "created",
        "modified",
        "pages",
    }
    data = drawn(
        lambda canvas: write_lines(canvas, ["Text."]),
        author="Ines  Moreau",
        subject="Bells",
        keywords="cast, ring; cast",
    )
    metadata = dict(read_pdf(Source.from_bytes(data)).metadata)
    assert metadata.pop("created") == metadata.pop("modified") == "2000-01-01T00:00:00+00:00"
    assert metadata == {"author": "Ines Moreau", "subject": "Bells", "keywords": ("cast", "ring"), "pages": 1}


def test_damaged_properties_leave_the_text_and_the_others() -> None:
    data = objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream(b"BT /F 12 Tf 100 700 Td (Pumps.) Tj ET"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title <FEFF0041DC00> /Author (Ines Moreau)>>",
        information=b"/Info 6 0 R",
    )
    content = read_pdf(Source.from_bytes(data))
    assert (content.title, content.text, content.metadata["author"]) == ("", "Pumps.", "Ines Moreau")


# Harm


def objects(*bodies: bytes, information: bytes = b"") -> bytes:
    """A PDF of these objects, of which the first is the catalogue."""
    data = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    trailer = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF"
    return data + head + rows + trailer % (len(bodies) + 1, information, len(data))


def stream(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)


def coded(content: bytes, letters: dict[int, str]) -> bytes:
    """A page whose font has a letter for each code, in UTF-16 as hexadecimal digits."""
    pairs = "".join(f"<{code:02x}> <{letter}> " for code, letter in letters.items())
    code_map = (
        "begincmap /CMapType 2 def 1 begincodespacerange <00><ff> endcodespacerange "
        f"{len(letters)} beginbfchar {pairs}endbfchar endcmap"
    )
    return objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream(content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
        stream(code_map.encode()),
    )


def test_a_small_file_that_shows_one_stream_on_many_pages_is_refused() -> None:
    output = b"BT /F 10 Tf 12 TL 50 800 Td %sET" % b"".join(
        b"(Pump %d is old and worn.) Tj T* " % n for n in range(900)
    )
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 405))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 842]/Contents 3 0 R/Resources<</Font<</F 4 0 R>>>>>>"
    data = objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count 400>>" % kids,
        stream(output),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *[page] * 400,
    )
    with pytest.raises(ReadError):
        read_pdf(Source.from_bytes(data))


def test_a_page_of_more_lines_than_any_real_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad_readers.pdf.reader._MAX_LINES", 3)
    with pytest.raises(ReadError, match="page 2 has more than 3 lines"):
        read_pages([["Pump."] * 3, ["Valve."] * 4])


def test_progress_states_the_page() -> None:
    messages: list[tuple[int, int]] = []

    def draw(canvas: Canvas) -> None:
        for word in ("Pump.", "Valve.", "Seal."):
            write_lines(canvas, [word])
            canvas.showPage()

    context = Context(on_page=lambda page, pages, _: messages.append((page, pages)))
    read_pdf(Source.from_bytes(drawn(draw)), context)
    assert messages == [(1, 3), (2, 3), (3, 3)]


def test_the_printed_labels_of_pages_are_kept() -> None:
    def draw(canvas: Canvas) -> None:
        labels = PDFPageLabels()
        labels.addPageLabel(0, PDFPageLabel("ROMAN_LOWER"))
        labels.addPageLabel(2, PDFPageLabel("ARABIC", start=1, prefix="A-"))
        canvas._doc.Catalog.PageLabels = labels
        for number in range(4):
            write_lines(canvas, [f"Page {number} of the handbook."])
            canvas.showPage()

    metadata = read_pdf(Source.from_bytes(drawn(draw))).metadata
    assert [find_page_label(metadata, page) for page in range(1, 5)] == ["i", "ii", "A-1", "A-2"]
    assert find_page_label(read_pages([["Text."]]).metadata, 1) is None
