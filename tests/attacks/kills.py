"""Kills processes that change an index, beside processes that search it, and compares what is left with a fresh index.

``python -m tests.attacks.kills --kills 1000`` forks a process for each change (index, update, remove, prune, force,
retract, restore, alias, disable, enable, embed, import, back up, repair, or a search that writes the snapshot), kills
it after a random part of the time that the change takes, and then checks:

- lost: a document that the change does not concern is missing, or a change that ended is not in the index;
- torn: a document has neither its old nor its new text, or other passages than a fresh index of its text;
- unequal: entities, hyperedges or the hits of a search differ from those of a fresh index of the same documents with
  the same corrections;
- damaged: `polyad check` finds damage in the index or in a backup;
- repeated: the same command once more does not complete the change, or does again what was done already;
- misread: a search beside the changes failed or returned a passage of two editions.

Nothing here depends on a disk that loses power (see ``power.py``), so a folder in memory (``TMPDIR=/dev/shm``) is as
good and faster.
"""

# ruff: noqa: T201  a script that prints

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from polyad.curation.statements import Statements
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine, transfer
from polyad.errors import ConfigurationError, IndexMismatchError, NotFoundError
from polyad.indexing import indexer
from polyad.model import Document, Entity
from polyad.protocols.lookups import get_all, get_digests, get_document_passages
from polyad.snapshot import provider
from polyad.stores.sqlite import FILE_NAME

READERS = 1
DOCUMENTS = 12
SENTENCES = 5
FOLDER = "files"
BACKUP = "backup.sqlite"
REPEATED = 5
"""After every so many changes the command is run once more, to its end."""
QUESTION = "Where did Anna 3 meet Bob Stone in edition 2?"


@dataclass
class Findings:
    """What was checked, and each violation in one line."""

    kills: Counter[str] = field(default_factory=Counter)
    survived: int = 0
    partial: int = 0
    searches: int = 0
    repeated: int = 0
    violations: list[str] = field(default_factory=list)


def write_text(number: int, edition: int) -> str:
    sentences = (
        f"Anna {number} of edition {edition} met Bob Stone in Oslo {number % 5} in the year {1900 + place}."
        for place in range(SENTENCES)
    )
    return f"# Town {number} edition {edition}\n\n" + " ".join(sentences) + "\n"


def open_engine(directory: Path, *, create: bool = True) -> Engine:
    embedder = None if Engine.exists(directory) else HashingEmbedder(32)
    return Engine.open(directory, embedder=embedder, create=create)


Change = Callable[[Path], int | None]
"""Changes the index in a directory; returns how many documents were built again, None if this is not counted."""


