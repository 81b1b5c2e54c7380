"""Reads OpenDocument texts, as LibreOffice writes them: text, lists with their numbers, tables, notes and headers."""

from __future__ import annotations

from zipfile import ZipFile

from polyad.errors import ReadError
from polyad.model import MetadataValue
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Source
from polyad.readers.text.headings import build_sections
from polyad.readers.text.metadata import build_metadata, split_keywords
from polyad.readers.text.plain_text import to_single_line
from polyad.readers.text.titles import choose_document_title, clean_stated_title
from polyad.text.removals import merge_removals
from polyad_readers.office.odt.body import OdtReader
from polyad_readers.office.page_headers import add_headers
from polyad_readers.shared.archives import DUBLIN_CORE, open_archive, parse_xml
from polyad_readers.shared.text_builder import TextBuilder

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of XML a document may unpack to; a thousand pages are 20 MB."""

_META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"


def read_odt(source: Source, _: Context = DEFAULT_CONTEXT) -> Content:
    """Return the text of an OpenDocument text (``.odt``), with footnotes in brackets at their references.

    Headers and footers come first, once and without page numbers. The title is the first paragraph in the style
    *Title*, else the title in the properties, else the only specific heading of the highest level.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not an OpenDocument text.
    """
    with open_archive(source.read(), "an OpenDocument text", max_text=_MAX_EXPANDED) as archive:
        if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in archive.read(
            "META-INF/manifest.xml"
        ):
            raise ReadError("encrypted; save it without a password")
        title, metadata = _read_properties(archive)
        reader = OdtReader(archive)
        headers = reader.read("styles.xml", marks_pages=True) if "styles.xml" in archive.namelist() else TextBuilder()
        flow = add_headers(reader.read("content.xml"), ["".join(headers.pieces)])
    if title and reader.title and title != reader.title:
        metadata["title"] = title
    text = "".join(flow.pieces).strip("\n")
    title = reader.title or clean_stated_title(title) or choose_document_title(flow.headings)
    removals = merge_removals([reader.removals])
    return Content(title, text, build_sections(flow.headings, text), metadata=metadata, removals=removals)


def _read_properties(archive: ZipFile) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title (may be empty) and the other metadata of an OpenDocument file."""
    if "meta.xml" not in archive.namelist():
        return "", {}
    tree = parse_xml(archive.read("meta.xml"))

    def first(*names: str) -> str:
        return next((text for name in names if (text := to_single_line(tree.findtext(f".//{name}") or ""))), "")

    return first(f"{DUBLIN_CORE}title"), build_metadata(
        {
            "author": first(f"{_META}initial-creator", f"{DUBLIN_CORE}creator"),
            "subject": first(f"{DUBLIN_CORE}subject"),
            "keywords": split_keywords("\n".join(element.text or "" for element in tree.iter(f"{_META}keyword"))),
            "created": first(f"{_META}creation-date"),
            "modified": first(f"{DUBLIN_CORE}date"),
        }.items()
    )
