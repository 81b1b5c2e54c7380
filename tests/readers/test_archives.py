"""What holds for every kind of file that is a ZIP archive of XML."""

import io
import zipfile
from collections.abc import Callable
from importlib import import_module

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
import openpyxl
import pptx
import pytest

from polyad.errors import ReadError
from polyad.readers.format import Content, Source
from polyad_readers.office.docx.reader import read_docx
from polyad_readers.office.odt.reader import read_odt
from polyad_readers.office.pptx import read_pptx
from polyad_readers.office.xlsx import read_xlsx
from polyad_readers.web.epub import read_epub

ODT = {
    "content.xml": (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
        "<text:p>Pumps.</text:p></office:text></office:body></office:document-content>"
    )
}
EPUB = {
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
    "book.opf": (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    ),
    "a.xhtml": "<html><body><p>Pumps.</p></body></html>",
}


def packed(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def saved(document: object) -> bytes:
    file = io.BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


def word() -> bytes:
    document = docx.Document()
    document.add_paragraph("Pumps.")
    return saved(document)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    book.worksheets[0].append(["Pumps."])
    return saved(book)


def presentation() -> bytes:
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = "Pumps."
    return saved(slides)


Read = Callable[[Source], Content]
KINDS: list[tuple[Read, Callable[[], bytes], str]] = [
    (read_docx, word, "a Word document"),
    (read_xlsx, workbook, "an Excel workbook"),
    (read_pptx, presentation, "a PowerPoint presentation"),
    (read_odt, lambda: packed(ODT), "an OpenDocument text"),
    (read_epub, lambda: packed(EPUB), "an EPUB book"),
]
every_kind = pytest.mark.parametrize(("read", "make", "kind"), KINDS, ids=[read.__name__ for read, _, _ in KINDS])


def with_part(data: bytes, name: str, content: bytes) -> bytes:
    """An archive in which a part is replaced, or added."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
        new.writestr(name, content)
    return file.getvalue()


@every_kind
def test_a_sound_file_is_read(read: Read, make: Callable[[], bytes], kind: str) -> None:
    assert read(Source.from_bytes(make())).text == "Pumps."


@every_kind
def test_a_file_that_is_cut_short_is_reported(read: Read, make: Callable[[], bytes], kind: str) -> None:
    data = make()
    for share in (0.1, 0.5, 0.9):
        with pytest.raises(ReadError, match=f"not {kind}, or damaged"):
            read(Source.from_bytes(data[: int(share * len(data))]))


@every_kind
def test_a_file_of_another_kind_is_reported(read: Read, make: Callable[[], bytes], kind: str) -> None:
    for data in (b"Pumps.", packed({"readme.txt": "Pumps."}), *(other() for of, other, _ in KINDS if of is not read)):
        with pytest.raises(ReadError, match=f"not {kind}, or damaged"):
            read(Source.from_bytes(data))


@every_kind
def test_a_file_with_a_password_is_reported(read: Read, make: Callable[[], bytes], kind: str) -> None:
    with pytest.raises(ReadError):
        read(Source.from_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600))
    data = bytearray(make())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of encryption in the directory, of the last part
    with pytest.raises(ReadError):
        read(Source.from_bytes(bytes(data)))


@every_kind
def test_a_file_that_unpacks_to_too_much_xml_is_refused_before_it_is_unpacked(
    read: Read, make: Callable[[], bytes], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module(read.__module__), "_MAX_EXPANDED", 100_000)
    with pytest.raises(ReadError, match="bytes of XML; at most 100,000 are read"):
        read(Source.from_bytes(with_part(make(), "more.xml", b" " * 100_000)))


@every_kind
@pytest.mark.parametrize("begins", [b"<a>", b"\xff\xfe<\x00a\x00", b"\n \n<a>", b" " * 5000])
def test_xml_counts_whatever_its_part_is_called(
    read: Read, make: Callable[[], bytes], kind: str, begins: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module(read.__module__), "_MAX_EXPANDED", 1_000_000)
    with pytest.raises(ReadError, match="bytes of XML; at most 1,000,000 are read"):
        read(Source.from_bytes(with_part(make(), "word/document.dat", begins + b" " * 1_000_000)))
    assert read(Source.from_bytes(with_part(make(), "picture.png", b"\x89PNG" + b" " * 1_000_000))).text == "Pumps."


@every_kind
def test_a_file_that_unpacks_to_too_much_of_anything_is_refused(
    read: Read, make: Callable[[], bytes], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyad_readers.shared.archives._MAX_UNPACKED", 1_000_000)
    with pytest.raises(ReadError, match="at most 1,000,000 are read"):
        read(Source.from_bytes(with_part(make(), "picture.png", b" " * 1_000_000)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("read", "make", "part"),
    [
        (read_docx, word, "word/document.xml"),
        (read_xlsx, workbook, "xl/workbook.xml"),
        (read_pptx, presentation, "ppt/presentation.xml"),
        (read_odt, lambda: packed(ODT), "content.xml"),
        (read_epub, lambda: packed(EPUB), "book.opf"),
        (read_docx, word, "docProps/core.xml"),
    ],
)
def test_entities_that_multiply_are_never_expanded(
    read: Read, make: Callable[[], bytes], part: str, encoding: str
) -> None:
    levels = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e0 "ha">{levels}]><r>&e11;</r>'
    with pytest.raises(ReadError):
        read(Source.from_bytes(with_part(make(), part, bomb.encode(encoding))))


def test_entities_in_a_part_of_any_name_are_refused_and_a_page_kept_in_a_document_is_not() -> None:
    bomb = b'<!DOCTYPE r [<!ENTITY e "ha">]><r>&e;</r>'
    with pytest.raises(ReadError):
        read_docx(Source.from_bytes(with_part(word(), "word/document.dat", bomb)))
    page = with_part(word(), "word/page.html", b"<!DOCTYPE html><p>Pumps.</p>")
    assert read_docx(Source.from_bytes(page)).text == "Pumps."


def test_markup_that_nests_without_end_is_read() -> None:
    deep = "<text:list><text:list-item>" * 50_000 + "<text:p>Pumps.</text:p>"
    deep += "</text:list-item></text:list>" * 50_000
    nested = ODT["content.xml"].replace("<text:p>Pumps.</text:p>", deep)
    assert read_odt(Source.from_bytes(packed({"content.xml": nested}))).text.strip().endswith("Pumps.")
