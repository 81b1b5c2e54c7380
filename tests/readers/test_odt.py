import io
import zipfile

from polyad.readers.odt import read_odt
from polyad.readers.plain_text import Content

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in [
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("meta", "meta"),
        ("draw", "drawing"),
    ]
)


def read(body: str, styles: str = "", meta: str = "") -> Content:
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
    return read_odt(file.getvalue())


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
