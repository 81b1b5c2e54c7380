"""Reads uploaded files as documents."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from polyad.config import ReadSettings
from polyad.engine.registry import DEFAULT_METHOD, methods
from polyad.model import Document, Failure, MetadataValue
from polyad.readers.text.sources import format_path

_UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME_BYTES = 100
_MAX_EXTENSION = 20
_FILE_KEYS = ("path", "folder", "modified")
"""Metadata keys that describe the temporary file, not the uploaded file."""


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """The name and the content of an uploaded file, or of a web page.

    Attributes:
        name: Name of the file, or address of the page.
        content: The bytes.
        extension: Extension such as ``.html``; empty for that of the name.
        url: Address of the page after redirects; empty for a file.
    """

    name: str
    content: bytes
    extension: str = ""
    url: str = ""


def read_uploads(
    files: Sequence[UploadedFile], metadata: Mapping[str, MetadataValue], method: str, settings: ReadSettings
) -> Iterator[Document | Failure]:
    """Yield the documents in uploaded files, and a Failure for each unreadable file.

    The id of a document is the name of its file; in a file of several documents, it begins with the name.

    Args:
        files: The files.
        metadata: Metadata of all documents, added to the metadata of each file.
        method: Construction method, whose reader is used; empty for the default method.
        settings: Limits of reading.
    """
    reader = methods[method or DEFAULT_METHOD].read(settings)
    with tempfile.TemporaryDirectory(prefix="polyad-upload-") as folder:
        for number, file in enumerate(files):
            path = Path(folder) / str(number) / _get_safe_name(file.name, file.extension)
            path.parent.mkdir()
            path.write_bytes(file.content)
            with closing(reader.read([path], lambda _: None)) as items:
                for item in items:
                    yield _replace_file_name(item, format_path(path), file, metadata)
            path.unlink()


def _replace_file_name(
    item: Document | Failure, path: str, file: UploadedFile, metadata: Mapping[str, MetadataValue]
) -> Document | Failure:
    """Return a copy of a document or failure with the name of the uploaded file in place of its temporary path.

    ``metadata`` is added to a document.
    """
    name = file.name
    id = name + item.id.removeprefix(path) if item.id.startswith(path) else item.id
    if isinstance(item, Failure):
        return Failure(id, item.reason.replace(path, name))
    stated = {key: value for key, value in item.metadata.items() if key not in _FILE_KEYS}
    if file.url:
        return replace(item, id=id, source="", url=file.url, metadata={**stated, **metadata})
    return replace(item, id=id, source="", metadata={**stated, "path": name, **metadata})


def _get_safe_name(name: str, extension: str) -> str:
    """Return a file name without folders and special characters, with ``extension`` or, if empty, that of ``name``."""
    path = PurePosixPath(name.replace("\\", "/"))
    stem = _UNSAFE.sub("-", path.stem).encode()[:_MAX_NAME_BYTES].decode(errors="ignore").strip(".-")
    return (stem or "file") + _UNSAFE.sub("", extension or path.suffix)[:_MAX_EXTENSION]
