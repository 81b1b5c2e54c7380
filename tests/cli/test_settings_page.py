"""The page of all settings is that of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.cli.settings import get_file_sections, list_keys
from tests.docs.settings_page import MOST_USED, page


def test_the_committed_page_is_that_of_the_code() -> None:
    pytest.importorskip("polyad_baselines")
    committed = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    assert committed == page(), "run: python -m tests.docs.settings_page"


def test_every_setting_is_on_the_page_and_says_what_it_is_for() -> None:
    for name, kind in get_file_sections().items():
        section = page().split(f"## [{name}]" if name else "## Top level")[1].split("\n## ")[0]
        for field in list_keys(kind):
            (row,) = [line for line in section.splitlines() if line.startswith(f"| `{field.name}` |")]
            assert len(row.rsplit("|", 2)[1].strip()) > 5, (name, field.name)
            assert "`" + "_".join(filter(None, ("POLYAD", name, field.name))).upper() + "`" in row.upper(), (
                name,
                field.name,
            )


def test_the_page_begins_with_the_35_settings_used_most_in_the_words_of_their_sections() -> None:
    table, *sections = page().split("## Most used")[1].split("\n## ")
    rows = dict(line.removeprefix("| `").split("`", 1) for line in table.splitlines() if line.startswith("| `"))
    assert list(rows) == MOST_USED
    assert len(rows) == len(set(MOST_USED)) == 35
    for key, row in rows.items():
        section, _, name = key.rpartition(".")
        (text,) = [text for text in sections if text.startswith(f"[{section}]" if section else "Top level")]
        assert f"| `{name}`{row}" in text.splitlines(), key
