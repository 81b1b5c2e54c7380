"""Where hits and citations stand, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyad.model import Excerpt, Location, Origin, Passage, ScoredPassage, Span
from polyad.schemas.places import describe_copies, describe_hit, describe_location, get_file_name, split_lines


def passage(text: str = "text", title: str = "", **place: int | str) -> Passage:
    return Passage("d.pdf#0001", "d.pdf", title, text, 0, len(text), **place)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("actual", "title", "words"),
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
def test_a_passage_is_named_by_its_document_and_its_place(actual: Passage, title: str, words: str) -> None:
    assert describe_hit(ScoredPassage(actual, 1.0, origin=Origin(title))) == words


@pytest.mark.parametrize(
    ("page", "words"),
    [(2, "p. 2"), (3, "p. i (3rd)"), (5, "p. 1 (5th)"), (14, "p. 10 (14th)"), (None, "")],
)
def test_the_printed_label_of_a_page_stands_before_its_number(page: int | None, words: str) -> None:
    origin = Origin("Manual", metadata={"page_labels": ("1: T-1", "2: 2", "3: i", "5: 1")})
    assert describe_location("Manual", Location(0, 9, page), origin) == ", ".join(filter(None, ("Manual", words)))


def test_the_pages_of_an_excerpt_have_labels_both() -> None:
    excerpt = Excerpt("text", 0, 4, Span(0, 4), page=4, end_page=5)
    origin = Origin("Manual", metadata={"page_labels": ("1: T-1", "3: i", "5: 1")})
    hit = ScoredPassage(passage(page=2), 1.0, origin=origin, excerpt=excerpt)
    assert describe_hit(hit) == "Manual, pp. ii-1 (4th-5th)"
    assert describe_hit(hit, full=True) == "Manual, p. T-2 (2nd)"
    assert describe_hit(replace(hit, excerpt=replace(excerpt, page=5))) == "Manual, p. 1 (5th)"
    assert describe_hit(replace(hit, excerpt=replace(excerpt, page=None, end_page=None))) == "Manual"


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


def split(text: str, excerpt: str = "") -> list[str]:
    return list(split_lines(ScoredPassage(passage(text), 1.0), excerpt or text))


def test_wrapped_lines_are_joined_and_rows_and_code_remain_lines() -> None:
    prose = "Wear gloves when the pump is opened, because the oil in it\nis hot.\n\n"
    code = "def drain(pump):\n    pump.open()\n\n"
    table = "part | torque\nlid | 5 Nm\n\n## Oil\n\n- Grade #40\n- no other\n\ncd /media\nmkdir cdrom0"
    assert split(prose + code + table) == [
        "Wear gloves when the pump is opened, because the oil in it is hot.",
        "def drain(pump):",
        "    pump.open()",
        "part | torque",
        "lid | 5 Nm",
        "Oil",
        "- Grade #40",
        "- no other",
        "cd /media",
        "mkdir cdrom0",
    ]
    assert split("> The oil\n> is hot.\n> > Wait.") == ["> The oil", "> is hot.", "> > Wait."]
    assert split("# Manual") == ["Manual"]
    assert split("\n") == []


def test_lines_of_code_are_not_joined_even_if_the_excerpt_has_no_fence() -> None:
    code = "pump key add colleagues --scope write  # prints the key once\npump serve --host 0.0.0.0\n"
    fenced = f"Add a key, and every request needs\none:\n\n```sh\n{code}```\nThen wait."
    assert split(fenced)[-3:-1] == code.splitlines()
    assert split(fenced, f"{code}…") == [*code.splitlines(), "…"]
    assert split(fenced, "every request needs\none:\n\n```sh\n…\nThen wait.")[:2] == ["every request needs one:", "…"]
    inside = f"{code}```\nThe key is printed once only, so write it down before you close\nthe window."
    assert split(inside)[:2] == code.splitlines()
    assert len(split(inside)) == 3
    comment = "Install:\n\n```\n# once\nmake install\n```"
    assert split(comment) == ["Install:", "# once", "make install"]
