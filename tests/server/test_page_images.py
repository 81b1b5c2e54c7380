"""Pages of PDF files as pictures: over HTTP, over MCP and in the web page."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

pytest.importorskip("fastapi")

from polyad import Engine
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.engine.test_page_images import build_pdf
from tests.server.serving import RunningServer, open_index, run_app

IMAGE = "/api/v1/passages/image"
ID = "bell.pdf#0000"
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


def test_an_agent_gets_the_page_as_a_resource(tmp_path: Path, server: RunningServer) -> None:
    pytest.importorskip("mcp")
    from mcp_types import BlobResourceContents

    from tests.server.test_mcp import call, connect

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

    from tests.server.test_page import open_page
    from tests.server.test_page_documents import list_serious

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
