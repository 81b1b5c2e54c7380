"""Pictures of pages and pictures inside documents, with a passage marked; the copies of files behind them."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyad.config import ReadSettings
from polyad.engine.catalogue import Catalogue
from polyad.errors import ConfigurationError, PageImageError, ReadError
from polyad.model import Origin, Pagination
from polyad.readers.format import Format
from polyad.readers.formats import list_formats
from polyad.readers.text.metadata import CONTENT_HASH
from polyad.readers.text.sources import get_copy, is_digest
from polyad.text.files import get_source_file
from polyad.text.pictures import PICTURE_LIST, find_label

if TYPE_CHECKING:
    from polyad.readers.pool.workers import WorkerPool

_NO_PAGES = "this document has no pages and no pictures: only pages of PDF files and pictures can be shown"

_MAX_CACHED = 64 * 1024 * 1024
"""Bytes of the pictures in memory; a page of text has 100 to 300 kB."""

_MAX_SENTENCE = 10_000
"""Most characters of a marked sentence: to look for a whole book on a page takes minutes."""

DEFAULT_WIDTH, MIN_WIDTH, MAX_WIDTH = 1000, 100, 3000
"""Pixels of the width of a picture."""

_WIDTHS = 300, 600, DEFAULT_WIDTH, 1500, MAX_WIDTH
"""Widths in which pages are rendered; a request gets the next larger one, so that few of its pictures are new."""

_SECONDS = 10.0
"""Processor time of a picture. A page takes 0.1 s, a scan whose lines are not stored some 5 s."""

_MAX_SLOW = 1000
"""Number of the last pages that took too long, which are not rendered again."""


@dataclass(frozen=True, slots=True)
class PageImage:
    """The picture of a page, or a picture inside a document.

    Attributes:
        png: The picture.
        page: Number of the page, from 1; of a picture, its number among those of the passage or document.
        pages: Number of pages of the file, or of pictures of the passage or document.
        figures: Number of figures and tables on the page whose captions are in the marked text.
        is_page: Whether it shows a page, and not a picture inside a document.
        boxes: Left, upper, right and lower end of each marked line, as shares of width and height in [0, 1].
    """

    png: bytes
    page: int
    pages: int
    figures: int
    is_page: bool
    boxes: tuple[tuple[float, ...], ...]


class PageImages:
    """Renders pages in worker processes, and holds the last pictures in memory.

    Args:
        catalogue: Looks up passages and documents.
        settings: Limits of the worker processes.
    """

    def __init__(self, catalogue: Catalogue, settings: ReadSettings) -> None:
        self._catalogue = catalogue
        seconds = min(settings.max_seconds, _SECONDS)
        self._settings = replace(settings, workers=settings.workers or 2, max_seconds=seconds)
        self._lock = threading.Lock()
        self._pool: WorkerPool | None = None
        self._cache: OrderedDict[tuple[object, ...], PageImage] = OrderedDict()
        self._running: dict[tuple[object, ...], Future[PageImage]] = {}
        self._slow: OrderedDict[tuple[object, ...], str] = OrderedDict()

    def render(
        self,
        passage_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        page: int | None = None,
        width: int = DEFAULT_WIDTH,
        crop: bool = False,
    ) -> PageImage:
        """Return the picture of the page of a passage, on which the passage or a sentence is marked.

        Of a document without pages, return a picture of the passage: one whose text, description or caption is in it.

        Args:
            passage_id: Id of the passage.
            start: Start of the sentence in the document's text; None for the whole passage.
            end: End of the sentence.
            page: Number of another page of the file, from 1; None for the page on which the marked text begins. In a
                document without pages, number of the picture among those of the passage; None for the first.
            width: Width of the page in pixels; rounded up to one of a few widths.
            crop: Whether to return only the figure or table of a PDF file whose caption is in the marked text.

        Raises:
            NotFoundError: There is no such passage.
            PageImageError: The document has no page or picture to show, or its file was changed or deleted.
        """
        passage = self._catalogue.passage(passage_id)
        document = self._catalogue.document(passage.document_id)
        origin = self._catalogue.origin(passage.document_id)
        first = passage.start if start is None else start
        sentence = "" if start is None or end is None else document.text[start : min(end, start + _MAX_SENTENCE)]
        if crop and not page:
            places = (find_label(passage.text, label) for label in _get_labels(origin))
            first = next((passage.start + place for place in places if place is not None), first)
        number = page or Pagination(document.places).find(first).page or 1
        return self._render(origin, number, width, passage.text, sentence, crop=crop)

    def render_picture(self, document_id: str, number: int, *, width: int = DEFAULT_WIDTH) -> PageImage:
        """Return a picture, figure or table of a document.

        Args:
            document_id: Id of the document.
            number: Number in the list of its metadata (``pictures``), from 1.
            width: Width of the picture, or of the page that contains it, in pixels; see :meth:`render`.

        Raises:
            NotFoundError: There is no such document.
            PageImageError: The document does not have this picture, or its file was changed or deleted.
        """
        origin = self._catalogue.origin(document_id)
        labels = _get_labels(origin)
        if not 1 <= number <= len(labels):
            raise PageImageError(f"the picture is {number}; the document lists {len(labels)}")
        format = _find_format(origin)
        if format and format.pictures:
            return self._render(origin, number, width, "", "", crop=False)
        document = self._catalogue.document(document_id)
        place = find_label(document.text, labels[number - 1])
        if place is None:
            raise PageImageError("the caption of this picture is not in the text of the document")
        page = Pagination(document.places).find(place).page or 1
        return self._render(origin, page, width, labels[number - 1], "", crop=True)

    def _render(self, origin: Origin, number: int, width: int, passage: str, sentence: str, *, crop: bool) -> PageImage:
        """Return a page or picture from memory, or let a worker process render it, once for all threads that wait."""
        digest, format = str(origin.metadata.get(CONTENT_HASH, "")), _find_format(origin)
        file = self._find_file(origin, digest)
        if format is None or not format.render:
            raise PageImageError(_NO_PAGES)
        status = file.stat()
        width = next(each for each in _WIDTHS if each >= min(width, MAX_WIDTH))
        place = (digest, status.st_mtime_ns, status.st_size, number)
        key = (*place, width, passage, sentence, crop)
        request: dict[str, object] = {"digest": digest, "page": number, "width": width}
        request |= {"read": format.read if format.pictures else "", "crop": crop and format.has_pages}
        request |= {"passage": passage, "sentence": sentence}
        with self._lock:
            if image := self._cache.get(key):
                self._cache.move_to_end(key)
                return image
            if place in self._slow:
                raise PageImageError(self._slow[place])
            if running := self._running.get(key):
                future = running
            else:
                future = self._running[key] = Future()
        if running:
            return future.result()
        try:
            image = self._render_in_worker(file, format, request, place)
            future.set_result(image)
        except BaseException as error:  # raised in all threads that wait
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._running[key]
        with self._lock:
            self._cache[key] = image
            while sum(len(each.png) for each in self._cache.values()) > _MAX_CACHED:
                self._cache.popitem(last=False)
        return image

    def _render_in_worker(
        self, file: Path, format: Format, request: Mapping[str, Any], place: tuple[object, ...]
    ) -> PageImage:
        """Let a worker process render a picture, and remember its ``place`` if that takes too long."""
        from polyad.readers.pool.workers import SlowFileError, WorkerPool  # commands that only search do not need it

        with self._lock:
            pool = self._pool = self._pool or WorkerPool(self._settings)
        try:
            reply = pool.render_page(file, format, request)
        except SlowFileError as error:
            message = f"the picture takes more than {self._settings.max_seconds:g} seconds to draw; its text is indexed"
            with self._lock:
                self._slow[place] = message
                while len(self._slow) > _MAX_SLOW:
                    self._slow.popitem(last=False)
            raise PageImageError(message) from error
        except ReadError as error:
            raise PageImageError(str(error)) from error
        boxes = tuple(tuple(box) for box in reply["boxes"])
        png = base64.b64decode(reply["png"])
        return PageImage(png, request["page"], int(reply["pages"]), int(reply["figures"]), format.has_pages, boxes)

    def close(self) -> None:
        """End the worker processes."""
        if self._pool:
            self._pool.close()

    def list_digests(self, document_ids: list[str]) -> set[str]:
        """Return the SHA-256 of the files of documents, as far as known."""
        stated = (self._catalogue.origin(id).metadata.get(CONTENT_HASH) for id in document_ids)
        return {str(digest) for digest in stated if is_digest(digest)}

    def forget(self, digests: set[str]) -> None:
        """Delete the copies and the recognised lines of files of which no document is left."""
        if not self._settings.folder or not digests:
            return
        from polyad.readers.text.ocr_cache import forget_pages  # commands that only search do not need it

        for digest in digests:
            if not self._has_documents(digest):
                get_copy(self._settings.folder, digest).unlink(missing_ok=True)
                forget_pages(Path(self._settings.folder), digest)

    def _has_documents(self, digest: str) -> bool:
        try:
            return bool(self._catalogue.sources(f"{CONTENT_HASH} = '{digest}'"))
        except ConfigurationError:  # no document has this field
            return False

    def _find_file(self, origin: Origin, digest: str) -> Path:
        """Return the copy of a document's file, or the file itself.

        Raises:
            PageImageError: There is none.
        """
        if not is_digest(digest):
            if origin.metadata.get("extension") == ".pdf":
                raise PageImageError("this PDF file was indexed by a version that shows no pages; index it again")
            raise PageImageError(_NO_PAGES)
        if self._settings.folder and (copy := get_copy(self._settings.folder, digest)).is_file():
            return copy
        if not origin.source:
            raise PageImageError("the file of this document was not stored; set read.keep_files before it is indexed")
        file = Path(get_source_file(origin.source))
        if not file.is_file():
            raise PageImageError("the file of this document is no longer there; its text is still in the index")
        return file


def _get_labels(origin: Origin) -> tuple[str, ...]:
    """Return the labels of the pictures, figures and tables of a document."""
    labels = origin.metadata.get(PICTURE_LIST)
    return labels if isinstance(labels, tuple) else ()


def _find_format(origin: Origin) -> Format | None:
    """Return the format of a document's file."""
    return list_formats().get(str(origin.metadata.get("extension", "")))
