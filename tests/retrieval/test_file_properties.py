"""Searches for who wrote a file or sent a message, and for other properties of files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
import openpyxl
import pptx
import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # likewise

from polyad.engine import Engine
from polyad.model import Evidence
from polyad.protocols.components import Embedder

TEXTS = {
    "pumps.pdf": ("Pump handbook", "Ines Moreau", "Pumps move water from the tank to the basin."),
    "valves.docx": ("Valve handbook", "Tomas Ferrand", "Valves stay open until the pressure falls."),
    "seals.epub": ("Seal handbook", "Carla Diaz", "Seals are replaced every second year."),
    "keys.html": ("Key handbook", "Piet Adler", "Keys hang on the board beside the door."),
    "tanks.odt": ("Tank handbook", "Jan Varga", "Tanks are painted with grey lacquer."),
    "filters.pptx": ("Filter handbook", "Olga Brandt", "Filters are rinsed before they are dried."),
    "meters.xlsx": ("Meter handbook", "Emil Novak", "Meters are read on the first of each month."),
    "otters.txt": ("", "", "Otters live behind the station and close their ears when they dive."),
}


def write_pdf(path: Path, title: str, author: str, text: str) -> None:
    canvas = Canvas(str(path))
    canvas.setTitle(title)
    canvas.setAuthor(author)
    canvas.drawString(100, 700, text)
    canvas.save()


def write_office(path: Path, title: str, author: str, text: str) -> None:
    if path.suffix == ".xlsx":
        workbook = openpyxl.Workbook()
        workbook.properties.title, workbook.properties.creator = title, author
        workbook.worksheets[0].append([text])
        workbook.save(path)
        return
    made: Any = docx.Document() if path.suffix == ".docx" else pptx.Presentation()
    made.core_properties.title, made.core_properties.author = title, author
    if path.suffix == ".docx":
        made.add_paragraph(text)
    else:
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = "Care", text
    made.save(str(path))


def write_epub(path: Path, title: str, author: str, text: str) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator></metadata>"
        '<manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        rootfile = '<container><rootfiles><rootfile full-path="main.opf"/></rootfiles></container>'
        archive.writestr("META-INF/container.xml", rootfile)
        archive.writestr("main.opf", package)
        archive.writestr("a.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>')


def write_odt(path: Path, title: str, author: str, text: str) -> None:
    names = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = (
        f'xmlns:office="{names}:office:1.0" xmlns:text="{names}:text:1.0" xmlns:meta="{names}:meta:1.0" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        body = f"<office:body><office:text><text:p>{text}</text:p></office:text></office:body>"
        archive.writestr("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>")
        meta = f"<dc:title>{title}</dc:title><meta:initial-creator>{author}</meta:initial-creator>"
        archive.writestr(
            "meta.xml", f"<office:document-meta {spaces}><office:meta>{meta}</office:meta></office:document-meta>"
        )


def write_file(path: Path, title: str, author: str, text: str) -> None:
    match path.suffix:
        case ".pdf":
            write_pdf(path, title, author, text)
        case ".epub":
            write_epub(path, title, author, text)
        case ".odt":
            write_odt(path, title, author, text)
        case ".docx" | ".pptx" | ".xlsx":
            write_office(path, title, author, text)
        case ".html":
            path.write_text(f'<head><title>{title}</title><meta name="author" content="{author}"></head><p>{text}</p>')
        case _:
            path.write_text(text)


def write_message(path: Path, subject: str, sender: str, receiver: str, date: str, text: str) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"], message["Date"] = subject, sender, receiver, date
    message.set_content(text)
    path.write_bytes(message.as_bytes())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Engine]:
    """An index of a file of each format and two messages."""
    folder = tmp_path_factory.mktemp("files")
    for name, values in TEXTS.items():
        write_file(folder / name, *values)
    date = "Mon, 01 May 2023 10:00:00 +0200"
    write_message(folder / "a.eml", "Gauges", "Rosa Keller <rk@a.org>", "Bo Lind <bl@a.org>", date, "They are broken.")
    date = "Tue, 06 Jun 2023 11:00:00 +0200"
    write_message(folder / "b.eml", "Ropes", "Max Stern <ms@a.org>", "Ida Holm <ih@a.org>", date, "We have new ones.")
    with Engine.open(folder / "kb", embedder=embedder) as engine:
        assert engine.index([folder]).counts.added == len(TEXTS) + 2
        yield engine


def get_first_file(evidence: Evidence) -> str:
    return Path(evidence.passages[0].origin.source).name


@pytest.mark.parametrize("retriever", ["default", "bm25"])
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "otters.txt"])
def test_the_author_and_the_title_of_a_file_find_it(engine: Engine, name: str, retriever: str) -> None:
    title, author, text = TEXTS[name]
    for question in (f"author {author}", title, text):
        assert get_first_file(engine.search(question, 3, retriever=retriever)) == name


@pytest.mark.parametrize("retriever", ["default", "bm25"])
@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("messages from Rosa Keller", "a.eml"),
        ("What was Ida Holm told?", "b.eml"),
        ("What was written on 6 June 2023?", "b.eml"),
        ("message about gauges", "a.eml"),
        ("ms@a.org", "b.eml"),
    ],
)
def test_sender_receiver_date_and_subject_find_a_message(
    engine: Engine, question: str, name: str, retriever: str
) -> None:
    assert get_first_file(engine.search(question, 3, retriever=retriever)) == name
