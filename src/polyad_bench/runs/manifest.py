"""The manifest of a run (data set, settings, code and machine, so that the run can be repeated), and its costs."""

from __future__ import annotations

import hashlib
import os
import platform
import reprlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict

import polyad
from polyad.config import mask_url
from polyad.errors import ConfigurationError
from polyad.text.json_types import FieldError, Name, parse_value
from polyad_bench.datasets.beir import Dataset
from polyad_bench.files import find_line, read_json

FORMAT = 3
"""Format version of run folders; a folder of another version is not read."""

MAX_DEPTH, MAX_QUESTIONS, MAX_RETRIEVERS = 10_000, 10_000_000, 1_000
"""Largest depth of a ranking, in documents, and numbers of questions and retrievers."""


class DatasetDescription(TypedDict):
    """The data set of an evaluation run: its name, a hash of its files, and the ids of its questions."""

    name: Name
    digest: str
    questions: Sequence[str]


class RequiredManifest(TypedDict):
    """The keys that ``manifest.json``, the description of an evaluation run, always has."""

    format: int
    dataset: DatasetDescription
    retrievers: Sequence[Name]
    k: int


class RunManifest(RequiredManifest, total=False):
    """The contents of ``manifest.json``, which describes an evaluation run: data set, settings, code and machine.

    ``source`` is the origin of an imported run, which has no settings.
    """

    seed: int
    settings: Mapping[str, Mapping[str, Any] | None]
    commit: str
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    method: str | None
    embedder: str | None
    source: str


class IndexCost(TypedDict, total=False):
    """Time, memory, tokens and sizes of indexing a data set, as stored in ``cost.json``."""

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
    llm_uncached: Mapping[str, float]
    preparation: Mapping[str, Mapping[str, float]]
    embedder: Name


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the contents of ``manifest.json``, which describes an evaluation run: data, settings, code and machine.

    Raises:
        ConfigurationError: the file is missing, of another version or damaged; the message names file and line.
    """
    value = read_object(path)
    if value.get("format") != FORMAT:
        raise ConfigurationError(
            f"{str(path)!r} has format {reprlib.repr(value.get('format'))}; expected {FORMAT}: measure again"
        )
    require_type(path, {key: item for key, item in value.items() if key in RunManifest.__annotations__}, RunManifest)
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
    """Return the cost of indexing (time, memory, tokens and sizes) from ``cost.json`` as a dictionary.

    Raises:
        ConfigurationError: the file is missing or damaged; the message names file and line.
    """
    index: dict[str, Any] = require_type(path, read_object(path).get("index"), IndexCost, "index")
    return index


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a run folder as a dictionary.

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
    """Return a JSON value of the file ``path``, converted to ``type_``; ``place`` names the value in error messages.

    Raise ConfigurationError with file and line if the value has another type.
    """
    try:
        return parse_value(value, type_, place)
    except FieldError as error:
        raise ConfigurationError(f"{str(path)!r}, line {find_line(path, error.key)}: {error}; measure again") from error


_PACKAGES = ("numpy", "scipy", "torch", "sentence-transformers")
"""Packages whose version may change results or times."""

_SECRET = "api_key"


def build_manifest(
    dataset: Dataset,
    retrievers: Sequence[str],
    k: int,
    settings: object,
    **options: object,
) -> dict[str, Any]:
    """Return the contents of ``manifest.json``, which describes an evaluation run: data, settings, code and machine.

    Args:
        dataset: The data set, with the questions to ask.
        retrievers: Names of the retrievers.
        k: Depth of the ranking, in documents.
        settings: All settings, as dataclasses; API keys are omitted.
        options: Other options of the run, such as the indexing method, the embedder and the seed of the intervals.
    """
    return {
        "format": FORMAT,
        "dataset": {
            "name": dataset.name,
            "digest": compute_dataset_digest(dataset),
            "questions": [query.id for query in dataset.queries],
        },
        "retrievers": list(retrievers),
        "k": k,
        **options,
        "settings": settings_to_json(settings),
        "commit": get_commit(),
        "versions": get_versions(),
        "machine": describe_machine(),
    }


def compute_dataset_digest(dataset: Dataset) -> str:
    """Return a SHA-256 digest of the contents of all files of a data set, in hexadecimal."""
    digest = hashlib.sha256()
    for path in dataset.files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def settings_to_json(settings: object) -> Any:
    """Return settings (dataclasses, also nested) as JSON values, without API keys and passwords."""
    if is_dataclass(settings):
        return {
            field.name: settings_to_json(mask_url(value) if field.name == "base_url" else value)
            for field in fields(settings)
            if field.name != _SECRET
            for value in [getattr(settings, field.name)]
        }
    if isinstance(settings, Mapping):
        return {name: settings_to_json(value) for name, value in settings.items()}
    return list(settings) if isinstance(settings, tuple) else settings


def get_versions() -> dict[str, str]:
    """Return the versions of polyad, Python and the installed packages that may change results."""
    versions = {"polyad": polyad.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def get_commit() -> str:
    """Return the Git commit of polyad's source, with ``+`` if files have changed, or "" for an installed package."""
    folder = Path(polyad.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        if not git("ls-files", Path(polyad.__file__).name):  # installed inside the repository of another project
            return ""
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def describe_machine() -> dict[str, Any]:
    """Return a dictionary with the processor, the number of cores and the operating system of this machine."""
    return {"processor": get_processor_name(), "cores": os.cpu_count(), "system": platform.system()}


def get_processor_name() -> str:
    """Return the name of the processor as the operating system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
