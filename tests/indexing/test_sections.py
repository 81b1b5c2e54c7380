"""What passages of a document with headings are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.indexing.documents import TITLE_FROM, build_title, find_headings, find_sections
from polyad.model import Document, Passage, Section, Span
from polyad.readers.folder.files import FileReader
from polyad.retrieval.hits import merge_passages
from polyad.schemas.places import describe_hit
from polyad.text.sentences import HEADING_SEPARATOR, join_headings

TEXT = "# Pumps\nOld.\n## Seals\nWorn.\n# Valves\nNew."
PUMPS = Section("Pumps", 0, TEXT.index("# Valves"))
SEALS = Section("Seals", TEXT.index("## Seals"), TEXT.index("# Valves"))
VALVES = Section("Valves", TEXT.index("# Valves"), len(TEXT))


def strengths(document: Document, *texts: str) -> list[dict[str, float]]:
    """How sure the names of the sections are that hold some parts of the text."""
    spans = [Span(TEXT.index(text), TEXT.index(text) + len(text)) for text in texts]
    return [{section.name: section.strength for section in results} for results in find_sections(document, spans)]


def titles(title: str, *texts: str, sections: tuple[Section, ...] = (PUMPS, SEALS, VALVES)) -> list[str]:
    """The titles of the passages that are some parts of the text."""
    document = Document("d", title, TEXT, sections=sections)
    spans = [Span(TEXT.index(text), TEXT.index(text) + len(text)) for text in texts]
    return [build_title(result, len(text)) for result, text in zip(find_sections(document, spans), texts, strict=True)]


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
    (sections,) = find_sections(Document("d", "Works", TEXT, sections=(SEALS, VALVES)), [Span(8, 36)])
    assert {section.name: TEXT[8:36][section.start : section.end] for section in sections} == {
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


def test_sections_of_earlier_passages_have_half_the_subject_strength() -> None:
    document = Document("d", "Works", TEXT, sections=(PUMPS, SEALS, VALVES))
    assert strengths(document, "# Pumps\nOld.\n", "## Seals\nWorn.", "# Valves") == [
        {"Works": 1.0, "Pumps": 1.0},
        {"Works": 0.5, "Pumps": 0.5, "Seals": 1.0},
        {"Works": 0.5, "Valves": 1.0},
    ]


@pytest.mark.parametrize(("before", "strength"), [(" \n\n", 1.0), ("x\n", 0.5), (" " * 17, 0.5)])
def test_blank_lines_before_a_passage_do_not_make_it_a_later_one(before: str, strength: float) -> None:
    document = Document("d", "Works", f"{before}Old.")
    ((section,),) = find_sections(document, [Span(len(before), len(document.text))])
    assert section.strength == strength


def test_a_section_keeps_the_strength_that_its_document_gives_it() -> None:
    weak = Section("Pumps", 0, len(TEXT), 0.5)
    assert strengths(Document("d", "", TEXT, sections=(weak,)), "# Pumps", "New.") == [{"Pumps": 0.5}, {"Pumps": 0.25}]


def test_the_name_of_a_file_stands_in_the_title_and_is_no_subject() -> None:
    document = Document("d", "works-1902", TEXT, sections=(VALVES,), metadata={TITLE_FROM: "file name"})
    ((name, valves),) = find_sections(document, [Span(VALVES.start, VALVES.end)])
    assert build_title((name, valves), VALVES.end - VALVES.start) == "works-1902 / Valves"
    assert [name.strength, valves.strength] == [0.0, 1.0]


def test_a_file_without_a_title_of_its_own_is_about_nothing_that_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "Works.txt").write_text("It is old.", encoding="utf-8")
    (document,) = FileReader().read([tmp_path])
    assert isinstance(document, Document)
    ((section,),) = find_sections(document, [Span(0, 10)])
    assert (section.name, section.strength) == ("Works", 0.0)


def passages_of(engine: Engine) -> list[Passage]:
    ids = {edge.passage_id for edge in engine.catalogue.hyperedges()}
    return [engine.catalogue.passage(id) for id in sorted(ids)]


MANUAL = """# Pump manual

