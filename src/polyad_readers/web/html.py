"""Reads HTML with Resiliparse: the content of a page without navigation and other site elements."""

from __future__ import annotations

import html
import re

from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue
from polyad.readers.format import DEFAULT_CONTEXT, Content, Context, Pictures, Source
from polyad.readers.text.encodings import decode_text
from polyad.readers.text.headings import Heading, build_sections
from polyad.readers.text.metadata import build_metadata
from polyad.readers.text.plain_text import require_text, to_single_line
from polyad.readers.text.titles import choose_title, is_generic_name
from polyad.text.removals import NAVIGATION, PICTURES, merge_removals

try:
    from resiliparse.parse.html import HTMLParserException, HTMLTree
except ImportError as error:
    raise MissingExtraError("resiliparse", "documents") from error

from polyad_readers.web.layout import lay_out_page
from polyad_readers.web.pictures import FindPicture, HtmlPictures

_CHARSET_DECLARATION = re.compile(
    rb"(?:<meta[^>]{0,200}charset|<\?xml[^>]{0,200}encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
_DECLARATION_BYTES = 4096
"""Bytes in which a page declares its encoding; the HTML standard requires 1,024."""

_ATTRIBUTE = (
    r"[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    r"(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:\"[^\"]*+\"?|'[^']*+'?|[^ \t\n\f\r>]*+))?+"
)
_OPENING_TAG = re.compile(rf"(<[A-Za-z][^ \t\n\f\r/>]*+(?:{_ATTRIBUTE}){{0,256}}+)(?:{_ATTRIBUTE})*+")
"""A tag; its first 256 attributes are a group. The parser compares each pair of attributes. Every tag matches, whole:
where a pattern fails, the search goes on within the tag, which takes quadratic time."""

_STYLING = re.compile(
    r"</?(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[ \t\n\f\r/>])"
    rf"(?:{_ATTRIBUTE})*+[ \t\n\f\r/]*+(?:>|\Z)",
    re.I,
)
"""Tags that only style letters. If one is not closed, the parser repeats it in every following paragraph."""

_EMBEDDED_PAGE = re.compile(r"<iframe\b[^>]{0,500}?\bsrcdoc\s*=\s*(\"[^\"]*+\"|'[^']*+')", re.IGNORECASE)
"""A frame with its page in an attribute."""

_MAX_TAGS = 2_000_000
"""Tags of a page, each of which takes up to 500 bytes of memory; a page of 10 MB has about 700,000."""

_SEPARATOR = re.compile(r"\s+[-\u2013\u2014|\xb7\xbb\u2022]+\s+|\s*::\s*|:\s+")
_NAMES_BY_KEY = {
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author"),
    "description": ("description", "dc.description", "dcterms.abstract", "og:description"),
    "keywords": ("keywords", "dc.subject"),
    "date": (
        *("date", "dc.date", "dcterms.date", "dcterms.created", "dcterms.issued"),
        *("article:published_time", "citation_publication_date"),
    ),
}
_METADATA_KEYS = {name: key for key, names in _NAMES_BY_KEY.items() for name in names}
"""Names of ``<meta>`` elements and the metadata key of each."""

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def read_html(source: Source, context: Context = DEFAULT_CONTEXT) -> Content:
    """Return the content of an HTML page, without scripts and navigation.

    The title is the page's ``<title>``, or the first heading if it is a part of ``<title>`` or ``<title>`` is missing.

    Raises:
        ReadError: The file is not text.
    """
    return read_page(source.read(), context.pictures)


def read_page(data: bytes, pictures: Pictures | None = None, find_picture: FindPicture | None = None) -> Content:
    """Return the content of an HTML page, which may be a part of a document.

    Args:
        data: The bytes of the file.
        pictures: Reads the pictures of the page; None if their text is not read.
        find_picture: Returns key and bytes of the picture with an address; None for that of ``pictures``.

    Raises:
        ReadError: The file is not text.
    """
    return parse_markup(_decode(data), pictures, find_picture)


def parse_markup(markup: str, pictures: Pictures | None = None, find_picture: FindPicture | None = None) -> Content:
    """Return the content of an HTML page.

    A table row becomes a line with tabs between cells, each with its column name: see
    :mod:`polyad_readers.shared.tables`.

    Args:
        markup: The HTML.
        pictures: Reads the pictures of the page; None if their text is not read.
        find_picture: Returns key and bytes of the picture with an address; None for that of ``pictures``.

    Raises:
        ReadError: The page has too many tags.
        MemoryError: The parser ran out of memory.
    """
    markup = _EMBEDDED_PAGE.sub(lambda frame: f"<div>{html.unescape(frame[1][1:-1])}</div>{frame[0]}", markup)
    if (tags := markup.count("<")) > _MAX_TAGS:
        raise ReadError(f"{tags:,} tags in one page; at most {_MAX_TAGS:,} are read: split it")
    try:
        tree = HTMLTree.parse(_STYLING.sub("", _OPENING_TAG.sub(r"\1", markup)))
    except HTMLParserException as error:
        raise MemoryError(str(error)) from error  # the parser accepts any page, so that only memory can be missing
    images = HtmlPictures(pictures, find_picture or pictures.find_address, tree) if pictures else None
    text, headings, navigation = lay_out_page(tree, images.read if images else lambda _: "")
    page_title = to_single_line(tree.title or "")
    title = _choose_page_title(page_title, headings)
    headings = _remove_site_headings(headings, page_title, title)
    url, pairs_in_head = _read_head(tree)
    pairs = [*pairs_in_head, *([("page_title", page_title)] if page_title and page_title != title else [])]
    undescribed = list(tree.body.query_selector_all("img:not([alt])")) if tree.body else []
    unread = [image.getattr("src") or "" for image in undescribed if not (images and images.has_text(image))]
    removals = merge_removals([{NAVIGATION: navigation, PICTURES: unread}])
    return Content(
        title, text, build_sections(headings, text), metadata=build_metadata(pairs), url=url, removals=removals
    )


def _choose_page_title(page_title: str, headings: list[Heading]) -> str:
    r"""Return the part of a page's title that is also a heading, without the site's name, or else the whole title.

    >>> _choose_page_title("The pump \u2014 Manual 3.2", [Heading(1, "The pump", 0, 8)])
    'The pump'
    """
    highest = min((heading.rank for heading in headings), default=0)
    names = [heading.name for heading in headings if heading.rank == highest]
    is_first_alone = len(headings) < 2 or headings[0].end + 2 >= headings[1].start
    if not page_title and len(names) > 1 and not is_first_alone and not is_generic_name(names[0]):
        return ""  # the headings are sections of a document without title
    if not page_title or is_generic_name(page_title):
        return choose_title(names) or page_title
    ends = [match.span() for match in _SEPARATOR.finditer(page_title)]
    beginnings = {page_title[:start].casefold() for start, _ in ends}
    endings = {page_title[end:].casefold() for _, end in ends}
    for name in names:
        if name.casefold() in beginnings and not is_generic_name(name):
            return name
    is_alone = (
        len(names) == 1 and names[0].casefold() in endings
    )  # one of several headings at the end of the title would name the site
    return names[0] if is_alone and not is_generic_name(names[0]) else page_title


def _remove_site_headings(headings: list[Heading], page_title: str, title: str) -> list[Heading]:
    """Return the headings except those that equal the name of the site, which ends the page title."""
    endings = {page_title[match.end() :].casefold() for match in _SEPARATOR.finditer(page_title)}
    content_headings = [
        heading for heading in headings if heading.name == title or heading.name.casefold() not in endings
    ]
    return content_headings or headings


def _read_head(tree: HTMLTree) -> tuple[str, list[tuple[str, MetadataValue]]]:
    """Return the canonical URL of a page, and the metadata in the page's head as (key, value) pairs."""
    metadata: dict[str, MetadataValue] = {}
    url = ""
    if tree.document and (root := tree.document.query_selector("html")) and (language := root.getattr("lang")):
        metadata["language"] = to_single_line(language)
    for node in tree.head.query_selector_all("meta, link") if tree.head else ():
        name = (node.getattr("name") or node.getattr("property") or "").strip().lower()
        value = to_single_line(node.getattr("content") or "")
        if node.tag == "link" and node.getattr("rel") == "canonical":
            name, value = "og:url", to_single_line(node.getattr("href") or "")
        if name == "og:url" and _ADDRESS.fullmatch(value):
            url = url or value
        elif value and (key := _METADATA_KEYS.get(name)):
            metadata.setdefault(key, _split_words(value) if key == "keywords" else value)
    return url, list(metadata.items())


def _split_words(words: str) -> tuple[str, ...]:
    return tuple(word for part in words.split(",") if (word := part.strip()))


def _decode(data: bytes) -> str:
    """Return the markup of a page as text, decoded by byte order mark, UTF-8, declared or most likely encoding.

    A declared UTF-16 or UTF-32 is ignored: the declaration was found by its ASCII bytes.
    """
    declared = _CHARSET_DECLARATION.search(data, 0, _DECLARATION_BYTES)
    label = declared[1].decode("ascii").lower() if declared else ""
    text = decode_text(data, "" if label.startswith(("utf-16", "utf-32", "utf16", "utf32")) else label)
    require_text(text)
    return text
