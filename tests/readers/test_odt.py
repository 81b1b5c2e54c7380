import io
import zipfile
from collections.abc import Mapping
from types import MappingProxyType

from polyad.readers.format import Content, Source
from polyad_readers.office.odt.reader import read_odt

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in [
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("meta", "meta"),
        ("draw", "drawing"),
        ("form", "form"),
    ]
)


def read(body: str, styles: str = "", meta: str = "", parts: Mapping[str, str] = MappingProxyType({})) -> Content:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr(
            "content.xml",
            f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
        )
        archive.writestr(
            "meta.xml",
            f'<office:document-meta {SPACES} xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<office:meta>{meta}</office:meta></office:document-meta>",
        )
        for name, content in parts.items():
            archive.writestr(name, content)
    return read_odt(Source.from_bytes(file.getvalue()))


def test_headings_are_sections_and_paragraphs_stay_apart() -> None:
    content = read(
        '<text:h text:outline-level="1">Pumps</text:h><text:p>Old &amp; worn.</text:p>'
        '<text:h text:outline-level="2">Seals</text:h><text:p>New.</text:p>'
        '<text:h text:outline-level="1">Valves</text:h>'
    )
    assert content.text == "Pumps\n\nOld & worn.\n\nSeals\n\nNew.\n\nValves"
    assert {part.name: content.text[part.start : part.end].split("\n\n")[-2:] for part in content.sections} == {
        "Pumps": ["New.", ""],
        "Seals": ["New.", ""],
        "Valves": ["Valves"],
    }


def test_blanks_tabs_breaks_lists_and_tables_are_kept() -> None:
    content = read(
        '<text:p>a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d</text:p>'
        "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Pump</text:p></table:table-cell>"
        "<table:table-cell><text:p>3 l/s</text:p></table:table-cell></table:table-row></table:table>"
    )
    lines = [" ".join(line.split()) for line in content.text.splitlines() if line.strip()]
    assert lines == ["a b c", "d", "• one", "Pump 3 l/s"]


def test_a_footnote_stands_in_brackets_where_it_is_called() -> None:
    content = read(
        "<text:p>The pump<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>Of 1702.</text:p></text:note-body></text:note> is old.</text:p>"
    )
    assert content.text == "The pump [Of 1702.] is old."


def test_deleted_text_comments_and_contents_are_left_out() -> None:
    content = read(
        "<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
        "<text:table-of-content><text:p>Pumps 3</text:p></text:table-of-content>"
        "<text:p>Kept.<office:annotation><text:p>Why?</text:p></office:annotation></text:p>"
    )
    assert content.text == "Kept."


def test_the_title_is_what_is_set_in_the_style_title_or_one_made_from_it() -> None:
    body = '<text:h text:outline-level="1">History</text:h><text:p text:style-name="{}">The <text:s/>Pumps</text:p>'
    made_from = '<style:style style:name="P1" style:parent-style-name="Title"/>'
    assert read(body.format("Title")).title == "The Pumps"
    assert read(body.format("P1"), made_from).title == "The Pumps"
    assert read(body.format("P2"), made_from, "<dc:title>Pump book</dc:title>").title == "Pump book"
    assert read(body.format("P2")).title == "History"


def test_the_properties_of_the_document_are_metadata() -> None:
    meta = (
        "<dc:title>Pump book</dc:title><meta:initial-creator>Ines Moreau</meta:initial-creator>"
        "<dc:creator>Otto</dc:creator><dc:subject>Pumps</dc:subject><dc:date>2024-03-02T10:00:00</dc:date>"
        "<meta:creation-date>2024-03-01T10:00:00</meta:creation-date>"
        "<meta:keyword>wells</meta:keyword><meta:keyword>water</meta:keyword>"
    )
    assert read("<text:p>Text.</text:p>", meta=meta).metadata == {
        "author": "Ines Moreau",
        "subject": "Pumps",
        "keywords": ("wells", "water"),
        "created": "2024-03-01T10:00:00",
        "modified": "2024-03-02T10:00:00",
    }


