"""What passages of a document with headings are about."""

from __future__ import annotations

from polyad.indexing.sections import sections_in, title_of
from polyad.model import Document, Section, Span

TEXT = "# Pumps\nOld.\n## Seals\nWorn.\n# Valves\nNew."
PUMPS = Section("Pumps", 0, TEXT.index("# Valves"))
SEALS = Section("Seals", TEXT.index("## Seals"), TEXT.index("# Valves"))
VALVES = Section("Valves", TEXT.index("# Valves"), len(TEXT))


def titles(title: str, *texts: str, sections: tuple[Section, ...] = (PUMPS, SEALS, VALVES)) -> list[str]:
    """The titles of the passages that are some parts of the text."""
    document = Document("d", title, TEXT, sections=sections)
    spans = [Span(TEXT.index(text), TEXT.index(text) + len(text)) for text in texts]
    return [title_of(found, len(text)) for found, text in zip(sections_in(document, spans), texts, strict=True)]


def test_a_passage_is_titled_by_its_document_and_the_headings_that_it_stands_under() -> None:
    assert titles("Works", "# Pumps\nOld.", "## Seals\nWorn.", "Worn.\n# Valves", "New.") == [
        "Works / Pumps",
        "Works / Pumps / Seals",
        "Works",
        "Works / Valves",
    ]


def test_a_title_that_is_a_heading_holds_where_that_does_and_where_no_other_does() -> None:
    assert titles("Pumps", "Old.", "Worn.", "New.") == ["Pumps", "Pumps / Seals", "Valves"]
    assert titles("Seals", "Worn.", sections=(SEALS,)) == titles("Seals", "Old.", sections=(SEALS,)) == ["Seals"]


def test_parts_of_a_passage_are_spans_of_its_own_text() -> None:
    (found,) = sections_in(Document("d", "Works", TEXT, sections=(SEALS, VALVES)), [Span(8, 36)])
    assert {section.name: TEXT[8:36][section.start : section.end] for section in found} == {
        "Works": TEXT[8:36],
        "Seals": "## Seals\nWorn.\n",
        "Valves": "# Valves",
    }


def test_sections_are_taken_in_any_order_and_passages_may_overlap() -> None:
    assert titles("", "Old.\n## Seals", "## Seals\nWorn.", "Worn.", sections=(VALVES, SEALS, PUMPS)) == [
        "Pumps",
        "Pumps / Seals",
        "Pumps / Seals",
    ]


def test_a_section_that_holds_nothing_is_passed_over() -> None:
    assert titles("", "Old.", sections=(Section("Seals", 30, 3), Section("Pumps", 9, 9))) == [""]
