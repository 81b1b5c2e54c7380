import io
import zipfile
from pathlib import Path

import pytest

from polyad.errors import ReadError
from polyad.model import Document, Failure
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Content, Source
from polyad_readers.web.epub import read_epub

NCX = (
    '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>The  first well</text>'
    '</navLabel><content src="text/one%20a.xhtml#top"/></navPoint></navMap></ncx>'
)


def page(body: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{body}</body></html>'


def read(
    chapters: dict[str, str],
    *,
    metadata: str = "",
    items: str = "",
    guide: str = "",
    parts: dict[str, str] | None = None,
) -> Content:
    return read_epub(Source.from_bytes(save(chapters, metadata=metadata, items=items, guide=guide, parts=parts)))


def save(
    chapters: dict[str, str],
    *,
    metadata: str = "",
    items: str = "",
    guide: str = "",
    parts: dict[str, str] | None = None,
) -> bytes:
    """A book whose chapters are read in the order given."""
    manifest = "".join(f'<item id="{name}" href="{name.replace(" ", "%20")}"/>' for name in sorted(chapters))
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{manifest}{items}</manifest><spine>{spine}</spine>{guide}</package>"
    )
    container = '<container><rootfiles><rootfile full-path="book/main.opf"/></rootfiles></container>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("book/main.opf", package)
        for name, content in ({f"book/{name}": text for name, text in chapters.items()} | (parts or {})).items():
            archive.writestr(name, content)
    return file.getvalue()


def test_chapters_are_read_in_the_order_of_reading_and_their_headings_are_sections() -> None:
    content = read(
        {
            "z.xhtml": page("<h1>Wells</h1><p>Deep.</p><h2>Ropes</h2><p>Old.</p>"),
            "a.xhtml": page("<h1>Pumps</h1><p>New.</p>"),
        }
    )
    assert content.text == "Wells\n\nDeep.\n\nRopes\n\nOld.\n\nPumps\n\nNew."
    assert {part.name: content.text[part.start : part.end].strip() for part in content.sections} == {
        "Wells": "Wells\n\nDeep.\n\nRopes\n\nOld.",
        "Ropes": "Ropes\n\nOld.",
        "Pumps": "Pumps\n\nNew.",
    }


def test_a_chapter_without_headings_is_named_by_the_table_of_contents() -> None:
    content = read(
        {"text/one a.xhtml": page("<p>Deep.</p>"), "text/two.xhtml": page("<p>Dry.</p>")},
        items='<item id="ncx" href="toc.ncx"/>',
        parts={"book/toc.ncx": NCX},
    )
    assert [(part.name, content.text[part.start : part.end]) for part in content.sections] == [
        ("The first well", "Deep.")
    ]


def test_the_table_of_contents_is_no_chapter_and_names_others() -> None:
    nav = page('<nav><a href="b.xhtml">The second well</a></nav>')
    content = read(
        {"b.xhtml": page("<p>Deep.</p>"), "toc.xhtml": page('<p>Contents <a href="b.xhtml">of everything</a></p>')},
        items='<item id="nav" href="nav.xhtml" properties="nav"/>',
        guide='<guide><reference type="toc" href="toc.xhtml"/></guide>',
        parts={"book/nav.xhtml": nav},
    )
    assert content.text == "Deep."
    assert [part.name for part in content.sections] == ["The second well"]
    assert content.removals == {"removed_contents": ("of everything",)}


def test_a_page_with_the_table_of_contents_and_chapters_is_read() -> None:
    content = read(
        {"a.xhtml": page('<h1>Preface</h1><p>First words.</p><p id="toc"><a href="b.xhtml">Deep</a></p>')},
        guide='<guide><reference type="toc" href="a.xhtml#toc"/></guide>',
    )
    assert "First words." in content.text


def test_elements_that_close_themselves_hide_nothing() -> None:
    content = read({"a.xhtml": page('<p>One<script src="x"/> two<a id="b"/>.</p><p>Three.</p>')})
    assert content.text == "One two.\n\nThree."


def test_the_properties_of_a_book_are_its_title_and_metadata() -> None:
    content = read(
        {"a.xhtml": page("<p>Deep.</p>")},
        metadata=(
            "<dc:title>The  Wells</dc:title><dc:creator>Ines Moreau</dc:creator><dc:creator>Otto Lind</dc:creator>"
            "<dc:subject>water</dc:subject><dc:language>en</dc:language><dc:date>1902</dc:date>"
        ),
    )
    assert content.title == "The Wells"
    assert content.metadata == {
        "author": "Ines Moreau, Otto Lind",
        "keywords": ("water",),
        "language": "en",
        "created": "1902",
    }


