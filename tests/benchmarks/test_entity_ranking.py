"""Entities as answers."""

from __future__ import annotations

from closed_domain import rank_entities

from polyad.model import (
    Entity,
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Passage,
    ScoredEntity,
    ScoredHyperedge,
    ScoredPassage,
)


def edge(id: str, *keys: str) -> ScoredHyperedge:
    members = tuple(Entity(key, key.title()) for key in keys)
    return ScoredHyperedge(Hyperedge(id, HyperedgeKind.FACT, id, f"{id}#0", 0, 1), members, 1.0)


def passage(id: str) -> ScoredPassage:
    return ScoredPassage(Passage(id, id, "", "", 0, 0), 1.0)


def scored(**scores: float) -> tuple[ScoredEntity, ...]:
    return tuple(ScoredEntity(Entity(key, key.title()), score) for key, score in scores.items())


def test_entities_of_earlier_hyperedges_come_first_and_those_of_passages_last() -> None:
    evidence = Evidence(
        "q",
        "scripted",
        passages=(passage("p1"), passage("p2")),
        hyperedges=(edge("e1", "moreau"), edge("e2", "aldby", "moreau")),
        entities=scored(isk=9.0, corven=8.0, aldby=0.1),
    )
    members = {"p1": ["corven", "aldby"], "p2": ["isk"]}
    assert rank_entities(evidence, members, "Who?") == ["moreau", "aldby", "corven", "isk"]


def test_within_one_piece_the_score_of_the_retriever_decides_and_then_the_key() -> None:
    evidence = Evidence("q", "scripted", hyperedges=(edge("e", "c", "b", "d", "a"),), entities=scored(d=2.0, b=1.0))
    assert rank_entities(evidence, {}, "Who?") == ["d", "b", "a", "c"]


def test_entities_named_in_the_question_are_no_answers() -> None:
    evidence = Evidence("q", "scripted", hyperedges=(edge("e", "ines moreau", "ines", "bell", "bel", "aldby"),))
    assert rank_entities(evidence, {}, "Where was Ines Moreau, of the Bell, born?") == ["aldby", "bel"]


def test_a_passage_of_unknown_members_gives_none() -> None:
    assert rank_entities(Evidence("q", "scripted", passages=(passage("p"),)), {}, "Who?") == []
