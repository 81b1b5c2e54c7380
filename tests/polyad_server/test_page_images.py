"""Pages of PDF files as pictures: over HTTP, over MCP and in the web page."""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import anyio
import httpx2
import pytest

pytest.importorskip("fastapi")

from polyad import Engine
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.engine.test_page_images import build_figures, build_pdf
from tests.polyad_server.serving import RunningServer, open_index, run_app

IMAGE = "/api/v1/passages/image"
ID = "bell.pdf#0000"
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
PAGE = (
    f'<p>Seals sleep on the rocks.</p><img alt="Seals at rest" src="data:image/gif;base64,{PIXEL}">'
    f'<p>More text.</p><img alt="A drawing of seals" src="data:image/svg+xml,{quote(SVG)}">'
)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    monkeypatch.chdir(tmp_path)
    Path("bell.pdf").write_bytes(build_pdf())
    Path("note.md").write_text("The otter eats fish.")
    with Engine.open("kb", embedder="hashing:64") as engine:
        engine.index(["bell.pdf", "note.md"])
    with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as running:
        yield running


@pytest.fixture
def picture_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    monkeypatch.chdir(tmp_path)
    Path("figures.pdf").write_bytes(build_figures())
    Path("page.html").write_text(PAGE)
    Path("bell.pdf").write_bytes(build_pdf())
    with Engine.open("kb", embedder="hashing:64") as engine:
        engine.index(["bell.pdf", "figures.pdf", "page.html"])
    with run_app(create_app(Workspaces(open_index(), [tmp_path / "kb"]))) as running:
        yield running


def test_the_page_of_a_passage_is_a_picture_with_its_number_and_boxes(server: RunningServer) -> None:
    response = server.client.get(IMAGE, params={"id": ID, "page": 2, "width": 600})

    assert response.content.startswith(PNG)
    assert response.headers["content-type"] == "image/png"
    assert (response.headers["polyad-page"], response.headers["polyad-pages"]) == ("2", "2")
    assert len(json.loads(response.headers["polyad-boxes"])) == 3


@pytest.mark.parametrize(
    ("parameters", "status", "detail"),
    [
        ({"id": ID, "page": 9}, 404, "expected 1 to 2"),
        ({"id": ID, "width": 99_999}, 422, "width"),
        ({"id": "unknown#0000"}, 404, "unknown"),
        ({"id": "note.md#0000"}, 404, "only pages of PDF files"),
    ],
)
def test_what_cannot_be_shown_is_a_problem(
    server: RunningServer, parameters: dict[str, str], status: int, detail: str
) -> None:
    response = server.client.get(IMAGE, params=parameters)

    assert response.status_code == status
    assert detail in response.json()["detail"]


def test_a_changed_file_is_a_problem_without_a_path_and_the_text_remains(server: RunningServer, tmp_path: Path) -> None:
    Path("bell.pdf").write_bytes(build_pdf(3))
    response = server.client.get(IMAGE, params={"id": ID})

    assert response.status_code == 404
    assert response.json()["kind"] == "page_image"
    assert "changed" in response.json()["detail"]
    assert str(tmp_path) not in response.text
    assert "nine tons" in server.client.get("/api/v1/passage", params={"id": ID}).json()["text"]


def test_pictures_of_documents_are_png_whatever_their_files_are(picture_server: RunningServer, tmp_path: Path) -> None:
    def get(path: str, **parameters: str | int) -> httpx2.Response:
        return picture_server.client.get(f"/api/v1/{path}", params=parameters)

    labels = get("document", id="page.html").json()["metadata"]["pictures"]
    passage = get("passage", id="page.html#0000").json()
    picture, drawing = (get("document/image", id="page.html", picture=number) for number in (1, 2))
    of_passage, figure = (
        get(IMAGE.removeprefix("/api/v1/"), id=passage["passage_id"]),
        get("document/image", id="figures.pdf", picture=3, width=600),
    )

    assert labels == passage["metadata"]["pictures"] == ["Seals at rest", "A drawing of seals"]
    assert picture.content == of_passage.content
    assert picture.content.startswith(PNG)
    assert (of_passage.headers["polyad-kind"], of_passage.headers["polyad-pages"]) == ("picture", "2")
    assert figure.content.startswith(PNG)
    assert (figure.headers["polyad-kind"], figure.headers["polyad-page"]) == ("page", "2")
    assert drawing.status_code == get("document/image", id="page.html", picture=9).status_code == 404
    assert "svg" not in drawing.text
    assert str(tmp_path) not in drawing.text
    assert get("document/image", id="unknown", picture=1).status_code == 404
    assert "pictures" not in get("passage", id=ID).json()["metadata"]


