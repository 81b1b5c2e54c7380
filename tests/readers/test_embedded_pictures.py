"""Pictures inside Word, PowerPoint, HTML, EPUB and e-mail documents, with the real OCR models."""

import base64
import io
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from docx.shared import Inches
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from pptx.util import Inches as SlideInches

from polyad.config import ReadSettings
from polyad.model import MetadataValue
from polyad.readers.format import NEW_SCAN, Content
from polyad.readers.formats import list_formats
from polyad.readers.pool import one_file
from polyad.readers.pool.one_file import read_content
from polyad.readers.text import ocr_cache
from polyad.text.pictures import PICTURE_LIST, select_labels
from polyad.text.removals import OMITTED_PICTURES, PICTURES, READ_PICTURES, UNREAD_PICTURES
from polyad_readers.pictures import embedded as embedded_pictures
from polyad_readers.pictures import ocr

pytest.importorskip("rapidocr")

VALVE = "Valve seven is closed by hand"
BELL = "The bell of Tarn was cast in 1702"


def draw(
    text: str, kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (560, 100), **options: object
) -> bytes:
    """A picture with a line of text."""
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((20, 30), text, fill="black", font=ImageFont.load_default(28))
    file = io.BytesIO()
    image.convert(mode).save(file, kind, **options)
    return file.getvalue()


