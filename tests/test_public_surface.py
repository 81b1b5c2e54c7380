"""What ``import polyad`` offers, and what it costs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import polyad

PUBLIC = {
    *("Engine", "AsyncEngine", "IndexReport", "METHODS", "RETRIEVERS"),
    *(
        "Settings",
        "SplitSettings",
        "SearchOptions",
        "RetrieverSpec",
        "LanguageModelSettings",
        "OpenAILanguageModel",
        "PolyadError",
    ),
    *("Document", "Passage", "Entity", "Hyperedge", "Incidence"),
    *("Evidence", "ScoredPassage", "Query", "Snapshot", "Answer", "Citation", "Failure", "Statistics", "Usage"),
    *("Embedder", "LanguageModel", "MentionExtractor", "Retriever"),
    "__version__",
}
HEAVY = ("torch", "transformers", "sentence_transformers", "scipy", "openai", "gliner")


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines())


def test_the_public_names_are_these_and_few() -> None:
    assert set(polyad.__all__) == PUBLIC
    assert dir(polyad) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__", "METHODS", "RETRIEVERS"}))
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    result = getattr(polyad, name)
    assert result is getattr(importlib.import_module(result.__module__), name)
    assert result.__doc__


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Enigne'"):
        polyad.Enigne  # type: ignore[attr-defined]  # noqa: B018  the misspelling is the point


def test_importing_polyad_loads_nothing_that_takes_time() -> None:
    assert not modules_after("import polyad") & {*HEAVY, "numpy", "polyad.engine"}


@pytest.mark.parametrize("statement", ["import polyad.engine", "import polyad.cli"])
def test_the_engine_and_the_command_line_start_without_a_model_library(statement: str) -> None:
    assert not modules_after(statement) & set(HEAVY)


def test_the_help_of_the_command_line_imports_nothing_that_takes_time() -> None:
    loaded = modules_after_commands(["--help"], ["bench", "--help"])
    packages = (
        *HEAVY,
        "numpy",
        "rich",
        *(f"polyad.{name}" for name in ("engine", "evaluation", "readers", "indexing")),
    )
    assert not loaded & set(packages)


@pytest.mark.parametrize(
    ("words", "completion"), [("be", "bench"), ("bench co", "compare"), ("search --exp", "--explain")]
)
def test_the_shell_completes_commands_and_options(words: str, completion: str) -> None:
    line = {"COMP_WORDS": f"polyad {words}", "COMP_CWORD": str(len(words.split())), "_POLYAD_COMPLETE": "complete_bash"}
    ran = subprocess.run(
        [sys.executable, "-m", "polyad"], capture_output=True, text=True, check=True, env={**os.environ, **line}
    )
    assert ran.stdout.split() == [completion]


def modules_after_commands(*commands: Sequence[str]) -> set[str]:
    """After all of them, one after the other in one process; each has to succeed."""
    run = f"for command in {list(map(list, commands))!r}:\n    try:\n        polyad.cli.app(command)\n"
    return modules_after(f"import polyad.cli\n{run}    except SystemExit as end:\n        assert not end.code, command")


def test_looking_at_an_index_loads_no_model_library(small_index_dir: Path) -> None:
    looks = (
        ["stats"],
        ["show", "entity", "Aldby"],
        ["show", "document", "bell"],
        ["list", "entities"],
        ["facts", "Isk"],
    )
    loaded = modules_after_commands(
        *([*look, "--store", str(small_index_dir)] for look in looks), ["--help"], ["search", "--help"]
    )
    assert "polyad.stores.sqlite" in loaded
    assert not loaded & set(HEAVY)


EVERYTHING_SET = {
    "POLYAD_MODEL": "m",
    "POLYAD_MENTION_EXTRACTOR": "gliner",
    "POLYAD_EMBEDDER": "all-MiniLM-L6-v2",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
}


@pytest.mark.parametrize(
    ("retriever", "unneeded"), [("bm25", set(HEAVY)), ("none", set(HEAVY)), ("dense", {"openai", "gliner"})]
)
def test_a_search_loads_what_its_retriever_needs_whatever_else_is_set(
    small_index_dir: Path, monkeypatch: pytest.MonkeyPatch, retriever: str, unneeded: set[str]
) -> None:
    for name, value in EVERYTHING_SET.items():
        monkeypatch.setenv(name, value)
    loaded = modules_after_commands(["search", "otters", "--store", str(small_index_dir), "--retriever", retriever])
    assert "polyad.retrieval.baselines" in loaded
    assert not loaded & unneeded


def test_a_search_imports_neither_torch_nor_what_reads_and_measures(small_index_dir: Path) -> None:
    loaded = modules_after_commands(["search", "Who cast the Bell of Tarn?", "--store", str(small_index_dir)])
    assert "polyad.retrieval.default.retriever" in loaded
    assert not loaded & set(HEAVY)
    unneeded = ("polyad_bench", "polyad.readers", "polyad.answering", "polyad.indexing.indexer")
    assert not [name for name in loaded if name.startswith(unneeded)]


def test_a_search_that_embeds_nothing_still_says_that_the_index_has_another_embedder(
    small_index_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYAD_EMBEDDER", "openai:m")
    ran = subprocess.run(
        [sys.executable, "-m", "polyad", "search", "otters", "--store", str(small_index_dir), "--retriever", "bm25"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "was built with the embedder 'all-MiniLM-L6-v2', not 'openai:m'" in ran.stderr


def test_every_public_name_can_be_imported_without_the_extra_for_language_models() -> None:
    hidden = "import sys; sys.modules['openai'] = None; from polyad import *; import polyad; help(polyad)"
    result = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
