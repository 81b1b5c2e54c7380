"""The pages of hits whose text continues on the next page."""

from __future__ import annotations

from pathlib import Path

import pytest
from pptx import Presentation
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.config import SplitSettings
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.model import Citation, Span
from polyad.protocols.components import Embedder
from polyad.schemas.evidence import evidence_json
from polyad.schemas.places import describe_citation, describe_hit
from polyad.text.json_types import format_value

PAGES = (
    [
        "Whoever works at the station writes down what was done and signs the page in the book.",
        "Keys hang on the board beside the door, in the order of the rooms that they open.",
        "Coats and boots are left in the room behind the stairs, so that no mud gets into the hall.",
        "Meals are eaten at noon, and whoever cooks may choose what is served on that day.",
    ],
    [
        "Visitors are led around the building on the first Sunday of each month, in groups of ten.",
        "A lamp is lent to each visitor, because the tunnels below the hall have no light of their own.",
        "Children hold the hand of a grown person on the bridge above the basin.",
        "Letters are fetched from the post office on Tuesdays and carried up in the evening.",
    ],
    [
        "The valve is closed by hand when the pressure of the water falls below the limit.",
        "It stays closed until the pump has been bled by two persons.",
        "Otters live behind the station and close their ears when they dive.",
        "Walnut trees grow along the river, and their nuts are sold in the village.",
    ],
)
SLIDES = {
    "Visitors": "The museum had nine thousand visitors.",
    "Collection": "It grew by four ship models.",
    "Staff": "The successor of the treasurer is Karin Holt.",
}
QUESTIONS = {
    "Where do the keys hang?": "Keys",
    "What is lent to a visitor?": "lamp",
    "When is the valve closed by hand?": "valve",
    "Who has to bleed the pump?": "pump",
    "What do otters close when they dive?": "Otters",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Engine:
    """An index of one document whose only passage has three pages."""
    file = tmp_path_factory.mktemp("files") / "station.pdf"
    canvas = Canvas(str(file))
    for lines in PAGES:
        for number, line in enumerate(lines):
            canvas.drawString(36, 700 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    settings = Settings(split=SplitSettings(passage_tokens=500))
    engine = Engine.open(file.parent / "kb", embedder=embedder, settings=settings)
    assert engine.index([file]).counts.passages == 1
    return engine


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("max_words", [40, 80, None])
def test_a_hit_states_the_page_of_the_sentence_that_fits_the_question(
    engine: Engine, question: str, max_words: int | None
) -> None:
    (hit,) = engine.search(question, max_words=max_words).passages
    assert hit.excerpt
    (page,) = {page for page, lines in enumerate(PAGES, 1) if any(QUESTIONS[question] in line for line in lines)}
    assert (hit.location.page, hit.excerpt.end_page) == (page, page)


def test_a_hit_is_cited_with_the_pages_of_all_sentences_that_fit_the_question(engine: Engine) -> None:
    evidence = engine.search("Where are letters fetched on Tuesdays, and how is the valve closed by hand?")
    (hit,) = evidence.passages
    assert describe_hit(hit) == "station, pp. 2-3"
    assert describe_hit(hit, full=True) == "station, p. 1"
    (shape,) = format_value(evidence_json(evidence, explain=False))["hits"]
    assert (shape["page"], shape["end_page"]) == (2, 3)


def test_an_answer_is_cited_with_the_page_of_the_sentence_that_fits_the_question(engine: Engine) -> None:
    evidence = engine.search("When is the valve closed by hand?")
    (hit,) = evidence.passages
    passage = hit.passage
    citation = Citation(1, passage.id, passage.document_id, Span(0, 3), passage.title, hit.location, hit.origin)
    assert describe_citation(citation, evidence) == "station, p. 3"


def test_a_hit_without_words_of_the_question_is_cited_with_the_pages_of_its_excerpt(engine: Engine) -> None:
    (hit,) = engine.search("xylophone").passages
    assert hit.excerpt
    assert hit.excerpt.cited == Span(hit.excerpt.start, hit.excerpt.end)


def test_a_hit_states_the_slide_of_the_sentence_that_fits_the_question(tmp_path: Path, embedder: Embedder) -> None:
    deck = Presentation()
    for title, line in SLIDES.items():
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, line
    deck.save(str(tmp_path / "deck.pptx"))
    engine = Engine.open(tmp_path / "kb", embedder=embedder)
    assert engine.index([tmp_path / "deck.pptx"]).counts.passages == 1
    (hit,) = engine.search("Who is the successor of the treasurer?").passages
    assert hit.location.slide == 3
