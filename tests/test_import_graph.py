"""No module imports itself by way of others: Python's, also inside functions and by name, and those of the web page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = SOURCE / "polyad_server" / "page"


def name_module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_module(file): file for file in SOURCE.rglob("*.py")}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def list_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module but those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if not is_for_types(child):
            yield child
            yield from list_nodes(child)


def list_imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a module imports, also in functions and by ``import_module``."""
    for node in list_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))


def check(graph: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_no_python_module_imports_itself_by_way_of_others() -> None:
    graph = {
        name: {each for each in list_imports(ast.parse(file.read_text("utf-8"))) if each in MODULES and each != name}
        for name, file in MODULES.items()
    }
    assert "polyad.schemas.displays" in graph["polyad"]
    check(graph)


def test_no_module_of_the_page_imports_itself_by_way_of_others() -> None:
    graph = {
        file.name: set(re.findall(r'^import [^;]*"\./([^"]+)";', file.read_text("utf-8"), re.MULTILINE))
        for file in PAGE.glob("*.js")
    }
    assert "form.js" in graph["ask.js"]
    check(graph)
