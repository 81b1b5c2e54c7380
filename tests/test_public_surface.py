"""What ``import polyad`` offers, and what it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import polyad

PUBLIC = {
    *("Engine", "IndexReport", "METHODS", "RETRIEVERS"),
    *("Settings", "LanguageModelSettings", "OpenAILanguageModel", "PolyadError"),
    *("Document", "Passage", "Entity", "Hyperedge", "Incidence"),
    *("Evidence", "Answer", "Citation", "Failure", "Statistics", "Usage"),
    *("Embedder", "LanguageModel", "MentionExtractor", "Retriever"),
    "__version__",
}
HEAVY = ("torch", "transformers", "sentence_transformers", "scipy", "openai", "gliner")


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines())


def test_the_public_names_are_these_and_fewer_than_25() -> None:
    assert set(polyad.__all__) == PUBLIC
    assert len(PUBLIC) < 25
    assert dir(polyad) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__", "METHODS", "RETRIEVERS"}))
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    found = getattr(polyad, name)
    assert found is getattr(importlib.import_module(found.__module__), name)
    assert found.__doc__


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Enigne'"):
        polyad.Enigne  # type: ignore[attr-defined]  # noqa: B018  the misspelling is the point


def test_importing_polyad_loads_nothing_that_takes_time() -> None:
    assert not modules_after("import polyad") & {*HEAVY, "numpy", "polyad.engine"}


@pytest.mark.parametrize("statement", ["import polyad.engine", "import polyad.cli"])
def test_the_engine_and_the_command_line_start_without_a_model_library(statement: str) -> None:
    assert not modules_after(statement) & set(HEAVY)


def test_looking_at_an_index_loads_no_model_library(small_index_dir: Path) -> None:
    for arguments in (["stats"], ["show", "entity", "Aldby"], ["show", "document", "bell"]):
        command = [*arguments, "--store", str(small_index_dir)]
        loaded = modules_after(
            f"import polyad.cli\ntry:\n    polyad.cli.app({command!r})\nexcept SystemExit:\n    pass"
        )
        assert "polyad.adapters.sqlite" in loaded
        assert not loaded & set(HEAVY)
