"""The page's table of documents, uploads and corrections, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from polyad import Document
from polyad.config import ServerSettings
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import DOCUMENTS, RunningServer, build_index, open_index, run_app
from tests.polyad_server.test_documents import MANUALS, PDF, PHOTO
from tests.polyad_server.test_page import open_page, visit

expect.set_options(timeout=20_000)


@pytest.fixture
def manuals(tmp_path: Path) -> Iterator[RunningServer]:
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb", MANUALS)]))) as running:
        yield running


def get_titles(page: Page) -> Locator:
    return page.locator(".documents td.title a")


def test_documents_are_sorted_filtered_and_removed_together(browser: Browser, manuals: RunningServer) -> None:
    with open_page(browser, manuals) as page:
        visit(page, manuals, "#/documents", "3 documents")
        page.get_by_role("button", name="Title").click()
        expect(get_titles(page)).to_have_text(["Bell", "Pump", "Seal"])
        page.get_by_role("button", name="Title ↑").click()
        expect(get_titles(page)).to_have_text(["Seal", "Pump", "Bell"])
        page.get_by_label("Year").select_option("2023")
        expect(get_titles(page)).to_have_text(["Pump"])
        page.reload()
        expect(get_titles(page)).to_have_text(["Pump"])
        page.get_by_label("Year").select_option("")
        page.get_by_label("Find a document").fill("pumps/")
        expect(get_titles(page)).to_have_text(["Seal", "Pump"])
        boxes = page.locator(".documents tbody input")
        boxes.first.click()
        boxes.last.click(modifiers=["Shift"])
        expect(page.locator(".selection-bar")).to_contain_text("2 selected")
        page.get_by_role("button", name="Hide …").click()
        expect(page.locator("dialog")).to_contain_text("Hide 2 documents")
        page.evaluate("location.hash = '#/log'")
        expect(page.locator("dialog")).to_be_hidden()
        page.go_back()
        boxes.first.click()
        boxes.last.click(modifiers=["Shift"])
        page.get_by_role("button", name="Hide …").click()
        page.get_by_role("button", name="Hide", exact=True).click()
        expect(page.locator(".documents tbody")).to_contain_text("hidden")
        page.get_by_label("Select all shown documents").click()
        page.get_by_role("button", name="Remove …").click()
        expect(page.locator("dialog li")).to_have_text(["Seal", "Pump"])
        page.get_by_role("button", name="Remove", exact=True).click()
        expect(page.locator("main")).to_contain_text("0 documents found")
        page.get_by_label("Find a document").fill("")
        expect(get_titles(page)).to_have_text(["Bell"])


def test_a_language_that_is_none_and_a_year_without_a_date_are_shown(browser: Browser, tmp_path: Path) -> None:
    book = Document("book.epub", "Modules", "Modules are loaded once.", metadata={"language": "C", "year": 2023})
    index = build_index(tmp_path / "kb", (*MANUALS, book))
    with run_app(create_app(Workspaces(open_index(), [index]))) as server, open_page(browser, server) as page:
        visit(page, server, "#/documents", "4 documents")
        page.get_by_label("Year").select_option("2023")
        expect(get_titles(page)).to_have_text(["Modules", "Pump"])
        assert (
            page.get_by_label("Language").locator("option").evaluate_all("all => all.map((each) => each.value)") != []
        )
        visit(page, server, "#/document?id=book.epub", "Modules are loaded once.")


def test_a_narrow_table_has_title_date_and_state_without_scrolling(browser: Browser, manuals: RunningServer) -> None:
    with open_page(browser, manuals, width=360) as page:
        visit(page, manuals, "#/documents", "3 documents")
        headings = page.locator(".documents th:visible").all_inner_texts()
        assert [heading.rstrip(" ↑↓") for heading in headings if heading] == ["Title", "Date", "State"]
        assert page.locator(".scroll").evaluate("each => each.scrollWidth <= each.clientWidth")


def test_a_question_is_asked_in_some_documents(browser: Browser, manuals: RunningServer) -> None:
    with open_page(browser, manuals) as page:
        visit(page, manuals, "#/documents", "3 documents")
        for title in ("Pump", "Seal"):
            page.get_by_label(f"Select {title}").click()
        page.get_by_role("button", name="Ask in 2 selected").click()
        expect(page.locator(".question")).to_contain_text("in 2 documents")
        visit(
            page,
            manuals,
            f"{page.url.removeprefix(manuals.url + '/')}&q=When+does+the+bell+of+Tarn+ring%3F&all=1",
            "Pump",
        )
        titles = set(page.locator(".card h3").all_text_contents())
        assert titles
        assert titles <= {"Pump", "Seal"}


def test_each_uploaded_file_shows_its_own_result_once(browser: Browser, tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    with run_app(create_app(Workspaces(open_index(), [index]))) as server, open_page(browser, server) as page:
        visit(page, server, "#/documents", "3 documents")
        files = {"orra.md": b"# Orra\n\nThe Orra rises in Velm.", "bad.pdf": PDF, "photo.png": PHOTO}
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        page.locator("#files").set_input_files([tmp_path / name for name in files])
        summary = page.locator(".upload-summary")
        expect(summary).to_have_text("1 added · 2 failed")
        rows = page.locator(".file")
        expect(rows.filter(has_text="orra.md")).to_contain_text("added")
        for name in ("bad.pdf", "photo.png"):
            row = rows.filter(has_text=name)
            expect(row).to_contain_text("failed")
            text = row.inner_text()
            reason = row.locator(".file-reason").inner_text()
            assert reason
            assert (text.count(name), text.count(reason)) == (1, 1)
        expect(page.locator("main")).to_contain_text("4 documents")
        page.get_by_role("link", name="orra.md").click()
        expect(page.locator(".text")).to_contain_text("The Orra rises in Velm.")
        page.get_by_role("link", name="Passages (1)").click()
        expect(page.locator(".fact")).to_contain_text("The Orra rises in Velm.")
        page.get_by_role("link", name="Left out").click()
        expect(page.locator("main")).to_contain_text("Nothing was left out")
        page.get_by_role("button", name="Remove …").click()
        page.get_by_role("button", name="Remove", exact=True).click()
        expect(page.locator("main")).to_contain_text("3 documents")


def test_a_dropped_folder_and_a_pasted_text_are_added(browser: Browser, tmp_path: Path) -> None:
    index = build_index(tmp_path / "kb")
    folder = tmp_path / "notes"
    for name in ("river.md", "deep/lake.md", ".git/config", "node_modules/code.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"The {name} of Velm.", encoding="utf-8")
    with run_app(create_app(Workspaces(open_index(), [index]))) as server, open_page(browser, server) as page:
        visit(page, server, "#/documents", "3 documents")
        page.locator("#folder").set_input_files(folder)
        expect(page.locator(".upload-summary")).to_have_text("2 added")
        expect(
            page.locator(".documents .id", has_text="notes/").or_(get_titles(page).filter(has_text="notes/"))
        ).to_have_count(2)
        page.get_by_role("button", name="Paste text").click()
        page.get_by_role("textbox", name="Title").fill("Minutes of May")
        page.get_by_role("textbox", name="Text").fill("The bell will be cast again in June.")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator(".upload-summary")).to_have_text("3 added")
        expect(get_titles(page).filter(has_text="Minutes of May")).to_be_visible()
        assert page.get_by_role("button", name="Add a web page").count() == 0, "the setting allow_urls is off"


def test_a_retraction_is_taken_back_where_it_was_made(browser: Browser, tmp_path: Path) -> None:
    long = Document("long.md", "Long", f"The bell of Tarn hangs in Corven Tower{', which is very old' * 12}.")
    index = build_index(tmp_path / "kb", (*DOCUMENTS, long))
    with run_app(create_app(Workspaces(open_index(), [index]))) as server, open_page(browser, server) as page:
        visit(page, server, "#/entity?name=Ines%20Moreau", "facts")
        page.get_by_role("button", name="Add another name …").click()
        page.get_by_label("Another name of Ines Moreau").fill("The founder")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#status")).to_contain_text("changed")
        visit(page, server, "#/passage?id=long.md%230000", "Facts")
        before = page.url
        facts = page.locator(".fact")
        text = facts.first.locator("p").first.inner_text()
        page.get_by_role("button", name="Retract …").first.click()
        expect(page.locator("dialog")).to_contain_text("withdraws one fact")
        expect(page.locator("dialog blockquote")).to_have_text(text)
        expect(page.locator("dialog")).to_contain_text("Its sentence stays in the document and is marked")
        page.get_by_role("button", name="Retract", exact=True).click()
        expect(page.locator("dialog .error").first).to_contain_text("Say why the fact does not hold")
        page.get_by_label("Reason").fill("superseded")
        page.get_by_role("button", name="Retract", exact=True).click()
        expect(page.locator(".undo")).to_contain_text("Retracted: one fact.")
        assert page.url == before
        retractions = server.client.get("/api/v1/retractions").json()["retractions"]
        assert [one["reason"] for one in retractions] == ["superseded"]
        page.get_by_role("button", name="Undo").click()
        expect(facts.first).to_contain_text(text)
        assert server.client.get("/api/v1/retractions").json()["retractions"] == []


@pytest.mark.parametrize(
    ("view", "sought"), [("#/passage?id=bell.md%230000", ".fact"), ("#/log", ".retractions .fact")]
)
def test_a_retraction_is_taken_back_later(browser: Browser, tmp_path: Path, view: str, sought: str) -> None:
    index = build_index(tmp_path / "kb")
    with run_app(create_app(Workspaces(open_index(), [index]))) as server, open_page(browser, server) as page:
        [fact, *_] = server.client.get("/api/v1/passage/hyperedges", params={"id": "bell.md#0000"}).json()["hyperedges"]
        body = {"hyperedge": fact["id"], "reason": "superseded"}
        server.client.post("/api/v1/retractions", json=body).raise_for_status()
        visit(page, server, "#/ask?q=Who+cast+the+bell+of+Tarn%3F&all=1", "Sources")
        expect(page.locator(".card .warning").first).to_contain_text("States what was retracted")
        visit(page, server, view, "superseded")
        card = page.locator(sought).filter(has_text="superseded")
        expect(card.locator("s")).to_contain_text(fact["text"][:20])
        card.get_by_role("button", name="Undo").click()
        expect(card).to_have_count(0)
        assert server.client.get("/api/v1/retractions").json()["total"] == 0


def test_the_settings_of_a_workspace_are_kept_in_the_browser(browser: Browser, manuals: RunningServer) -> None:
    with open_page(browser, manuals) as page:
        visit(page, manuals, "#/documents", "3 documents")
        page.get_by_role("button", name="Settings").click()
        expect(page.locator("dialog")).to_contain_text("Language model")
        page.get_by_label("Search method").select_option("bm25")
        page.get_by_label("Number of sources").fill("1")
        page.get_by_role("button", name="Save").click()
        requests: list[str] = []
        page.on(
            "request",
            lambda request: requests.append(request.post_data or "") if request.url.endswith("/ask") else None,
        )
        visit(page, manuals, "#/ask?q=Which+pump+is+opened%3F&all=1", "Pump")
        expect(page.locator(".card h3")).to_have_count(1)
        assert '"retriever":"bm25"' in requests[0]
        assert '"k":1' in requests[0]


def test_the_model_of_answers_is_chosen_from_the_list_of_the_server(browser: Browser, tmp_path: Path) -> None:
    models = {name: ScriptedLanguageModel(lambda _: "Ines Moreau [1].", name) for name in ("qwen3", "qwen3:4b")}
    index = build_index(tmp_path / "kb")
    opened = open_index(models["qwen3"], {"fast": models["qwen3:4b"]})
    with run_app(create_app(Workspaces(opened, [index]))) as server, open_page(browser, server, width=360) as page:
        visit(page, server, "#/ask?q=Who+cast+the+bell+of+Tarn%3F", "Ines Moreau")
        assert not models["qwen3:4b"].prompts
        page.get_by_role("button", name="Settings").click()
        choice = page.get_by_label("Language model of answers")
        expect(choice.locator("option")).to_have_text(["automatic (qwen3)", "fast · qwen3:4b"])
        assert list_serious(page, 360) == []
        choice.select_option("fast")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".turn .tools")).to_contain_text("fast")
        assert len(models["qwen3:4b"].prompts) == 1
        visit(page, server, "#/compare?q=Who+cast+the+bell+of+Tarn%3F", "Bell of Tarn")  # a search has no model


def test_the_remaining_time_counts_bytes_and_is_empty_before_it_is_credible(
    browser: Browser, manuals: RunningServer
) -> None:
    cases = [(4, 50, 100), (60, 5, 100), (60, 100, 100), (60, 50, 100), (60, 20, 100), (7200, 20, 100), (20, 50, 100)]
    with open_page(browser, manuals) as page:
        page.goto(manuals.url)
        script = (
            "async cases => { const m = await import('/upload.js'); return cases.map(c => m.describeRemaining(...c)); }"
        )
        words = ["", "", "", "about 1 min left", "about 4 min left", "about 8.0 h left", "under a minute left"]
        assert page.evaluate(script, cases) == words


def test_web_pages_are_added_by_address_and_private_networks_refused(browser: Browser, tmp_path: Path) -> None:
    app = create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]), ServerSettings(allow_urls=True))
    with run_app(app) as server, open_page(browser, server) as page:
        visit(page, server, "#/documents", "3 documents")
        page.get_by_role("button", name="Add a web page").click()
        page.get_by_label("Addresses").fill(f"{server.url}/\nhttp://169.254.169.254/latest")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator(".upload-summary")).to_have_text("2 failed")
        expect(page.locator(".file-reason")).to_contain_text(["private network", "private network"])


@pytest.mark.parametrize(("theme", "width"), [("dark", 360), pytest.param("light", 1280, marks=pytest.mark.slow)])
def test_documents_are_accessible_while_they_are_selected_and_added(
    browser: Browser, tmp_path: Path, theme: str, width: int
) -> None:
    arabic = Document("ملفات/جرس.md", "جرس تارن", "صبّت إيناس مورو جرس تارن عام 1921.")
    index = build_index(tmp_path / "kb", (*MANUALS, arabic))
    (tmp_path / "bad.pdf").write_bytes(PDF)
    with (
        run_app(create_app(Workspaces(open_index(), [index]))) as server,
        open_page(browser, server, theme, width) as page,
    ):
        visit(page, server, "#/documents", "4 documents")
        page.locator("#files").set_input_files(tmp_path / "bad.pdf")
        expect(page.locator(".upload-summary")).to_have_text("1 failed")
        page.get_by_label("Select all shown documents").click()
        assert list_serious(page, width) == []
        direction = (
            get_titles(page).filter(has_text="جرس").evaluate("link => getComputedStyle(link.parentElement).direction")
        )
        assert direction == "rtl"
        page.get_by_role("button", name="Remove …").click()
        expect(page.locator("dialog")).to_contain_text("Remove 4 documents")
        assert list_serious(page, width) == []
        page.get_by_role("button", name="Cancel").click()
        for part in ("", "passages", "left"):
            visit(page, server, f"#/document?id=bell&part={part}", "Bell")
            assert list_serious(page, width) == []


def list_serious(page: Page, width: int) -> list[tuple[str, str]]:
    """Return the serious findings of axe, with the element; the page must not be wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    return [
        (each["id"], node["html"][:200])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
