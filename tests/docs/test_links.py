"""What the documentation links to, imports and sets is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

from polyad.cli.settings import LANGUAGE_MODEL, _types
from polyad.engine.registry import get_sections

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name != "CHANGELOG.md"  # what was true when it was written stays written
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_link_to_a_file_leads_to_one() -> None:
    missing = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(page))
        if not re.match(r"[a-z]+:", target) and not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert not missing


def test_every_module_and_attribute_that_is_named_can_be_imported() -> None:
    files = re.compile(r"polyad\.(toml|egg|db)$")
    groups = {"commands", "retrievers", "methods", "readers", "formats", "embedders", "mentions", "rerankers", "stores"}
    missing = []
    pages = {name: page for page in PAGES for name in re.findall(r"\bpolyad(?:\.\w+)+", text_of(page))}
    for name, page in pages.items():
        if files.match(name) or name.removeprefix("polyad.") in groups:
            continue
        try:
            if name.startswith("polyad.integrations."):  # frameworks take seconds to import; the code of pages runs too
                resolve_name(".".join(name.split(".")[:2]))
                assert find_spec(".".join(name.split(".")[:3]))
            else:
                resolve_name(name)
        except (ImportError, AttributeError):
            missing.append((page, name))
    assert not missing


def list_unknown_settings(page: str) -> Iterator[tuple[str, str]]:
    """Yield section and key of each setting in examples and tables of sections that does not exist."""
    names = _types()
    for block in re.findall(r"```toml\n(.*?)```", text_of(page), re.DOTALL):
        for section, value in tomllib.loads(block).items():
            if section == "project":  # of a package of the reader's
                continue
            if section == "models":
                yield from (
                    (section, key) for each in value.values() for key in each if key not in names[LANGUAGE_MODEL]
                )
                continue
            keys = [(section, key) for key in value] if isinstance(value, dict) else [("", section)]
            yield from (key for key in keys if key[1] not in names.get(key[0], ()))
    for section, keys_cell in re.findall(r"^\| `(\w+)` \| (`.*) \|$", text_of(page), re.MULTILINE):
        if section in get_sections():
            named_keys = re.findall(r"`([a-z_]+)(?: = [^`]*)?`", re.sub(r"\(.*?\)", "", keys_cell))
            yield from ((section, key) for key in named_keys if key not in names[section])


def test_every_setting_in_a_table_of_sections_or_in_an_example_exists() -> None:
    assert [(page, *setting) for page in PAGES for setting in list_unknown_settings(page)] == []
