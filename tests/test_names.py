"""Names say what a value is: no bare participle or adjective names anything in package, tests or benchmarks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks")
FORBIDDEN = frozenset(
    "found known own given asked wanted kept shown said told paid gone spared taken chosen".split()  # noqa: SIM905
)
MENTION = re.compile(rf"\b_*({'|'.join(FORBIDDEN)})_*\b", re.IGNORECASE)


def parse_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a module binds: variables, parameters, attributes, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno
            case _:
                pass


def forbidden(name: str) -> bool:
    return name.strip("_").lower() in FORBIDDEN


def list_forbidden_names(path: Path) -> list[str]:
    """Return each forbidden name of a file with its line."""
    source = path.read_text(encoding="utf-8")
    bound = [(path.stem, 1)]
    if MENTION.search(source):  # parsing every file takes seconds
        bound += parse_names(ast.parse(source))
    return [f"{path.relative_to(ROOT)}:{line}: {name}" for name, line in bound if forbidden(name)]


def test_no_name_is_a_bare_participle() -> None:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    assert len(paths) > 500
    violations = [violation for path in paths for violation in list_forbidden_names(path)]
    assert not violations, "\n".join(violations)


def test_a_participle_is_noticed_wherever_it_is_bound() -> None:
    source = (
        "def told(given, *, own=1):\n    found = given\n    self.kept = [known for known in found]\nclass Shown: ...\n"
    )
    bound = {name for name, _ in parse_names(ast.parse(source)) if forbidden(name)}
    assert bound == {"told", "given", "own", "found", "kept", "known", "Shown"}
