"""The drawings of the hypergraph in a real browser: labels, search, zoom, hulls, communities and paths."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from polyad import Document
from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.protocols.components import Prompt
from polyad.sample import documents
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app
from tests.polyad_server.test_page import open_page, visit
from tests.polyad_server.test_page_documents import list_serious

expect.set_options(timeout=20_000)

NAMES = ("Holm", "Larsen", "Moen", "Ray", "Varga", "Keller", "Stone")
ASK = "#/ask?q=Who+designed+the+Ottermere+Gauge%3F&all=1"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of the sample corpus."""
    index = build_index(
        tmp_path_factory.mktemp("graph") / "kb", tuple(each for each in documents() if isinstance(each, Document))
    )
    with run_app(create_app(Workspaces(open_index(), [index]))) as running:
        yield running


def find_overlaps(page: Page) -> list[tuple[str, str]]:
    """Return the pairs of labels of the drawing that cover each other, and labels that are wider than their box."""
    boxes = page.locator(".graph-area .node").evaluate_all(
        """nodes => nodes.map(node => {
          const box = (node.querySelector("rect") ?? node.querySelector("path")).getBoundingClientRect();
          const text = node.querySelector("text")?.getBoundingClientRect() ?? box;
          return [node.getAttribute("aria-label"), box.left, box.top, box.right, box.bottom, text.width - box.width];
        })"""
    )
    assert len(boxes) > 5
    wide = [(each[0], "its box") for each in boxes if each[5] > 0]
    return wide + [
        (a[0], b[0]) for a, b in combinations(boxes, 2) if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]


def test_no_label_of_the_evidence_covers_another(browser: Browser, sample: RunningServer) -> None:
    with open_page(browser, sample) as page:
        visit(page, sample, ASK, "Ottermere Gauge")
        expect(page.locator('.entity[aria-label^="Ilse Varga"]')).to_be_visible()
        assert find_overlaps(page) == []
        names = page.locator(".graph-area .entity").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-label'))"
        )
        assert not [name for name in names if name.split(",")[0] in ("Monday", "1931", "Rain", "June")]
        page.locator('.entity[aria-label^="Ilse Varga"]').focus()
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Ilse Varga")
        assert find_overlaps(page) == []


def test_hulls_are_explained_and_a_diamond_opens_its_passage(browser: Browser, sample: RunningServer) -> None:
    with open_page(browser, sample) as page:
        visit(page, sample, ASK, "Ottermere Gauge")
        expect(page.locator(".graph-legend")).to_contain_text("number of its source")
        page.get_by_role("button", name="Hulls").click()
        expect(page.locator(".hull").first).to_be_visible()
        expect(page.locator(".graph-legend")).to_contain_text("one fact")
        page.locator(".hyperedge").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("Show in the document")


def test_a_drawing_is_searched_and_enlarged(browser: Browser, sample: RunningServer) -> None:
    with open_page(browser, sample) as page:
        visit(page, sample, ASK, "Ottermere Gauge")
        node = page.locator('.entity[aria-label^="Ilse Varga"]')
        expect(node).to_be_visible()
        page.get_by_label("Find in the graph").fill("varga")
        expect(page.locator(".graph-area .near")).to_have_count(1)
        expect(page.locator(".graph-details")).to_contain_text("Ilse Varga")
        page.get_by_label("Find in the graph").fill("")
        page.get_by_role("button", name="Fit").click()
        before = node.bounding_box()
        page.get_by_role("button", name="Zoom in").click()
        after = node.bounding_box()
        assert before
        assert after
        assert after["width"] > before["width"] * 1.2


@pytest.mark.parametrize("width", [360, 1280])
def test_the_whole_index_is_shown_by_communities(browser: Browser, sample: RunningServer, width: int) -> None:
    with open_page(browser, sample, "dark", width) as page:
        visit(page, sample, "#/graph", "communities")
        expect(page.locator('.graph-area .entity[aria-label^="River Lode"]')).to_be_visible()
        assert find_overlaps(page) == []
        page.locator(".graph-head .chip").first.click()
        near, nodes = page.locator(".graph-area .node.near").count(), page.locator(".graph-area .node").count()
        assert 1 < near < nodes
        assert list_serious(page, width) == []


def test_the_path_between_two_entities_is_listed(browser: Browser, sample: RunningServer) -> None:
    with open_page(browser, sample) as page:
        visit(page, sample, "#/graph", "Path between")
        page.get_by_label("Path from").fill("Ilse Varga")
        page.get_by_label("Path to").fill("Marrow Valley Trust")
        page.get_by_role("button", name="Show").click()
        steps = page.locator(".path-steps li")
        expect(steps.first).to_contain_text("Ilse Varga")
        expect(steps.last).to_contain_text("Marrow Valley Trust")
        steps.first.locator("a").last.click()
        expect(page.locator("main")).to_contain_text("Show in the document")