def test_searches_and_other_tenants_wait_for_no_picture(server: RunningServer) -> None:
    slots = server.app.state.server.heavy_requests
    with slots.hold_slot("another"), slots.hold_slot("another"):
        assert server.client.get(IMAGE, params={"id": ID}).status_code == 200
        with slots.hold_slot("kb"), slots.hold_slot("kb"), ThreadPoolExecutor() as threads:
            picture = threads.submit(server.client.get, IMAGE, params={"id": ID})
            assert server.client.post("/api/v1/search", json={"question": "bell"}).status_code == 200
            assert not picture.done()


def test_an_agent_gets_the_page_as_a_resource(tmp_path: Path, server: RunningServer) -> None:
    pytest.importorskip("mcp")
    from mcp_types import BlobResourceContents

    from tests.polyad_server.test_mcp import call, connect

    async def test() -> None:
        async with connect(tmp_path / "kb") as client:
            passage = await call(client, "fetch", id=ID)
            (content,) = (await client.read_resource(passage["metadata"]["image"])).contents
            assert isinstance(content, BlobResourceContents)
            assert content.mime_type == "image/png"
            assert base64.b64decode(content.blob).startswith(PNG)
            assert (await call(client, "fetch", id="note.md#0000"))["metadata"]["image"] == ""

    anyio.run(test)


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1200), *(pytest.param(theme, 360, marks=pytest.mark.slow) for theme in ("dark", "light"))],
)
def test_the_page_opens_beside_the_text_of_a_hit(
    request: pytest.FixtureRequest, server: RunningServer, theme: str, width: int
) -> None:
    pytest.importorskip("axe_playwright_python")
    from playwright.sync_api import expect

    from tests.polyad_server.test_page import open_page
    from tests.polyad_server.test_page_documents import list_serious

    with open_page(request.getfixturevalue("browser"), server, theme, width) as page:
        page.goto(f"{server.url}/#/ask?q=nine%20tons%20tower")
        button = page.get_by_role("button", name="Page", exact=True)
        expect(button).to_have_count(1, timeout=60_000)
        button.click()
        picture = page.locator("canvas.page-image")
        expect(picture).to_have_attribute("aria-label", "Page 1 of 2", timeout=60_000)
        assert page.evaluate("document.querySelector('canvas.page-image').width") == 1000
        assert list_serious(page, width) == []
        page.get_by_role("button", name="Next page").click()
        expect(picture).to_have_attribute("aria-label", "Page 2 of 2", timeout=60_000)
        page.get_by_role("button", name="Larger").click()
        expect(page.get_by_role("button", name="Larger")).to_be_enabled(timeout=60_000)
        assert page.evaluate("document.querySelector('canvas.page-image').width") == 1500
        assert list_serious(page, width) == []


def test_the_pictures_of_a_document_open_and_a_figure_is_cut_out(
    request: pytest.FixtureRequest, picture_server: RunningServer
) -> None:
    pytest.importorskip("playwright")
    from playwright.sync_api import expect

    from tests.polyad_server.test_page import open_page

    with open_page(request.getfixturevalue("browser"), picture_server, "light", 390) as page:
        picture = page.locator("canvas.page-image")
        page.goto(f"{picture_server.url}/#/document?id=page.html")
        page.get_by_text("Pictures (2)").click(timeout=60_000)
        page.get_by_role("button", name="Seals at rest").click()
        expect(picture).to_have_attribute("aria-label", "Seals at rest", timeout=60_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("Escape")
        page.goto(f"{picture_server.url}/#/passage?id=figures.pdf%230000")
        page.get_by_role("button", name="Page", exact=True).click(timeout=60_000)
        expect(picture).to_have_attribute("aria-label", "Page 1 of 2", timeout=60_000)
        page.get_by_role("button", name="Figure").click()
        expect(picture).to_have_attribute("aria-label", "Page 1", timeout=60_000)
        assert page.evaluate("document.querySelector('canvas.page-image').width") < 700
