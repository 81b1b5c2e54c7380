"""The manifest of a run: data set, settings, code and machine, so that the run can be repeated."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import polyad
from polyad.config import mask_url
from polyad.evaluation.datasets.beir import Dataset
from polyad.evaluation.runs.run_files import FORMAT

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
    """Return the contents of ``manifest.json``.

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
    """Return the SHA-256 digest of the files of a data set, in order."""
    digest = hashlib.sha256()
    for path in dataset.files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def settings_to_json(settings: object) -> Any:
    """Return settings as JSON values, without API keys and without passwords in addresses."""
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
    """Return the commit of the working tree that polyad runs from, with ``+`` if files changed; empty if installed."""
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
    """Return the processor, the number of cores and the operating system."""
    return {"processor": get_processor_name(), "cores": os.cpu_count(), "system": platform.system()}


def get_processor_name() -> str:
    """Return the name of the processor as the operating system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
