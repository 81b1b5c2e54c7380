"""Reads the chapters of EPUB books, which are HTML, in reading order."""

from __future__ import annotations

import html
import posixpath
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, ParseError
from zipfile import BadZipFile, ZipFile

from polyad.errors import ReadError
from polyad.model import MetadataValue, Section
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Load, Pictures, Source
from polyad.readers.text.metadata import build_metadata
from polyad.readers.text.plain_text import join_contents, to_single_line
from polyad.readers.text.titles import clean_stated_title
from polyad.text.removals import CONTENTS, PAGES, merge_removals
from polyad_readers.shared.archives import DUBLIN_CORE, open_archive, parse_xml
from polyad_readers.web.html import read_page

_MAX_EXPANDED = 128 * 1024 * 1024
"""Bytes of HTML a book may unpack to; long novels are 3 MB."""

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_NCX = "{http://www.daisy.org/z3986/2005/ncx/}"
_XHTML = "{http://www.w3.org/1999/xhtml}"

_SELF_CLOSING = re.compile(
    rb"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([\w:-]++)([^<>]*+)(?<=/)>"
)
"""Self-closing elements: an HTML parser would put all following text into an element such as ``<title/>``."""

_ANCHOR = re.compile(rb"<[^<>]*?\s(?:id|name)\s*=\s*[\"']([^\"'<>]+)[\"'][^<>]*>")
_LINK, _TAG = re.compile(rb"<a\b[^<>]*>(.{0,2000}?)</a>", re.DOTALL | re.IGNORECASE), re.compile(rb"<[^<>]*>")
_MARK, _MARK_IN_TEXT = b"&#xE000;%d&#xE001;", re.compile("\ue000(\\d{1,6})\ue001\n*")
"""Mark of the place of an anchor, in letters for private use, in HTML and in text."""

_MAX_LINK_PIECES = 100
"""Pieces of text that are read from one link; a damaged book may nest links and repeat their text."""

_UNKNOWN_DATE = "0101-"
"""Beginning of the date that calibre writes for an unknown date."""


class _Item(NamedTuple):
    """A file in an EPUB archive, with the properties that the package document lists for it."""

    path: str
    properties: str


