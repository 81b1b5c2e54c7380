"""JSON Lines without loss: the properties and corrections of an index, then one document on each line.

The first line is a :class:`Header`. Each other line is a document as it was built, before corrections, with its
passages, hyperedges, incidences and vectors; see :func:`polyad.text.json_types.format_value`. Vectors are base64 of
little-endian float32, or empty if they were left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from polyad.curation.statements import Statements
from polyad.errors import ConfigurationError, SettingError
from polyad.interchange.contents import IndexContents
from polyad.model import Failure, FloatArray, IndexedDocument, IndexedHyperedge, IndexedPassage
from polyad.protocols.store import Manifest
from polyad.text.files import open_atomically, open_file
from polyad.text.json_types import FieldError, format_value, parse_value
from polyad.text.validity import VALID_FROM, VALID_TO, parse_interval

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """One user correction in an exported file: its namespace, key and value."""

    namespace: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of an exported file: format version, components of the index, and users' corrections.

    Attributes:
        polyad_export: Version of the format.
        embedder: Name of the embedder of the vectors.
        dimension: Length of the vectors.
        mentions: Name of the mention extractor.
        documents: Number of documents.
        statements: Corrections by users.
    """

    polyad_export: int
    embedder: str
    dimension: int
    mentions: str
    documents: int
    statements: tuple[StatementRecord, ...] = ()

    @property
    def manifest(self) -> Manifest:
        """The names of the exported index's embedder and mention extractor, and the vector dimension."""
        return Manifest(self.embedder, self.dimension, self.mentions)

    def parse_statements(self) -> Statements:
        """Return the users' corrections (retractions, aliases, disabled documents) in the file.

        Raises:
            ValueError: A statement cannot be read.
        """
        values: dict[str, dict[str, bytes | None]] = {}
        for record in self.statements:
            values.setdefault(record.namespace, {})[record.key] = record.value.encode()
        return Statements.parse(values)


def write_jsonl(contents: IndexContents, path: Path) -> list[Path]:
    """Write an index as JSON Lines and return the path of the file."""
    manifest = contents.manifest
    statements = tuple(
        StatementRecord(namespace, key, value.decode())
        for namespace, values in contents.statements.format().items()
        for key, value in values.items()
        if value is not None
    )
    documents = contents.count_records()["documents"]
    header = Header(FORMAT_VERSION, manifest.embedder, manifest.dimension, manifest.mentions, documents, statements)
    with open_atomically(path) as file:
        file.write(_format_line(format_value(header)))
        for document in contents.iterate_documents(as_built=True):
            file.write(_format_line(format_value(document)))
    return [path]