class Changes:
    """The changes of an index, chosen at random; each knows the editions that every document may have afterwards.

    Attributes:
        before: Edition of each document in the index before the change, by id.
        after: Edition of each document after the change; a document that is missing is removed.
    """

    def __init__(self, chance: random.Random) -> None:
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._chance = chance
        self._edition = 0

    def choose(self) -> tuple[str, Change]:
        """Return the name of a change and the change itself; write the files that it needs."""
        self._edition += 1
        changes = [self._index, self._update, self._remove, self._prune, self._force, self._search]
        changes += [self._retract, self._restore, self._alias, self._disable, self._enable, self._embed, self._import]
        changes += [self._back_up, self._repair]
        change = self._chance.choice(
            changes if min(len(self.before), len(self._files)) > DOCUMENTS / 2 else [self._index]
        )
        return change.__name__.strip("_"), change()

    def _index(self) -> Change:
        return self._write(range(DOCUMENTS))

    def _update(self) -> Change:
        return self._write(self._chance.sample(range(DOCUMENTS), 4))

    def _force(self) -> Change:
        return self._write((), force=True)

    def _prune(self) -> Change:
        deleted = self._chance.sample(sorted(self._files), 2)
        run = self._write((), prune=True)
        for id in deleted:
            Path(id).unlink()
            del self._files[id]
        self.after = dict(self._files)
        return run

    def _remove(self) -> Change:
        ids = self._chance.sample(sorted(self.before), 3)
        self.after = {id: edition for id, edition in self.before.items() if id not in ids}

        def remove(directory: Path) -> None:
            with open_engine(directory) as engine:
                engine.remove([id for id in ids if id in get_digests(engine._store)])

        return remove

    def _search(self) -> Change:
        self.after = dict(self.before)

        def search(directory: Path) -> None:
            shutil.rmtree(directory / "snapshot", ignore_errors=True)
            with open_engine(directory) as engine:
                engine.search(QUESTION)

        return search

    def _correct(self, correct: Callable[[Engine], object]) -> Change:
        """Return a change that corrects the index, unless there is nothing to correct."""
        self.after = dict(self.before)

        def run(directory: Path) -> None:
            with open_engine(directory) as engine, contextlib.suppress(NotFoundError, ConfigurationError):
                correct(engine)

        return run

    def _retract(self) -> Change:
        name = self._chance.choice(["Bob Stone", *(f"Anna {number}" for number in range(DOCUMENTS))])
        return self._correct(lambda engine: engine.corrections.retract(entity=name, reason="wrong"))

    def _restore(self) -> Change:
        def restore(engine: Engine) -> None:
            for retraction in engine.catalogue.statements().retractions.values():
                engine.corrections.restore(entity=retraction.entity)

        return self._correct(restore)

    def _alias(self) -> Change:
        names = self._chance.sample(range(5), 2)
        pair = f"Oslo {names[0]}", f"Oslo {names[1]}"
        return self._correct(lambda engine: engine.corrections.add_aliases([pair]))

    def _disable(self) -> Change:
        ids = self._chance.sample(sorted(self.before), 3)
        return self._correct(lambda engine: engine.corrections.disable(ids))

    def _enable(self) -> Change:
        return self._correct(lambda engine: engine.corrections.enable(list(engine.catalogue.statements().disabled)))

    def _embed(self) -> Change:
        def embed(engine: Engine) -> None:
            is_small = engine.catalogue.statistics().settings["embedder"] == HashingEmbedder(32).name
            engine.replace_embedder(HashingEmbedder(48 if is_small else 32))

        return self._correct(embed)

    def _back_up(self) -> Change:
        path = Path(BACKUP).absolute()
        return self._correct(lambda engine: engine.back_up(path, overwrite=True))

    def _repair(self) -> Change:
        """Return a change that damages the saved snapshot, and repairs it."""

        def repair(engine: Engine) -> None:
            for path in (engine.directory or Path()).glob("snapshot/*/passage_vectors.bin"):
                path.write_bytes(path.read_bytes()[:-4] + b"spot")
            engine.check(repair=True)

        return self._correct(repair)

    def _import(self) -> Change:
        """Return a change that imports new editions; the files keep the old editions."""
        numbers = self._chance.sample(range(DOCUMENTS), 6)
        imported = {f"{FOLDER}/{number:02}.md": self._edition for number in numbers}
        path, embedder = Path("export.jsonl").absolute(), HashingEmbedder(self._chance.choice((32, 48)))
        with build_fresh(imported, embedder.name) as engine:
            engine.export(path, vectors=self._chance.random() < 0.7, overwrite=True)
        self.after = self.before | imported

        def run(directory: Path) -> int:
            with open_engine(directory) as engine:
                report = engine.import_file(path)
                return report.added + report.updated

        return run

    def _write(self, numbers: Iterable[int], *, force: bool = False, prune: bool = False) -> Change:
        written = {f"{FOLDER}/{number:02}.md": self._edition for number in numbers}
        write_files(written)
        self._files |= written
        self.after = self.before | self._files

        def index(directory: Path) -> int | None:
            with open_engine(directory) as engine:
                counts = engine.index([Path(FOLDER)], force=force, prune=prune).counts
                return None if force else counts.added + counts.updated

        return index


