"""The locked packages are those that pyproject.toml asks for, and actions of CI are named by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
UNLOCKED = {"torch": "its builds for CPU, CUDA and macOS are different files", "polyad": "is installed as it stands"}


def read_lock(name: str) -> list[Requirement]:
    """The locked packages; one that differs between versions of Python has several."""
    rows = re.findall(r"^([a-z0-9].*?) *\\$", (ROOT / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE)
    return [Requirement(row) for row in rows]


def list_requirements(extra: str) -> list[Requirement]:
    """What an extra asks for, with the extras of polyad that it names."""
    project = PROJECT["project"]
    rows = project["optional-dependencies"].get(extra) or PROJECT["dependency-groups"][extra]
    requirements = [Requirement(row) for row in rows]
    nested = {name for requirement in requirements if requirement.name == "polyad" for name in requirement.extras}
    return [*requirements, *(requirement for name in sorted(nested) for requirement in list_requirements(name))]


@pytest.mark.parametrize(("lock", "extra"), [("dev.txt", "dev"), ("docs.txt", "docs"), ("release.txt", "release")])
def test_the_lock_holds_what_the_project_asks_for(lock: str, extra: str) -> None:
    """Run `make lock` after a change of dependencies."""
    base = [Requirement(text) for text in PROJECT["project"]["dependencies"]] if extra != "release" else []
    locked = read_lock(lock)
    for requirement in [*base, *list_requirements(extra)]:
        name = canonicalize_name(requirement.name)
        versions = [str(pin.specifier).removeprefix("==") for pin in locked if canonicalize_name(pin.name) == name]
        assert versions or name in UNLOCKED, f"{requirement} is not in requirements/{lock}"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_each_locked_file_has_a_hash() -> None:
    for lock in ("dev.txt", "docs.txt", "release.txt"):
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        for package in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
            assert "--hash=sha256:" in package, package


def test_the_formatter_of_commits_is_the_locked_one() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (ruff,) = [pin for pin in read_lock("dev.txt") if pin.name == "ruff"]
    assert f"rev: v{str(ruff.specifier).removeprefix('==')}\n" in hooks


def test_actions_of_others_are_named_by_hash() -> None:
    files = [path for path in (ROOT / ".github").rglob("*.yml") if "ISSUE" not in str(path)]
    uses = [use for path in files for use in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))]
    assert len(uses) > 20
    assert [use for use in uses if not re.search(r"^\./|@[0-9a-f]{40}$", use)] == []
