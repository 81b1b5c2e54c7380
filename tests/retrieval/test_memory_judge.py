from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedOutcome
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, OnOutcome, Prompt, Reply
from polyad.retrieval.hypermemory.judge import CandidateList, MemoryJudge
from polyad.retrieval.hypermemory.settings import HyperMemorySettings

HALVES = '{"scores": [{"number": 1, "score": 0.5}, {"number": 2, "score": 0.5}]}'


class Batches(ScriptedLanguageModel):
    """Remembers how many prompts came at once."""

    def __init__(self, replies: Sequence[ScriptedOutcome]) -> None:
        super().__init__(replies)
        self.sizes: list[int] = []

    def complete(
        self, prompts: Sequence[Prompt], on_outcome: OnOutcome | None = None, check_budget: BudgetCheck | None = None
    ) -> list[Reply | LanguageModelError]:
        self.sizes.append(len(prompts))
        return super().complete(prompts, on_outcome, check_budget)


def judge_of(model: ScriptedLanguageModel, max_calls: int = 10) -> MemoryJudge:
    return MemoryJudge(model, "Who cast\nthe bell?", HyperMemorySettings(max_calls=max_calls))


def offer(*items: str, cosines: Sequence[float] = ()) -> CandidateList:
    return CandidateList("Moreau", items, lambda: list(cosines))


def test_all_prompts_go_out_at_once() -> None:
    model = Batches([HALVES, HALVES])
    judge = judge_of(model)
    assert judge.score_hyperedge_lists([offer("a", "b"), offer("c", "d")]) == [(0.5, 0.5), (0.5, 0.5)]
    assert model.sizes == [2]
    assert judge.build_notes() == {"llm_calls": 2, "llm_requests": 2}


def test_a_candidate_that_is_alone_needs_no_call() -> None:
    model = ScriptedLanguageModel([])
    judge = judge_of(model)
    assert judge.score_entity_lists([offer("a"), offer("b")]) == [(1.0,), (1.0,)]
    assert (model.prompts, judge.calls) == ([], 0)


def test_a_prompt_numbers_its_candidates_and_keeps_the_question_in_one_line() -> None:
    model = ScriptedLanguageModel([HALVES, HALVES])
    judge = judge_of(model)
    judge.score_hyperedge_lists([offer("cast in 1702", "hangs in a tower")])
    judge.score_entity_lists([offer("bell", "tower")])
    edges, entities = model.prompts
    assert (
        edges.user == "Question: Who cast the bell?\n\nEntity: Moreau\n\nTexts:\n1. cast in 1702\n2. hangs in a tower"
    )
    assert entities.user == "Question: Who cast the bell?\n\nText: Moreau\n\nEntities:\n1. bell\n2. tower"
    assert "at most 3 texts" in edges.system
    assert '{"scores": [{"number": ' in edges.system
    assert '{"scores": [{"number": ' in entities.system


def objects_in(schema: object) -> Iterator[Mapping[str, object]]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects_in(inner)


def test_schemas_are_strict_as_endpoints_demand() -> None:
    model = ScriptedLanguageModel([HALVES, "yes"])
    judge = judge_of(model)
    judge.score_hyperedge_lists([offer("a", "b")])
    judge.is_sufficient("Texts:\n1. a")
    results = [schema for prompt in model.prompts for schema in objects_in(prompt.json_schema)]
    assert len(results) == 3
    for schema in results:
        properties = schema["properties"]
        assert isinstance(properties, Mapping)
        assert (schema["additionalProperties"], schema["required"]) == (False, list(properties))


def test_beyond_the_limit_nothing_is_asked_and_there_are_no_scores() -> None:
    model = Batches([HALVES] * 9)
    judge = judge_of(model, max_calls=2)
    assert judge.score_hyperedge_lists([offer("a", "b"), offer("c"), offer("d", "e"), offer("f", "g")]) == [
        (0.5, 0.5),
        (1.0,),
        (0.5, 0.5),
        None,
    ]
    assert judge.is_exhausted
    assert judge.score_entity_lists([offer("a", "b")]) == [None]
    assert judge.is_sufficient("everything") is False
    assert (model.sizes, judge.calls) == ([2], 2)


