"""An index of a few documents with metadata, pages and times, for the retrievers of all frameworks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.model import Document, Location, Section
from polyad.protocols.components import Embedder

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"  # is read when Haystack is imported

COVER = "Tarn Foundry.\n\n"
BELL = "The Bell of Tarn was cast by Ines Moreau."
CLOCK = "Makers\n\nThe clock of Tarn was made by Jonas Stone."

DOCUMENTS = (
    Document(
        "bell.pdf",
        "Bell of Tarn",
        COVER + BELL,
        source="/notes/bell.pdf",
        url="https://tarn.example/bell",
        metadata={"year": 1702, "author": ("Ada", "Bo"), "citation": "Another Source, p. 9", "score": 9000},
        places=(Location(0, len(COVER), page=1), Location(len(COVER), len(COVER + BELL), page=2)),
    ),
    Document("clock", "Clock of Tarn", CLOCK, metadata={"year": 1811}, sections=(Section("Makers", 0, len(CLOCK)),)),
    Document("old", "Mayor", "The mayor of Tarn is Ada King.", metadata={"year": 1990, "valid_to": "1999"}),
    Document("new", "Mayor", "The mayor of Tarn is Bo Ray.", metadata={"year": 2000, "valid_from": "2000"}),
)
QUESTION = "Who cast the Bell of Tarn?"
MAYOR = "Who is the mayor of Tarn?"


def import_names(namespace: dict[str, object], modules: Mapping[str, str]) -> None:
    """Import names, separated by spaces, from each module into a namespace; skip its tests if a module is missing.

    Frameworks take seconds to import. Each worker collects all tests, but only one runs those of a framework.
    """
    for module, names in modules.items():
        pytest.importorskip(module.partition(".")[0])
        namespace |= {name: getattr(import_module(module), name) for name in names.split()}


@pytest.fixture(scope="session")
def tarn_directory(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """The directory of the index, for reading."""
    directory = tmp_path_factory.mktemp("tarn") / "kb"
    with Engine.open(directory, embedder=embedder) as engine:
        assert engine.index_documents(DOCUMENTS).counts.added == len(DOCUMENTS)
    return directory


@pytest.fixture
def tarn_engine(tarn_directory: Path, embedder: Embedder) -> Iterator[Engine]:
    """An engine on the index."""
    with Engine.open(tarn_directory, embedder=embedder, create=False) as engine:
        yield engine
