"""Cuts the power while an index changes, and checks the disk that is left.

``python -m tests.attacks.power --cuts 1000`` records the system calls of changes like those of ``kills.py`` (index,
update, remove, prune, retract, import, back up and others), with the moment when each change ended. From the record it
builds disks that a power cut at a random moment could leave (``disk.py``), and checks each:

- lost: a document, correction or backup of a change that had ended is missing, or a removed one is there again;
- torn: a document has neither its old nor its new text, or other passages than a fresh index of its text;
- unequal: entities, hyperedges or hits differ from those of a fresh index, such as when a damaged snapshot is served;
- damaged: `polyad check` finds damage in the index or in a backup;
- failed: the index cannot be opened, or not be written.

Some changes run while the index is open elsewhere, so that SQLite's log is not copied into the index at their end.
``--synchronous OFF`` or ``NORMAL``, and ``--without=-wal`` (no ``fsync`` of this file), show that losses are found.
"""

# ruff: noqa: T201  a script that prints

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from polyad.engine import Engine, transfer
from polyad.indexing import indexer
from polyad.model import Document
from polyad.protocols.store import ReadTransaction, Store
from polyad.snapshot import array_files, provider
from polyad.snapshot.files import FOLDER, SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.stores.sqlite import FILE_NAME, database
from tests.attacks.disk import Call, Disk, find_obstacle, trace
from tests.attacks.kills import BACKUP, QUESTION, Changes, Findings, check, open_engine, read_editions, write_text

INDEX = "kb"
MARKS = "marks.jsonl"
CHANGES = 30
"""Changes in one record."""
CUTS = 100
"""Cuts of one record; more cuts need more records."""
MAX_VERIFIED = (0, array_files._MAX_VERIFIED)
"""Bytes of the largest array of a snapshot whose checksum searches verify, for even and odd seeds. Larger arrays, as of
millions of documents, are trusted; 0 is the case of such an index."""


