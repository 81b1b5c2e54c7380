from collections.abc import Mapping

import pytest

from polyad.readers.format import Content, Source
from polyad_readers.markup.rst import read_rst


def read(text: str) -> Content:
    return read_rst(Source.from_bytes(text.encode()))


def sections(content: Content) -> Mapping[str, str]:
    return {section.name: content.text[section.start : section.end].strip() for section in content.sections}


def test_headings_are_sections_whose_ranks_are_in_the_order_of_their_marks() -> None:
    pumps = "======\n Pumps\n======\n\nOld.\n\nSeals\n=====\nWorn.\n\n``Ring`` gap\n~~~~~~~~~~~~\n3 mm.\n"
    page = read(f"{pumps}\nGates\n=====\nShut.\n")
    assert page.title == "Pumps"
    assert {name: text.split("\n")[-1] for name, text in sections(page).items()} == {
        "Pumps": "Shut.",
        "Seals": "3 mm.",
        "Ring gap": "3 mm.",
        "Gates": "Shut.",
    }
    assert sections(page)["Gates"] == "Gates\n=====\nShut."


@pytest.mark.parametrize(
    "text",
    ["One.\n\n----\n\nTwo.", "Etc.\n...", "Run::\n\n   Pump\n   ====", "=====  =====\nPump   Flow\n=====  ====="],
)
def test_rules_tables_and_code_are_no_headings(text: str) -> None:
    assert read(text).sections == ()


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("One.\n\n.. a comment\n   of two lines\n\nTwo.", "One.\n\n\nTwo."),
        (".. _target: https://x.example\nOne.", "\nOne."),
        (".. toctree::\n   :maxdepth: 2\n\n   seals\n\nOne.", "One."),
        (".. note:: Mind it.\n   More.", "Note: Mind it.\n   More."),
        (".. warning::\n\n   Hot.", "Warning:\n\n   Hot."),
        (".. code-block:: python\n\n   x = 1", "\n\n   x = 1"),
        (".. function:: start(pump)\n\n   Starts it.", "start(pump)\n\n   Starts it."),
        (".. [1] A footnote.", ".. [1] A footnote."),
        (
            "See :func:`~pump.start`, :ref:`the seal <seal>`, :rfc:`822` and `us <https://x.example>`_.",
            "See pump.start, the seal, RFC 822 and us.",
        ),
        ("A ``literal`` `name`_ x", "A ``literal`` name x"),
        (".. |ver| replace:: 4.2\n\nVersion |Ver| or |ver|_ | x |", "\nVersion 4.2 or 4.2 | x |".lstrip("\n")),
        (".. |c| unicode:: 0xA9 .. sign\n.. |long| replace:: The\n   long name\n\n|c| |long|", "\xa9 The long name"),
        (".. code-block:: c\n   :linenos:\n   :caption: Start\n\n   x = 1", "\n   Start\n\n   x = 1"),
        (".. only:: html\n\n   For the web.", "\n\n   For the web."),
        (".. image:: x.png\n   :alt: The seal\n   :width: 3\n\nOne.", "   The seal\nOne."),
        (
            '.. csv-table:: Stock\n   :header: "Part", "Stock"\n\n   "Bolt, long", 3\n   Nut, 4\n',
            "Stock\n\nPart: Bolt, long\tStock: 3\nPart: Nut\tStock: 4\n\n",
        ),
    ],
)
def test_marks_for_programs_are_left_out(text: str, remaining: str) -> None:
    assert read(text).text == remaining


def test_fields_below_the_title_are_metadata() -> None:
    page = read("Pumps\n=====\n\n:Author: Ines Moreau\n:Version: 3\n\nOld.\n\n:not: a field of the file\n")
    assert page.metadata == {"Author": "Ines Moreau", "Version": "3"}
    assert "Moreau" not in page.text
    assert ":not: a field" in page.text


@pytest.mark.parametrize("part", ["`", ":a:`", "`<", "=", ".. ", ":a: b\n", "x\n=\n"])
def test_marks_without_end_cost_no_time(part: str) -> None:
    assert read(f"{part * 50_000}\n\n{part * 300}\n\nPump").text.endswith("Pump")


GRID = """\
+-------+-----------+------+
| Town  | Machines  | Mill |
+=======+===========+======+
| Aldby | Lathe and | 1    |
|       | press     |      |
+       +-----------+------+
|       | none yet         |
+-------+-----------+------+
"""
SIMPLE = """\
=====  ====  ====
Town   Mill  Saws
=====  ====  ====
Aldby        3
North
Saltby\\  1    2 old
=====  ====  ====
"""
LIST = """\
.. list-table:: Machines
   :header-rows: 1
   :widths: 10 20

   * - Town
     - Mill
   * - Aldby
     - 3 and
       4
   * - Saltby
     -
"""


def test_each_row_of_a_table_names_its_columns() -> None:
    assert read(GRID).text.split("\n")[:2] == [
        "Town: Aldby\tMachines: Lathe and press\tMill: 1",
        "Town: Aldby\tMachines: none yet\tMill: none yet",
    ]
    assert read(SIMPLE.replace("\\", "")).text.split("\n")[:2] == ["Town: Aldby\tSaws: 3", "Town: North"]
    assert read(LIST).text.split("\n")[:4] == ["Machines", "", "Town: Aldby\tMill: 3 and 4", "Town: Saltby"]


def test_a_table_in_a_literal_block_stays() -> None:
    text = "Draw::\n\n   +---+---+\n   | a | b |\n   +---+---+"
    assert read(text).text == text
