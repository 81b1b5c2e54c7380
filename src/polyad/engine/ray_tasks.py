"""The actors and tasks of a Ray cluster. The module imports little, since each process starts with these imports."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from polyad.config import ReadSettings
from polyad.errors import ConfigurationError
from polyad.readers.format import Content, Format
from polyad.readers.pool.workers import WorkerPool


class Loading(NamedTuple):
    """A function that loads a component, and its arguments. Equal values mean the same component."""

    load: Callable[..., object]
    arguments: tuple[object, ...]


class Host:
    """A Ray actor that holds one copy of each component, such as an embedder, and calls their methods."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        self._lock = threading.Lock()
        self._components: dict[Loading, Any] = {}

    def call(self, loading: Loading, method: str, *arguments: object) -> Any:
        """Call a method of a component, or read one of its properties, and return the result.

        The component is loaded at its first call, also if Ray started the actor again in the meantime.
        """
        try:
            with self._lock:
                if loading not in self._components:
                    self._components[loading] = loading.load(*loading.arguments)
            attribute = getattr(self._components[loading], method)
            return attribute(*arguments) if callable(attribute) else attribute
        except ConfigurationError as error:  # the arguments of some subclasses cannot be pickled
            raise ConfigurationError(str(error)) from None


@cache
def _get_pool(settings: ReadSettings) -> WorkerPool:
    """Return a pool with one reading process; each process of the Ray cluster has one such pool."""
    return WorkerPool(replace(settings, workers=1))


def read_bytes(data: bytes, suffix: str, format: Format, settings: ReadSettings) -> Content:
    """Return the content of a document (text, pages, metadata) from ``data``, the bytes of its file.

    ``suffix`` is the ending of the file name.
    """
    with TemporaryDirectory(prefix="polyad-") as folder:
        path = Path(folder, f"document{suffix}")
        path.write_bytes(data)
        return _get_pool(settings).submit(path, format).wait(lambda _: None)
