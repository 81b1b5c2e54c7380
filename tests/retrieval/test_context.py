"""The terms around a passage: those of adjacent passages and of the first passage of its document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyad.config import SplitSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.model import Document, Passage
from polyad.retrieval.default.signals import SignalExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.text.words import extract_query_terms, extract_terms
from tests.rows import get_document_ids

TOPICS = ("walnut", "granite", "harbour", "lantern", "meadow", "orchard", "pepper", "quarry")
QUESTION = f"Which {' and '.join(TOPICS)} is blue?"


def read_passages(engine: Engine, document_id: str) -> list[Passage]:
    """Return the passages of a document in the order of its text."""
    snapshot = engine.snapshot()
    rows = [row for row in range(snapshot.row_count("passage")) if get_document_ids(snapshot, [row]) == [document_id]]
    live = snapshot.find_rows("passage", snapshot.ids("passage", rows)).values()
    return sorted(snapshot.get(Passage, sorted(live)), key=lambda passage: passage.start)


def write_document(id: str, topics: tuple[str, ...]) -> Document:
    return Document(id, "", "\n\n".join(f"The {topic} stands there. It is one that was blue once." for topic in topics))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    settings = Settings(split=SplitSettings(passage_tokens=14, overlap_tokens=0))
    engine = Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), settings=settings)
    engine.index_documents([write_document("long", TOPICS), write_document("short", TOPICS[:1])])
    engine.index_documents([write_document("changed", TOPICS[:5])])
    engine.index_documents([write_document("changed", TOPICS[::-1])])
    return engine


def test_the_passages_of_a_document_are_consecutive_rows_in_the_order_of_its_text(engine: Engine) -> None:
    with engine:
        snapshot = engine.snapshot()
        for id, count in (("long", 8), ("short", 1), ("changed", 8)):
            results = snapshot.find_rows("passage", [passage.id for passage in read_passages(engine, id)])
            rows = list(results.values())
            assert len(rows) == count
            starts, ends = snapshot.document_ranges(np.array(rows))
            assert rows == list(range(starts[0], ends[0]))
            assert len(set(starts.tolist())) == len(set(ends.tolist())) == 1


def test_context_is_the_share_of_the_question_that_stands_beside_a_passage_but_not_in_it(engine: Engine) -> None:
    with engine:
        snapshot, components = engine.snapshot(), engine.components
        linker = QuestionLinker(components.extractor)
        inputs = SignalExtractor(snapshot, components.embedder, linker).compute_inputs(QUESTION)
        share = dict(zip(extract_query_terms(QUESTION), inputs.terms.weights.tolist(), strict=True))
        measured = dict(zip(snapshot.ids("passage", inputs.candidates), inputs.context.tolist(), strict=True))
        for document in ("long", "short", "changed"):
            passages = read_passages(engine, document)
            terms = [set(extract_terms(one.text)) & share.keys() for one in passages]
            for place, passage in enumerate(passages):
                beside = set().union(*terms[max(0, place - 2) : place + 3]) - terms[place]
                first = terms[0] - terms[place]
                expected = [sum(share[term] for term in results) for results in (beside, first)]
                assert measured[passage.id] == pytest.approx(expected, abs=1e-5)
        assert max(beside for beside, _ in measured.values()) > 0.3