def _format_line(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_header(path: Path) -> Header:
    """Parse and return the first line of an exported file.

    Raises:
        ConfigurationError: The file cannot be read, or is no export of an index in this format.
    """
    expected = "expected a file written by `polyad export --format jsonl`"
    try:
        with open_file(path) as file:
            tree = json.loads(file.readline())
        if not isinstance(tree, dict) or "polyad_export" not in tree:
            raise FieldError("", tree, "an object with 'polyad_export'")
        if tree["polyad_export"] != FORMAT_VERSION:
            raise FieldError(
                "polyad_export", tree["polyad_export"], f"{FORMAT_VERSION}; upgrade polyad to read a later format"
            )
        header: Header = parse_value(tree, Header)
        if header.dimension < 1:
            raise FieldError("dimension", header.dimension, "1 or more")
        header.parse_statements()
    except OSError as error:
        raise ConfigurationError(f"cannot read {str(path)!r}: {error.strerror or error}; {expected}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{str(path)!r}, line 1: {error}; {expected}") from error
    return header


def read_documents(path: Path, header: Header) -> Iterator[IndexedDocument | Failure]:
    """Yield each document of an exported file, and a Failure for each invalid line.

    Args:
        path: The file.
        header: Its first line.
    """
    count = 0
    with open_file(path) as file:
        file.readline()
        for number, line in enumerate(file, 2):
            if not line.strip():
                continue
            count += 1
            try:
                yield _parse_document(line, header.dimension)
            except (ValueError, RecursionError) as error:
                yield Failure(f"{path}:{number}", str(error))
    if count < header.documents:
        yield Failure(str(path), f"it ends after {count:,} of {header.documents:,} documents; export the index again")


def _parse_document(line: bytes, dimension: int) -> IndexedDocument:
    """Parse and return the document in one line of an exported file.

    Raises:
        ValueError: The line holds no document, or its parts contradict each other.
    """
    document: IndexedDocument = parse_value(tree := json.loads(line), IndexedDocument)
    if b"\\ud" in line.lower():
        json.dumps(tree, ensure_ascii=False).encode()  # fails for half of a surrogate pair, which no store accepts
    _check_ids(document)
    lengths = {len(vector) for vector in list_vectors(document)}
    if lengths - {dimension} and lengths != {0}:
        raise FieldError("vector", max(lengths), f"{dimension:,} numbers in every vector, or none")
    return document


def list_vectors(document: IndexedDocument) -> list[FloatArray]:
    """Return the vectors of a document: of each passage, followed by those of its hyperedges."""
    return [
        vector for item in document.passages for vector in (item.vector, *(edge.vector for edge in item.hyperedges))
    ]


def _check_ids(document: IndexedDocument) -> None:
    """Raise FieldError if an id, span or score of an exported document is invalid."""
    id = document.document.id
    if not id or not document.passages:
        raise FieldError("document", id, "an id and at least one passage")
    passage_ids = [item.passage.id for item in document.passages]
    edge_ids = [edge.hyperedge.id for item in document.passages for edge in item.hyperedges]
    for ids in (passage_ids, edge_ids):
        if len(set(ids)) < len(ids):
            raise FieldError("passages", id, "passages and hyperedges with distinct ids")
    _check_validity(document.document.metadata)
    for item in document.passages:
        _check_passage(item, document)


def _check_validity(bounds: Mapping[str, object]) -> None:
    try:
        parse_interval(bounds)
    except SettingError as error:
        raise FieldError(error.setting, bounds[error.setting], "a date, not before valid_from") from error


def _check_passage(item: IndexedPassage, document: IndexedDocument) -> None:
    passage, id = item.passage, document.document.id
    if (
        passage.document_id != id
        or passage.id.rpartition("#")[0] != id
        or not passage.id.rpartition("#")[2].isdecimal()
    ):
        raise FieldError("passage.id", passage.id, f"the id of a passage of {id!r}")
    if document.document.text[passage.start : passage.end] != passage.text:
        raise FieldError("passage.text", passage.text, "the text of the document between 'start' and 'end'")
    for edge in item.hyperedges:
        _check_hyperedge(edge, passage.id, len(passage.text))


def _check_hyperedge(item: IndexedHyperedge, passage_id: str, length: int) -> None:
    edge = item.hyperedge
    if edge.passage_id != passage_id or edge.id.rpartition("/")[0] != passage_id:
        raise FieldError("hyperedge.id", edge.id, f"the id of a hyperedge of {passage_id!r}")
    if not 0 <= edge.start <= edge.end <= length:
        raise FieldError("hyperedge.end", edge.end, "a span of the passage")
    if not 0 < edge.score <= 10:
        raise FieldError("hyperedge.score", edge.score, "a number above 0, up to 10")
    _check_validity({VALID_FROM: edge.valid_from, VALID_TO: edge.valid_to})
    members = {(part.entity_key, part.role) for part in item.incidences}
    if len(members) < len(item.incidences) or not all(key for key, _ in members):
        raise FieldError("incidences", edge.id, "distinct members with keys")
    for part in item.incidences:
        if part.hyperedge_id != edge.id or not (0 < part.score <= 100 and 0 < part.strength <= 1):
            raise FieldError("incidences", part.hyperedge_id, f"members of {edge.id!r} with score and strength above 0")