def fill(number: int, size: tuple[int, int] = (120, 120)) -> bytes:
    """A picture of one colour."""
    file = io.BytesIO()
    Image.new("RGB", size, (number % 256, number // 256, 99)).save(file, "PNG")
    return file.getvalue()


def build_docx(*blocks: str | bytes, captions: dict[int, str] | None = None) -> bytes:
    """A Word document with paragraphs and pictures; a caption follows the block with its number."""
    document = docx.Document()
    for place, block in enumerate(blocks):
        if isinstance(block, str):
            document.add_paragraph(block)
        else:
            document.add_picture(io.BytesIO(block), width=Inches(3))
        if captions and place in captions:
            document.add_paragraph(captions[place], style="Caption")
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def replace_part(data: bytes, suffix: str, part: bytes, name: str = "") -> bytes:
    """The archive with another content of the part whose name ends with ``suffix``, and perhaps another name."""
    source, file = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.namelist():
            content = part if item.endswith(suffix) else source.read(item)
            if name and not item.endswith(suffix):
                content = content.replace(suffix.encode(), name.encode())
            target.writestr(item.replace(suffix, name) if name else item, content)
    return file.getvalue()


def read(place: Path, name: str, data: bytes, **settings: object) -> Content:
    """The content of a file with these bytes."""
    path = place / name
    path.write_bytes(data)
    return read_content(path, list_formats()[path.suffix], ReadSettings(**settings))  # type: ignore[arg-type]


def read_bare(folder: Path, name: str, data: bytes) -> Content:
    """The content of a file without its pictures."""
    return read(folder, f"bare-{name}", data, max_pictures=0)


def get_places(text: str, *parts: str) -> list[int]:
    return [text.index(part) for part in parts]


def test_the_text_of_a_picture_in_word_stands_at_its_place_and_says_so(tmp_path: Path) -> None:
    data = build_docx("The pump is old.", draw(VALVE), "It runs well.", captions={1: "Figure 1: The valve"})

    content = read(tmp_path, "pump.docx", data)

    places = get_places(content.text, "The pump is old.", "[Text of a picture", VALVE, "Figure 1", "It runs well.")
    assert places == sorted(places)
    (section,) = [section for section in content.sections if VALVE in content.text[section.start : section.end]]
    assert section.name == "Picture: Figure 1: The valve"
    assert "It runs" not in content.text[section.start : section.end]
    assert content.removals == {READ_PICTURES: ("image1.png",)}
    assert content.metadata[PICTURE_LIST] == ("Figure 1: The valve",)
    assert len(str(content.metadata["sha256"])) == 64


def test_pictures_of_slides_pages_books_and_messages_are_read(tmp_path: Path) -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Bells"
    slide.shapes.add_picture(io.BytesIO(draw(BELL, "JPEG", "CMYK")), SlideInches(1), SlideInches(2))
    file = io.BytesIO()
    presentation.save(file)
    message = EmailMessage()
    message["Subject"] = "Bells"
    message.set_content("See the picture.")
    message.add_attachment(draw(BELL), maintype="image", subtype="png", filename="bell.png")
    address = f"data:image/png;base64,{base64.b64encode(draw(BELL)).decode()}"
    page = (
        "<h1>Bells</h1><p>See <img src='%s'> here.</p><figure><img src='%s' alt='A bell'><figcaption>Figure 2. Cast"
        "</figcaption></figure><p>The end of the page.</p>"
    )

    contents = {
        "a.pptx": read(tmp_path, "a.pptx", file.getvalue()),
        "a.eml": read(tmp_path, "a.eml", bytes(message)),
        "a.html": read(tmp_path, "a.html", (page % ("", address)).encode()),
        "a.epub": read(tmp_path, "a.epub", build_epub(page % ("bell.gif", "none.png"), "bell.gif")),
    }

    for name, content in contents.items():
        assert f"]\n{BELL}" in content.text, name
        assert len(content.removals[READ_PICTURES]) == 1, name
    assert contents["a.html"].metadata[PICTURE_LIST] == ("Figure 2. Cast",)
    places = get_places(contents["a.html"].text, "A bell", BELL, "\n\nFigure 2. Cast", "The end")
    assert places == sorted(places)
    assert "See here.\n\n[Text of a picture: bell.gif]\n" in contents["a.epub"].text


def build_epub(page: str, picture: str) -> bytes:
    """A book with one chapter and an animated GIF."""
    file = io.BytesIO()
    frames = [Image.open(io.BytesIO(draw(text))).convert("P") for text in (BELL, VALVE)]
    animation = io.BytesIO()
    frames[0].save(animation, "GIF", save_all=True, append_images=frames[1:])
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "META-INF/container.xml",
            "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles>"
            "<rootfile full-path='book/book.opf'/></rootfiles></container>",
        )
        archive.writestr(
            "book/book.opf",
            "<package xmlns='http://www.idpf.org/2007/opf'><manifest><item id='c' href='c.xhtml'/></manifest>"
            "<spine><itemref idref='c'/></spine></package>",
        )
        archive.writestr("book/c.xhtml", f"<html><body>{page}</body></html>")
        archive.writestr(f"book/{picture}", animation.getvalue())
    return file.getvalue()


def test_a_page_reads_pictures_of_its_folder_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "page_files").mkdir(parents=True)
    (folder / "page_files" / "bell 1.png").write_bytes(draw(BELL))
    (tmp_path / "secret.png").write_bytes(draw(VALVE))
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / ".hidden.png").write_bytes(draw(VALVE))
    sources = [
        *("page_files/bell%201.png", "../secret.png", f"{tmp_path}/secret.png", f"file://{tmp_path}/secret.png"),
        *(
            "link.png",
            ".hidden.png",
            "page_files/..%2f..%2fsecret.png",
            "http://127.0.0.1:9/a.png",
            "//127.0.0.1/a.png",
        ),
        *("page_files", "page_files/%00.png", "http://[", "//127.0.0.1/a.png", "", "data:image/png;base64,AAAA%"),
    ]
    page = "<p>Pictures of the site</p>" + "".join(f"<img alt='Alt' src='{source}'>" for source in sources)

    content = read(folder, "page.html", page.encode())

    assert BELL in content.text
    assert VALVE not in content.text
    assert content.removals[READ_PICTURES] == ("bell 1.png",)


def test_without_the_extra_a_document_is_read_as_before_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = build_docx("The pump is old.", draw(VALVE), fill(1, (40, 40)))
    bare = read_bare(tmp_path, "a.docx", data)
    monkeypatch.setattr(embedded_pictures, "is_ocr_installed", lambda: False)
    content = read(tmp_path, "a.docx", data)

    assert content.text == bare.text == "The pump is old."
    assert content.sections == bare.sections
    assert content.removals == {**bare.removals, UNREAD_PICTURES: ("image1.png",)}


def test_a_document_without_pictures_is_not_changed(tmp_path: Path) -> None:
    for name, data in {"a.docx": build_docx("The pump is old."), "a.html": b"<p>The pump <b>is</b> old.</p>"}.items():
        content = read(tmp_path, name, data)
        assert content == read_bare(tmp_path, name, data)
        assert "sha256" not in content.metadata