@contextmanager
def serve_sample(directory: Path, model: ScriptedLanguageModel) -> Iterator[RunningServer]:
    index = build_index(directory / "kb", tuple(each for each in documents() if isinstance(each, Document)))
    with run_app(create_app(Workspaces(open_index(model), [index]))) as running:
        yield running


@pytest.mark.parametrize(("theme", "width"), [("dark", 360), ("light", 1280)])
def test_the_evidence_is_drawn_beside_the_answer_of_a_model(
    browser: Browser, tmp_path: Path, theme: str, width: int
) -> None:
    is_free = threading.Event()

    def write(_: Prompt) -> str:
        is_free.wait(30)
        return "**Ilse Varga** designed it [1]. The River Lode feeds the reservoir [2]."

    model = ScriptedLanguageModel(write)
    with serve_sample(tmp_path, model) as server, open_page(browser, server, theme, width) as page:
        page.goto(f"{server.url}/{ASK}")
        node = page.locator('.entity[aria-label^="Ilse Varga"]')
        expect(node).to_be_visible()
        expect(page.locator(".answer")).to_contain_text("Writing the answer")
        is_free.set()
        expect(page.locator(".answer strong")).to_have_text("Ilse Varga")
        expect(page.locator(".graph-panel svg")).to_have_count(1)
        expect(node).to_be_visible()
        assert find_overlaps(page) == []
        assert list_serious(page, width) == []
        numbers = set(page.locator(".hyperedge text").all_text_contents())
        assert "1" in numbers
        assert numbers <= {str(number + 1) for number in range(page.locator(".card").count())}, "sources of the answer"
        answer, graph = page.locator(".answer").bounding_box(), page.locator(".graph-panel").bounding_box()
        assert answer
        assert graph
        assert (graph["x"] > answer["x"] + answer["width"]) == (width > 1000), "beside the answer, or below it"
        node.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Ilse Varga")
        assert find_overlaps(page) == []


def test_the_drawing_follows_the_last_question_and_stays_if_the_model_fails(browser: Browser, tmp_path: Path) -> None:
    question, error = "Who owns the Marrow Valley Trust?", LanguageModelError("the endpoint refused")
    model = ScriptedLanguageModel(["Ilse Varga [1].", question, error, "Late [1]."])
    with serve_sample(tmp_path, model) as server, open_page(browser, server) as page:
        visit(page, server, ASK, "Ilse Varga")
        expect(page.locator('.entity[aria-label^="Ottermere Gauge"]')).to_be_visible()
        page.get_by_label("Ask a follow-up question").fill("And who owns the trust?")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the endpoint refused")
        trust = page.locator('.entity[aria-label^="Marrow Valley Trust"]')
        expect(trust).to_be_visible()
        expect(page.locator(".graph-panel svg")).to_have_count(1)
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".turn").nth(1).locator(".answer")).to_contain_text("Late")
        expect(trust).to_be_visible()
        page.locator(".hyperedge").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("Show in the document")
        page.go_back()
        expect(page.locator(".turn").nth(1).locator(".answer")).to_contain_text("Late")
        expect(trust).to_be_visible()
        assert len(model.prompts) == 4, "the way back needs no model"


def test_names_of_the_answer_of_a_model_are_drawn_first(browser: Browser, tmp_path: Path) -> None:
    """Of many names in the sources, those of the answer must not be left out for want of room."""
    crowd = ", ".join(f"{first} {last}" for first in ("Ann", "Bo", "Cai", "Dag", "Eli", "Fay") for last in NAMES)
    guests = Document("guests.md", "Guests of Corven Tower", f"Guests of Corven Tower were {crowd} and Zora Quint.")
    index = build_index(tmp_path / "kb", (guests,))
    model = ScriptedLanguageModel(lambda _: "Zora Quint came last [1].")
    with (
        run_app(create_app(Workspaces(open_index(model), [index]))) as server,
        open_page(browser, server) as page,
    ):
        visit(page, server, "#/ask?q=Who+was+a+guest+of+Corven+Tower%3F&all=1", "came last")
        expect(page.locator('.entity[aria-label^="Corven Tower"]')).to_be_visible()
        expect(page.locator('.entity[aria-label^="Zora Quint"]')).to_be_visible()
