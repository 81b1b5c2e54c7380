"""A server on loopback, for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import httpx2
import uvicorn
from fastapi import FastAPI

from polyad import Document, Engine
from polyad.protocols.components import LanguageModel

DOCUMENTS = (
    Document("bell.md", "Bell of Tarn", "The bell of Tarn was cast by Ines Moreau in 1921. It hangs in Corven Tower."),
    Document("tower.md", "Corven Tower", "Corven Tower stands in Aldby. Its architect was Bo Larsen."),
    Document("moreau.md", "Ines Moreau", "Ines Moreau was a founder from Port Lisle. She died in 1950."),
)


PlaceT = TypeVar("PlaceT", Path, str)


def build_index(directory: PlaceT, documents: tuple[Document, ...] = DOCUMENTS) -> PlaceT:
    with Engine.open(directory, embedder="hashing:64") as engine:
        engine.index_documents(documents)
    return directory


def open_index(
    language_model: LanguageModel | None = None, language_models: Mapping[str, LanguageModel] = MappingProxyType({})
) -> Callable[[Path | str, bool], Engine]:
    def open_one(directory: Path | str, create: bool) -> Engine:
        embedder = "hashing:64" if create else None
        return Engine.open(
            directory,
            embedder=embedder,
            create=create,
            language_model=language_model,
            language_models=language_models,
        )

    return open_one


@dataclass(frozen=True)
class RunningServer:
    url: str
    app: FastAPI
    client: httpx2.Client


@contextmanager
def run_app(app: FastAPI) -> Iterator[RunningServer]:
    """Serve an application on loopback."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=5, proxy_headers=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        with httpx2.Client(base_url=url, timeout=30, verify=False) as client:
            yield RunningServer(url, app, client)
    finally:
        server.should_exit = True
        thread.join(10)
