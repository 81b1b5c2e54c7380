"""The clock is set back, by days and by years, while an index is written and searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.preload import CLOCK, needs_preload, run_with

pytestmark = [pytest.mark.attacks, needs_preload]

PRELUDE = """
import datetime, os, time
from polyad import Document, Engine

def set_clock(seconds):
    with open(os.environ["CLOCK_OFFSET_FILE"], "w") as file:
        file.write(str(int(seconds)))

def documents(edition):
    return [
        Document(f"d{n}", f"Town {n}", f"Anna {edition} met Bob Stone in Town {n}. Ines Moreau founded Town {n}.")
        for n in range(20)
    ]

def describe(engine):
    hits = engine.search("Who founded Town 3?", k=10).passages
    found = sorted((hit.passage.id, round(hit.score, 4), hit.passage.text) for hit in hits)
    return found, sorted(engine.catalogue.sources()), engine.catalogue.statistics().hyperedges

def change(engine, days):
    for day, step in zip(days, (
        lambda: engine.index_documents(documents(2)),
        lambda: engine.remove("d5"),
        lambda: engine.corrections.retract(entity="Ines Moreau", reason="x"),
        lambda: engine.corrections.disable(["d7"]),
        lambda: engine.corrections.add_aliases([("Bobby", "Bob Stone")]),
        lambda: engine.index_documents(documents(3)[:3]),
    )):
        set_clock(86400 * day)
        step()
"""

CORRECT = (
    PRELUDE
    + """
with Engine.open("set back", embedder="hashing:32") as engine, Engine.open("set back") as other:
    engine.index_documents(documents(1))
    other.search("Town", retriever="bm25")
    change(engine, (-1, -1, -400, -3000, -2, 0))
    assert describe(engine) == describe(other)
with Engine.open("set back") as engine, Engine.open("as always", embedder="hashing:32") as expected:
    expected.index_documents(documents(1))
    change(expected, (0,) * 6)
    assert describe(engine) == describe(expected)
"""
)

VALID = (
    PRELUDE
    + """
with Engine.open("kb", embedder="hashing:32") as engine:
    engine.index_documents(
        Document(
            f"{year}", f"Year {year}", f"The mayor of Aldby in {year} was Anna Keller {year}.",
            metadata={"valid_from": f"{year}-01-01", "valid_to": f"{year}-12-31"},
        )
        for year in range(2015, 2028)
    )
    for year in (2026, 2020, 2016, 2024, 2020, 2026, 2015, 2027):
        set_clock(0)
        set_clock(datetime.datetime(year, 6, 1).timestamp() - time.time())
        hits = engine.search("Who was the mayor of Aldby?", k=20, retriever="bm25").passages
        assert [hit.passage.document_id for hit in hits] == [str(year)]
"""
)


@pytest.mark.parametrize("script", [CORRECT, VALID], ids=["corrections", "validity"])
def test_a_clock_that_is_set_back_changes_no_result(tmp_path: Path, script: str) -> None:
    ended = run_with(CLOCK, script, tmp_path, {"CLOCK_OFFSET_FILE": str(tmp_path / "offset")})
    assert ended.returncode == 0, ended.stderr
