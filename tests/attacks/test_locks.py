"""File systems without locks, as some of a network: an error that says so, and never a damaged index."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from polyad import Document, Engine
from tests.attacks.preload import LOCKS, needs_preload, run_with

pytestmark = [pytest.mark.attacks, needs_preload]

INDEX = """
from polyad import Document, Engine
from polyad.errors import StoreUnavailableError
import polyad.stores.sqlite.database as database
database.BUSY_SECONDS = 0.2
try:
    with Engine.open("kb", embedder="hashing:32") as engine:
        engine.index_documents(Document(f"d{n}", f"Town {n}", f"Anna met Bob Stone in Town {n}.") for n in range(5))
        engine.search("Bob Stone")
except StoreUnavailableError as error:
    print(error)
else:
    print("indexed")
"""
NO_LOCKS = (errno.ENOLCK, errno.EIO, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("error", NO_LOCKS, ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_an_error(tmp_path: Path, error: int, is_new: bool) -> None:
    if not is_new:
        with Engine.open(tmp_path / "kb", embedder="hashing:32") as engine:
            engine.index_documents([Document("bell", "Bell", "The bell of Tarn rings.")])
    ended = run_with(LOCKS, INDEX, tmp_path, {"LOCK_ERROR": str(error), "LOCK_EVERY": "1"})
    assert "cannot lock files" in ended.stdout, ended.stderr


@pytest.mark.parametrize("every", [2, 3, 5, 7, 11, 20])
@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EIO], ids=errno.errorcode.get)
def test_locks_that_fail_at_times_damage_nothing(tmp_path: Path, error: int, every: int) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:32") as engine:
        engine.index_documents([Document("bell", "Bell", "The bell of Tarn rings.")])
    ended = run_with(LOCKS, INDEX, tmp_path, {"LOCK_ERROR": str(error), "LOCK_EVERY": str(every)})
    assert ended.stdout, ended.stderr
    with Engine.open(tmp_path / "kb") as engine:
        assert not engine.check().damage
        added = {f"d{number}" for number in range(5)} if ended.stdout == "indexed\n" else set()
        assert set(engine.catalogue.sources()) >= {"bell", *added}
