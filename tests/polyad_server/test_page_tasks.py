"""Tasks of a newcomer on the web page, step by step, without a model and with one that writes Markdown.

They run on the sample, or on the index in ``POLYAD_TASKS_INDEX`` with the questions of the TOML file in
``POLYAD_TASKS_FILE``, which has the fields of :class:`Tasks`. Screenshots are saved in ``POLYAD_TASKS_SCREENSHOTS``.
"""

from __future__ import annotations

import os
import re
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from polyad import Document, Engine, sample
from polyad.config import LanguageModelSettings
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.faults import ServerErrorFault
from tests.polyad_server.serving import RunningServer, run_app
from tests.polyad_server.test_page import open_page, visit
from tests.scripted_server import ChatOutcome, ScriptedServer

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Tasks:
    """Questions about an index, and what their answers contain.

    Attributes:
        question: A question that a document answers.
        answer: Words of the sentence that answers it.
        source: File of this sentence.
        excerpt: Words that the source shows on request.
        reply: Source of the scripted reply, from 1, whose sentence has the words ``answer``.
        follow_up: A question that needs a name of the first answer.
        name: This name.
        follow_up_source: File that answers the follow-up question.
        next_question: Another question.
        unanswerable: A question that no document answers.
        right_to_left: A question in Arabic or Hebrew that a document answers; empty if there is no such document.
    """

    question: str = "Where did the designer of the Ottermere Gauge serve an apprenticeship?"
    answer: str = "apprenticed at fifteen to a clockmaker"
    source: str = "ilse-varga.md"
    excerpt: str = "assistant surveyor"
    reply: int = 2
    follow_up: str = "What did she keep on the roof?"
    name: str = "Ilse Varga"
    follow_up_source: str = "ilse-varga.md"
    next_question: str = "Whose gift founded the owner of Saltby Weir?"
    unanswerable: str = "What is the boiling point of tungsten hexafluoride?"
    right_to_left: str = "من صمم مقياس أوترمير؟"


def read_tasks() -> Tasks:
    file = os.environ.get("POLYAD_TASKS_FILE")
    return Tasks(**tomllib.loads(Path(file).read_text(encoding="utf-8"))) if file else Tasks()


TASKS = read_tasks()
REPLY = f"""### Apprenticeship

She was **apprenticed to a clockmaker** in Port Lisle [{TASKS.reply}]; she designed the gauge [1].

| Who | Where |
|---|---|
| Ilse Varga | Port Lisle |

[Drawings](https://example.org/drawings) ![plan](https://example.org/plan.png)
"""
ARABIC = Document("gauge-ar.md", "مقياس أوترمير", "صممت إيلسه فارغا مقياس أوترمير عام 1931.")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = os.environ.get("POLYAD_TASKS_INDEX")
    directory = Path(place) if place else tmp_path_factory.mktemp("tasks") / "kb"
    with Engine.open(directory, create=not place) as engine:
        if not place:
            engine.index_documents([*sample.documents(), ARABIC])
    return directory


@pytest.fixture(scope="module")
def server(index: Path) -> Iterator[RunningServer]:
    with run_app(create_app(Workspaces(lambda place, create: Engine.open(place, create=create), [index]))) as running:
        yield running


class Model:
    """The replies of a scripted model: Markdown, after ``hold`` was released, or a failure while ``fails`` is set."""

    def __init__(self) -> None:
        self.hold = threading.Event()
        self.hold.set()
        self.fails = False

    def reply(self, request: Mapping[str, Any]) -> ChatOutcome:
        self.hold.wait(60)
        if self.fails:
            return ServerErrorFault()
        prompt = str(request["messages"][-1]["content"])
        return "When was Ilse Varga born?" if "When was she born?" in prompt and "user:" in prompt else REPLY


