"""The types of ``manifest.json`` and ``cost.json`` in a run folder, and how both are read."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.json_files import find_line, read_json
from polyad.text.json_types import FieldError, Name, parse_value

FORMAT = 2
"""Format version of run folders; a folder of another version is not read."""

MAX_DEPTH, MAX_QUESTIONS, MAX_RETRIEVERS = 10_000, 10_000_000, 1_000
"""Largest depth of a ranking, in documents, and numbers of questions and retrievers."""


class DatasetDescription(TypedDict):
    """The data set of a run: its name, the digest of its files and the ids of the questions."""

    name: Name
    digest: str
    questions: Sequence[str]


class RequiredManifest(TypedDict):
    """The keys that each manifest has."""

    format: int
    dataset: DatasetDescription
    retrievers: Sequence[Name]
    k: int


class Manifest(RequiredManifest, total=False):
    """The contents of ``manifest.json``; other options of a run may follow."""

    seed: int
    settings: Mapping[str, Mapping[str, Any] | None]
    commit: str
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    method: str | None
    embedder: str | None


class IndexCost(TypedDict, total=False):
    """Cost of indexing and size of the index, in ``cost.json``."""

    seconds: float
    encode_seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    written: int
    tokens: int
    passages: int
    hyperedges: int
    entities: int
    failed: int
    llm: Mapping[str, float]
    embedder: Name


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run.

    Raises:
        ConfigurationError: the file is missing, of another version or damaged; the message names file and line.
    """
    value = read_object(path)
    if value.get("format") != FORMAT:
        raise ConfigurationError(
            f"{str(path)!r} has format {reprlib.repr(value.get('format'))}; expected {FORMAT}: measure again"
        )
    require_type(path, {key: item for key, item in value.items() if key in Manifest.__annotations__}, Manifest)
    for key, number, low, high in (
        ("k", value["k"], 1, MAX_DEPTH),
        ("seed", value.get("seed", 0), 0, 1 << 63),
        ("questions", len(value["dataset"]["questions"]), 1, MAX_QUESTIONS),
        ("retrievers", len(value["retrievers"]), 1, MAX_RETRIEVERS),
    ):
        if not low <= number <= high:
            raise ConfigurationError(
                f"{str(path)!r}, line {find_line(path, key)}: {key}: {number:,}; expected {low} to {high:,}"
            )
    return value


def read_index_cost(path: Path) -> dict[str, Any]:
    """Return the cost of indexing.

    Raises:
        ConfigurationError: the file is missing or damaged; the message names file and line.
    """
    index: dict[str, Any] = require_type(path, read_object(path).get("index"), IndexCost, "index")
    return index


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a run.

    Raises:
        ConfigurationError: the file is missing, or holds no object; the message names file and line.
    """
    if not path.exists():
        raise ConfigurationError(f"{str(path)!r} is missing; expected a folder that polyad eval --out has written")
    value = read_json(path)
    if not isinstance(value, dict):
        raise ConfigurationError(f"{str(path)!r}, line 1: expected an object")
    return value


def require_type(path: Path, value: object, type_: Any, place: str = "") -> Any:
    """Return a value of a JSON file as a type; raise ConfigurationError with file and line if it has another type."""
    try:
        return parse_value(value, type_, place)
    except FieldError as error:
        raise ConfigurationError(f"{str(path)!r}, line {find_line(path, error.key)}: {error}; measure again") from error
