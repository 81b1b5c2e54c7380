"""The outcome of each document of a run, as it is reported while the run goes on."""

from __future__ import annotations

from pathlib import Path

from polyad import Document, Engine
from polyad.model import Failure


def test_each_document_has_one_outcome_in_the_order_of_the_run(tmp_path: Path) -> None:
    outcomes: list[tuple[str, str, bool]] = []
    bell, lake = Document("bell", "Bell", "The bell of Tarn rings."), Document("lake", "Lake", "The lake is deep.")
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        engine.index_documents([bell, lake])
        report = engine.index_documents(
            [
                bell,
                Document("lake", "Lake", "The lake of Tarn is shallow."),
                Document("new", "", "Orra rises in Velm."),
                Document("new", "", "Another text under the same id."),
                Document("blank", "", " \n"),
                Document("half", "", "Half a character: \ud800"),
                Failure("lost.pdf", "no such file"),
            ],
            on_outcome=lambda id, outcome, reason: outcomes.append((id, outcome, bool(reason))),
        )
    assert sorted(outcomes) == [
        ("bell", "unchanged", False),
        ("blank", "failed", True),
        ("half", "failed", True),
        ("lake", "updated", False),
        ("lost.pdf", "failed", True),
        ("new", "added", False),
        ("new", "failed", True),
    ]
    assert (report.counts.added, report.counts.updated, report.counts.unchanged, len(report.failures)) == (1, 1, 1, 4)
