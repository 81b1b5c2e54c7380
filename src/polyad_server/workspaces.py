"""Workspaces: the indexes that a server serves, each with its own documents, keys and jobs."""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from polyad.engine import Engine
from polyad.engine.loaders import Place, get_place_name
from polyad.errors import ConfigurationError, NotFoundError, PolyadError
from polyad.protocols.store import ValueStore
from polyad.readers.text.ocr_cache import FILE_NAME as OCR_FILE_NAME
from polyad.readers.text.sources import COPIES_FOLDER
from polyad.snapshot.files import SnapshotFiles
from polyad.stores.sqlite import JOBS_FILE_NAME, REPLIES_FILE_NAME
from polyad.text.files import make_folder, resolve_path, sync_folder
from polyad_server.encoding import LoadEmbedder, SharedEmbedders
from polyad_server.jobs import JobRunner
from polyad_server.keys import LEDGER

OpenIndex = Callable[[Place, bool], Engine]
"""Opens the index at a place; the second argument is whether to create it."""

T = TypeVar("T")

_LOG = logging.getLogger("polyad.server.workspaces")
_FILE = "index.sqlite"
_LOCKS = ("jobs.lock", "conversations.lock", "submission.lock")  # the last one is of earlier versions
_STOP_SECONDS = 1.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """An index that the server offers under a name, with its engine and indexing jobs.

    Attributes:
        name: Name of its folder, or of the workspace in a database.
        place: The folder, or the address.
        engine: Searches and writes the index.
        jobs: Indexes documents in the background.
        identity: Identifies the file of the index, which another process may delete or replace.
    """

    name: str
    place: Place
    engine: Engine
    jobs: JobRunner
    identity: tuple[int, int]

    @property
    def is_outdated(self) -> bool:
        """Whether another process deleted or replaced the index, or chose its embedder."""
        return _get_file_identity(self.place) != self.identity or self.engine.is_outdated

    @property
    def values(self) -> ValueStore:
        """The key-value store inside the workspace's index."""
        return self.engine.values

    def close(self) -> None:
        """Give the running job a second to stop, and close the index.

        A job that still waits for a model fails at its next use of the index.
        """
        self.jobs.stop(_STOP_SECONDS)
        self.engine.close()


