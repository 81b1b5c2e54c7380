"""Answers on the web page in a real browser: Markdown, citations, evidence without an answer, conversations."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from playwright.sync_api import Browser, Page, expect

from polyad import Document, Engine
from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.protocols.components import Prompt
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import DOCUMENTS, RunningServer, build_index, open_index, run_app
from tests.polyad_server.test_page import ASK, QUESTION, open_page, visit
from tests.polyad_server.test_page_documents import list_serious

MARKDOWN = """## The founder

**Ines Moreau** cast it [1]. See [the archive](https://example.org/bells) and ![a bell](https://example.org/bell.png).

| Year | Event |
|---|---:|
| 1921 | casting |

- first `bell`

```sh
ring --loud
```

<script>hacked=1</script> <img src=x onerror=hacked=1>

[1](javascript:hacked=1) [x](javascript:hacked=1)
"""


@contextmanager
def serve(directory: Path, model: ScriptedLanguageModel | None = None, *further: Document) -> Iterator[RunningServer]:
    index = build_index(directory / "kb", (*DOCUMENTS, *further))
    with run_app(create_app(Workspaces(open_index(model), [index]))) as server:
        yield server


def test_an_answer_is_rendered_as_markdown(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path, ScriptedLanguageModel(lambda _: MARKDOWN)) as server, open_page(browser, server) as page:
        visit(page, server, ASK, "The founder")
        answer = page.locator(".answer")
        expect(answer.locator("h4")).to_have_text("The founder")
        expect(answer.locator("strong")).to_have_text("Ines Moreau")
        expect(answer.locator("td")).to_have_text(["1921", "casting"])
        expect(answer.locator("li code")).to_have_text("bell")
        expect(answer.locator("pre")).to_have_text("ring --loud\n")
        link = answer.get_by_role("link", name="the archive")
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
        expect(answer).to_contain_text("the archive (example.org)")
        assert answer.locator("img, script, style, iframe").count() == 0
        expect(answer).to_contain_text("<script>hacked=1</script>")
        expect(answer).to_contain_text("[x](javascript:hacked=1)")
        assert page.evaluate("typeof hacked") == "undefined"
        assert answer.locator("a.cite").count() == 2


def test_a_citation_shows_its_sentence_before_it_is_opened(browser: Browser, tmp_path: Path) -> None:
    model = ScriptedLanguageModel(lambda _: "Ines Moreau cast it [1].")
    with serve(tmp_path, model) as server, open_page(browser, server) as page:
        visit(page, server, ASK, "cast it")
        page.locator("a.cite").hover()
        preview = page.get_by_role("tooltip")
        expect(preview).to_contain_text("The bell of Tarn was cast by Ines Moreau in 1921.")
        page.keyboard.press("Escape")
        expect(preview).to_be_hidden()
        page.locator("a.cite").focus()
        expect(preview).to_be_visible()


def test_each_citation_shows_the_sentence_of_its_claim(browser: Browser, tmp_path: Path) -> None:
    model = ScriptedLanguageModel(lambda _: "Ines Moreau cast it [1]. It hangs in Corven Tower [1]. So it is [1].")
    with serve(tmp_path, model) as server, open_page(browser, server) as page:
        visit(page, server, ASK, "cast it")
        preview = page.get_by_role("tooltip")
        cast, hangs = "The bell of Tarn was cast by Ines Moreau in 1921.", "It hangs in Corven Tower."
        for number, sentence in enumerate((cast, hangs, cast)):  # the last claim has no words of the source
            page.locator("a.cite").nth(number).focus()
            expect(preview.locator("p").last).to_have_text(sentence)
        page.locator("a.cite").nth(1).click()
        expect(page.locator("mark#span")).to_have_text(hangs)


def test_sources_come_before_the_answer_which_can_be_stopped_and_written_again(
    browser: Browser, tmp_path: Path
) -> None:
    is_free, waiting = threading.Event(), threading.Event()

    def write(_: Prompt) -> str:
        if not waiting.is_set():
            waiting.set()
            is_free.wait(30)
        return f"Answer {len(model.prompts)} [1]."

    model = ScriptedLanguageModel(write)
    with serve(tmp_path, model) as server, open_page(browser, server) as page:
        page.goto(f"{server.url}/{ASK}")
        expect(page.locator(".card h3").first).to_have_text("Bell of Tarn")
        expect(page.locator(".answer")).to_contain_text("Writing the answer")
        assert waiting.wait(10)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".notice")).to_contain_text("Stopped")
        expect(page.locator(".found").first).to_contain_text("cast by Ines Moreau")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".answer")).to_contain_text("Answer 2")
        page.get_by_role("button", name="Regenerate").click()
        expect(page.locator(".answer")).to_contain_text("Answer 3")
        is_free.set()


def test_a_failing_model_leaves_the_evidence(browser: Browser, tmp_path: Path) -> None:
    def fail(_: Prompt) -> LanguageModelError:
        return LanguageModelError("the endpoint refused the connection")

    with serve(tmp_path, ScriptedLanguageModel(fail)) as server, open_page(browser, server) as page:
        visit(page, server, ASK, "Sources")
        expect(page.get_by_role("alert")).to_contain_text("the endpoint refused the connection")
        expect(page.locator(".found").first).to_contain_text("The bell of Tarn was cast by Ines Moreau in 1921.")
        expect(page.locator(".card h3").first).to_have_text("Bell of Tarn")
        expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_without_a_model_the_sentence_that_answers_is_first_and_sources_are_short(
    browser: Browser, tmp_path: Path
) -> None:
    filling = " ".join(f"The tower keeper wrote note {number} about the weather of Corven." for number in range(60))
    neighbours = ("He, or she?", "Nobody liked her at first.")
    sentences = " The keeper of Tarn was Ada Holm. ".join(neighbours)
    long = Document("keeper.md", "Keeper", f"{filling} {sentences} {filling}")
    with serve(tmp_path, None, long) as server, open_page(browser, server) as page:
        visit(page, server, f"#/ask?q={quote('Who was the keeper of Tarn?')}&all=1", "Sources")
        expect(page.locator(".found .answers").first).to_have_text("The keeper of Tarn was Ada Holm.")
        expect(page.locator(".found blockquote").first).to_contain_text(sentences)
        expect(page.locator(".found .context").first).to_be_in_viewport()
        card = page.locator(".card").filter(has_text="keeper.md").first
        expect(card.locator("mark.best")).to_have_text("The keeper of Tarn was Ada Holm.")
        assert len(card.locator(".excerpt").inner_text().split()) < 60
        texts = page.locator(".found, .card").all_inner_texts()
        assert sum(len(text.split()) for text in texts[:4]) <= 220, "the sentence and three sources"
        card.get_by_role("button", name="More").click()
        assert len(card.locator(".excerpt").inner_text().split()) > 60
        expect(card.locator("mark.best")).to_have_text("The keeper of Tarn was Ada Holm.")
        page.locator(".reason summary").first.click()
        reason = page.locator(".reason").first
        assert not re.search(r"hyperedge|\+\d", reason.inner_text())
        reason.get_by_text("Details").click()
        expect(reason).to_contain_text(re.compile(r"score \d"))


def test_a_mistake_in_a_filter_keeps_the_form(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as server, open_failing_page(browser, server) as page:
        page.goto(f"{server.url}/{ASK}")
        expect(page.locator(".card").first).to_be_visible()
        page.get_by_text("+ filter").click()
        page.get_by_label("+ filter").fill("year >> 3")
        page.get_by_text("+ date").click()
        page.get_by_label("+ date").fill("2024")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="the filter cannot be parsed")).to_be_visible()
        expect(page.get_by_label("+ filter")).to_have_value("year >> 3")
        expect(page.get_by_label("Ask a question")).to_have_value(QUESTION)
        page.get_by_label("+ filter").fill('id = "bell.md"')
        page.keyboard.press("Enter")
        expect(page.locator(".card h3")).to_have_text(["Bell of Tarn"])
        assert "as_of=2024" in page.url


@contextmanager
def open_failing_page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    """Open a page whose requests may be rejected by the server, which the browser reports as errors."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []
    page.close()


def test_a_long_question_is_displayed_whole(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as server, open_page(browser, server, width=360) as page:
        visit(page, server, f"#/ask?q={quote('Who cast the bell of Tarn, ' * 8)}", "")
        field = page.get_by_label("Ask a question")
        assert field.evaluate("field => field.scrollHeight <= field.clientHeight + 1")
        assert field.evaluate("field => field.clientHeight") > 100


def test_an_empty_comparison_says_what_it_does(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as server, open_page(browser, server) as page:
        visit(page, server, "#/compare", "Two search methods are tried with the same question")


def test_a_conversation_is_in_the_address_and_a_new_chat_is_empty(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as server, open_page(browser, server) as page:
        visit(page, server, "", "How is")
        page.get_by_label("Ask a question").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.locator(".found").first).to_contain_text("cast by Ines Moreau")
        page.get_by_label("Ask a follow-up question").fill("When did she die?")
        page.keyboard.press("Enter")
        second = page.locator(".turn").nth(1)
        expect(second.get_by_role("heading", name="When did she die?")).to_be_visible()
        expect(second.locator(".notice")).to_contain_text("Ines Moreau")
        expect(second.locator(".card").first).to_be_visible()
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn").nth(1).locator(".card").first).to_be_visible()
        page.go_back()
        expect(page.locator(".turn")).to_have_count(1)
        page.get_by_role("link", name="New chat").click()
        page.get_by_role("list", name="Questions to begin with").get_by_role("link").first.click()
        expect(page.locator(".found").first).to_be_visible()


def test_a_follow_up_question_is_rewritten_by_the_model(browser: Browser, tmp_path: Path) -> None:
    def write(prompt: Prompt) -> str:
        return "When did Ines Moreau die?" if "When did she" in prompt.user else "Ines Moreau cast it [1]."

    with serve(tmp_path, ScriptedLanguageModel(write)) as server, open_page(browser, server) as page:
        visit(page, server, f"{ASK}&q={quote('When did she die?')}", "Searched for: When did Ines Moreau die?")
        expect(page.locator(".turn")).to_have_count(2)


def test_a_conversation_is_saved_and_opened_again_without_the_model(browser: Browser, tmp_path: Path) -> None:
    answers = iter(["**Ines Moreau** cast it [1].", "When did Ines Moreau die?", "In 1950 [1]."])
    model = ScriptedLanguageModel(lambda _: next(answers))
    with serve(tmp_path, model) as server:
        with open_page(browser, server) as page:
            visit(page, server, ASK, "cast it")
            page.get_by_label("Ask a follow-up question").fill("When did she die?")
            page.keyboard.press("Enter")
            expect(page.locator(".turn").nth(1)).to_contain_text("In 1950")
            page.get_by_role("button", name="Save conversation").click()
            expect(page.locator("#status")).to_contain_text("saved")
            assert "saved=" in page.url
            page.get_by_role("button", name="Save conversation").click()  # in place of the first
            expect(page.locator("#status")).to_contain_text("saved")
        with open_page(browser, server, "dark", 360) as page:  # another browser
            visit(page, server, "", "How is")
            page.get_by_role("link", name="Saved conversations").click()
            expect(page.locator(".conversations li")).to_have_count(1)
            expect(page.locator(".conversations")).to_contain_text("2 questions")
            assert list_serious(page, 360) == []
            page.get_by_role("button", name="Rename").click()
            page.get_by_label("Title").fill("Bells & towers")
            page.get_by_role("dialog").get_by_role("button", name="Rename").click()
            with page.expect_download() as download:
                page.get_by_role("button", name="Export Bells").click()
            text = Path(download.value.path()).read_text("utf-8")
            assert text.startswith(
                "# Bells & towers\n\n## Who cast the bell of Tarn?\n\n**Ines Moreau** cast it [1].\n"
            )
            assert "- [1] Bell of Tarn: “The bell of Tarn was cast by Ines Moreau in 1921.”" in text
            assert download.value.suggested_filename == "Bells & towers.md"
            page.get_by_role("link", name="Bells & towers").click()
            turns = page.locator(".turn")
            expect(turns).to_have_count(2)
            expect(turns.nth(1).get_by_role("heading", name="When did she die?")).to_be_visible()
            expect(turns.first.locator(".answer strong")).to_have_text("Ines Moreau")
            assert len(model.prompts) == 3, "no new request"
            assert list_serious(page, 360) == []
            turns.first.locator("a.cite").focus()
            expect(page.get_by_role("tooltip")).to_contain_text("The bell of Tarn was cast by Ines Moreau in 1921.")
            turns.first.locator(".saved-sources a").first.click()
            expect(page.locator("mark")).to_contain_text("cast by Ines Moreau")
            page.goto(f"{server.url}/#/conversations")
            page.get_by_role("button", name="Delete").click()
            page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            expect(page.locator("main")).to_contain_text("None yet")


def test_a_conversation_without_a_model_is_saved_with_its_best_sources(browser: Browser, tmp_path: Path) -> None:
    scope = quote('id in ("bell.md")')
    with serve(tmp_path) as server, open_page(browser, server) as page:
        visit(page, server, f"{ASK}&where={scope}", "cast by Ines Moreau")
        page.get_by_role("button", name="Save conversation").click()
        expect(page.locator("#status")).to_contain_text("saved")
        (row,) = server.client.get("/api/v1/conversations").json()["conversations"]
        saved = server.client.get("/api/v1/conversation", params={"id": row["id"]}).json()
        assert saved["turns"][0]["sources"][0]["text"] == "The bell of Tarn was cast by Ines Moreau in 1921."
        visit(page, server, f"#/ask?saved={row['id']}", "cast by Ines Moreau")
        expect(page.locator(".chip.value")).to_have_text("in bell.md")


def test_a_link_to_a_deleted_conversation_asks_its_questions_again(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as server, open_failing_page(browser, server) as page:
        page.goto(f"{server.url}/{ASK}&saved=0123")
        expect(page.locator(".found").first).to_contain_text("cast by Ines Moreau")
        page.goto(f"{server.url}/#/ask?saved=0123")
        expect(page.get_by_role("alert")).to_contain_text("there is no conversation '0123'")


def test_a_second_passage_of_one_document_is_no_answer_of_its_own(browser: Browser, tmp_path: Path) -> None:
    filling = "The notes say more about it. " * 60
    bells = f"# Port Lisle\n\nAda Holm lived in Port Lisle.\n\n## Bells\n\n{filling}"
    text = f"{bells}\n\n## Keepers\n\nAda Holm kept the bell of Lisle. {filling}"
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "port.md").write_text(text, encoding="utf-8")
    index = tmp_path / "kb"
    with Engine.open(index, embedder="hashing:64") as engine:
        engine.index([folder])
    with run_app(create_app(Workspaces(open_index(None), [index]))) as server, open_page(browser, server) as page:
        visit(page, server, f"#/ask?q={quote('Who kept the bell of Lisle?')}&all=1", "Sources")
        expect(page.locator(".found")).to_have_count(1)
        expect(page.locator(".found figcaption")).to_have_text("Port Lisle · Keepers")