def test_icons_logos_and_pictures_without_text_are_not_read(tmp_path: Path) -> None:
    logo, icon, photo = draw("ACME Pumps of Tarn"), draw("Ok", size=(60, 40)), fill(7)
    content = read(tmp_path, "a.docx", build_docx("One", logo, "Two", logo, "Three", logo, icon, photo))

    assert content.text == "One\n\nTwo\n\nThree"
    assert content.removals[OMITTED_PICTURES] == ("image1.png (stands at 3 places, as a logo does)",)
    assert len(content.removals[PICTURES]) == 5
    assert PICTURE_LIST not in content.metadata


def test_drawings_damaged_and_huge_pictures_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = build_docx("The pump is old.", draw(VALVE), draw(BELL), fill(1), fill(2), fill(3))
    huge = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(huge, "PNG")
    data = replace_part(data, "image1.png", b"\x01\x00\x00\x00", "image1.emf")
    data = replace_part(data, "image2.png", draw(BELL)[:300])
    data = replace_part(data, "image3.png", huge.getvalue())
    data = replace_part(data, "image4.png", b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>")
    data = replace_part(data, "image5.png", b"\xd7\xcd\xc6\x9a", "image5.wmf")

    content = read(tmp_path, "a.docx", data)

    assert content.text == "The pump is old."
    reasons = dict(reason.split(" (", 1) for reason in content.removals[OMITTED_PICTURES])
    assert reasons["image1.emf"] == reasons["image4.png"] == reasons["image5.wmf"] == "a drawing without pixels)"
    assert "damaged" in reasons["image2.png"]
    assert reasons["image3.png"].startswith("10,000 x 10,000 pixels")


def test_of_many_pictures_the_first_are_read_and_the_others_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognized: list[object] = []

    def recognize(*arguments: object) -> list[ocr.OcrLine]:
        recognized.append(arguments)
        return []

    monkeypatch.setattr(ocr, "recognize", recognize)
    reports: list[tuple[int, int, str]] = []
    path = tmp_path / "many.docx"
    path.write_bytes(build_docx("The pump is old.", *map(fill, range(500))))

    settings = ReadSettings(max_pictures=30)
    content = one_file.read_content(path, list_formats()[".docx"], settings, lambda *report: reports.append(report))

    assert content.text == "The pump is old."
    assert len(recognized) == 30
    assert reports == [(number, 0, NEW_SCAN) for number in range(1, 31)]
    assert len(content.removals[OMITTED_PICTURES]) == 470
    assert content.removals[OMITTED_PICTURES][0] == "image31.png (more than 30 pictures; see max_pictures)"


def test_recognised_pictures_are_stored_and_deleted_with_their_last_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kb"
    folder.mkdir()
    first, second = build_docx("The pump is old.", draw(VALVE)), build_docx("The pump is new.", draw(VALVE))
    contents = [
        read(tmp_path, name, data, folder=str(folder)) for name, data in (("a.docx", first), ("b.docx", second))
    ]
    recognized: list[object] = []
    recognize = ocr.recognize

    def count(*arguments: object) -> list[ocr.OcrLine]:
        recognized.append(arguments)
        return recognize(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ocr, "recognize", count)
    ocr_cache.forget_pages(folder, str(contents[0].metadata["sha256"]))
    assert read(tmp_path, "b.docx", second, folder=str(folder)) == contents[1]
    assert not recognized
    ocr_cache.forget_pages(folder, str(contents[1].metadata["sha256"]))
    assert read(tmp_path, "a.docx", first, folder=str(folder)) == contents[0]
    assert len(recognized) == 1


def test_a_hit_names_the_pictures_of_its_text_only() -> None:
    metadata: dict[str, MetadataValue] = {PICTURE_LIST: ("Figure 1: The valve", "A bell"), "pages": 3}

    assert select_labels(metadata, "See the\nFigure 1: The  valve.") == {
        PICTURE_LIST: ("Figure 1: The valve",),
        "pages": 3,
    }
    assert select_labels(metadata, "Other text") == {"pages": 3}
    assert select_labels({"pages": 3}, "Other text") == {"pages": 3}


def test_addresses_that_are_none_do_not_fail_a_book(tmp_path: Path) -> None:
    page = "<p>The bell rings.</p>" + "".join(
        f"<img src='{source}'>" for source in ("http://[", "../../../etc/passwd", "data:image/png;base64,AA", "")
    )
    assert read(tmp_path, "a.epub", build_epub(page, "bell.gif")).text == "The bell rings."
