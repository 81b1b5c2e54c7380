from collections.abc import Mapping

import pytest

from polyad.readers.format import Content, Source
from polyad_readers.markup.markdown import read_markdown


def read(text: str) -> Content:
    return read_markdown(Source.from_bytes(text.encode()))


def sections(content: Content) -> Mapping[str, str]:
    return {section.name: content.text[section.start : section.end].strip() for section in content.sections}


# Front matter


def test_front_matter_is_metadata_and_no_part_of_the_text() -> None:
    page = read(
        "---\nTitle: 'Pump: a guide'\nurl: https://pumps.example\ntags: [old, pump]\ndate: 1702-05-01\n"
        "author:\n  name: Ines Moreau\ndraft: false\n---\n\n# Pumps\n\nOld.\n"
    )
    assert (page.title, page.url, page.text.strip()) == ("Pump: a guide", "https://pumps.example", "# Pumps\n\nOld.")
    assert page.metadata == {
        "tags": ("old", "pump"),
        "date": "1702-05-01",
        "author": '{"name": "Ines Moreau"}',
        "draft": False,
    }
    assert sections(page) == {"Pumps": "# Pumps\n\nOld."}


def test_front_matter_in_toml_is_read_too() -> None:
    page = read('+++\ntitle = "Pump"\nweight = 3\ndate = 1702-05-01T10:00:00Z\n+++\nOld.')
    assert (page.title, page.text) == ("Pump", "Old.")
    assert page.metadata == {"weight": 3, "date": "1702-05-01T10:00:00+00:00"}


def test_of_front_matter_that_is_not_quite_yaml_the_lines_are_kept() -> None:
    page = read("---\ntitle: Pump: a guide\ntags: {{ tags }}\n---\nOld.")
    assert (page.title, page.text, page.metadata) == ("Pump: a guide", "Old.", {"tags": "{{ tags }}"})


@pytest.mark.parametrize("text", ["---\nA line\n---\nOld.", "---\n\n---\nOld.", "---\nOld.", "+++\n???\n+++\nOld."])
def test_lines_that_describe_nothing_are_text(text: str) -> None:
    assert read(text).text == text


def test_front_matter_that_would_unfold_to_gigabytes_is_kept_as_lines() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{this}: &{this} [{','.join([f'*{before}'] * 9)}]\n"
        for before, this in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert len(str(dict(read(f"---\n{bomb}---\nOld.").metadata))) < 2000


# What a reader never sees


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("One. <!-- a\n# no heading\n--> Two.\n<!-- b -->\n<!-- c -->Three.", "One. \n Two.\nThree."),
        ("One <!-- never closed\n\nTwo.", "One <!-- never closed\n\nTwo."),
        ("[![Build](a.svg)](b) ![version](https://img.shields.io/x)\n\nPumps.", "\nPumps."),
        ("![The pump](pump.png)", "![The pump](pump.png)"),
        ('# Pumps {#pumps}\n\nOld. <a name="x"></a>', "# Pumps\n\nOld. "),
        ("## Seals [¶](#seals) [#](#seals)", "## Seals"),
        ('<p align="center">\n<br>\n</p>\nOld <b>pump</b>.', "Old <b>pump</b>."),
        ("```html\n<p>\n<!-- kept -->\n```\n\n    <p>", "```html\n<p>\n<!-- kept -->\n```\n\n    <p>"),
        ("> [!NOTE]\n> Mind the seal.", "> Note:\n> Mind the seal."),
        (":::warning Hot\nMind.\n:::\nEnd.", "Warning: Hot\nMind.\nEnd."),
        ('!!! tip "Cold"\n    Mind.', "Tip: Cold\n    Mind."),
        ("[TOC]\n\nPumps.", "\nPumps."),
        (
            "# Pumps\n\n## Contents\n\n- [Seals](#s)\n  - [Rings](#r)\n\n1. [Gates](#g)\n\n## Seals\n\nWorn.",
            "# Pumps\n\n## Seals\n\nWorn.",
        ),
        ("## Contents\n\n- [Seals](#seals)\n- Gates", "## Contents\n\n- [Seals](#seals)\n- Gates"),
        ("## Overview\n\n## Seals", "## Overview\n\n## Seals"),
    ],
)
def test_invisible_markup_is_left_out(text: str, remaining: str) -> None:
    assert read(text).text == remaining


def test_headings_in_html_name_the_file_and_its_sections() -> None:
    page = read('<h1 align="center">The <b>pump</b></h1>\n\nOld.\n\n## Seals\n\nWorn.')
    assert page.title == "The pump"
    assert sections(page).keys() == {"The pump", "Seals"}


def test_a_later_heading_of_the_highest_rank_names_a_file_that_begins_with_any_files_heading() -> None:
    assert read("# Contents\n\n## Seals\n\n# Pumps").title == "Pumps"


@pytest.mark.parametrize("part", ["<!--", "[![", "<a name=", "<h1>", "> [!", "-->", "![](", "{#a", "- [", "<p "])
def test_marks_without_end_cost_no_time(part: str) -> None:
    assert read(f"{part * 100_000}\n" + f"{part * 300}\n" * 300 + "Pump").text.endswith("Pump")


def test_each_row_of_a_table_names_its_columns() -> None:
    table = "| Part | **Price** | Stock |\n|---|:-:|--|\n| Seal \\| ring | 3 | |\n| Cap || 4 |\nEnd."
    assert read_markdown(Source.from_bytes(f"Parts:\n\n{table}".encode())).text == (
        "Parts:\n\nPart: Seal | ring\tPrice: 3\nPart: Cap\tStock: 4\nEnd."
    )


def test_a_table_may_be_quoted_or_have_no_names_or_names_that_are_numbers() -> None:
    assert read_markdown(Source.from_bytes(b"> a | b\n> --|--\n> 1 | 2")).text == "> a: 1\tb: 2"
    assert (
        read_markdown(Source.from_bytes(b"| | |\n|-|-|\n| Port | Saltby |\n| Budget | 3 |")).text
        == "Port\tSaltby\nBudget\t3"
    )
    assert (
        read_markdown(Source.from_bytes(b"| Week | 1 | 2 |\n|-|-|-|\n| Aldby | 3 | 4 |")).text
        == "Week: Aldby\t1: 3\t2: 4"
    )


@pytest.mark.parametrize(
    "text",
    ["```\n| a | b |\n|---|---|\n| 1 | 2 |\n```", "a | b\nc | d", "| a | b |\n|---|\n| 1 | 2 |", "a\n---\nb | c"],
)
def test_lines_with_pipes_that_are_no_table_stay(text: str) -> None:
    assert read_markdown(Source.from_bytes(text.encode())).text == text
