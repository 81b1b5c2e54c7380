"""What the documentation links to, imports and sets is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

from polyad.cli.settings import _types
from polyad.engine.registry import get_sections

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name != "CHANGELOG.md"  # what was true when it was written stays written
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(page))
    missing = [
        target
        for target in targets
        if not re.match(r"[a-z]+:", target) and not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_every_module_and_attribute_that_is_named_can_be_imported(page: str) -> None:
    names = re.findall(r"\bpolyad(?:\.\w+)+", text_of(page))
    files = re.compile(r"polyad\.(toml|egg|db)$")
    groups = {"retrievers", "methods", "readers", "embedders", "mentions", "rerankers", "stores"}
    missing = []
    for name in {name for name in names if not files.match(name) and name.removeprefix("polyad.") not in groups}:
        try:
            resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_in_a_table_of_sections_or_in_an_example_exists(page: str) -> None:
    names = _types()
    missing = []
    for block in re.findall(r"```toml\n(.*?)```", text_of(page), re.DOTALL):
        for section, value in tomllib.loads(block).items():
            if section == "project":  # of a package of the reader's
                continue
            keys = [(section, key) for key in value] if isinstance(value, dict) else [("", section)]
            missing += [key for key in keys if key[1] not in names.get(key[0], ())]
    for section, keys in re.findall(r"^\| `(\w+)` \| (`.*) \|$", text_of(page), re.MULTILINE):
        if section in get_sections():
            named_keys = re.findall(r"`([a-z_]+)(?: = [^`]*)?`", re.sub(r"\(.*?\)", "", keys))
            missing += [(section, key) for key in named_keys if key not in names[section]]
    assert not missing
