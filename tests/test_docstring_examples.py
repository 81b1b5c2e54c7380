"""The examples in the docstrings give what they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

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


def parse_examples(name: str) -> list[doctest.Example]:
    """Return the examples in the docstrings of a module, which is not imported."""
    nodes = ast.walk(ast.parse(source_of(name)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    return [example for docstring in docstrings for example in doctest.DocTestParser().get_examples(docstring)]


def test_the_examples_of_each_module_give_what_they_show() -> None:
    failures = []
    for name in modules_with_examples():
        examples = parse_examples(name)
        assert examples, f"the prompts in {name} stand where no docstring is, and are never run"
        run = [example for example in examples if not example.options.get(doctest.SKIP)]
        if run:  # the frameworks of polyad.integrations take seconds to import
            results = doctest.testmod(importlib.import_module(name))  # prints each failure
            if results.failed or results.attempted < len(run):
                failures.append(name)
    assert not failures


def test_modules_in_folders_are_found() -> None:
    assert {"polyad", "polyad.hypergraph.incidence", "polyad.answering.citations"} <= set(modules_with_examples())