## Safety

Wear gloves.

## Oil change

Take two litres.

## Filters

{filters}

## Belts

Look.

## Hoses

Feel.

## Valves

Turn.

## Bolts

Drive.
"""


@pytest.mark.parametrize(
    ("filters", "headings"),
    [
        ("Rinse.", ["Pump manual / Safety; Oil change; Filters; Belts", "Pump manual / Hoses; Valves; Bolts"]),
        (
            " ".join(["Rinse the filter of the pump until the water that comes from it is clear."] * 12),
            ["Pump manual / Safety; Oil change", "Pump manual / Filters", "Pump manual / Belts; Hoses; Valves; Bolts"],
        ),
    ],
)
def test_a_passage_that_sections_share_is_shown_under_all_of_them(
    tmp_path: Path, filters: str, headings: list[str]
) -> None:
    file = tmp_path / "manual.md"
    file.write_text(MANUAL.format(filters=filters), encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        engine.index(file)
        passages = passages_of(engine)
        assert [passage.heading for passage in passages] == headings
        (hit,) = engine.search("How much oil does the pump take?", 1, retriever="bm25").passages
        output = next(heading for heading in headings if "Oil change" in heading)
        assert hit.passage.heading == output
        assert describe_hit(hit) == f'Pump manual, "{output.removeprefix("Pump manual / ")}"'


def test_headings_beside_one_another_share_what_stands_above_them() -> None:
    def heading(text: str, sections: tuple[Section, ...] = (PUMPS, SEALS, VALVES)) -> str:
        span = Span(TEXT.index(text), TEXT.index(text) + len(text))
        (actual,) = find_headings(Document("d", "Works", TEXT, sections=sections), [span])
        return actual

    assert heading("Old.") == "Pumps"
    assert heading("Old.\n## Seals\nWorn.") == "Pumps", "which holds for all of it"
    assert heading("Worn.\n# Valves\nNew.") == "Pumps / Seals; Valves"
    assert heading(TEXT) == "Pumps / Seals; Valves"
    assert heading("Old.\n## Seals\nWorn.\n# Valves", (SEALS, VALVES)) == "Seals; Valves"
    assert heading("Old.\n## Seals\nWorn.", (SEALS,)) == "", "what it begins with stands under none"
    assert heading(TEXT, ()) == ""


def test_headings_of_what_is_one_hit_are_joined() -> None:
    paths = [heading.split(HEADING_SEPARATOR) for heading in ("M / A; B", "M / B; C", "M / D / E; ...", "M")]
    assert join_headings(paths[:2]) == "M / A; B; C"
    assert join_headings(paths) == "M / A; B; C; D / E; ..."
    assert join_headings([paths[0], paths[0]]) == "M / A; B"
    assert join_headings([]) == ""


def test_an_index_made_before_shows_headings_anew_and_embeds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "manual.md"
    file.write_text(MANUAL.format(filters="Rinse."), encoding="utf-8")
    with monkeypatch.context() as before, Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        before.setattr("polyad.indexing.documents.HEADING_FORMAT", 1)
        before.setattr(
            "polyad.indexing.documents.find_headings", lambda _, spans: ["Pump manual / Safety" for _ in spans]
        )
        engine.index(file)
    with Engine.open(tmp_path / "kb") as engine:
        report = engine.index(file)
        assert (report.counts.updated, report.embedded_texts) == (1, 0)
        first, second = passages_of(engine)
        assert (first.heading, second.heading) == (
            "Pump manual / Safety; Oil change; Filters; Belts",
            "Pump manual / Hoses; Valves; Bolts",
        )
        one_hit = merge_passages([first, second], second)
        assert one_hit.heading == "Pump manual / Safety; Oil change; Filters; Belts; ..."
        assert engine.index(file).counts.unchanged == 1
