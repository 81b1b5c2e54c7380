"""What a run is of: data set, settings, code and machine, so that it can be told from others and made again."""

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
from polyad.config import shown_address
from polyad.evaluation.datasets.beir import Dataset
from polyad.evaluation.runs.run_folder import FORMAT

_PACKAGES = ("numpy", "scipy", "torch", "sentence-transformers")
"""Whose versions may change what is found, or how fast."""

_SECRET = "api_key"


def build_manifest(
    dataset: Dataset,
    retrievers: Sequence[str],
    k: int,
    settings: object,
    **choices: object,
) -> dict[str, Any]:
    """What ``manifest.json`` holds.

    Args:
        dataset: With the questions that are asked.
        retrievers: Their names.
        k: Depth of the ranking, in documents.
        settings: All of them, as dataclasses; keys for endpoints are left out.
        choices: What else was chosen, such as the method, the embedder and the seed of the intervals.
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
        **choices,
        "settings": settings_to_json(settings),
        "commit": get_commit(),
        "versions": get_versions(),
        "machine": describe_machine(),
    }


def compute_dataset_digest(dataset: Dataset) -> str:
    """SHA-256 of the data set's files, one after the other."""
    digest = hashlib.sha256()
    for path in dataset.files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def settings_to_json(settings: object) -> Any:
    """Settings as JSON has them, without keys and with addresses as messages may show them."""
    if is_dataclass(settings):
        return {
            field.name: settings_to_json(shown_address(value) if field.name == "base_url" else value)
            for field in fields(settings)
            if field.name != _SECRET
            for value in [getattr(settings, field.name)]
        }
    if isinstance(settings, Mapping):
        return {name: settings_to_json(value) for name, value in settings.items()}
    return list(settings) if isinstance(settings, tuple) else settings


def get_versions() -> dict[str, str]:
    """Of polyad, Python and the packages that matter, where they are installed."""
    found = {"polyad": polyad.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def get_commit() -> str:
    """The commit of the working tree polyad runs from, with ``+`` where it was changed; empty for an installed one."""
    folder = Path(polyad.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        if not git("ls-files", Path(polyad.__file__).name):  # somebody else's repository, in which this is installed
            return ""
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def describe_machine() -> dict[str, Any]:
    """Processor, number of cores and system."""
    return {"processor": get_processor_name(), "cores": os.cpu_count(), "system": platform.system()}


def get_processor_name() -> str:
    """The processor's name as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
