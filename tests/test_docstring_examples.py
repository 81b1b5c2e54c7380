"""The examples in the docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import polyad


def modules_with_examples() -> list[str]:
    """Every module with a ``>>>`` in its source, but for those that run when they are imported."""
    names = ["polyad", *(module.name for module in pkgutil.walk_packages(polyad.__path__, "polyad."))]
    return [name for name in names if not name.endswith(".__main__") and ">>>" in source_of(name)]


def source_of(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_give_what_they_show(name: str) -> None:
    module = importlib.import_module(name)
    examples = [example for test in doctest.DocTestFinder().find(module) for example in test.examples]
    run = [example for example in examples if not example.options.get(doctest.SKIP)]
    results = doctest.testmod(module)
    assert examples, "the prompts stand where no docstring is, and are never run"
    assert results.failed == 0
    assert results.attempted >= len(run)


def test_modules_in_folders_are_found() -> None:
    assert {"polyad", "polyad.hypergraph.incidence", "polyad.answering.citations"} <= set(modules_with_examples())