LISTS = (
    '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1" '
    'style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="a" style:num-prefix="(" '
    'style:num-suffix=")"/><text:list-level-style-number text:level="3" style:num-format="1" text:display-levels="3"/>'
    '</text:list-style><text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/>'
    "</text:list-style>"
)


def items(*texts: str, attributes: str = 'text:style-name="L1"') -> str:
    entries = "".join(
        f"<text:list-item>{text if text.startswith('<') else f'<text:p>{text}</text:p>'}</text:list-item>"
        for text in texts
    )
    return f"<text:list {attributes}>{entries}</text:list>"


def test_items_have_the_numbers_of_the_style_of_their_list() -> None:
    inner = items("a1", items("a1.1", attributes=""), attributes="")
    body = items("one", inner, "two") + "<text:p>Note.</text:p>"
    body += items("three", attributes='text:style-name="L1" text:continue-numbering="true"')
    body += items("new") + items("bullet", attributes='text:style-name="L2"')
    assert [line.strip() for line in read(body, LISTS).text.splitlines() if line] == [
        *("1. one", "(a) a1", "1.a.1 a1.1", "2. two", "Note.", "3. three", "1. new", "• bullet")
    ]


def test_headings_have_the_numbers_of_the_outline_and_sections_have_names_without() -> None:
    styles = (
        f"<office:document-styles {SPACES}><office:styles><text:outline-style>"
        '<text:outline-level-style text:level="1" style:num-format="1"/>'
        '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
        "</text:outline-style></office:styles></office:document-styles>"
    )
    headings = [("Pumps", 1), ("Seals", 2), ("Gates", 2), ("Valves", 1)]
    body = "".join(f'<text:h text:outline-level="{level}">{name}</text:h>' for name, level in headings)
    content = read(body, parts={"styles.xml": styles})
    assert content.text.split("\n\n") == ["1 Pumps", "1.1 Seals", "1.2 Gates", "2 Valves"]
    assert [section.name for section in content.sections] == ["Pumps", "Seals", "Gates", "Valves"]


def test_headers_and_footers_come_first_without_page_numbers() -> None:
    page = (
        f"<office:document-styles {SPACES}><office:master-styles><style:master-page><style:header>"
        "<text:p>WI-4471</text:p></style:header><style:footer><text:p>Page <text:page-number>3</text:page-number> of "
        "<text:page-count>9</text:page-count></text:p></style:footer></style:master-page></office:master-styles>"
        "</office:document-styles>"
    )
    assert read("<text:p>Text.</text:p>", parts={"styles.xml": page}).text == "WI-4471\n\nText."


def test_the_base_text_under_a_reading_is_kept() -> None:
    ruby = "<text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text></text:ruby>"
    assert read(f"<text:p>{ruby}の駅</text:p>").text == "東京の駅"


def cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def test_values_of_tables_stay_under_the_names_of_their_columns() -> None:
    covered = "<table:covered-table-cell/>"
    rows = [
        cell("Plant") + cell("Basic") + cell("Plus"),
        cell("Aldby", 'table:number-rows-spanned="2"') + cell("") + cell("40"),
        covered + cell("30", 'table:number-columns-spanned="2"') + covered,
        '<table:table-cell table:number-columns-repeated="2"/>' + cell("50"),
    ]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    assert read(f"<table:table>{table}</table:table>").text == (
        "Plant: Aldby\tPlus: 40\nPlant: Aldby\tBasic: 30\tPlus: 30\nPlus: 50"
    )


def test_header_rows_name_the_columns() -> None:
    header = f"<table:table-header-rows><table:table-row>{cell('Pump')}{cell('Use')}</table:table-row>"
    rows = f"{header}</table:table-header-rows><table:table-row>{cell('P1')}{cell('Lifts.')}</table:table-row>"
    assert read(f"<table:table>{rows}</table:table>").text == "Pump: P1\tUse: Lifts."


