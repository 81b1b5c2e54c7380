"""The parts of a passage that fit a question best."""

from __future__ import annotations

import pytest

from polyad.engine import Engine
from polyad.model import Passage, Span
from polyad.protocols.components import Embedder
from polyad.retrieval.hits import SpanRanker


@pytest.mark.parametrize("embeds", [True, False])
def test_the_hyperedge_nearest_to_the_question_comes_first(
    small_engine: Engine, embedder: Embedder, embeds: bool
) -> None:
    snapshot = small_engine.snapshot()
    nearest = SpanRanker(snapshot, "What is it known for, orchards?", embedder if embeds else None)
    passage = small_engine.catalogue.passage("aldby#0000")
    (parts,) = nearest([passage])
    assert "orchards" in parts[0].span.of(passage.text)
    assert [part.similarity for part in parts] == sorted((part.similarity for part in parts), reverse=True)
    assert nearest([passage])[0] is parts


def test_a_passage_without_hyperedges_is_one_part(small_engine: Engine) -> None:
    snapshot = small_engine.snapshot()
    unknown = Passage("gone#0000", "gone", "", "Some text.", 0, 10)
    ((part,),) = SpanRanker(snapshot, "x", None)([unknown])
    assert part.span == Span(0, 10)
