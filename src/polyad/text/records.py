"""JSON of documents as the index stores them, without loss: for export, and for copies inside the index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from polyad.model import IndexedDocument, IndexedPassage, MetadataValue
from polyad.text.json_types import FieldError, format_value, parse_value


def format_record(record: IndexedDocument | IndexedPassage) -> dict[str, Any]:
    """Return a document or passage with its hyperedges, incidences and vectors as JSON."""
    return cast(dict[str, Any], format_value(record))


def parse_indexed_passage(tree: object, place: str = "") -> IndexedPassage:
    """Convert the JSON of :func:`format_record` to a passage.

    Raises:
        FieldError: The JSON is no passage; the message names the field.
    """
    return cast(IndexedPassage, parse_value(tree, IndexedPassage, place))


def parse_indexed_document(tree: object) -> IndexedDocument:
    """Convert the JSON of :func:`format_record` to a document.

    Raises:
        FieldError: The JSON is no document; the message names the field.
    """
    if not isinstance(tree, dict) or not isinstance(document := tree.get("document"), dict):
        raise FieldError("", tree, "an object with 'document'")
    metadata = document.get("metadata", {})
    if not isinstance(metadata, dict):
        raise FieldError("document.metadata", metadata, "an object")
    without_metadata = {**tree, "document": {**document, "metadata": {}}}
    parsed = cast(IndexedDocument, parse_value(without_metadata, IndexedDocument))
    values = {key: _parse_metadata_value(value, f"document.metadata.{key}") for key, value in metadata.items()}
    return replace(parsed, document=replace(parsed.document, metadata=values))


def _parse_metadata_value(value: object, place: str) -> MetadataValue:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if not isinstance(value, str | int | float | bool):
        raise FieldError(place, value, "a text, number, boolean or list of texts")
    return value
