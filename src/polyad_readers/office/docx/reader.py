"""Reads Word documents from their XML: text, numbered lists, tables, notes, headers and embedded documents."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from email import message_from_bytes, policy
from xml.etree.ElementTree import Element, ParseError
from zipfile import BadZipFile, ZipFile

from polyad.errors import ReadError
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Pictures, Source
from polyad.readers.text.headings import Heading, build_sections
from polyad.readers.text.plain_text import decode
from polyad.readers.text.titles import choose_document_title, clean_stated_title
from polyad.text.removals import COMMENTS, FILES, merge_removals
from polyad_readers.office.docx.body import BodyReader, join_texts
from polyad_readers.office.docx.numbering import Numbering
from polyad_readers.office.docx.package import Relation, WordPackage, get_value
from polyad_readers.office.docx.pictures import WordPictures, get_picture_id
from polyad_readers.office.docx.styles import Styles
from polyad_readers.office.page_headers import add_headers
from polyad_readers.shared.archives import EMBEDDED_KINDS, open_office_file, parse_xml
from polyad_readers.shared.text_builder import TextBuilder

_MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes of XML a document may unpack to; a thousand pages are 20 MB. Each byte takes some ten in memory."""

_MAX_TAGS = 1_500_000
"""Tags of the XML of a document; a thousand pages have 400,000."""

_WEB_PAGE = re.compile(rb"\s*<", re.ASCII)


