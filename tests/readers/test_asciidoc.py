import time
from collections.abc import Mapping

import pytest

from polyad.readers.format import Content, Source
from polyad_readers.markup.asciidoc import read_asciidoc, read_text_file

PUMPS = """= Pumps {release}
Ada Bell <ada@example.org>
v2.1, 2023-04-05
:release: 7
:toc:

include::header.adoc[]
// not displayed
Old pumps{nbsp}leak, see link:seals.html[Seals], <<gap,the gap>> and linkgit:git-log[1].

[[seals]]
== Seals

[NOTE]
====
Worn seals whistle at 3.5 bar.
====

.Rings
--limit=<n>::
\tStop after `n` rings. +
+
[source,console]
----
$ pump --limit=3
== no heading
----

////
hidden
////
"""


def sections(content: Content) -> Mapping[str, str]:
    return {section.name: content.text[section.start : section.end].strip() for section in content.sections}


def test_the_text_has_what_asciidoc_displays_and_the_headings_of_markdown() -> None:
    content = read_asciidoc(Source.from_bytes(PUMPS.encode()))
    assert content.title == "Pumps 7"
    assert list(sections(content)) == ["Pumps 7", "Seals"]
    assert " ".join(content.text.split()) == (
        "# Pumps 7 Old pumps leak, see Seals, the gap and git-log(1). ## Seals Note: Worn seals whistle at 3.5 bar. "
        "Rings --limit=<n> Stop after `n` rings. ``` $ pump --limit=3 == no heading ```"
    )


def test_a_text_file_with_markup_of_asciidoc_is_read_as_asciidoc() -> None:
    name = "pump-seal(1)\n============\n\nNAME\n----\npump-seal - Seal\n\n"
    content = read_text_file(Source.from_bytes(f"{name}OPTIONS\n-------\n-q::\n--quiet::\n\tSay nothing.\n".encode()))
    assert content.title == "pump-seal(1)"
    assert sections(content)["OPTIONS"] == "## OPTIONS\n-q\n--quiet\n\tSay nothing."


def test_underlined_headings_of_a_plain_text_are_sections() -> None:
    text = "Pumps\n*****\n\nOld.\n\nSeals\n=====\n\nWorn.\n\nRing gap\n--------\n3 mm.\n"
    content = read_text_file(Source.from_bytes(text.encode()))
    assert (content.title, content.text) == ("Pumps", text)
    assert sections(content)["Seals"] == "Seals\n=====\n\nWorn.\n\nRing gap\n--------\n3 mm."


@pytest.mark.parametrize(
    "text",
    [
        "One.\n\n----\n\nTwo.",
        "A line of text\nand another\n-----------\n\nMore\n====\n",
        "Pump   Flow\n=====  ====\nA      3\n",
        "Only one\n--------\nline.",
        "From: Ada\nSubject:: Pumps\n\nHello.",
        "Seals\n=====\n\nWorn seals whistle [see below]::\n\n    pump --limit=3\n",
    ],
)
def test_rules_and_tables_of_a_plain_text_are_no_headings(text: str) -> None:
    content = read_text_file(Source.from_bytes(text.encode()))
    assert (content.sections, content.text) == ((), text)


def test_a_first_chapter_that_follows_other_text_is_no_title() -> None:
    content = read_text_file(Source.from_bytes(b"Preface without a heading.\n\nUse\n===\nA.\n\nParts\n-----\nB.\n"))
    assert content.title == ""
    assert list(sections(content)) == ["Use", "Parts"]


def test_values_of_attributes_within_values_cannot_fill_the_memory() -> None:
    values = "".join(f":v{level}: {f'{{v{level - 1}}}' * 10}\n" for level in range(1, 8))
    content = read_text_file(
        Source.from_bytes(f"= Pumps\n:v0: 0123456789\n{values}\n[NOTE]\nSee {{v1}}, {{v7}}{{v7}}.\n".encode())
    )
    assert "0123456789" * 10 in content.text
    assert len(content.text) < 5000


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(f"ifdef::{'[' * 10_000}{']' * 10_000}x\nabcdef\n======", id="before a heading"),
        pytest.param("\n".join([f"ifdef::{'[' * 950}{']' * 950}x"] * 40), id="condition"),
        pytest.param("\n".join([f"a{':' * 1900}x"] * 40), id="term"),
        pytest.param("\n".join([f"= x{' ' * 1900}y"] * 40), id="heading"),
    ],
)
def test_the_time_of_long_lines_does_not_grow_by_their_square(lines: str) -> None:
    start = time.process_time()
    read_asciidoc(Source.from_bytes(f"= Title\n\n{lines}\n".encode()))
    assert time.process_time() - start < 0.5  # seconds; with the square of the length, 0.7 to 4
