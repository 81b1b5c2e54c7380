"""The page of all settings is that of the code."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from polyad.cli.settings_page import page
from polyad.engine.registry import get_sections


def test_the_committed_page_is_that_of_the_code() -> None:
    committed = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    assert committed == page(), "run: python -m polyad.cli.settings_page"


def test_every_setting_is_on_the_page_and_says_what_it_is_for() -> None:
    for name, kind in get_sections().items():
        section = page().split(f"## [{name}]")[1].split("\n## ")[0]
        for field in fields(kind):
            (row,) = [line for line in section.splitlines() if line.startswith(f"| `{field.name}` |")]
            assert len(row.rsplit("|", 2)[1].strip()) > 5, (name, field.name)
            assert f"`POLYAD_{name}_{field.name}`".upper() in row.upper(), (name, field.name)
