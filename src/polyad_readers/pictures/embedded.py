"""Reads the text of the pictures inside a document by OCR, and lists the pictures that can be found by words."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit
from zipfile import BadZipFile, ZipFile

from polyad.config import ReadSettings
from polyad.errors import MissingExtraError, ReadError
from polyad.model import MetadataValue, Section
from polyad.readers.format import NEW_SCAN, Content, Context, Load, Source
from polyad.readers.text.metadata import CONTENT_HASH
from polyad.readers.text.plain_text import to_single_line
from polyad.text.files import read_file
from polyad.text.pictures import MAX_LISTED, PICTURE_LIST, build_label, contains_text
from polyad.text.removals import OMITTED_PICTURES, READ_PICTURES, UNCERTAIN, UNREAD_PICTURES, merge_removals
from polyad.text.words import collapse_whitespace
from polyad_readers.pictures.ocr import PageOcr, is_ocr_installed, list_uncertain_words
from polyad_readers.pictures.reader import join_picture_lines, measure, open_frame

_MIN_PIXELS, _MIN_SIDE = 10_000, 32
"""Least pixels of a picture whose text is read, as many as 100 x 100, and of its shorter side; others are icons."""

_LOGO_PLACES = 3
"""Places of a document from which a picture is a logo or ornament, whose text is not read."""

_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of a picture; larger ones are not decoded."""

_DATA_ADDRESS = re.compile(r"data:image/([\w.+-]*)((?:;[\w=.-]*)*),", re.IGNORECASE)
_DRAWING = re.compile(r"(?:emf|emz|wmf|wmz|svgz?|pict|eps)(?:\+xml)?", re.IGNORECASE)
"""Formats of drawings, which have no pixels; to draw them would need another program."""


@dataclass(slots=True)
class EmbeddedPicture:
    """A picture inside a document.

    Attributes:
        name: Name of its file or part.
        load: Returns its bytes.
        label: Caption, else description, else name; one line.
        text: Its text, under a line that says so; empty if none was read.
        descriptions: Descriptions and captions, which stand in the text of the document.
    """

    name: str
    load: Load
    label: str = ""
    text: str = ""
    descriptions: list[str] = field(default_factory=list)

    def is_in(self, passage: str) -> bool:
        """Return whether a passage contains a description of the picture, or a line of text recognised in it."""
        lines = self.text.split("\n")[1:]
        return any(contains_text(passage, text) for text in (*self.descriptions, *lines))


def open_pictures(source: Source, context: Context) -> PictureReader:
    """Return the reader of the pictures in a document; those of a web page may also lie in its folder.

    A copy of a file in an index has no extension, so that no file in its folder is opened.
    """
    is_page = source.path.suffix.lower() in (".html", ".htm", ".xhtml")
    folder = source.path.parent if is_page else None
    return PictureReader(context.settings, source.read(), lambda number: context.on_page(number, 0, NEW_SCAN), folder)


