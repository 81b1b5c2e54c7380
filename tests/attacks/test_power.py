"""Power cuts lose nothing that was acknowledged; ``power.py`` does the same more often.

Disks that ignore an ``fsync`` lose something, so the checks can fail.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.disk import Call, Disk, find_obstacle
from tests.attacks.power import PowerFindings, Record, cut_again_and_again, record

CHANGES = 10

pytestmark = pytest.mark.attacks
_OBSTACLE = find_obstacle()
needs_traces = pytest.mark.skipif(bool(_OBSTACLE), reason=_OBSTACLE)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return record(tmp_path_factory.mktemp("power") / "disk", count=CHANGES)


@needs_traces
def test_power_cuts_lose_nothing(recorded: Record) -> None:
    findings = PowerFindings()
    cut_again_and_again(recorded, recorded.choose_positions(20), findings)
    assert findings.violations == []
    assert sum(findings.kills.values()) == 20
    assert len(findings.kills) >= 3, "cuts during several kinds of changes"


@needs_traces
def test_one_lost_sync_is_found(recorded: Record) -> None:
    position, end = find_last_sync(recorded)
    calls = list(recorded.calls)
    calls[position] = replace(calls[position], path="another file")
    assert loses(replace(recorded, calls=calls), [end] * 10)


def find_last_sync(recorded: Record) -> tuple[int, int]:
    """Return the position of the last sync of a change that ended with a commit to the log, and of the change's end."""
    for name, end in zip(recorded.names, recorded.ends, strict=True):
        last = max(number for number, call in enumerate(recorded.calls[:end]) if call.kind == "sync")
        if recorded.calls[last].path.endswith("-wal") and name in ("update", "remove", "retract", "alias", "disable"):
            return last, end
    raise AssertionError("no change ended with a commit to the log")


def loses(recorded: Record, positions: Sequence[int], without: str = "") -> bool:
    """Return whether a power cut at one of the positions loses something."""
    findings = PowerFindings()
    for number, position in enumerate(positions):
        cut_again_and_again(replace(recorded, seed=2 * number), [position], findings, without=without)
        if findings.violations:
            return True
    return False


@needs_traces
@pytest.mark.parametrize("file", ["kb/index.sqlite-wal", "kb", "."])
def test_a_file_or_folder_that_is_never_synced_is_found(recorded: Record, file: str) -> None:
    assert loses(recorded, recorded.ends * 2, file)


@needs_traces
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_less_synchronous_writes_lose_changes(tmp_path: Path, synchronous: str) -> None:
    recorded = record(tmp_path / "disk", count=5, synchronous=synchronous)
    assert loses(recorded, recorded.ends * 4)


CREATE = [Call("create", "a"), Call("sync", ".")]
LONG = b"x" * 1024


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([Call("create", "a")], [{}, {"a": b""}]),
        ([*CREATE, Call("write", "a", data=b"old"), Call("sync", "a")], [{"a": b"old"}]),
        ([Call("create", "a"), Call("write", "a", data=b"old"), Call("sync", "a")], [{}, {"a": b"old"}]),
        (
            [*CREATE, Call("create", "b"), Call("sync", "b"), Call("delete", "a")],
            [{}, {"a": b""}, {"b": b""}, {"a": b"", "b": b""}],
        ),
        ([*CREATE, Call("rename", "a", "b")], [{"a": b""}, {"b": b""}]),
        ([*CREATE, Call("rename", "a", "b"), Call("sync", ".")], [{"b": b""}]),
        ([*CREATE, Call("create", "a-shm"), Call("sync", ".")], [{"a": b""}]),
        (
            [*CREATE, Call("write", "a", data=b"one"), Call("sync", "a"), Call("write", "a", data=b"two")],
            [{"a": b"one"}, {"a": b"two"}],
        ),
        (
            [*CREATE, Call("write", "a", data=b"one"), Call("sync", "a"), Call("truncate", "a")],
            [{"a": b"one"}, {"a": b""}],
        ),
    ],
)
def test_a_power_cut_leaves_each_legal_disk_and_no_other(
    calls: Sequence[Call], expected: Sequence[dict[str, bytes]], tmp_path: Path
) -> None:
    disks = cut(calls, tmp_path, 60)
    assert all(disk in expected for disk in disks)
    assert all(disk in disks for disk in expected)


def test_a_power_cut_tears_writes_at_sectors_and_keeps_the_order_of_writes_to_a_sector(tmp_path: Path) -> None:
    writes = [Call("write", "a", data=letter * 1024) for letter in (b"1", b"2", b"3")]
    disks = cut([*CREATE, writes[0], Call("sync", "a"), *writes[1:]], tmp_path, 1000)
    contents = {(disk["a"][:512], disk["a"][512:]) for disk in disks}
    assert contents == {(one * 512, two * 512) for one in (b"1", b"2", b"3") for two in (b"1", b"2", b"3")}


def test_a_file_that_grew_without_its_contents_has_other_bytes(tmp_path: Path) -> None:
    disks = cut([*CREATE, Call("write", "a", data=b"x" * 600)], tmp_path, 200)
    sizes = {len(disk["a"]) for disk in disks}
    assert sizes == {0, 512, 600}
    assert any(disk["a"] == bytes(600) for disk in disks)
    assert any(disk["a"] not in (b"", b"x" * 512, b"x" * 600) and any(disk["a"]) for disk in disks)


def cut(calls: Sequence[Call], folder: Path, count: int) -> list[dict[str, bytes]]:
    """Return the files of some disks that a power cut after the calls could leave."""
    disk, disks = Disk(), []
    for call in calls:
        disk.apply(call)
    for seed in range(count):
        target = folder / str(seed)
        target.mkdir()
        disk.cut(random.Random(seed), target)
        disks.append({path.name: path.read_bytes() for path in target.iterdir()})
    return disks
