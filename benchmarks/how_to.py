"""Rank of the answers to how-to questions in the manuals of nine programs, and how often ``auto`` refuses.

    python benchmarks/how_to.py FOLDER [--retrievers NAMES] [--json FILE]

Downloads nine Debian packages to FOLDER, where their indexes are kept too. The 144 questions of
``manuals/how_to.jsonl`` were written without a look at the manuals, before any search, each with a regular expression
that an answer matches. A hit counts if its text matches, so the figures compare retrievers, and are no measure of right
answers. Those of the first five packages decided a factor of ``default`` (ADR 13), those of the last four nothing.
"Displayed" is the share of the questions with an answer in the first three hits whose excerpts hold one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from measured_rows import write_rows

from polyad import Engine

FOLDERS = {
    "gnucash-docs": ["gnucash-docs/gnucash-guide-en"],
    "bash-doc": ["bash"],
    "debian-policy": ["debian-policy/policy.html"],
    "aptitude-doc-en": ["aptitude/html/en"],
    "debian-reference-en": ["../debian-reference"],
    "python3.11-doc": ["python3.11/html/tutorial", "python3.11/html/howto", "python3.11/html/faq"],
    "postgresql-doc-15": ["postgresql-doc-15/html"],
    "r-doc-html": ["../R/doc/manual"],
    "git-doc": ["git-doc"],
}
"""Folders or files of each package that are indexed, relative to ``usr/share/doc``."""

DECIDED = ("gnucash-docs", "bash-doc", "debian-policy", "aptitude-doc-en", "debian-reference-en")
"""Packages whose questions decided the factor for questions without proper names."""

OFF_TOPIC = (Path(__file__).parent / "off_topic.txt").read_text(encoding="utf-8").splitlines()
QUESTIONS = Path(__file__).parent / "manuals" / "how_to.jsonl"
DEPTH = 10


class Question(NamedTuple):
    """A question about the manual of a package, with a pattern that an answer matches."""

    package: str
    text: str
    answer: re.Pattern[str]


def main() -> None:
    """Measure all manuals and print a row for each and for both groups."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--retrievers", default="default,bm25,dense,hypergraphrag")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    records = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    questions = [Question(each["package"], each["text"], re.compile(each["answer"], re.DOTALL)) for each in records]
    rows: list[dict[str, object]] = []
    ranks_by_group: dict[tuple[bool, str], list[int]] = {}
    for package, group in groupby(questions, key=lambda question: question.package):
        on_manual = list(group)
        with Engine.open(arguments.folder / f"index of {package}") as engine:
            engine.index(unpack(package, arguments.folder))
            for retriever in arguments.retrievers.split(","):
                ranks = [rank_answer(engine, question, retriever) for question in on_manual]
                ranks_by_group.setdefault((package in DECIDED, retriever), []).extend(ranks)
                rows.append({"manual": package, "retriever": retriever, **summarise(ranks)})
                if retriever == "default":
                    rows[-1].update(measure_display(engine, on_manual))
                print(json.dumps(rows[-1]), flush=True)
    for (is_decided, retriever), every in ranks_by_group.items():
        name = "questions that decided" if is_decided else "questions that decided nothing"
        rows.append({"manual": name, "retriever": retriever, **summarise(every)})
        print(json.dumps(rows[-1]))
    if arguments.json:
        write_rows(arguments.json, rows)


def unpack(package: str, folder: Path) -> list[Path]:
    """Download and unpack a package where that is missing, and return what is to be indexed."""
    target = folder / package
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "-qq", "download", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(target)], check=True)
    return [target / "usr" / "share" / "doc" / path for path in FOLDERS[package]]


def rank_answer(engine: Engine, question: Question, retriever: str) -> int:
    """Return the rank, from 0, of the first passage that matches the answer; ``DEPTH`` if none does."""
    evidence = engine.search(question.text, DEPTH, retriever=retriever, merge=False)
    return next((rank for rank, hit in enumerate(evidence.passages) if question.answer.search(hit.passage.text)), DEPTH)


def summarise(ranks: Sequence[int]) -> dict[str, object]:
    """Return the shares in the first hits, in per cent, and the mean reciprocal rank."""
    shares = {f"top {k}": round(100 * sum(rank < k for rank in ranks) / len(ranks), 1) for k in (1, 3, 5)}
    return {**shares, "MRR": round(sum(1 / (rank + 1) for rank in ranks if rank < DEPTH) / len(ranks), 3)}


def measure_display(engine: Engine, questions: Iterable[Question]) -> dict[str, object]:
    """Return how many answers in the first three hits their excerpts display, and what ``auto`` refuses."""
    retrieved = displayed = refused = 0
    for question in questions:
        hits = engine.search(question.text, 3).passages
        retrieved += any(question.answer.search(hit.passage.text) for hit in hits)
        displayed += any(hit.excerpt and question.answer.search(hit.excerpt.text) for hit in hits)
        refused += not engine.search(question.text, min_relevance="auto").passages
    off_topic = sum(not engine.search(text, min_relevance="auto").passages for text in OFF_TOPIC)
    return {
        "displayed": f"{displayed} of {retrieved}",
        "falsely refused": refused,
        "off topic refused": f"{off_topic} of {len(OFF_TOPIC)}",
    }


if __name__ == "__main__":
    main()
