"""Environments that fail: no mapped files, a clock that was set back, an interrupt, an invalid certificate."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document

pytestmark = pytest.mark.attacks

REFUSE_TO_MAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *mmap(void *start, size_t length, int protection, int flags, int file, off_t offset) {
  char link[64], name[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (file >= 0 && readlink(link, name, sizeof name - 1) > 0 && strstr(name, "/kb/")) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  return real(start, length, protection, flags, file, offset);
}
void *mmap64(void *start, size_t length, int protection, int flags, int file, off_t offset) {
  return mmap(start, length, protection, flags, file, offset);
}
"""
"""A library that refuses to map files below a folder ``kb``, as some network file systems do."""


def polyad(*arguments: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "polyad", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=cwd, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an index ``kb`` of one document."""
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as engine:
        engine.index_documents([Document("a", "Anna", "Anna met Bob in Oslo.")])
    return tmp_path


@pytest.mark.skipif(not (shutil.which("gcc") and sys.platform == "linux"), reason="needs gcc and Linux")
@pytest.mark.parametrize("command", [("search", "Who?"), ("index", "a.txt", "--embedder", "hashing:32")])
def test_a_file_system_that_maps_no_files_is_named(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "refuse.c").write_text(REFUSE_TO_MAP)
    (folder / "a.txt").write_text("Anna met Bob.")
    library = folder / "refuse.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, folder / "refuse.c", "-ldl"], check=True)
    ended = polyad(*command, "--store", "kb", cwd=folder, LD_PRELOAD=str(library))
    _, errors = ended.communicate()
    assert (ended.returncode, "cannot map files" in errors, "local disk" in errors) == (2, True, True), errors


def test_a_clock_that_was_set_back_hides_no_change(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as engine:
        for text, modified in (("Anna slept.", 4e9), ("Bob slept.", 1e9), ("Eve slept.", -1e9), ("Ida slept.", 1e9)):
            file.write_text(text)
            os.utime(file, (modified, modified))
            report = engine.index([tmp_path])
            assert report.counts.added + report.counts.updated == 1
            assert [hit.passage.text for hit in engine.search("slept").passages] == [text]


_request_received = threading.Event()


class _SlowHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        _request_received.set()
        time.sleep(20)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    slow = HTTPServer(("127.0.0.1", 0), _SlowHandler)
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    yield slow
    slow.socket.close()


def test_an_interrupt_while_a_model_answers_ends_at_once(folder: Path, server: HTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    command = ("ask", "Whom did Anna meet?", "--store", "kb", "--model", "m", "--json")
    asking = polyad(*command, cwd=folder, OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    assert _request_received.wait(60)
    started = time.monotonic()
    asking.send_signal(signal.SIGINT)
    output, errors = asking.communicate(timeout=15)
    assert time.monotonic() - started < 3
    assert (asking.returncode, json.loads(output)["error"]["kind"]) == (130, "interrupted")
    assert "Traceback" not in errors
    assert "interrupted" in errors


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_an_invalid_certificate_is_named(folder: Path, server: HTTPServer) -> None:
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost"
    subprocess.run(make.split(), cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_port}/v1"
    command = ("ask", "Whom did Anna meet?", "--store", "kb", "--model", "m")
    process = polyad(*command, cwd=folder, OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "certificate" in errors