def save_screenshot(page: Page, name: str) -> None:
    if folder := os.environ.get("POLYAD_TASKS_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def find_serious_problems(page: Page) -> list[tuple[str, str]]:
    return [
        (each["id"], node["html"][:200])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_tasks_without_a_model(browser: Browser, server: RunningServer) -> None:
    with open_page(browser, server) as page:
        # 1 An empty page suggests questions, 2 and the first click answers one.
        visit(page, server, "", "Ask your documents")
        page.get_by_role("list", name="Questions to begin with").get_by_role("link").first.click()
        expect(page.locator(".found").first).to_be_visible()
        save_screenshot(page, "02-suggested")
        # 3 A new chat, 4 a question: the sentence that answers is on the first screen.
        page.get_by_role("link", name="New chat").click()
        page.get_by_label("Ask a question").fill(TASKS.question)
        page.keyboard.press("Enter")
        answer = page.locator(".found").filter(has_text=TASKS.answer)
        expect(answer).to_be_in_viewport()
        save_screenshot(page, "04-answer")
        # 5 Its source leads to the passage, at the sentence, 6 and the way back to the same answer.
        answer.get_by_role("link").click()
        expect(page.locator("#span")).to_contain_text(TASKS.answer)
        page.go_back()
        expect(answer).to_be_visible()
        # 7 Three sources have at most 220 words, with title and file, 8 and open on request.
        texts = page.locator(".found, .card").all_inner_texts()
        assert sum(len(text.split()) for text in texts[:5]) <= 220
        card = page.locator(".card").filter(has_text=TASKS.source).first
        card.get_by_role("button", name="More").click()
        expect(card.locator(".excerpt")).to_contain_text(TASKS.excerpt)
        # 9 The reason is in plain words, 10 its numbers one click further.
        card.get_by_text("Why").click()
        assert not re.search(r"hyperedge|\+\d", card.locator(".reason").inner_text())
        card.get_by_text("Details").click()
        expect(card.locator(".reason")).to_contain_text(re.compile(r"\+\d"))
        # 11 A follow-up question is searched with the names of the answer, 12 and the address has the conversation.
        page.get_by_label("Ask a follow-up question").fill(TASKS.follow_up)
        page.keyboard.press("Enter")
        turn = page.locator(".turn").nth(1)
        expect(turn.locator(".notice")).to_contain_text(TASKS.name)
        expect(turn.locator(".card").first).to_contain_text(TASKS.follow_up_source)
        assert page.url.count("q=") == 2
        save_screenshot(page, "12-follow-up")
        # 13 A question without an answer says so, 14 and the closest passages are one click away.
        visit(page, server, f"#/ask?q={quote(TASKS.unanswerable)}", "do not seem")
        expect(page.locator(".notice")).to_contain_text("Searched all documents: nothing fits.")
        page.get_by_text("Show the closest passages").click()
        expect(page.locator(".card").first).to_be_visible()
        # 15 Two retrievers are compared, after the view has said what it does.
        page.get_by_role("link", name="Compare").click()
        expect(page.locator("main")).to_contain_text("side by side")
        page.get_by_label("Ask a question").fill(TASKS.question)
        page.keyboard.press("Enter")
        expect(page.locator(".column .card").first).to_be_visible()
        save_screenshot(page, "15-compare")


def test_tasks_with_a_model(browser: Browser, index: Path) -> None:
    model = Model()
    with ScriptedServer(model.reply) as endpoint:
        settings = LanguageModelSettings(model="m", base_url=endpoint.base_url, api_key="none", max_retries=0)
        opened = Workspaces(lambda place, create: Engine.open(place, create=create, language_model=settings), [index])
        with run_app(create_app(opened)) as server, open_page(browser, server) as page:
            model.hold.clear()
            # 16 Sources come before the answer, 17 which can be stopped.
            page.goto(f"{server.url}/#/ask?q={quote(TASKS.question)}")
            expect(page.locator(".card").first).to_be_visible()
            page.get_by_role("button", name="Stop").click()
            expect(page.locator(".notice")).to_contain_text("Stopped")
            model.hold.set()
            # 18 The next try writes Markdown: a heading, bold words, a table, a link with its host, and no image.
            page.get_by_role("button", name="Try again").click()
            answer = page.locator(".answer")
            expect(answer.get_by_role("heading", name="Apprenticeship")).to_be_visible()
            expect(answer.locator("td")).to_have_text(["Ilse Varga", "Port Lisle"])
            expect(answer).to_contain_text("Drawings (example.org)")
            assert answer.locator("img").count() == 0
            save_screenshot(page, "18-markdown")
            # 19 A citation previews its sentence, 20 and opens it.
            answer.get_by_role("link", name=f"Source {TASKS.reply}").first.hover()
            expect(page.get_by_role("tooltip")).to_contain_text(TASKS.answer)
            answer.get_by_role("link", name=f"Source {TASKS.reply}").first.click()
            expect(page.locator("#span")).to_contain_text(TASKS.answer)
            page.go_back()
            # 21 A follow-up question is rewritten by the model.
            page.get_by_label("Ask a follow-up question").fill("When was she born?")
            page.keyboard.press("Enter")
            expect(page.locator(".notice").last).to_contain_text("Searched for: When was Ilse Varga born?")
            expect(page.get_by_role("button", name="Copy").last).to_be_visible()
            # 22 If the model fails, the evidence remains, with the reason.
            model.fails = True
            visit(page, server, f"#/ask?q={quote(TASKS.next_question)}", "Sources")
            expect(page.get_by_role("alert").first).to_contain_text("500")
            expect(page.locator(".found").first).to_be_visible()


def test_tasks_on_a_small_dark_screen_and_from_right_to_left(browser: Browser, server: RunningServer) -> None:
    with open_page(browser, server, "dark", 360) as page:
        # 23 A small dark screen shows the whole question and all of the page without scrolling sideways.
        visit(page, server, f"#/ask?q={quote(TASKS.question)}", "Sources")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.get_by_label("Ask a question").evaluate("field => field.scrollHeight <= field.clientHeight + 1")
        assert page.locator(".found blockquote").first.evaluate("text => text.scrollHeight <= text.clientHeight + 1")
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        # 24 It has no serious problem of accessibility, also with open details.
        page.locator(".reason summary").first.click()
        assert find_serious_problems(page) == []
        save_screenshot(page, "24-dark")
        # 25 Arabic runs from right to left: question, answer and source.
        visit(page, server, f"#/ask?q={quote(TASKS.right_to_left or TASKS.question)}&all=1", "Sources")
        for selector in (".question textarea", ".found blockquote", ".card h3", ".card .excerpt"):
            style = page.locator(selector).first.evaluate("element => getComputedStyle(element).direction")
            assert style == ("rtl" if TASKS.right_to_left else "ltr"), selector
