"""The pages of hits whose text continues on the next page."""

from __future__ import annotations

import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.config import SplitSettings
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.schemas.evidence import evidence_json
from polyad.schemas.places import describe_hit

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
QUESTIONS = {
    "Where do the keys hang?": "Keys",
    "What is lent to a visitor?": "lamp",
    "When is the valve closed by hand?": "valve",
    "Who has to bleed the pump?": "pump",
    "What do otters close when they dive?": "Otters",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: SentenceTransformerEmbedder) -> Engine:
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
def test_a_hit_states_the_page_on_which_its_excerpt_begins_and_that_on_which_it_ends(
    engine: Engine, question: str, max_words: int | None
) -> None:
    (hit,) = engine.search(question, max_words=max_words).passages
    assert hit.excerpt
    text = " ".join(engine.catalogue.document(hit.passage.document_id).text.split("\n"))
    pages = [page for page, lines in enumerate(PAGES, 1) for _ in lines]
    lines = [line for lines in PAGES for line in lines]
    first, last = (
        max(place for place, line in enumerate(lines) if text.index(line) <= offset)
        for offset in (hit.excerpt.start, hit.excerpt.end - 1)
    )
    assert (hit.location.page, hit.excerpt.end_page) == (pages[first], pages[last])


def test_an_excerpt_from_later_pages_is_cited_with_these(engine: Engine) -> None:
    evidence = engine.search("When is the valve closed by hand?")
    (hit,) = evidence.passages
    assert describe_hit(hit) == "station, pp. 2-3"
    assert describe_hit(hit, full=True) == "station, p. 1"
    (shape,) = evidence_json(evidence, explain=False)["hits"]
    assert (shape["page"], shape["end_page"]) == (2, 3)