def read_epub(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the text of a book's chapters in reading order, without the table of contents.

    The sections are the headings of the chapters. A file without headings has a section for each of its entries in the
    table of contents. Chapters whose files are missing or damaged are listed in the metadata
    (``missing_chapters``) and as pages that cannot be read.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not an EPUB book.
    """
    pictures = context.pictures
    with open_archive(source.read(), "an EPUB book", max_text=_MAX_EXPANDED) as archive:
        paths = archive.namelist()
        files = {_fold_path(path): path for path in paths} | {path: path for path in paths}
        package_path = _find_package_path(archive, files)
        package = parse_xml(archive.read(package_path))
        items = _list_items(package, package_path, files)
        chapter_items = list(_list_chapters(package, items))
        _reject_encrypted(archive, chapter_items)
        names = _read_chapter_names(archive, items, files)
        contents_pages = _find_contents_pages(package, package_path, files)
        pages: dict[str, bytes] = {}
        missing: list[str] = []
        for item in chapter_items:
            try:
                pages[item.path] = _SELF_CLOSING.sub(rb"<\1\2></\1>", archive.read(item.path))
            except (KeyError, BadZipFile, zlib.error):
                missing.append(item.path)
        listings = {item.path for item in chapter_items if "nav" in item.properties.split()} | {
            path for path in contents_pages & pages.keys() if _is_list_of_links(pages[path])
        }
        chapters = []
        for path, page in pages.items():
            if path not in listings:
                find = partial(_find_picture, pictures, path, files) if pictures else None
                read = partial(read_page, pictures=pictures, find_picture=find)
                chapters.append(_read_chapter(page, names.get(path, {}), read if pictures else read_page))
        contents = [line for path in pages if path in listings for line in _list_links(pages[path])]
        title, metadata = _read_properties(package)
    content = join_contents([chapter for chapter in chapters if chapter.text.strip()])
    metadata |= build_metadata([("missing_chapters", missing)])
    removals = merge_removals([content.removals, {PAGES: missing, CONTENTS: contents}])
    return replace(content, title=clean_stated_title(title), metadata=metadata, removals=removals)


def _find_picture(pictures: Pictures, chapter: str, files: Mapping[str, str], address: str) -> tuple[str, Load] | None:
    """Return key and bytes of the picture of a chapter that is part of the book; None for an address elsewhere."""
    if place := pictures.find_address(address):
        return place
    try:
        path = "" if urlsplit(address).scheme else _resolve_reference(chapter, address, files)
    except ValueError:  # not an address
        path = ""
    return (path, partial(pictures.load_part, path)) if path in files else None


def _read_chapter(markup: bytes, names: Mapping[str, str], read: Callable[[bytes], Content]) -> Content:
    """Return the content of a file of a book; a file without headings has a section for each entry of the contents.

    Args:
        markup: The HTML of the file.
        names: Fragment to name of each entry in the table of contents that leads to the file.
        read: Reads the file with its pictures, once, because a picture has text only at its first place.
    """
    content = read_page(markup)
    if content.sections or not names:
        return read(markup) if b"<img" in markup and read is not read_page else content
    numbers = {fragment.encode(): number for number, fragment in enumerate(names) if fragment and len(names) > 1}
    marked = read(_ANCHOR.sub(lambda tag: tag[0] + (_MARK % numbers[tag[1]] if tag[1] in numbers else b""), markup))
    text, *pieces = _MARK_IN_TEXT.split(marked.text)
    labels = list(names.values())
    starts = [(names.get("", "") if pieces else labels[0], 0)]
    for number, piece in zip(pieces[::2], pieces[1::2], strict=True):
        starts.append((labels[min(int(number), len(labels) - 1)], len(text)))
        text += piece
    ends = [start for _, start in starts[1:]] + [len(text)]
    spans = [(name, start, end) for (name, start), end in zip(starts, ends, strict=True)]
    sections = tuple(Section(name, start, end) for name, start, end in spans if name and text[start:end].strip())
    return replace(content, text=text, sections=sections)


def _fold_path(path: str) -> str:
    """Return the form of a path in which differences of case, percent-encoding and composed letters do not count."""
    return unicodedata.normalize("NFC", unquote(path)).casefold()


def _find_package_path(archive: ZipFile, files: Mapping[str, str]) -> str:
    """Return the path, inside an EPUB file, of the package document, which lists all files of the book."""
    rootfile = parse_xml(archive.read(_CONTAINER)).find(".//{*}rootfile")
    if rootfile is None:
        raise ReadError("not an EPUB book, or damaged: it names no package")
    path = rootfile.get("full-path", "")
    return files.get(_fold_path(path), path)


def _list_items(package: Element, package_path: str, files: Mapping[str, str]) -> dict[str, _Item]:
    """Return the files that the package document of a book lists, keyed by id."""
    return {
        element.get("id", ""): _Item(
            _resolve_reference(package_path, element.get("href", ""), files), element.get("properties", "")
        )
        for element in package.iter(f"{_PACKAGE}item")
    }


def _resolve_reference(referring_file: str, reference: str, files: Mapping[str, str]) -> str:
    """Return the archive path to which a relative URL in the file ``referring_file`` leads.

    ``files`` has the paths of all files by themselves and by their folded form, so that a path in other case is found.
    """
    path = posixpath.join(posixpath.dirname(referring_file), unquote(urlsplit(reference).path))
    path = posixpath.normpath(path)
    return files.get(path) or files.get(_fold_path(path), path)


def _list_chapters(package: Element, items: Mapping[str, _Item]) -> Iterator[_Item]:
    """Yield the file of each chapter in reading order, without repetitions."""
    references = (reference.get("idref", "") for reference in package.iter(f"{_PACKAGE}itemref"))
    chapters = [items[reference] for reference in references if reference in items]
    return iter({item.path: item for item in chapters}.values())


def _find_contents_pages(package: Element, package_path: str, files: Mapping[str, str]) -> set[str]:
    """Return the archive paths of the pages on which an EPUB 2 book declares its table of contents.

    Books of Project Gutenberg have it on the same page as the preface and the first chapters.
    """
    guide = package.iter(f"{_PACKAGE}reference")
    return {
        _resolve_reference(package_path, page.get("href", ""), files) for page in guide if page.get("type") == "toc"
    }


def _is_list_of_links(markup: bytes) -> bool:
    """Return whether more than half of a page's text are links, as in a table of contents."""
    body = markup[max(0, markup.find(b"<body")) :]
    letters, linked = (len(b"".join(_TAG.sub(b"", text).split())) for text in (body, b"".join(_LINK.findall(body))))
    return 2 * linked > letters


def _list_links(markup: bytes) -> list[str]:
    """Return the text of each link of a page."""
    texts = (html.unescape(_TAG.sub(b" ", link).decode(errors="replace")) for link in _LINK.findall(markup))
    return list(filter(None, map(to_single_line, texts)))


def _reject_encrypted(archive: ZipFile, chapters: list[_Item]) -> None:
    """Raise ReadError if a chapter of an EPUB book is encrypted; encrypted fonts are allowed."""
    if _ENCRYPTION in archive.namelist():
        references = parse_xml(archive.read(_ENCRYPTION)).iterfind(".//{*}CipherReference")
        if {reference.get("URI") for reference in references} & {item.path for item in chapters}:
            raise ReadError("encrypted (DRM); export it without")


def _read_chapter_names(
    archive: ZipFile, items: Mapping[str, _Item], files: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the names in the tables of contents for each file, by path and fragment (``p2`` in ``a.xhtml#p2``)."""
    names: dict[str, dict[str, str]] = {}
    for item in {item.path: item for item in items.values()}.values():
        if item.path in files and ("nav" in item.properties.split() or item.path.endswith(".ncx")):
            try:
                entries = list(_list_contents_entries(parse_xml(archive.read(item.path))))
            except (ParseError, ReadError):  # the chapters can be read without names
                continue
            for reference, name in entries:
                fragments = names.setdefault(_resolve_reference(item.path, reference, files), {})
                fragments.setdefault(unquote(urlsplit(reference).fragment), to_single_line(name))
    return names


def _list_contents_entries(contents: Element) -> Iterator[tuple[str, str]]:
    """Yield a relative URL and a name for each entry in a table of contents (NCX or EPUB 3 navigation)."""
    for point in contents.iter(f"{_NCX}navPoint"):
        target = point.find(f"{_NCX}content")
        if target is not None:
            yield target.get("src", ""), point.findtext(f"{_NCX}navLabel/{_NCX}text") or ""
    for link in contents.iter(f"{_XHTML}a"):
        yield link.get("href", ""), "".join(islice(link.itertext(), _MAX_LINK_PIECES))


def _read_properties(package: Element) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title (may be empty) and the other metadata of an EPUB book."""
    values = {
        name: [text for element in package.iter(DUBLIN_CORE + name) if (text := to_single_line(element.text or ""))]
        for name in ("title", "creator", "subject", "date", "language", "publisher")
    }
    first = {name: texts[0] if texts else "" for name, texts in values.items()}
    return first["title"], build_metadata(
        {
            "author": ", ".join(values["creator"]),
            "keywords": tuple(dict.fromkeys(values["subject"])),
            "created": "" if first["date"].startswith(_UNKNOWN_DATE) else first["date"],
            "language": first["language"],
            "publisher": first["publisher"],
        }.items()
    )