def write_files(editions: Mapping[str, int]) -> None:
    """Write the files of documents below the working directory."""
    for id, edition in editions.items():
        Path(id).parent.mkdir(parents=True, exist_ok=True)
        Path(id).write_text(write_text(int(Path(id).stem), edition))


@contextmanager
def build_fresh(editions: Mapping[str, int], embedder: str, statements: Statements | None = None) -> Iterator[Engine]:
    """Index editions of documents into a new index, with the statements of users."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        write_files(editions)
        with Engine.open(Path("kb"), embedder=embedder) as engine:
            engine._store.put(values=(statements or Statements()).format())
            if editions:
                engine.index([Path(FOLDER)])
            yield engine


def read_contents(engine: Engine) -> dict[str, object]:
    """Return everything that an index states, and the hits of searches."""
    store = engine._store
    ids = sorted(get_digests(store))
    passages = get_document_passages(store, ids)
    contents: dict[str, object] = {
        "documents": [replace(item, metadata={}) for item in get_all(store, Document, ids)],
        "passages": [(item.passage, item.vector.tobytes()) for item in passages],
        "hyperedges": [(edge.hyperedge, edge.vector.tobytes()) for item in passages for edge in item.hyperedges],
        "entities": get_all(store, Entity),
    }
    for retriever in ("default", "bm25"):
        evidence = engine.search(QUESTION, 10, retriever=retriever)
        contents[retriever] = [(hit.passage, round(hit.score, 9)) for hit in evidence.passages]
    return contents


def read_editions(engine: Engine) -> dict[str, set[int]]:
    """Return the editions that the text of each document names; a whole document names one."""
    documents = get_all(engine._store, Document, sorted(get_digests(engine._store)))
    return {one.id: {int(number) for number in re.findall(r"edition (\d+)", one.text)} for one in documents}


def check(directory: Path, changes: Changes, findings: Findings, label: str, *, has_ended: bool) -> None:
    """Compare an index after a kill with the editions that its documents may have, and with a fresh index of them."""
    with open_engine(directory, create=False) as engine:
        named = read_editions(engine)
        for id, numbers in named.items():
            if len(numbers) > 1 or not numbers & {changes.before.get(id), changes.after.get(id)}:
                findings.violations.append(f"{label}: torn {id}: {numbers}")
        editions = {id: min(numbers) for id, numbers in named.items()}
        for id in changes.before.keys() & changes.after.keys() - editions.keys():
            findings.violations.append(f"{label}: lost {id}")
        if has_ended and editions != changes.after:
            findings.violations.append(f"{label}: lost a change that had ended")
        findings.partial += editions not in (changes.before, changes.after)
        changes.before = editions
        contents, statements = read_contents(engine), engine.catalogue.statements()
        embedder = engine.components.embedder.name
        findings.violations += [f"{label}: damaged {one}" for one in engine.check().damage]
    if Path(BACKUP).exists():
        copy = Path("restored")
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        Path(BACKUP).rename(copy / FILE_NAME)
        with open_engine(copy, create=False) as engine:
            findings.violations += [f"{label}: damaged backup {one}" for one in engine.check().damage]
            if read_editions(engine) != named:
                findings.violations.append(f"{label}: backup of other documents")
    with build_fresh(editions, embedder, statements) as engine:
        expected = read_contents(engine)
    findings.violations += [f"{label}: unequal {name}" for name in expected if contents[name] != expected[name]]


def repeat(directory: Path, change: Change, changes: Changes, findings: Findings, label: str) -> None:
    """Run a change that was killed once more: it does what is missing, and nothing else."""
    findings.repeated += 1
    missing = sum(changes.before.get(id) != edition for id, edition in changes.after.items())
    built = change(directory)
    if built not in (None, missing):
        findings.violations.append(f"{label}: repeated {built} documents of which {missing} were missing")
    check(directory, changes, findings, f"{label} again", has_ended=True)


def read_beside(directory: Path, output: int) -> None:
    """Search an index until the process is killed, writing a line for each violation and a dot for each search."""
    while True:
        try:
            with open_engine(directory, create=False) as engine:
                for _ in range(20):
                    for hit in engine.search(QUESTION, 10).passages:
                        if len(set(re.findall(r"edition (\d+)", hit.passage.text))) > 1:
                            os.write(output, f"\nmisread {hit.passage.text[:80]!r}\n".encode())
                    os.write(output, b".")
                    time.sleep(0.02)
        except IndexMismatchError:  # the vectors were replaced: open the index again
            continue
        except Exception:  # each is a finding
            os.write(output, f"\nmisread {traceback.format_exc()!r}\n".encode())
            time.sleep(0.2)


@contextmanager
def fork(run: Callable[[], object]) -> Iterator[int]:
    """Run a function in a forked process, and kill that process at the end of the block."""
    child = os.fork()
    if not child:
        code = 1
        try:
            run()
            code = 0
        except BaseException:  # printed; the process ends without the parent's clean-up
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def kill_again_and_again(directory: Path, kills: int, seed: int = 0, *, report_progress: bool = False) -> Findings:
    """Change an index and kill the process that does, so many times, beside processes that search it."""
    provider.MIN_SAVED = 1
    indexer.BATCH_CHARACTERS = transfer._BATCH_CHARACTERS = 3 * len(write_text(0, 0))  # several transactions in a run
    chance, findings = random.Random(seed), Findings()
    index, changes = directory / "kb", Changes(chance)
    seconds: dict[str, float] = {}
    _, change = changes.choose()
    change(index)
    check(index, changes, findings, "first", has_ended=True)
    end, output = os.pipe()
    os.set_blocking(end, False)
    readers = [fork(lambda: read_beside(index, output)) for _ in range(READERS)]
    for reader in readers:
        reader.__enter__()
    try:
        while sum(findings.kills.values()) < kills:
            name, change = changes.choose()
            started = time.perf_counter()
            with fork(lambda change=change: change(index)) as child:  # type: ignore[misc]
                limit = chance.uniform(0, seconds[name]) if name in seconds else 60.0
                ended: os.waitid_result | None = None
                while not ended and time.perf_counter() - started < limit:
                    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                    time.sleep(0.0005)
            label = f"{sum(findings.kills.values())} {name}"
            if ended:
                seconds[name] = time.perf_counter() - started
                findings.survived += 1
                findings.violations += [f"{label}: failed"] * (ended.si_status != 0)
            else:
                findings.kills[name] += 1
            check(index, changes, findings, label, has_ended=bool(ended))
            if not ended and sum(findings.kills.values()) % REPEATED == 0:
                repeat(index, change, changes, findings, label)
            findings.searches += _collect(end, findings)
            if report_progress:
                print(dict(findings.kills), len(findings.violations), file=sys.stderr, end="\r")
    finally:
        for reader in readers:
            reader.__exit__(None, None, None)
    return findings


def _collect(end: int, findings: Findings) -> int:
    """Return the number of searches since the last call, adding the violations that the readers wrote."""
    searches = 0
    while True:
        try:
            pieces = os.read(end, 1 << 16).decode()
        except BlockingIOError:
            return searches
        lines = pieces.split("\n")
        searches += sum(line.count(".") for line in lines if not line.startswith("misread"))
        findings.violations += [line for line in lines if line.startswith("misread")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        findings = kill_again_and_again(Path(name), arguments.kills, arguments.seed, report_progress=True)
    print(f"\n{sum(findings.kills.values())} kills {dict(findings.kills)} in {time.perf_counter() - started:.0f} s")
    print(
        f"{findings.survived} changes ended before, {findings.partial} left a part, {findings.repeated} were repeated, "
        f"{findings.searches} searches beside"
    )
    for line in findings.violations[:40]:
        print(line)
    print(f"{len(findings.violations)} violations")
    return 1 if findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
