"""The site resolves what pages and docstrings refer to: names of polyad, and languages of code blocks."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pygments.lexers import find_lexer_class_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ROLE = re.compile(r"(?::|\{py:)(?:mod|class|meth|func|attr|data|exc|obj)(?::|\})`~?(polyad[\w.]*)`")
FENCE = re.compile(r"^\s*```([\w+-]+)$", re.MULTILINE)


def find_module(name: str) -> Path | None:
    """Return the file of the module, or of the module that defines a name; None if there is neither."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath("src", *parts[:count])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.exists():
                return file
    return None


def get_module_name(path: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


@cache
def describe_module(path: Path) -> set[str]:
    """Return the names that the page of a module describes, with its own name."""
    name = get_module_name(path)
    return {name, *list_documented_names(ast.parse(path.read_text(encoding="utf-8")).body, name)}


def list_documented_names(body: list[ast.stmt], parent: str) -> Iterator[str]:
    """Yield the public names in a module or class that have a docstring, which are those that autodoc describes."""
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.If):
            yield from list_documented_names(statement.body + statement.orelse, parent)
        elif isinstance(statement, DEFINITIONS):
            if not statement.name.startswith("_") and ast.get_docstring(statement):
                yield f"{parent}.{statement.name}"
                if isinstance(statement, ast.ClassDef):
                    yield from list_documented_names(statement.body, f"{parent}.{statement.name}")
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and is_docstring(following):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (f"{parent}.{target.id}" for target in targets if isinstance(target, ast.Name))


def is_docstring(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_described(name: str) -> bool:
    path = find_module(name)
    return path is not None and name in describe_module(path)


def test_each_reference_names_what_the_site_describes() -> None:
    assert is_described("polyad.engine.engine.Engine.search")
    assert is_described("polyad.model.SUBJECT")
    assert is_described("polyad.text")
    assert not is_described("polyad.Engine.search")  # the site describes a name where it is defined
    assert not is_described("polyad.no_such_module")
    missing = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in (*(ROOT / "src").rglob("*.py"), *PAGES)
        for name in ROLE.findall(path.read_text(encoding="utf-8"))
        if not is_described(name)
    ]
    assert missing == []


def test_each_code_block_has_a_language_that_can_be_highlighted() -> None:
    unknown = []
    for page in PAGES:
        for language in FENCE.findall(page.read_text(encoding="utf-8")):
            try:
                find_lexer_class_by_name(language)
            except ClassNotFound:
                unknown.append((page.relative_to(ROOT).as_posix(), language))
    assert unknown == []


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("Sphinx, of the extra docs, is not installed; the references above are tested without it")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "nb_execution_mode=off"]
    built = subprocess.run([*command, "docs", str(tmp_path / "html")], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