class Workspaces:
    """The workspaces (indexes) of a server, each opened at most once.

    Args:
        open_index: Opens an index.
        stores: Places of indexes that are always served; the name of a workspace is the name of its folder.
        root: Folder whose sub-folders with an index are served too, and in which workspaces are created; None for
            none.
        runs_jobs: Whether this process runs the jobs of the workspaces.
        load_embedder: Loads an embedder by its name; by default one that all workspaces share.
        drain_seconds: Time that jobs get to end when the server is stopped.

    Raises:
        ConfigurationError: Two folders have the same name.
    """

    def __init__(
        self,
        open_index: OpenIndex,
        stores: Sequence[Place],
        root: Path | None = None,
        *,
        runs_jobs: bool = True,
        load_embedder: LoadEmbedder | None = None,
        drain_seconds: float = 30.0,
    ) -> None:
        self._open_index = open_index
        self._root = root
        self._runs_jobs = runs_jobs
        self._load_embedder = load_embedder or SharedEmbedders().get
        self._lock = threading.RLock()
        self._open: dict[str, Workspace] = {}
        self._failures: dict[str, str] = {}
        self._deleting: set[str] = set()
        self._drain_seconds = drain_seconds
        self._deadline = float("inf")
        self._places: dict[str, Place] = {}
        for store in stores:
            name, place = get_place_name(store), resolve_path(store) if isinstance(store, Path) else store
            if self._places.setdefault(name, place) != place:
                raise ConfigurationError(
                    f"two indexes would be the same workspace {name!r}; rename one of the folders, or give it another "
                    "?workspace=NAME"
                )

    def list_names(self) -> list[str]:
        """Return the sorted names of all workspaces (indexes)."""
        below_root = () if self._root is None else _list_indexes(self._root)
        return sorted({*self._places, *below_root} - self._deleting)

    def list_all(self) -> list[Workspace]:
        """Return all workspaces (indexes) that can be opened, opening any that are closed; log the others."""
        return [*self.map_all(lambda workspace: workspace).values()]

    def map_all(self, function: Callable[[Workspace], T], names: Iterable[str] | None = None) -> dict[str, T]:
        """Return ``function(workspace)`` by name for all workspaces, or those named.

        A workspace that cannot be opened, or for which the function fails, is logged and left out.
        """
        results: dict[str, T] = {}
        for name in self.list_names() if names is None else names:
            try:
                if workspace := self.find(name):
                    results[name] = function(workspace)
                self._failures.pop(name, None)
            except Exception as error:  # a damaged workspace must not affect the others
                if self._failures.get(name) != str(error):
                    _LOG.error("the workspace %s cannot be used: %s", name, error)
                self._failures[name] = str(error)
        return results

    def are_stored(self) -> bool:
        """Return whether the files of all indexes that are always served exist."""
        return all((place / _FILE).is_file() for place in self._places.values() if isinstance(place, Path))

    def are_jobs_failing(self) -> bool:
        """Return whether the indexing thread of a workspace has ended, or fails; always False in a worker process."""
        return any(workspace.jobs.is_failing for workspace in tuple(self._open.values()))

    def find(self, name: str) -> Workspace | None:
        """Return the workspace (index) with this name, or None.

        Raises:
            PolyadError: The index cannot be opened.
        """
        with self._lock:
            if name in self._open and self._open[name].is_outdated:
                threading.Thread(target=self._open.pop(name).close, daemon=True).start()
            if name not in self._open:
                place = self.find_place(name)
                if place is None:
                    return None
                self._open[name] = self._start(name, place, is_new=False)
            self._open[name].jobs.restart()
            return self._open[name]

    def find_place(self, name: str) -> Place | None:
        """Return the folder or address of the workspace with this name, or None."""
        if name not in self._places and self._root is not None and name in self.list_names():
            return self._root / name
        return self._places.get(name)

    def create(self, name: str) -> Workspace:
        """Create an empty workspace (index) in a sub-folder of the server's root folder.

        Raises:
            ConfigurationError: There is no root, the name is no name of a folder, or the workspace exists.
        """
        if self._root is None:
            raise ConfigurationError("this server has no folder for new workspaces; start it with --root DIR")
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"the name is {name!r}; expected at most 64 letters, digits, '.', '_' and '-', a letter or digit first"
            )
        with self._lock:
            if name in self.list_names():
                raise ConfigurationError(f"there is a workspace {name!r} already")
            try:
                make_folder(self._root)
                (self._root / name).mkdir()  # fails if another process is creating the workspace
            except FileExistsError as error:
                raise ConfigurationError(f"there is a folder {name!r} already") from error
            sync_folder(self._root)
            try:
                self._open[name] = self._start(name, self._root / name, is_new=True)
            except BaseException:
                shutil.rmtree(self._root / name, ignore_errors=True)
                raise
            return self._open[name]

    def delete(self, name: str) -> None:
        """Delete a workspace from the server's root folder: cancel its jobs, and delete the files of its index.

        Other files in its folder stay. Of a folder that is a symbolic link, only the link is deleted.

        Raises:
            NotFoundError: There is no such workspace below the root.
        """
        with self._lock:
            place = self.find_place(name)
            if self._root is None or place is None or name in self._places:
                raise NotFoundError(f"there is no workspace {name!r} that can be deleted")
            self._deleting.add(name)
            workspace = self._open.pop(name, None)
        try:
            if workspace is not None:
                with suppress(PolyadError):  # it may be damaged
                    workspace.jobs.cancel_all()
                workspace.close()
            _delete_index(self._root / name)
            sync_folder(self._root)
        finally:
            self._deleting.discard(name)

    def request_stop(self) -> None:
        """Ask the jobs of all workspaces to stop after their current document; return at once."""
        self._deadline = min(self._deadline, time.monotonic() + self._drain_seconds)
        for workspace in tuple(self._open.values()):
            workspace.jobs.request_stop()

    def close(self) -> None:
        """Close all workspaces (indexes), except those with a job that does not stop in time: it continues later."""
        self.request_stop()
        with self._lock:
            for workspace in self._open.values():
                if workspace.jobs.stop(max(0.0, self._deadline - time.monotonic())):
                    workspace.engine.close()
            self._open.clear()

    def _start(self, name: str, place: Place, *, is_new: bool) -> Workspace:
        if is_new:
            self._open_index(place, True).close()
        engine = self._open_index(place, False)
        engine.components.load_embedder = self._load_embedder
        engine.follow_changes()
        workspace = Workspace(name, place, engine, JobRunner(engine), _get_file_identity(place))
        if self._runs_jobs:
            workspace.jobs.start()
        return workspace


def _get_file_identity(place: Place) -> tuple[int, int]:
    """Return device and inode number of an index's file, which tell whether it was replaced; zeros if missing."""
    try:
        status = Path(place, _FILE).stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _delete_index(folder: Path) -> None:
    """Delete the files of an index, and its folder if that is empty then; or a symbolic link to the folder."""
    if folder.is_symlink():
        folder.unlink()
        return
    for name in (_FILE, REPLIES_FILE_NAME, JOBS_FILE_NAME, OCR_FILE_NAME, *_LOCKS, LEDGER):
        for suffix in ("", "-wal", "-shm", "-journal"):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
    SnapshotFiles(folder).delete()
    shutil.rmtree(folder / COPIES_FOLDER, ignore_errors=True)
    with suppress(OSError):  # the folder has other files
        folder.rmdir()


def _list_indexes(root: Path) -> Iterable[str]:
    """Return the names of a folder's sub-folders that contain an index."""
    if not root.is_dir():
        return ()
    names = [path.name for path in root.iterdir() if _NAME.fullmatch(path.name)]
    # unlike Path.is_file, this function returns False for a folder that may not be read
    return [name for name in names if os.path.isfile(root / name / _FILE)]  # noqa: PTH113