@dataclass
class PowerFindings(Findings):
    """What was checked; ``kills`` are power cuts, and ``snapshots`` says how many saved snapshots were read."""

    snapshots: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class State:
    """What a change has acknowledged.

    Attributes:
        editions: Edition of each document, by id.
        facts: The other facts, such as the name of the embedder and the corrections.
        backup: Edition of each document in the backup; None without a backup.
    """

    editions: dict[str, int] = field(default_factory=dict)
    facts: frozenset[str] = frozenset()
    backup: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Changes of an index as system calls.

    Attributes:
        seed: Seed of the random choices.
        calls: The system calls.
        begins: Position of the first call of each change.
        ends: Position after the last call of each change that had ended.
        names: Name of each change.
        states: State after each change, behind that of no index.
    """

    seed: int
    calls: list[Call]
    begins: list[int]
    ends: list[int]
    names: list[str]
    states: list[State]

    def choose_positions(self, cuts: int) -> list[int]:
        """Return random positions, half of them where a change has just ended, when losses are most frequent."""
        chance = random.Random(self.seed)
        moments = [range(len(self.calls) + 1), self.ends]
        return [chance.choice(moments[number % 2]) for number in range(cuts)]


def make_changes(seed: int, count: int, synchronous: str) -> None:
    """Change an index in the working directory, and write a mark before and after each change."""
    chance = random.Random(seed)
    changes, index, backup = Changes(chance), Path(INDEX), None
    with _small_limits(seed), _synchronous(synchronous), ExitStack() as stack:
        for _ in range(count):
            name, change = changes.choose()
            while name == "repair":  # it damages an array that searches trust
                name, change = changes.choose()
            _mark({"begin": name})
            change(index)
            _mark({"end": name})
            changes.before = dict(changes.after)
            if name == "back_up":
                backup = changes.before
            _mark({"editions": changes.before, "facts": sorted(_read_facts(index)), "backup": backup})
            with open_engine(index) if chance.random() < 0.5 else contextlib.nullcontext() as engine:
                if engine:
                    engine.search(QUESTION)  # saves a snapshot
            if chance.random() < 0.2:
                stack.close()
            else:
                stack.enter_context(open_engine(index))


def _mark(mark: object) -> None:
    with Path(MARKS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(mark) + "\n")


def _read_facts(index: Path) -> frozenset[str]:
    """Return the name of the embedder and the corrections of an index, each as a string."""
    with open_engine(index, create=False) as engine:
        values = engine.catalogue.statements().format()
        corrections = {f"{space} {key}: {value!r}" for space, pairs in values.items() for key, value in pairs.items()}
        return frozenset({f"embedder {engine.components.embedder.name}", *corrections})


@contextmanager
def _small_limits(seed: int) -> Iterator[None]:
    """Index a few documents in a transaction, save each snapshot, and verify its arrays or trust all."""
    size = 3 * len(write_text(0, 0))
    with (
        patch.object(provider, "MIN_SAVED", 1),
        patch.object(indexer, "BATCH_CHARACTERS", size),
        patch.object(transfer, "_BATCH_CHARACTERS", size),
        patch.object(array_files, "_MAX_VERIFIED", MAX_VERIFIED[seed % 2]),
    ):
        yield


@contextmanager
def _synchronous(value: str) -> Iterator[None]:
    """Let connections use another value of SQLite's setting ``synchronous``; an empty string changes nothing."""
    connect = database._connect

    def connect_with_value(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA synchronous = {value}")
        return connection

    with patch.object(database, "_connect", connect_with_value) if value else contextlib.nullcontext():
        yield


def record(folder: Path, seed: int = 0, count: int = CHANGES, synchronous: str = "") -> Record:
    """Run :func:`make_changes` in a process whose system calls are traced, in a new folder ``folder``."""
    folder.mkdir()
    command = [sys.executable, "-m", __spec__.name if __name__ == "__main__" else __name__]
    command += ["--record", "--seed", str(seed), "--changes", str(count), "--synchronous", synchronous]
    calls, marks = [], []
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    for call in trace(command, folder, {**os.environ, "PYTHONPATH": path}):
        if call.path != MARKS:
            calls.append(call)
        elif call.kind == "write":
            marks.append((len(calls), json.loads(call.data)))
    states = [State(**{**mark, "facts": frozenset(mark["facts"])}) for _, mark in marks if "editions" in mark]
    return Record(
        seed,
        calls,
        [position for position, mark in marks if "begin" in mark],
        [position for position, mark in marks if "end" in mark],
        [mark["begin"] for _, mark in marks if "begin" in mark],
        [State(), *states],
    )


def cut_again_and_again(
    recorded: Record, positions: Sequence[int], findings: PowerFindings, *, without: str = ""
) -> None:
    """Cut the power before each of some system calls, and add violations to the findings.

    Args:
        recorded: The changes.
        positions: Positions of system calls.
        findings: Receives violations.
        without: The disk ignores each ``fsync`` of a path that ends with this; an empty string for none.
    """
    chance, disk, position = random.Random(recorded.seed), Disk(), 0
    for cut in sorted(positions):
        for call in recorded.calls[position:cut]:
            if not (without and call.kind == "sync" and call.path.endswith(without)):
                disk.apply(call)
        position = cut
        ended = bisect_right(recorded.ends, cut)
        begun = max(ended, bisect_left(recorded.begins, cut))
        name = recorded.names[begun - 1] if begun else "nothing"
        findings.kills[name] += 1
        label = f"seed {recorded.seed}, call {cut}, {name}{'' if begun == ended else ' under way'}"
        with tempfile.TemporaryDirectory() as image, contextlib.chdir(image), _small_limits(recorded.seed):
            disk.cut(chance, Path(image))
            try:
                _check_disk(recorded.states[ended], recorded.states[begun], findings, label)
            except Exception as error:  # each is a finding
                findings.violations.append(f"{label}: failed {error!r}")


def _check_disk(past: State, future: State, findings: PowerFindings, label: str) -> None:
    """Check the files in the working directory; the state is ``past``, ``future`` or in between."""
    _check_backup(past, future, findings, label)
    index = Path(INDEX)
    if not past.editions and not Engine.exists(index):
        open_engine(index).close()
    changes = Changes(random.Random(0))
    changes.before, changes.after = past.editions, future.editions
    with _count_snapshots(index, findings):
        check(index, changes, findings, label, has_ended=past is future)
    facts = _read_facts(index)
    findings.violations += [f"{label}: lost {fact}" for fact in (past.facts & future.facts) - facts]
    if past.facts and facts - past.facts - future.facts:
        findings.violations.append(f"{label}: torn corrections {facts - past.facts - future.facts}")
    with open_engine(index, create=False) as engine:
        if engine.index_documents([Document("next", "Next", "Anna met Bob Stone in Bergen.")]).counts.added != 1:
            findings.violations.append(f"{label}: failed to index another document")


def _check_backup(past: State, future: State, findings: PowerFindings, label: str) -> None:
    if not Path(BACKUP).exists():
        findings.violations += [f"{label}: lost the backup"] * (past.backup is not None)
        return
    folder = Path("restored")
    folder.mkdir()
    Path(BACKUP).rename(folder / FILE_NAME)
    with open_engine(folder, create=False) as engine:
        editions = {id: min(numbers) for id, numbers in read_editions(engine).items()}
        findings.violations += [f"{label}: damaged backup {one}" for one in engine.check().damage]
    if editions not in (past.backup, future.backup):
        findings.violations.append(f"{label}: lost the backup, an older one is there")


@contextmanager
def _count_snapshots(index: Path, findings: PowerFindings) -> Iterator[None]:
    """Count whether the first search reads the saved snapshot, if there is one, or builds it again."""
    load, is_first = SnapshotFiles.load, (index / FOLDER).exists()

    def count(files: SnapshotFiles, store: Store, transaction: ReadTransaction) -> MappedSnapshot | None:
        nonlocal is_first
        snapshot = load(files, store, transaction)
        if is_first:
            findings.snapshots["built again" if snapshot is None else "read"] += 1
        is_first = False
        return snapshot

    with patch.object(SnapshotFiles, "load", count):
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--changes", type=int, default=CHANGES, help="changes in one record")
    parser.add_argument("--synchronous", default="", help="SQLite's setting while changes are recorded")
    parser.add_argument("--without", default="", help="ignore each fsync of a path that ends with this, such as -wal")
    parser.add_argument("--record", action="store_true", help="only change an index in the working directory")
    arguments = parser.parse_args()
    if arguments.record:
        make_changes(arguments.seed, arguments.changes, arguments.synchronous)
        return 0
    if obstacle := find_obstacle():
        print(obstacle)
        return 2
    started, findings, calls = time.perf_counter(), PowerFindings(), 0
    for seed in range(arguments.seed, arguments.seed + math.ceil(arguments.cuts / CUTS)):
        with tempfile.TemporaryDirectory() as name:
            recorded = record(Path(name, "disk"), seed, arguments.changes, arguments.synchronous)
        calls += len(recorded.calls)
        cuts = min(CUTS, arguments.cuts - sum(findings.kills.values()))
        cut_again_and_again(recorded, recorded.choose_positions(cuts), findings, without=arguments.without)
        print(sum(findings.kills.values()), len(findings.violations), file=sys.stderr, end="\r")
    print(f"\n{sum(findings.kills.values())} cuts in {time.perf_counter() - started:.0f} s among {calls} system calls")
    print(f"{dict(findings.kills)}")
    print(f"{findings.partial} left a part of a change; snapshots: {dict(findings.snapshots)}")
    print("\n".join([*findings.violations[:40], f"{len(findings.violations)} violations"]))
    return 1 if findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