def test_a_prompt_without_a_reply_is_scored_by_similarity() -> None:
    judge = judge_of(ScriptedLanguageModel([LanguageModelError("refused", Usage(calls=3)), HALVES]))
    assert judge.score_hyperedge_lists([offer("a", "b", "c", cosines=(0.6, -0.3, 0.2)), offer("d", "e")]) == [
        pytest.approx((0.75, 0, 0.25)),
        (0.5, 0.5),
    ]
    assert judge.build_notes() == {"llm_calls": 2, "llm_requests": 4, "failed_replies": 1}


def test_a_reply_without_a_score_is_refused_and_scored_by_similarity_too() -> None:
    judge = judge_of(ScriptedLanguageModel(["I like all of them.", HALVES]))
    assert judge.score_hyperedge_lists([offer("a", "b", "c", cosines=(0.6, -0.3, 0.2)), offer("d", "e")]) == [
        pytest.approx((0.75, 0, 0.25)),
        (0.5, 0.5),
    ]
    assert judge.build_notes() == {"llm_calls": 2, "llm_requests": 2, "unreadable_scores": 1}


def test_without_any_similarity_the_scores_are_equal() -> None:
    judge = judge_of(ScriptedLanguageModel([LanguageModelError("refused")]))
    assert judge.score_hyperedge_lists([offer("a", "b", cosines=(-0.1, 0.0))]) == [(0.5, 0.5)]


def test_repairs_are_counted_once_a_reply() -> None:
    judge = judge_of(ScriptedLanguageModel(["Score: 0.9, 0.9, 0.9, 0.9", "?", "Score: 2.0, 7.0", "Score: 30%, 70%"]))
    judge.score_entity_lists([offer("a", "b") for _ in range(4)])
    assert judge.build_notes() == {
        "llm_calls": 4,
        "llm_requests": 4,
        "unreadable_scores": 1,
        "scores_above_one": 1,
        "percentages": 1,
        "wrong_sums": 1,
        "numbers_not_offered": 1,
    }


def test_only_where_all_are_to_be_scored_is_one_missing() -> None:
    judge = judge_of(ScriptedLanguageModel(['{"scores": [{"number": 2, "score": 1}]}'] * 2))
    assert judge.score_hyperedge_lists([offer("a", "b")]) == [(0.0, 1.0)]
    assert judge.build_notes() == {"llm_calls": 1, "llm_requests": 1}
    assert judge.score_entity_lists([offer("a", "b")]) == [(0.0, 1.0)]
    assert judge.build_notes() == {"llm_calls": 2, "llm_requests": 2, "missing_scores": 1}


@pytest.mark.parametrize(
    ("reply", "verdict", "notes"),
    [
        ('{"reason": "", "sufficient": true}', True, {"llm_calls": 1, "llm_requests": 1}),
        ("{{No}}. It is missing.", False, {"llm_calls": 1, "llm_requests": 1}),
        ("Perhaps.", False, {"llm_calls": 1, "llm_requests": 1, "unreadable_verdicts": 1}),
        (LanguageModelError("refused"), False, {"llm_calls": 1, "llm_requests": 1, "failed_replies": 1}),
    ],
)
def test_a_reply_without_a_clear_yes_is_not_sufficient(
    reply: ScriptedOutcome, verdict: bool, notes: dict[str, int]
) -> None:
    judge = judge_of(ScriptedLanguageModel([reply]))
    assert judge.is_sufficient("Texts:\n1. a") is verdict
    assert judge.build_notes() == notes


def test_when_asking_is_of_no_use_that_is_raised() -> None:
    spent = NoMoreRepliesError("the budget is spent")
    with pytest.raises(NoMoreRepliesError):
        judge_of(ScriptedLanguageModel([HALVES, spent])).score_hyperedge_lists([offer("a", "b"), offer("c", "d")])
    with pytest.raises(NoMoreRepliesError):
        judge_of(ScriptedLanguageModel([spent])).is_sufficient("nothing")
