"""Refusal by ``--min-relevance auto`` in other languages than English, with the settings of a new index.

    python benchmarks/refusal_languages.py LANGUAGES --store DIR [--language zh ...] [--json FILE]

LANGUAGES holds a BEIR folder for each language, named by its ISO 639-1 code; all its questions are answered. Those of
``off_topic_languages.txt`` are not.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from measured_rows import write_rows
from refusal import OFF_TOPIC, read_beir, read_lines

from polyad import Engine
from polyad.model import Document


def main() -> None:
    """Measure each language and print a row for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("languages", type=Path, metavar="LANGUAGES")
    parser.add_argument("--store", type=Path, required=True, help="keep the indexes here for the next run")
    parser.add_argument("--language", nargs="*", help="measure only these")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    off_topic = read_off_topic()
    rows = []
    for language in arguments.language or sorted(off_topic):
        folder = arguments.languages / language
        with Engine.open(arguments.store / f"refusal-{language}") as engine:
            if not engine.catalogue.statistics().documents:
                records = read_lines(folder / "corpus.jsonl")
                engine.index_documents(Document(each["_id"], each["title"], each["text"]) for each in records)
            row = {
                "language": language,
                "embedder": engine.components.embedder.name,
                "answered": compute_refused_share(engine, [text for text, _ in read_beir(folder)]),
                "off topic": compute_refused_share(engine, off_topic[language]),
            }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def read_off_topic() -> dict[str, list[str]]:
    """Return the questions about other things by language."""
    text = (Path(__file__).parent / "off_topic_languages.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)
    return {"en": OFF_TOPIC} | {
        language: questions.splitlines() for language, questions in zip(sections[1::2], sections[2::2], strict=True)
    }


def compute_refused_share(engine: Engine, questions: Sequence[str]) -> float:
    """Return the percentage of questions without a hit."""
    refused = [not engine.search(question, min_relevance="auto").passages for question in questions]
    return round(100 * sum(refused) / len(refused), 1)


if __name__ == "__main__":
    main()
