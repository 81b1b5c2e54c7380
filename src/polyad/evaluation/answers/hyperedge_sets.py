"""The hyperedges that a construction builds from the source passage of each question, for a judge of their quality.

HyperSU, appendix D.2. The passage is the best by BM25, of a gold document if there is one, so that it does not depend
on the construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.json_lines import DataclassRecord, RecordFile, read_records

HYPEREDGE_SETS = "hyperedge_sets.jsonl"

_DEPTH = 100
"""Passages among which that of a gold document is looked for."""


@dataclass(frozen=True, slots=True)
class HyperedgeSet(DataclassRecord):
    """All hyperedges of the source passage of a question.

    Attributes:
        query_id: Id of the question.
        passage: Title and text of the passage.
        hyperedges: Text and entities of each hyperedge.
    """

    query_id: str
    passage: str
    hyperedges: tuple[str, ...]

    def format(self) -> str:
        """Return the hyperedges as a list."""
        return "\n".join(f"- {hyperedge}" for hyperedge in self.hyperedges)


def write_hyperedge_sets(engine: Engine, queries: Sequence[Question], folder: Path) -> None:
    """Write the hyperedge sets that a run folder lacks."""
    by_passage: dict[str, list[str]] = {}
    for hyperedge in engine.catalogue.hyperedges():
        names = dict.fromkeys(incidence.name for incidence in engine.catalogue.hyperedge(hyperedge.id)[1])
        text = " ".join(hyperedge.text.split())
        by_passage.setdefault(hyperedge.passage_id, []).append(f"{text} ({'; '.join(names)})")
    with RecordFile(folder / HYPEREDGE_SETS, HyperedgeSet) as file:
        stored = {record.query_id for record in file.records}
        for query in queries:
            if query.id in stored:
                continue
            hits = engine.search(query.text, _DEPTH, retriever="bm25", merge=False).passages
            gold = [hit for hit in hits if hit.passage.document_id in query.gold]
            for passage in [hit.passage for hit in gold or hits][:1]:
                text = f"{passage.title}\n{passage.text}".strip()
                file.append(HyperedgeSet(query.id, text, tuple(by_passage.get(passage.id, ()))))


def read_hyperedge_sets(folder: Path) -> dict[str, HyperedgeSet]:
    """Return the hyperedge sets of a run folder by question id.

    Raises:
        ConfigurationError: the folder has none, or a line is damaged.
    """
    if not (folder / HYPEREDGE_SETS).exists():
        raise ConfigurationError(
            f"{str(folder)!r} holds no hyperedges to judge; measure into another --out with --judge hyperedges"
        )
    return {record.query_id: record for record in read_records(folder / HYPEREDGE_SETS, HyperedgeSet)}