def test_form_controls_show_their_state() -> None:
    forms = (
        '<office:forms><form:form><form:checkbox form:id="c1" form:label="damaged" form:current-state="checked"/>'
        '<form:checkbox form:id="c2" form:label="good"/><form:text form:id="c3" form:current-value="Ines"/>'
        '<form:listbox form:id="c4"><form:option form:label="open"/>'
        '<form:option form:label="closed" form:current-selected="true"/></form:listbox></form:form></office:forms>'
    )
    places = " ".join(f'<draw:control draw:control="c{number}"/>' for number in (1, 2, 3, 4))
    assert read(f"{forms}<text:p>Roof: {places}</text:p>").text == "Roof: [x] damaged [ ] good Ines closed"


def test_formulas_are_read_in_one_line() -> None:
    space = "http://www.w3.org/1998/Math/MathML"
    fraction = "<mfrac><mrow><mi>f</mi><mo>·</mo><mi>L</mi></mrow><msup><mi>D</mi><mn>5</mn></msup></mfrac>"
    formula = (
        f'<math xmlns="{space}"><semantics><mrow><mi>h</mi><mo>=</mo>{fraction}<msqrt><mi>x</mi></msqrt></mrow>'
        '<annotation encoding="StarMath 5.0">h = x</annotation></semantics></math>'
    )
    place = '<draw:frame><draw:object xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="./Object 1"/></draw:frame>'
    content = read(f"<text:p>Loss {place}.</text:p>", parts={"Object 1/content.xml": formula})
    assert content.text == "Loss h=(f·L)/(D^5)√(x)."


def test_several_headings_of_the_highest_level_are_no_title() -> None:
    assert read("<text:h>Supply</text:h><text:p>x</text:p><text:h>Payment</text:h>").title == ""


def embed(name: str) -> str:
    return f'<draw:object xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="./{name}"/>'


def test_charts_and_sheets_in_a_text_are_read() -> None:
    chart = (
        f"<office:document-content {SPACES}><office:body><office:chart><text:p>Output</text:p><table:table>"
        "<table:table-header-rows><table:table-row><table:table-cell><text:p/></table:table-cell>"
        "<table:table-cell><text:p>Pumps</text:p></table:table-cell>"
        "<table:table-cell><text:p>Fans</text:p></table:table-cell></table:table-row></table:table-header-rows>"
        "<table:table-row><table:table-cell><text:p>May</text:p></table:table-cell>"
        "<table:table-cell><text:p>31</text:p></table:table-cell>"
        "<table:table-cell><text:p>4</text:p></table:table-cell></table:table-row>"
        "</table:table></office:chart></office:body></office:document-content>"
    )
    content = read(
        f"<text:p>Before.</text:p><text:p><draw:frame>{embed('A')}<draw:image/></draw:frame></text:p>"
        f"<text:p>After.<draw:frame>{embed('B')}</draw:frame></text:p>",
        parts={"A/content.xml": chart, "B/content.xml": f"<office:document-content {SPACES}><damaged"},
    )
    assert content.text == "Before.\n\nOutput\n\nMay\tPumps: 31\tFans: 4\n\nAfter."
    assert not content.removals


def test_an_object_that_embeds_itself_is_read_once() -> None:
    inner = (
        f"<office:document-content {SPACES}><office:body><text:p>Inner{embed('A')}</text:p></office:body>"
        "</office:document-content>"
    )
    assert read(f"<text:p>Outer</text:p><text:p>{embed('A')}</text:p>", parts={"A/content.xml": inner}).text == (
        "Outer\n\nInner"
    )


def test_comments_contents_and_pictures_without_text_are_listed() -> None:
    content = read(
        "<text:table-of-content><text:index-body><text:p>Seals <text:s/>4</text:p></text:index-body>"
        "</text:table-of-content>"
        '<text:p>Seals<office:annotation xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:creator>Ada</dc:creator>'
        "<text:p>Which ones?</text:p></office:annotation> leak.</text:p>"
        '<text:p><draw:frame draw:name="Photo"><draw:image/></draw:frame><draw:frame draw:name="Plan"><draw:image/>'
        '<svg:desc xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0">A plan</svg:desc>'
        "</draw:frame></text:p>"
    )
    assert content.text == "Seals leak.\n\nA plan"
    assert content.removals == {
        "removed_contents": ("Seals 4",),
        "removed_comments": ("Which ones?",),
        "pictures_without_text": ("Photo",),
    }
