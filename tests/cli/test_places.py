"""Where hits and citations stand, in words."""

from __future__ import annotations

import pytest

from polyad.cli.places import build_excerpt, describe_copies, describe_passage, get_file_name
from polyad.model import Location, Origin, Passage, ScoredPassage, Span


def passage(text: str = "text", title: str = "", **place: int | str) -> Passage:
    return Passage("d.pdf#0001", "d.pdf", title, text, 0, len(text), **place)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "title", "words"),
    [
        (
            passage(page=36, heading="9 Reading Excel spreadsheets"),
            "R Data Import/Export",
            'R Data Import/Export, p. 36, "9 Reading Excel spreadsheets"',
        ),
        (passage(title="Handbook / Pumps", heading="Handbook / Pumps"), "Handbook", 'Handbook, "Pumps"'),
        (passage(title="Handbook / Pumps", heading="Handbook / Pumps"), "", "Handbook / Pumps"),
        (passage(slide=3), "Talk", "Talk, slide 3"),
        (passage(sheet="Costs"), "Budget", "Budget, sheet Costs"),
        (passage(), "", "d.pdf"),
    ],
)
def test_a_passage_is_named_by_its_document_and_its_place(found: Passage, title: str, words: str) -> None:
    assert describe_passage(found, Origin(title)) == words


def test_a_document_is_known_by_its_file_or_else_by_its_address() -> None:
    assert get_file_name(Origin(source="docs/R-data.pdf", url="http://r/")) == "R-data.pdf"
    assert get_file_name(Origin(url="http://r/")) == "http://r/"
    assert get_file_name(Origin()) == ""


def test_copies_are_named_by_title_place_and_file() -> None:
    copies = (
        (Origin("Manual", "a/m.pdf"), Location(0, 9, page=2)),
        (Origin("", "a/m.txt"), Location(0, 9)),
        (Origin(), Location(0, 9)),
    )
    hit = ScoredPassage(passage(), 1.0, copies=copies)
    assert list(describe_copies(hit)) == ["Manual, p. 2, m.pdf", "m.txt", "another document"]


def test_a_snippet_is_the_best_match_unless_the_beginning_shows_it() -> None:
    text = "# Manual\n\nIt begins here. " + "Nothing is said. " * 30 + "The pump is bled. " + "It ends. " * 9
    start = text.index("The pump")
    hit = ScoredPassage(passage(text, "Manual"), 1.0, highlight=Span(start, start + 17))
    assert build_excerpt(hit, 40).startswith("... The pump is bled. It ends.")
    near = ScoredPassage(passage(text, "Manual"), 1.0, highlight=Span(10, 25))
    assert build_excerpt(near, 40).startswith("It begins here. Nothing")
    assert build_excerpt(ScoredPassage(passage(text, "Manual"), 1.0), 40).startswith("It begins here. Nothing")


def test_a_snippet_leaves_out_the_headings_that_the_best_match_begins_with() -> None:
    text = "# Manual\n\n## Pumps\n\nThe pump is bled. " + "It ends. " * 9
    hit = ScoredPassage(passage(text, "Manual / Pumps"), 1.0, highlight=Span(0, len(text)))
    assert build_excerpt(hit, 40).startswith("The pump is bled. It ends.")


@pytest.mark.parametrize("text", ["# Manual", "# Manual\n", "\n", ""])
def test_a_snippet_of_nothing_but_headings_is_the_last_of_them(text: str) -> None:
    assert build_excerpt(ScoredPassage(passage(text, "Manual"), 1.0), 40) == text.strip("# \n")


def test_headings_inside_a_hit_are_shown_without_their_marks() -> None:
    text = "Wear gloves.\n\n## Oil\n\nUse grade #40 only."
    assert build_excerpt(ScoredPassage(passage(text), 1.0), 200) == "Wear gloves. Oil Use grade #40 only."