class PictureReader:
    """Reads and lists the pictures of one document. The text of equal pictures is read once, and that of logos never.

    Args:
        settings: Limits and settings of OCR.
        data: The bytes of the document's file.
        on_picture: Called after a picture was recognised, with the number of such pictures.
        folder: Folder in which pictures of a web page may lie; None if no file may be opened.
    """

    def __init__(
        self,
        settings: ReadSettings,
        data: bytes,
        on_picture: Callable[[int], None] = lambda _: None,
        folder: Path | None = None,
    ) -> None:
        self._settings = settings
        self._data = data
        self._digest = hashlib.sha256(data).hexdigest()
        self._archive: ZipFile | None = None
        self._on_picture = on_picture
        self._folder = folder
        self._places: Counter[str] = Counter()
        self._pictures: dict[str, EmbeddedPicture] = {}
        self._texts: dict[str, str] = {}  # by SHA-256 of the picture
        self._left_out: dict[str, list[str]] = {UNREAD_PICTURES: [], OMITTED_PICTURES: [], UNCERTAIN: []}
        self._caption = ""
        self._last: EmbeddedPicture | None = None

    def count(self, keys: Iterable[str]) -> None:
        """Count the places of pictures, by key, before they are read, so that logos are recognised."""
        self._places.update(keys)

    def read(self, key: str, load: Load, description: str = "", name: str = "") -> str:
        """Return the text of a picture to be written at its place; empty if it has none or stood at an earlier place.

        Args:
            key: Identifies the picture in the document, such as the path of its part.
            load: Returns the bytes.
            description: Description or caption, which stands in the text of the document.
            name: Name for reports; empty for the last part of ``key``.
        """
        description, caption, self._caption = to_single_line(description), self._caption, ""
        is_new = key not in self._pictures
        picture = self._pictures.setdefault(key, EmbeddedPicture(name or key.rpartition("/")[2], load))
        self._last = picture
        picture.descriptions += [text for text in (caption, description) if text and text not in picture.descriptions]
        picture.label = build_label(next(iter(picture.descriptions), picture.name))
        if is_new and self._settings.max_pictures:
            try:
                if text := self._recognize(key, picture):
                    picture.text = f"[Text of a picture: {picture.label}]\n{text}"
            except (ReadError, MemoryError) as error:
                self._left_out[OMITTED_PICTURES].append(f"{picture.name} ({error or 'takes too much memory'})")
            except Exception as error:  # of any library
                self._left_out[OMITTED_PICTURES].append(f"{picture.name} (cannot be read: {type(error).__name__})")
        return picture.text if is_new else ""

    def has_text(self, key: str) -> bool:
        """Return whether text of this picture was read."""
        return key in self._pictures and bool(self._pictures[key].text)

    def add_caption(self, caption: str) -> None:
        """Add a caption to the picture directly before, or else to the next picture if it follows directly.

        An empty caption stands for other text, which separates pictures and captions.
        """
        caption, picture, self._last = to_single_line(caption), self._last, None
        if caption and picture and caption not in picture.descriptions:
            picture.descriptions.insert(0, caption)
            picture.label = build_label(caption)
            caption = ""
        self._caption = caption

    def load_part(self, path: str) -> bytes:
        """Return the bytes of a picture in a document that is a ZIP archive.

        Raises:
            ReadError: The part is missing, damaged or too large.
        """
        try:
            self._archive = self._archive or ZipFile(io.BytesIO(self._data))  # the reader's own is closed afterwards
            if (size := self._archive.getinfo(path).file_size) > _MAX_BYTES:
                raise ReadError(f"{size:,} bytes; at most {_MAX_BYTES:,} are read")
            return self._archive.read(path)
        except (KeyError, BadZipFile, zlib.error) as error:
            raise ReadError("missing or damaged") from error

    def find_address(self, address: str) -> tuple[str, Load] | None:
        """Return key and bytes of the picture of a web page that is part of the page or lies in its folder.

        Other addresses are None: nothing is fetched from the network, and no link leads out of the folder.
        """
        if match := _DATA_ADDRESS.match(address):
            digest = hashlib.sha256(address.encode()).hexdigest()
            return f"{digest}/picture.{match[1]}", lambda: _decode_address(address, match)
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        if self._folder is None or parts.scheme or parts.netloc or not parts.path or "\\" in parts.path:
            return None
        name = unquote_to_bytes(parts.path).decode(errors="replace")
        file = self._folder / name
        if name.startswith("/") or "\0" in name or not _is_inside(file, self._folder):
            return None
        return name, lambda: read_file(file, _MAX_BYTES)

    def list_pictures(self) -> list[EmbeddedPicture]:
        """Return the pictures with a description, caption or text, in their order in the document."""
        return [each for each in self._pictures.values() if each.text or each.descriptions][:MAX_LISTED]

    def complete(self, content: Content) -> Content:
        """Return the content of the document with sections for the texts of pictures, their list and what is left out.

        A document without pictures stays as it is.
        """
        if not self._pictures:
            return content
        words = collapse_whitespace(content.text)  # once: a book has hundreds of pictures
        written = [each for each in self._pictures.values() if each.text and collapse_whitespace(each.text) in words]
        sections = list(content.sections)
        for picture in written:
            if (start := content.text.find(picture.text)) >= 0:
                name = f"Picture: {picture.label}"
                sections.append(Section(name, start, start + len(picture.text), strength=0.0))
        if written:
            sections.sort(key=lambda section: (section.start, -section.end))
        removals = {**self._left_out, READ_PICTURES: [picture.name for picture in written]}
        listed: dict[str, MetadataValue] = {}
        if labels := tuple(picture.label for picture in self.list_pictures()):
            listed = {PICTURE_LIST: labels, CONTENT_HASH: self._digest}
        return replace(
            content,
            sections=tuple(sections),
            metadata={**content.metadata, **listed},
            removals=merge_removals([content.removals, removals]),
        )

    def _recognize(self, key: str, picture: EmbeddedPicture) -> str:
        """Return the text of a picture; an empty string for icons, logos and pictures without text.

        Raises:
            ReadError: The picture is damaged, too large, or exceeds the number of pictures.
        """
        if _DRAWING.fullmatch(picture.name.rpartition(".")[2]):
            raise ReadError("a drawing without pixels")
        data = picture.load()
        if b"<svg" in data[:1000]:
            raise ReadError("a drawing without pixels")
        try:
            width, height = measure(data)
        except MissingExtraError:
            self._left_out[UNREAD_PICTURES].append(picture.name)
            return ""
        if width * height < _MIN_PIXELS or min(width, height) < _MIN_SIDE:
            return ""
        if self._places[key] >= _LOGO_PLACES:
            raise ReadError(f"stands at {self._places[key]} places, as a logo does")
        if not is_ocr_installed():
            self._left_out[UNREAD_PICTURES].append(picture.name)
            return ""
        digest = hashlib.sha256(data).hexdigest()
        if digest in self._texts:
            return ""
        if len(self._texts) >= self._settings.max_pictures:
            raise ReadError(f"more than {self._settings.max_pictures:,} pictures; see max_pictures")
        self._texts[digest] = ""
        lines = PageOcr(self._settings, digest, self._digest).read_page(1, lambda: open_frame(data, 1))
        self._left_out[UNCERTAIN] += list_uncertain_words(lines)
        self._texts[digest] = text = join_picture_lines(lines)
        self._on_picture(len(self._texts))
        return text


def _decode_address(address: str, match: re.Match[str]) -> bytes:
    """Return the bytes in an address ``data:image/png;base64,...``."""
    encoded = unquote_to_bytes(address[match.end() :])
    try:
        return base64.b64decode(encoded) if match[2].lower().endswith("base64") else encoded
    except binascii.Error as error:
        raise ReadError("damaged") from error


def _is_inside(file: Path, folder: Path) -> bool:
    """Return whether a file is a regular file inside a folder, whatever links lead to it, and not hidden."""
    try:
        target = file.resolve().relative_to(folder.resolve())
        return not any(part.startswith(".") for part in target.parts) and stat.S_ISREG(file.stat().st_mode)
    except (OSError, ValueError, RuntimeError):
        return False
