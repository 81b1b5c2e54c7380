"""Web pages that the server fetches on request: only public addresses, within limits of size and time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from polyad.config import ServerSettings
from polyad_server import web_pages
from polyad_server.app import create_app
from polyad_server.web_pages import FetchError, fetch_page, is_public_address
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import build_index, open_index, run_app
from tests.polyad_server.test_documents import follow


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)
            return
        redirects = {
            "/moved": "/page",
            "/inside": "http://intern.test/secret",
            "/loop": "/loop",
            "/file": "file:///etc/passwd",
            "/broken": "http://[::1",
        }
        self.send_response(302 if self.path in redirects else 200 if self.path != "/missing" else 404)
        if self.path in redirects:
            self.send_header("Location", redirects[self.path])
        charset = {"/punycode": "punycode", "/nul": "a\0b"}.get(self.path, "iso-8859-1")
        self.send_header("Content-Type", f"text/html; charset={charset}")
        self.end_headers()
        if self.path == "/large":
            self.wfile.write(b"x" * 2000)
        else:
            self.wfile.write("<title>Orra</title><p>Die Orra fließt durch Velm.</p>".encode("latin-1"))

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A web server on loopback under a name whose address counts as public."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", _answer({"public.test": "127.0.0.1", "intern.test": "10.0.0.7"}, resolve)
    )
    monkeypatch.setattr(web_pages, "is_public_address", lambda text: text == "127.0.0.1")
    yield f"http://public.test:{server.server_address[1]}"
    server.shutdown()


def _answer(addresses: dict[str, str], resolve: Callable[..., Any]) -> Callable[..., Any]:
    return lambda host, *arguments, **options: resolve(addresses.get(host, host), *arguments, **options)


def test_a_page_is_fetched_in_its_charset_after_a_redirect(site: str) -> None:
    page = fetch_page(f"{site}/moved#part")
    assert (page.name, page.url, page.extension) == (f"{site}/moved", f"{site}/page", ".html")
    assert "fließt" in page.content.decode("utf-8-sig")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/inside", "private"),
        ("/file", "http://"),
        ("/loop", "redirects"),
        ("/missing", "404"),
        ("/large", "MB"),
        ("/broken", "web address"),
    ],
)
def test_a_page_is_refused(site: str, path: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pages, "MAX_BYTES", 1000)
    with pytest.raises(FetchError, match=reason):
        fetch_page(site + path)


@pytest.mark.parametrize("path", ["/punycode", "/nul"])
def test_the_page_states_a_charset_that_is_none(site: str, path: str) -> None:
    assert fetch_page(site + path).content.startswith(b"<title>")


def test_a_page_that_comes_byte_by_byte_is_given_up(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pages, "MAX_SECONDS", 0.5)
    with pytest.raises(FetchError, match=r"no whole reply"):
        fetch_page(f"{site}/slow")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "https://192.168.1.1/",
    ],
)
def test_no_address_of_a_private_network_is_connected(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("connected"))
    with pytest.raises(FetchError, match=r"private|unknown"):
        fetch_page(url)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.org/", "http://", "http://a:b@example.org/", "x", "http://[::/"]
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(FetchError, match="expected"):
        fetch_page(url)


def test_a_name_is_resolved_once_so_that_it_cannot_change(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["8.8.8.8", "127.0.0.1"])
    connected = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(FetchError, match="cannot be reached"):
        fetch_page("http://rebinding.test/")
    assert connected == [("8.8.8.8", 80)]


def test_public_addresses_are_allowed() -> None:
    assert is_public_address("93.184.215.14")
    assert is_public_address("2606:4700:4700::1111")


def test_web_pages_are_added_only_if_the_server_allows_it(site: str, tmp_path: Path) -> None:
    body = {"urls": [f"{site}/page", f"{site}/missing"]}
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]))) as server:
        refused = server.client.post("/api/v1/documents/urls", json=body)
        assert (refused.status_code, refused.json()["kind"]) == (403, "urls_not_allowed")
    workspaces = Workspaces(open_index(), [tmp_path / "kb"])
    with run_app(create_app(workspaces, ServerSettings(allow_urls=True))) as server:
        added, missing = follow(server, server.client.post("/api/v1/documents/urls", json=body).json()["job"])[
            "results"
        ]
        assert (added["state"], missing["state"]) == ("added", "failed")
        assert "404" in missing["reason"]
        document = server.client.get("/api/v1/document", params={"id": f"{site}/page"}).json()
        assert (document["title"], document["url"], document["row"]["type"]) == ("Orra", f"{site}/page", "html")
        assert document["row"]["folder"] == "public.test"
        assert "fließt" in document["text"]
