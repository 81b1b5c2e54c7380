"""Review of questions by a person: a sheet to fill in, and the data set without the rejected questions.

The sheet is a CSV file with a row for each question. Rejected questions move to ``rejected.jsonl`` with their gold
documents; questions without a verdict stay.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.text.files import write_atomically
from polyad_bench.datasets.beir import Dataset, get_document_texts, load_beir
from polyad_bench.files import parse_json, read_lines, read_text

COLUMNS = ("verdict", "id", "type", "question", "answers", "evidence", "documents")
"""Columns of the sheet; the first is empty until a person writes ``accept`` or ``reject``."""

VERDICTS = ("accept", "reject", "")
REJECTED = "rejected.jsonl"

_FORMULA = tuple("=+-@\t\r")
"""First characters of a cell that a spreadsheet would run as a formula."""


def write_sheet(folder: Path, sheet: Path) -> int:
    """Write the questions of a data set, with their gold documents, into a new CSV file; return their number."""
    dataset = load_beir(folder)
    texts = get_document_texts(dataset, {id for query in dataset.queries for id in query.gold})
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for query in dataset.queries:
        documents = "\n\n".join(texts.get(id, id) for id in sorted(query.gold))
        cells = (query.id, query.type, query.text, "; ".join(query.answers), "\n".join(query.evidence), documents)
        writer.writerow(["", *(f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells)])
    write_atomically(sheet, buffer.getvalue())
    return len(dataset.queries)


def apply_verdicts(folder: Path, sheet: Path) -> Counter[str]:
    """Remove the rejected questions of a reviewed sheet from a data set; return the number of each verdict.

    Raises:
        ConfigurationError: A verdict or question is unknown, or nothing would remain; nothing is changed.
    """
    dataset = load_beir(folder)
    verdicts = _read_verdicts(sheet, dataset)
    rejected = {id for id, verdict in verdicts.items() if verdict == "reject"}
    if all(query.id in rejected for query in dataset.queries):
        raise ConfigurationError(f"{str(sheet)!r} rejects every question; expected some to remain")
    queries, qrels, store = folder / "queries.jsonl", folder / "qrels" / "test.tsv", folder / REJECTED
    gold = {query.id: sorted(query.gold) for query in dataset.queries}
    lines = [(str(_read_id(queries, number, line)), line.rstrip("\r\n")) for number, line in read_lines(queries)]
    moved = [
        json.dumps({**json.loads(line), "gold": gold[id]}, ensure_ascii=False) for id, line in lines if id in rejected
    ]
    earlier = read_text(store).splitlines() if store.exists() else []
    write_atomically(store, "".join(f"{line}\n" for line in dict.fromkeys([*earlier, *moved])))
    judged = [line.rstrip("\r\n") for _, line in read_lines(qrels) if line.partition("\t")[0] not in rejected]
    write_atomically(queries, "".join(f"{line}\n" for id, line in lines if id not in rejected))
    write_atomically(qrels, "".join(f"{line}\n" for line in judged))
    return Counter(dict.fromkeys(VERDICTS, 0) | Counter(verdicts.values()))


def _read_id(path: Path, number: int, line: str) -> Any:
    return parse_json(path, line, number)["_id"]


def _read_verdicts(sheet: Path, dataset: Dataset) -> Mapping[str, str]:
    """Return the verdict on each question of the sheet, by id."""
    rows = csv.DictReader(io.StringIO(read_text(sheet)))
    if not {"verdict", "id"} <= set(rows.fieldnames or ()):
        raise ConfigurationError(f"{str(sheet)!r} has no columns verdict and id; expected a sheet of --review")
    ids = [query.id for query in dataset.queries]
    id_by_cell = {**{f"'{id}": id for id in ids}, **{id: id for id in ids}}
    verdicts = {}
    for row in rows:
        verdict = (row["verdict"] or "").strip().casefold()
        if row["id"] not in id_by_cell:
            raise ConfigurationError(f"{str(sheet)!r}, line {rows.line_num}: no question {row['id']!r} in the data set")
        if verdict not in VERDICTS:
            raise ConfigurationError(
                f"{str(sheet)!r}, line {rows.line_num}: verdict {row['verdict']!r}; expected accept, reject or nothing"
            )
        verdicts[id_by_cell[row["id"]]] = verdict
    return verdicts