def read_docx(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the text of a Word document, without page locations, since only Word lays out pages.

    Headers and footers come first, once and without page numbers; notes come last. The title is the first paragraph in
    the style *Title*, else the title in the properties, else the only specific heading of the highest level.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not a Word document.
    """
    return _read_word(source.read(), context.pictures, is_embedded=False)


def _read_word(data: bytes, pictures: Pictures | None = None, *, is_embedded: bool) -> Content:
    with (
        open_office_file(data, "a Word document", max_text=_MAX_EXPANDED, max_tags=_MAX_TAGS) as (stated, metadata),
        ZipFile(io.BytesIO(data)) as archive,
    ):
        document = _Document(WordPackage(archive), is_embedded, pictures)
        flow = document.read()
    text = "".join(flow.pieces).strip("\n")
    title = next(iter(document.titles), "") or clean_stated_title(stated) or choose_document_title(flow.headings)
    if stated and stated != title:
        metadata["title"] = stated
    removals = merge_removals([document.removals])
    return Content(title, text, build_sections(flow.headings, text), metadata=metadata, removals=removals)


class _Document:
    """Joins the parts of a Word document to one text."""

    def __init__(self, package: WordPackage, is_embedded: bool, pictures: Pictures | None) -> None:
        self.titles: list[str] = []
        self.removals: Mapping[str, Sequence[str]] = {}
        self._package = package
        self._is_embedded = is_embedded
        self._pictures = pictures
        self._relations = package.list_relations(package.main_path)
        self._styles = Styles(self._find_part("styles"))
        self._numbering = Numbering(self._find_part("numbering"), self._styles)
        self._notes = {
            (kind, get_value(note, "id")): note
            for kind in ("footnote", "endnote")
            for note in self._find_part(f"{kind}s").iterfind(f"w-{kind}")
        }

    def read(self) -> TextBuilder:
        """Return the text: headers and footers, the main part, and the notes."""
        bodies = self._package.parse(self._package.main_path).findall("w-body")
        if not bodies:
            raise ReadError("not a Word document, or damaged: it has no body")
        reader = self._create_reader()
        if self._pictures:
            ids = (id for body in bodies for each in body.iter() if (id := get_picture_id(each)))
            self._pictures.count(self._relations[id].path for id in ids if id in self._relations)
            reader.use_pictures(WordPictures(self._package, self._relations, self._pictures))
        for body in bodies:
            reader.read(body)
        self.titles = [title for title in reader.titles if title]
        comments = map(join_texts, self._find_part("comments").iter("w-p"))
        files = [posixpath.basename(path) for kind in EMBEDDED_KINDS for path in self._list_paths(kind)]
        self.removals = {**reader.removals, COMMENTS: list(filter(None, comments)), FILES: files}
        self._write_notes(reader)
        return add_headers(reader.flow, self._list_headers())

    def _find_part(self, kind: str) -> Element:
        """Return the part to which the main part has a relation of this kind; an empty element if there is none."""
        return next((self._package.find_part(path) for path in self._list_paths(kind)), Element(kind))

    def _list_paths(self, kind: str) -> list[str]:
        return [relation.path for relation in self._relations.values() if relation.kind == kind]

    def _create_reader(self, *, marks_pages: bool = False) -> BodyReader:
        notes = self._notes.keys()
        return BodyReader(
            self._styles, self._numbering, notes, self._read_chunk, self._parse_drawing, marks_pages=marks_pages
        )

    def _write_notes(self, reader: BodyReader) -> None:
        """Write the footnotes and endnotes as a list with the numbers of their references."""
        reader.flow.item_level = -1
        for reference, number in reader.notes.items():
            note_reader = self._create_reader()
            note_reader.read(self._notes[reference])
            if text := "".join(note_reader.flow.pieces):
                reader.flow.write_paragraph(text, label=f"{number}.")

    def _list_headers(self) -> Iterator[str]:
        """Yield the text of each header and footer, with marks in place of page numbers."""
        for path in [] if self._is_embedded else self._list_paths("header") + self._list_paths("footer"):
            reader = self._create_reader(marks_pages=True)
            reader.read(self._package.find_part(path))
            yield "".join(reader.flow.pieces)

    def _parse_drawing(self, relation_id: str) -> Element:
        """Return the root of a chart or diagram, in whose XML elements have their whole names."""
        try:
            return parse_xml(self._package.read(self._relations.get(relation_id, Relation("", "")).path))
        except (KeyError, ParseError, BadZipFile):
            return Element("missing")

    def _read_chunk(self, relation_id: str, flow: TextBuilder) -> None:
        """Add an embedded document (``w-altChunk``) to a text: a web page, a text or a Word document."""
        relation = self._relations.pop(relation_id, Relation("", ""))  # a part that is embedded again is read once
        try:
            data = self._package.read(relation.path)
        except (KeyError, BadZipFile):
            return
        if len(data) > _MAX_EXPANDED:
            raise ReadError(f"embeds {len(data):,} bytes; at most {_MAX_EXPANDED:,} are read; split the document")
        content = self._read_embedded(relation.path.lower(), data)
        flow.end_line(2)
        if content.text:
            flow.insert(content.text, _find_headings(content))
            flow.end_line(2)

    def _read_embedded(self, path: str, data: bytes) -> Content:
        from polyad_readers.web.html import parse_markup, read_page  # needs a package that other documents do not need

        if data.startswith(b"PK"):
            return Content("", "") if self._is_embedded else _read_word(data, is_embedded=True)
        if path.endswith((".mht", ".mhtml", ".eml")) or data[:13].lower() == b"mime-version:":
            body = message_from_bytes(data, policy=policy.default).get_body(("html", "plain"))
            return parse_markup(str(body.get_content())) if body is not None else Content("", "")
        if path.endswith((".htm", ".html", ".xhtml")) or _WEB_PAGE.match(data):
            return read_page(data)
        return Content("", "" if data.startswith(b"{\\rtf") else decode(data))


def _find_headings(content: Content) -> list[Heading]:
    """Return the headings of an embedded document; the rank of a heading is the depth of its section."""
    headings: list[Heading] = []
    ends: list[int] = []
    for section in content.sections:
        while ends and ends[-1] <= section.start:
            ends.pop()
        ends.append(section.end)
        start = content.text.find(section.name, section.start, section.end)
        if start >= 0:
            headings.append(Heading(min(len(ends), 6), section.name, start, start + len(section.name)))
    return headings
