"""Reads HTML with Resiliparse: the content of a page without navigation and other site elements."""

from __future__ import annotations

import codecs
import re

from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue
from polyad.readers.headings import Heading, build_sections
from polyad.readers.metadata import build_metadata
from polyad.readers.plain_text import Content, detect_encoding, require_text, single_line
from polyad.readers.titles import choose_title, is_generic_name

try:
    from resiliparse.parse.html import HTMLParserException, HTMLTree
except ImportError as error:
    raise MissingExtraError("resiliparse", "documents") from error

from polyad.readers.html_layout import laid_out

_DECLARED = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARED_WITHIN = 4096
"""Bytes in which a page declares its encoding; the standard asks for 1,024."""

_NO_CHARSETS = frozenset({"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Python's codecs of text that are no encodings of pages."""

_ATTRIBUTE = (
    r"[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    r"(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:\"[^\"]*+\"?|'[^']*+'?|[^ \t\n\f\r>]*+))?+"
)
_OVERLOADED = re.compile(rf"(<[A-Za-z][^ \t\n\f\r/>]*+(?:{_ATTRIBUTE}){{256}}+)(?:{_ATTRIBUTE})++")
"""A tag of more attributes than any page has. The parser compares each with all before it."""

_STYLING = re.compile(
    rf"</?(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[ \t\n\f\r/>])(?:{_ATTRIBUTE})*+[ \t\n\f\r/]*+>",
    re.I,
)
"""Tags that only style letters. Those left open are repeated by the parser in every paragraph that follows."""

_MOST_TAGS = 2_000_000
"""Tags of a page, each of which takes up to 500 bytes of memory; a page of 10 MB has about 700,000."""

_SEPARATOR = re.compile(r"\s+[-\u2013\u2014|\xb7\xbb\u2022]+\s+|\s*::\s*|:\s+")
_DESCRIBED = {
    "author": "author",
    "article:author": "author",
    "dc.creator": "author",
    "dcterms.creator": "author",
    "citation_author": "author",
    "description": "description",
    "dc.description": "description",
    "dcterms.abstract": "description",
    "og:description": "description",
    "keywords": "keywords",
    "dc.subject": "keywords",
    "date": "date",
    "dc.date": "date",
    "dcterms.date": "date",
    "dcterms.created": "date",
    "dcterms.issued": "date",
    "article:published_time": "date",
    "citation_publication_date": "date",
}
"""What a page may say of itself, by the names that pages give it."""

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def read_html(data: bytes) -> Content:
    """Return the content of an HTML page, without scripts and navigation.

    The title is its ``<title>``, or the first heading where that is one part of it, or alone.

    Raises:
        ReadError: It is not text.
    """
    return parse_markup(_decode(data))


def parse_markup(markup: str, *, is_layout: bool = True) -> Content:
    """Return the content of an HTML page that is already decoded.

    A row of a table is a line, its cells apart by tabs, each with the name of its column where the first row gives it.

    Args:
        markup: HTML.
        is_layout: Whether a table may be there for the layout of a page, so that a cell of several lines keeps them.

    Raises:
        ReadError: It has more tags than memory may be spent on.
        MemoryError: It takes more than there is.
    """
    if (tags := markup.count("<")) > _MOST_TAGS:
        raise ReadError(f"{tags:,} tags in one page; at most {_MOST_TAGS:,} are read: split it")
    try:
        tree = HTMLTree.parse(_STYLING.sub("", _OVERLOADED.sub(r"\1", markup)))
    except HTMLParserException as error:
        raise MemoryError(str(error)) from error  # no page is so wrong that it could not be parsed
    text, headings = laid_out(tree, is_layout=is_layout)
    whole = single_line(tree.title or "")
    title = _title(whole, headings)
    headings = _without_site(headings, whole, title)
    address, described = _described(tree)
    pairs = [*described, *([("page_title", whole)] if whole and whole != title else [])]
    return Content(title, text, build_sections(headings, text), metadata=build_metadata(pairs), url=address)


def _title(whole: str, headings: list[Heading]) -> str:
    """The beginning of the page's title, or its end, that is a heading too, without the site's name; else all of it.

    >>> _title("The pump \u2014 Manual 3.2", [Heading(1, "The pump", 0, 8)])
    'The pump'
    """
    highest = min((heading.rank for heading in headings), default=0)
    names = [heading.name for heading in headings if heading.rank == highest]
    if not whole or is_generic_name(whole):
        return choose_title(names) or whole
    ends = [found.span() for found in _SEPARATOR.finditer(whole)]
    beginnings = {whole[:start].casefold() for start, _ in ends}
    endings = {whole[end:].casefold() for _, end in ends}
    for name in names:
        if name.casefold() in beginnings and not is_generic_name(name):
            return name
    is_alone = len(names) == 1 and names[0].casefold() in endings  # of several, that at the end names the site
    return names[0] if is_alone and not is_generic_name(names[0]) else whole


def _without_site(headings: list[Heading], whole: str, title: str) -> list[Heading]:
    """The headings but those that name the site, as the end of the page's title does: they are on all of its pages."""
    endings = {whole[found.end() :].casefold() for found in _SEPARATOR.finditer(whole)}
    kept = [heading for heading in headings if heading.name == title or heading.name.casefold() not in endings]
    return kept or headings


def _described(tree: HTMLTree) -> tuple[str, list[tuple[str, MetadataValue]]]:
    """Return the address of a page and the metadata in its head."""
    found: dict[str, MetadataValue] = {}
    address = ""
    if tree.document and (root := tree.document.query_selector("html")) and (language := root.getattr("lang")):
        found["language"] = single_line(language)
    for node in tree.head.query_selector_all("meta, link") if tree.head else ():
        name = (node.getattr("name") or node.getattr("property") or "").strip().lower()
        value = single_line(node.getattr("content") or "")
        if node.tag == "link" and node.getattr("rel") == "canonical":
            name, value = "og:url", single_line(node.getattr("href") or "")
        if name == "og:url" and _ADDRESS.fullmatch(value):
            address = address or value
        elif value and (key := _DESCRIBED.get(name)):
            found.setdefault(key, _listed(value) if key == "keywords" else value)
    return address, list(found.items())


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word for part in words.split(",") if (word := part.strip()))


def _decode(data: bytes) -> str:
    """Decode a page: by byte order mark, as valid UTF-8, in the declared encoding, or in the most likely encoding."""
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    if declared:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
        if encoding := _charset(declared[1].decode("ascii")):
            return data.decode(encoding, errors="replace")
    text = data.decode(detect_encoding(data), errors="replace")
    require_text(text)
    return text


def _charset(name: str) -> str:
    """Return Python's codec for a declared encoding; an empty string if there is none.

    A page that could be read as far as its declaration is not in UTF-16, whatever it says.
    """
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return ""
    codec = found.name.replace("-", "_")
    is_charset = found._is_text_encoding and codec not in _NO_CHARSETS and not codec.startswith(("utf_16", "utf_32"))
    return found.name if is_charset else ""
