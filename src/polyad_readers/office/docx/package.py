"""Parts and relations of a Word document, and its XML, whose elements have short names: ``w-p`` for ``w:p``."""

from __future__ import annotations

import posixpath
import re
import zipfile
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from polyad_readers.shared.archives import create_xml_parser

_PREFIXES = {
    "wordprocessingml": "w-",
    "math": "m-",
    "markup-compatibility": "mc-",
    "wordprocessingDrawing": "wp-",
    "wordml": "w14-",
    "vml": "v-",
}
"""Prefixes of namespaces by a part of their address, which transitional and strict documents share."""

_NAMESPACE_PART = re.compile(rf"\b(?:{'|'.join(_PREFIXES)})\b")


class Relation(NamedTuple):
    """A relation of a part to another: its kind, such as ``header``, and the path of the other part."""

    kind: str
    path: str


class _ShortNames(dict[str, str]):
    """Short names of XML elements by the names ``namespace}name`` that the parser reports."""

    def __missing__(self, name: str) -> str:
        namespace, _, local_name = name.rpartition("}")
        part = _NAMESPACE_PART.search(namespace)
        short_name = self[name] = (_PREFIXES[part[0]] if part else "") + local_name
        return short_name


class WordPackage:
    """The parts of a Word document.

    Attributes:
        main_path: Path of the part with the text.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.replace("\\", "/").casefold(): name for name in archive.namelist()}
        main_paths = (
            relation.path for relation in self.list_relations("").values() if relation.kind == "officeDocument"
        )
        self.main_path = next(main_paths, "word/document.xml")

    def read(self, path: str) -> bytes:
        """Return the content of a part.

        Raises:
            KeyError: The document has no such part.
        """
        return self._archive.read(self._names[path.casefold()])

    def get_name(self, path: str) -> str:
        """Return the name of a part in the archive, which may differ in case."""
        return self._names.get(path.casefold(), path)

    def parse(self, path: str) -> Element:
        """Return the root element of a part, whose elements have names such as ``w-p``.

        Raises:
            KeyError: The document has no such part.
            ParseError: The part is not well-formed XML.
            ReadError: The part declares entities.
        """
        names, builder, parser = _ShortNames(), TreeBuilder(), create_xml_parser()
        parser.StartElementHandler = lambda name, attributes: builder.start(names[name], attributes)
        parser.EndElementHandler = lambda name: builder.end(names[name])
        parser.CharacterDataHandler = builder.data
        try:
            parser.Parse(self.read(path), True)
        except expat.ExpatError as error:
            raise ParseError(str(error)) from error
        return builder.close()

    def find_part(self, path: str) -> Element:
        """Return the root element of a part; an empty element if the part is missing or damaged.

        Word shows the text of a document whose secondary parts it cannot read.
        """
        try:
            return self.parse(path)
        except (KeyError, ParseError, zipfile.BadZipFile):
            return Element("missing")

    def list_relations(self, path: str) -> dict[str, Relation]:
        """Return the relations of a part, or of the whole document for an empty path, keyed by id."""
        folder, name = posixpath.split(path)
        return {
            get_value(element, "Id"): Relation(
                get_value(element, "Type").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, unquote(get_value(element, "Target")))).lstrip("/"),
            )
            for element in self.find_part(posixpath.join(folder, "_rels", f"{name}.rels"))
            if get_value(element, "TargetMode") != "External"
        }


def get_value(element: Element | None, name: str = "val", default: str = "") -> str:
    """Return an attribute of an element by its local name; ``default`` if the element or the attribute is missing."""
    for key, value in element.items() if element is not None else ():
        if key.rpartition("}")[2] == name:
            return value
    return default


def get_number(element: Element | None, name: str = "val", default: int = 0) -> int:
    """Return the whole number in an attribute, at most nine digits; ``default`` if the attribute has no such number."""
    value = get_value(element, name)
    return int(value) if value.isdecimal() and len(value) < 10 else default


def is_on(element: Element | None) -> bool:
    """Return whether an element that switches a property exists and does not switch the property off."""
    return element is not None and get_value(element) not in ("0", "false", "off")
