"""Flips random bits in the files of an index, and checks that no damage is silent.

``python -m tests.attacks.flips --flips 200`` flips one bit of a copy of an index in each round. The bit is either

- harmless: `polyad check` reports nothing, and every answer is that of the sound index;
- repaired: after `polyad check --repair`, and after indexing the documents that it names, every answer is that of the
  sound index;
- lost: the check says that a backup is needed, and no answer differs from that of the sound index without an error.

Anything else is a violation.
"""

# ruff: noqa: T201  a script that prints

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.maintenance import CheckReport
from polyad.errors import PolyadError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Document, Timings
from polyad.snapshot import provider
from polyad.stores.sqlite import FILE_NAME
from polyad.text.json_types import format_value

DOCUMENTS = 30
QUESTION = "Who repaired pump 7 in Tarn?"
RETRIEVERS = ("default", "bm25", "dense", "hypersu", "hypergraphrag")
FACT = Document("fact", "", "Ada Lee gave 3 kg.", arguments=(Argument("giver", "Ada Lee"),), relation="give")


@dataclass
class Findings:
    """Counts of outcomes, of the invariants that were violated, and the violations of what is promised."""

    outcomes: Counter[str] = field(default_factory=Counter)
    invariants: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def open_engine(directory: Path) -> Engine:
    model = ScriptedLanguageModel(
        lambda prompt: '{"entities": []}' if "entities" in prompt.user else "Ines Moreau [1]."
    )
    return Engine.open(directory, embedder=HashingEmbedder(32), language_model=model, create=False)


def build(folder: Path) -> None:
    """Write files and index them, with facts, corrections, replies, entity vectors and a saved snapshot."""
    for number in range(DOCUMENTS):
        text = (
            f"# Pump {number}\n\nInes Moreau repaired pump {number} in Tarn. Bo Ray built it in Aldby {number % 7}.\n"
        )
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files" / f"d{number:02}.md").write_text(text)
    with contextlib.chdir(folder):
        Engine.open("kb", embedder=HashingEmbedder(32)).close()
        with open_engine(Path("kb")) as engine:
            engine.index(["files"])
            engine.index_documents([FACT, Document("gone", "", "This text is removed.")])
            engine.remove("gone")
            engine.corrections.retract(entity="Bo Ray", reason="privacy")
            engine.corrections.add_aliases([("Tarnham", "Tarn")])
            engine.corrections.disable("files/d03.md")
            engine.prepare("hypergraphrag")
            engine.ask(QUESTION)


def read_answers(directory: Path) -> Iterator[tuple[str, Any]]:
    """Yield everything that an index answers, by name."""
    with open_engine(directory) as engine:
        for retriever in RETRIEVERS:
            yield retriever, replace(engine.search(QUESTION, retriever=retriever), timings=Timings())
        catalogue = engine.catalogue
        for id in catalogue.sources():
            yield f"document {id}", (replace(catalogue.document(id), metadata={}), catalogue.origin(id).title)
        yield "entities", catalogue.entities()
        yield "hyperedges", catalogue.hyperedges()
        yield "statements", format_value(catalogue.statements())
        statistics = asdict(catalogue.statistics())
        yield "statistics", {key: statistics[key] for key in ("documents", "passages", "entities", "tokens", "cost")}


def find_difference(directory: Path, expected: dict[str, Any]) -> str:
    """Return where an index answers otherwise than the sound index, without an error; empty if nowhere."""
    answers: dict[str, Any] = {}
    try:
        for name, answer in read_answers(directory):
            answers[name] = answer
            if expected.get(name) != answer:
                return f"another answer of {name}"
    except PolyadError:
        return ""
    missing = expected.keys() - answers.keys()
    return f"no answer of {sorted(missing)[:3]}" if missing else ""


def check(directory: Path, *, repair: bool = False) -> CheckReport | None:
    """Check an index; return None if it cannot be opened."""
    try:
        with open_engine(directory) as engine:
            return engine.check(repair=repair)
    except PolyadError:
        return None


def index_again(directory: Path, report: CheckReport) -> None:
    """Do what `polyad check` names for what remains, then index all files."""
    for damage in report.remaining:
        with open_engine(directory) as engine, contextlib.suppress(PolyadError, UnicodeEncodeError):
            source = report.sources.get(damage.document_id, "")
            if damage.table == "document" or not source:
                engine.remove(damage.document_id)
            else:
                engine.index([source], force=True)
    with open_engine(directory) as engine:
        engine.index(["files"])
        engine.index_documents([FACT])


def judge(directory: Path, expected: dict[str, Any], findings: Findings, label: str) -> str:
    """Return the outcome of one flip."""
    report = check(directory)
    if report is None:
        return "lost"
    findings.invariants.update({one.invariant for one in report.damage})
    difference = find_difference(directory, expected)
    if not report.damage:
        if difference:
            findings.violations.append(f"{label}: silent: {difference}")
        return "harmless"
    report = check(directory, repair=True)
    if report is None or any(one.remedy == "restore" for one in report.remaining):
        return "lost"
    try:
        index_again(directory, report)
    except PolyadError as error:
        findings.violations.append(f"{label}: indexing again failed: {error}")
        return "lost"
    again = check(directory)
    if again is None or again.damage:
        findings.violations.append(f"{label}: damage remains: {again and again.damage[:3]}")
    difference = find_difference(directory, expected)
    if difference:
        findings.violations.append(f"{label}: after the repair of {report.damage[:3]}: {difference}")
    return "indexed again" if report.remaining else "repaired"


def flip(folder: Path, chance: random.Random) -> str:
    """Flip a bit of a used byte of a file, of the database in two of three cases; return where."""
    files = sorted(path for path in (folder / "kb").rglob("*") if path.is_file() and any(path.read_bytes()))
    path = chance.choice([folder / "kb" / FILE_NAME, folder / "kb" / FILE_NAME, chance.choice(files)])
    contents = bytearray(path.read_bytes())
    place, bit = chance.choice([place for place, byte in enumerate(contents) if byte]), chance.randrange(8)
    contents[place] ^= 1 << bit
    path.write_bytes(contents)
    return f"{path.name} byte {place} bit {bit}"


def flip_again_and_again(flips: int, seed: int = 0, *, report_progress: bool = False) -> Findings:
    """Flip one bit of a fresh copy of an index, so many times."""
    findings, saved = Findings(), provider.MIN_SAVED
    provider.MIN_SAVED = 1
    try:
        with tempfile.TemporaryDirectory() as name:
            sound = Path(name, "sound")
            sound.mkdir()
            build(sound)
            with contextlib.chdir(sound):
                expected = dict(read_answers(Path("kb")))
            for number in range(flips):
                copy = shutil.copytree(sound, Path(name, "copy"))
                label = flip(copy, random.Random(f"{seed} {number}"))
                with contextlib.chdir(copy):
                    try:
                        findings.outcomes[judge(Path("kb"), expected, findings, f"{number} {label}")] += 1
                    except Exception:  # each is a violation: errors of polyad are PolyadError
                        findings.violations.append(f"{number} {label}: {traceback.format_exc()}")
                shutil.rmtree(copy)
                if report_progress:
                    print(number, dict(findings.outcomes), len(findings.violations), file=sys.stderr, end="\r")
    finally:
        provider.MIN_SAVED = saved
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    findings = flip_again_and_again(arguments.flips, arguments.seed, report_progress=True)
    print(f"\noutcomes {dict(findings.outcomes)}\ninvariants {dict(findings.invariants)}")
    print("\n".join(["violations: none"] if not findings.violations else findings.violations))
    sys.exit(bool(findings.violations))


if __name__ == "__main__":
    main()