def test_a_book_whose_chapters_are_encrypted_is_reported_and_one_whose_fonts_are_is_read() -> None:
    def encrypted(path: str) -> str:
        return f'<encryption><EncryptedData><CipherReference URI="{path}"/></EncryptedData></encryption>'

    chapters = {"a.xhtml": page("<p>Deep.</p>")}
    with pytest.raises(ReadError):
        read(chapters, parts={"META-INF/encryption.xml": encrypted("book/a.xhtml")})
    assert read(chapters, parts={"META-INF/encryption.xml": encrypted("book/font.otf")}).text == "Deep."


def test_a_book_without_a_file_that_it_names_is_read_without_it() -> None:
    content = read({"a.xhtml": page("<p>Deep.</p>")}, items='<item id="b" href="../../etc/passwd"/>')
    assert content.text == "Deep."


def contents(*entries: tuple[str, str]) -> str:
    points = "".join(
        f'<navPoint><navLabel><text>{name}</text></navLabel><content src="{target}"/></navPoint>'
        for target, name in entries
    )
    return f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{points}</navMap></ncx>'


def list_sections(content: Content) -> list[tuple[str, str]]:
    return [(part.name, content.text[part.start : part.end].strip()) for part in content.sections]


def test_each_entry_of_the_contents_that_leads_into_a_file_without_headings_is_a_section() -> None:
    content = read(
        {"a.xhtml": page('<p>Before.</p><p id="p1">I</p><p>Spring.</p><a id="p2"/><p>II</p><p>Flood.</p>')},
        items='<item id="ncx" href="toc.ncx"/>',
        parts={
            "book/toc.ncx": contents(("a.xhtml", "Preface"), ("a.xhtml#p1", "The arrival"), ("a.xhtml#p2", "The flood"))
        },
    )
    assert content.text == "Before.\n\nI\n\nSpring.\n\nII\n\nFlood."
    assert list_sections(content) == [
        ("Preface", "Before."),
        ("The arrival", "I\n\nSpring."),
        ("The flood", "II\n\nFlood."),
    ]


def test_entries_of_the_contents_whose_places_are_missing_leave_the_first_name() -> None:
    content = read(
        {"a.xhtml": page("<p>Spring.</p>")},
        items='<item id="ncx" href="toc.ncx"/>',
        parts={"book/toc.ncx": contents(("a.xhtml#x", "The arrival"), ("a.xhtml#y", "The flood"))},
    )
    assert list_sections(content) == [("The arrival", "Spring.")]


def test_a_file_is_found_in_spite_of_case_and_encoding_of_its_name_and_a_missing_one_is_reported() -> None:
    content = read(
        {"B ONE.xhtml": page("<p>Deep.</p>")},
        items='<item id="x" href="text/Caf%C3%A9.xhtml"/><item id="y" href="lost.xhtml"/>'
        '<item id="z" href="q%2520r.xhtml"/>',
        guide='<spine><itemref idref="x"/><itemref idref="y"/><itemref idref="z"/></spine>',
        parts={"BOOK/Text/cafe\u0301.xhtml": page("<p>Dry.</p>"), "book/q%20r.xhtml": page("<p>Old.</p>")},
    )
    assert content.text == "Deep.\n\nDry.\n\nOld."
    assert content.metadata["missing_chapters"] == ("book/lost.xhtml",)


def test_missing_and_damaged_chapters_are_failures_that_name_them(tmp_path: Path) -> None:
    data = save(
        {"a.xhtml": page("<p>Deep.</p>"), "b.xhtml": page("<p>Bad sum.</p>")},
        items='<item id="c" href="c.xhtml"/>',
        guide='<spine><itemref idref="c"/></spine>',
    )
    (tmp_path / "a.epub").write_bytes(data.replace(b"Bad sum", b"Bad SUM"))
    document, failure = FileReader().read([tmp_path / "a.epub"])
    assert isinstance(document, Document)
    assert isinstance(failure, Failure)
    assert document.text == "Deep."
    assert "book/c.xhtml" in failure.reason
    assert "book/b.xhtml" in failure.reason
