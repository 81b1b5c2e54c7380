"""What the tests share: one embedder, and an index of six documents small enough to check by hand."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings as hypothesis_settings

from polyad.embedders.minilm.embedder import MiniLMEmbedder
from polyad.engine import Engine
from polyad.model import (
    SUBJECT,
    Document,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols.components import Embedder
from polyad.protocols.store import Manifest
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore
from tests.examples import count_examples

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A busy machine is no failure. Tests of rare cases state their number.
hypothesis_settings.register_profile("no deadline", deadline=None, max_examples=count_examples(50))
hypothesis_settings.load_profile("no deadline")

MEMORY_FOLDER, FREE_BYTES = Path("/dev/shm"), 4 << 30

# Thousands of small indexes are written and deleted, and half of the time would be spent waiting for the disk.
if os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > FREE_BYTES:
    os.environ.setdefault("TMPDIR", str(MEMORY_FOLDER))
    tempfile.tempdir = None  # determine the folder again

SIX_DOCUMENTS = (
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702. It hangs in Corven Tower."),
    Document("moreau", "Ines Moreau", "Ines Moreau was a founder of bronze. She was born in the village of Aldby."),
    Document("tower", "Corven Tower", "Corven Tower is built of red granite. Its stairs have 214 steps."),
    Document("aldby", "Aldby", "Aldby is a village on the river Isk. It is known for its walnut orchards."),
    Document("isk", "Isk", "The Isk is a river that flows north. Otters live on its banks."),
    Document("otter", "otter", "An otter eats fish and crabs. It closes its ears when it dives."),
)
"""The bell names its maker and its tower; the maker's document names her village; the village's names its river."""


gc.disable()  # until the tests begin: a third of the time in which each worker imports and collects them

EXCLUDED_MODULE = re.compile(r"^pytestmark = \[?pytest\.mark\.(attacks|slow)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules whose tests the expression of markers excludes all, so that no worker imports them."""
    if collection_path.suffix != ".py":
        return None
    mark = EXCLUDED_MODULE.search(collection_path.read_text(encoding="utf-8"))
    return True if mark and f"not {mark[1]}" in config.getoption("markexpr") else None


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among modules and tests, which live to the end."""
    gc.freeze()
    gc.enable()


IMPORT_FOR_SECONDS = tuple(
    f"tests/{path}"
    for path in (
        *("embedders/", "integrations/", "rerankers/", "conformance/test_embedder", "indexing/test_gliner"),
        *("polyad_bench/test_triple_scorer", "cli/test_train"),
    )
)
"""Tests that import PyTorch or a framework."""

LONG_FILES = (
    "imports",
    *(
        f"tests/{path}.py"
        for path in (
            *("engine/test_corrections", "snapshot/test_snapshot", "indexing/test_indexer", "docs/test_pages"),
            *("readers/test_embedded_pictures", "polyad_server/test_mcp", "polyad_server/test_run"),
            *("polyad_server/test_workers", "polyad_server/test_restart", "polyad_server/test_page_images"),
            *("attacks/test_openapi", "attacks/test_flips", "test_crash", "docs/test_agent_memory"),
            *("presets/test_tables", "polyad_baselines/test_tables", "polyad_baselines/test_registration"),
        )
    ),
)
"""What takes long for the number of its tests, by which xdist orders files: at the end one worker would wait for it."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Run the tests that import for seconds in one worker, so that the others do not import the same."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LongFilesFirst(OrderedDict[str, Any]):
        def popitem(self, last: bool = True) -> tuple[str, Any]:
            name = next((name for name in LONG_FILES if name in self), None)
            return super().popitem(last) if name is None else (name, self.pop(name))

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
        def __init__(self, config: pytest.Config, log: Any) -> None:
            super().__init__(config, log)
            self.workqueue = LongFilesFirst()

        def _split_scope(self, nodeid: str) -> str:
            return "imports" if nodeid.startswith(IMPORT_FOR_SECONDS) else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture
def empty_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write empty figures into reports, since drawing them takes seconds."""
    from polyad_bench.reports import report
    from polyad_bench.training import linear_scorer

    for module in (report, linear_scorer):
        monkeypatch.setattr(module, "save_figure", lambda _, path: path.write_text("<svg></svg>"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("POLYAD_STORE", "POLYAD_MODEL", "POLYAD_RETRIEVER", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")  # where a user's own settings are
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session", autouse=True)
def _no_gliner() -> Iterator[None]:
    """Let GLiNER be missing, as on most machines: its import takes seconds, even where its model is missing."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setitem(sys.modules, "gliner", None)
        yield


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The default embedder, loaded once, with numpy: importing PyTorch takes seconds."""
    return MiniLMEmbedder()


@pytest.fixture(scope="session")
def small_index_dir(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """The directory of an index of :data:`SIX_DOCUMENTS`. For reading; copy it to change it."""
    directory = tmp_path_factory.mktemp("small") / "kb"
    with Engine.open(directory, embedder=embedder) as engine:
        counts = engine.index_documents(SIX_DOCUMENTS).counts
    assert (counts.added, counts.failures) == (6, ())
    return directory


@pytest.fixture
def small_engine(small_index_dir: Path, embedder: Embedder) -> Iterator[Engine]:
    """An engine on the index of six documents, without a language model."""
    with Engine.open(small_index_dir, embedder=embedder, create=False) as engine:
        yield engine


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser chromium, of the system or of Playwright. Without it tests are skipped, or fail if it is required.

    One for each module, because the loop of Playwright runs in the thread where other modules start their own loops.
    """
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        system = shutil.which("chromium") or shutil.which("chromium-browser")
        path = system or playwright.chromium.executable_path
        if not Path(path).exists():
            end = pytest.fail if os.environ.get("REQUIRE_CHROMIUM") else pytest.skip
            end("needs the browser chromium; run: python -m playwright install chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


Spec = Mapping[str, Sequence[tuple[str, Sequence[str]]]]
"""Each passage by its title (which is also its document's id): the words of each hyperedge, and its members."""


@pytest.fixture
def build_small_snapshot(tmp_path: Path) -> Callable[[Spec, Embedder], MappedSnapshot]:
    """Builds the snapshot of passages with given hyperedges; an entity is the subject of the passage with its title."""

    def make(spec: Spec, embedder: Embedder) -> MappedSnapshot:
        store = SqliteStore.open(tmp_path / "kb", Manifest(embedder.name, embedder.dimension, "rules:1"))
        for title, units in spec.items():
            store.put(_indexed(title, units, embedder))
        return SnapshotProvider(store, embedder.dimension).get_with_entity_vectors(embedder)

    return make


def _indexed(title: str, units: Sequence[tuple[str, Sequence[str]]], embedder: Embedder) -> IndexedDocument:
    texts = [" ".join([*words.split(), *members]) for words, members in units]
    passage = Passage(f"{title}#0000", title, title, " ".join(texts), 0, 1)
    edges = []
    for position, ((_, members), text) in enumerate(zip(units, texts, strict=True)):
        id = f"{passage.id}/{position:03}"
        edge = Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, text, passage.id, 0, 1)
        incidences = tuple(
            Incidence(key, id, key.title(), SUBJECT if key == title.lower() else "") for key in sorted(members)
        )
        edges.append(IndexedHyperedge(edge, incidences, embedder.encode([text], "passage")[0]))
    vector = embedder.encode([passage.text], "passage")[0]
    return IndexedDocument(
        Document(title, title, passage.text), "digest", 1, (IndexedPassage(passage, "digest", vector, tuple(edges)),)
    )
