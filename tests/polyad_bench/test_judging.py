from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import AnswerContext, Entity, Hyperedge, HyperedgeKind, Passage, ScoredHyperedge
from polyad.protocols.components import Prompt
from polyad_bench.answers.averages import Average, average_answers
from polyad_bench.answers.judges import JUDGES, get_judges
from polyad_bench.answers.judging import add_cosine_scores, build_judging_tasks, judge_answers
from polyad_bench.answers.records import (
    JUDGEMENTS,
    MAX_ATTEMPTS,
    AnswerRecord,
    Judgement,
    JudgementLog,
    open_judgements,
    read_answers,
)
from polyad_bench.datasets.beir import Question
from polyad_bench.files import RecordFile
from polyad_bench.runs.records import find_missing_questions

QUERIES = {
    "q1": Question("q1", "Who?", frozenset("a"), ("Ines Moreau", "Moreau")),
    "q2": Question("q2", "Where?", frozenset("a"), ("Aldby",)),
    "q3": Question("q3", "When?", frozenset("a")),
}
ANSWERS = [
    AnswerRecord("bm25", "q1", "Moreau."),
    AnswerRecord("bm25", "q2", "It is Isk."),
    AnswerRecord("bm25", "q3", "In 1702."),
]
BY_KEY = {one.key: one for one in ANSWERS}


def judged(
    model: ScriptedLanguageModel, judgement_log: JudgementLog | None = None
) -> tuple[JudgementLog, list[Judgement]]:
    judgements, remaining = judgement_log or JudgementLog(), list[Judgement]()
    judgements.store = remaining.append
    judge_answers(build_judging_tasks(JUDGES["gpt_acc"], QUERIES, BY_KEY, {}), model, judgements)
    return judgements, remaining


def test_answers_with_something_to_compare_with_are_judged() -> None:
    model = ScriptedLanguageModel(lambda prompt: f'{{"correct": {"true" if "Moreau." in prompt.user else "false"}}}')
    judgements, remaining = judged(model)
    assert judgements.values == {("bm25", "q1", "gpt_acc"): 1.0, ("bm25", "q2", "gpt_acc"): 0.0}
    assert [judgement.reply for judgement in remaining] == ['{"correct": true}', '{"correct": false}']
    assert [judgement.prompt for judgement in remaining] == [prompt.user for prompt in model.prompts]
    assert average_answers("bm25", QUERIES.values(), BY_KEY, judgements)["gpt_acc"] == Average(0.5, 2, 2)


def test_a_reply_that_cannot_be_read_is_asked_for_again_and_then_missing() -> None:
    def reply(prompt: Prompt) -> str:
        return "Hard to say." if "Isk" in prompt.user else '{"correct": true}'

    model = ScriptedLanguageModel(reply)
    judgements, remaining = judged(model)
    assert len(model.prompts) == 1 + MAX_ATTEMPTS
    assert [judgement.value for judgement in remaining] == [1.0, None, None, None]
    average = average_answers("bm25", QUERIES.values(), BY_KEY, judgements)["gpt_acc"]
    assert average == Average(1.0, 1, 2), "what is missing is no middle score"
    assert average.format() == "100.0* (1 / 2)"
    judged(model, judgements)
    assert len(model.prompts) == 1 + MAX_ATTEMPTS, "nothing is asked for ever"


def test_a_second_reply_may_do() -> None:
    model = ScriptedLanguageModel(["?", LanguageModelError("busy"), '{"correct": true}', '{"correct": false}'])
    judgements, remaining = judged(model)
    assert judgements.values == {("bm25", "q1", "gpt_acc"): 1.0, ("bm25", "q2", "gpt_acc"): 0.0}
    assert [judgement.reply for judgement in remaining] == ["?", '{"correct": true}', '{"correct": false}']


def test_failed_requests_are_repeated_by_the_next_run(tmp_path: Path) -> None:
    def judging(model: ScriptedLanguageModel) -> JudgementLog:
        with open_judgements(tmp_path / JUDGEMENTS) as log:
            judge_answers(build_judging_tasks(JUDGES["gpt_acc"], QUERIES, BY_KEY, {}), model, log)
        return read_answers(tmp_path)[1]

    failing = ScriptedLanguageModel(lambda prompt: LanguageModelError("busy") if "Isk" in prompt.user else "?")
    assert judging(failing).attempts == {("bm25", "q1", "gpt_acc"): MAX_ATTEMPTS}
    assert len(failing.prompts) == 2 * MAX_ATTEMPTS, "nothing is asked for ever"
    well = ScriptedLanguageModel(['{"correct": true}'])
    assert judging(well).values == {("bm25", "q2", "gpt_acc"): 1.0}


def test_a_model_that_says_no_more_ends_it_and_what_came_is_kept() -> None:
    judgements = JudgementLog()
    with pytest.raises(NoMoreRepliesError):
        judged(ScriptedLanguageModel(['{"correct": true}', NoMoreRepliesError("no key")]), judgements)
    assert judgements.values == {("bm25", "q1", "gpt_acc"): 1.0}
    _, remaining = judged(ScriptedLanguageModel(['{"correct": false}']), judgements)
    assert [judgement.query_id for judgement in remaining] == ["q2"]


def test_answers_are_measured_against_the_accepted_ones_that_are_nearest() -> None:
    results = average_answers("bm25", QUERIES.values(), BY_KEY, JudgementLog())
    assert {name: average.value for name, average in results.items()} == {
        "em": 0.5,
        "f1": 0.5,
        "contain_acc": 0.5,
        "hyperrag_em": 0.5,
        "hotpotqa_f1": pytest.approx(1 / 2),
        "rouge_l": 0.5,
        "c_rec_words": 0.5,
        "c_erec": 0.5,
        "a_rel_words": 0.0,
    }
    assert {(average.counted, average.total) for average in results.values()} == {(2, 2)}


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("Ines Moreau [1].", "Ines Moreau."),
        ("Moreau [1][2], in Aldby [3, 12].", "Moreau, in Aldby."),
        ("In [1702] a[x] bell [0001].", "In [1702] a[x] bell [0001]."),
    ],
)
def test_an_answer_is_measured_without_its_citations(text: str, measured: str) -> None:
    assert AnswerRecord("bm25", "q1", text, ("a#0",)).measured_text == measured
    assert AnswerRecord("bm25", "q1", text).measured_text == text, "nothing is cited"


def test_a_question_without_an_answer_is_missing_and_an_empty_answer_wrong() -> None:
    empty = AnswerRecord("bm25", "q1", "")
    results = average_answers("bm25", QUERIES.values(), {empty.key: empty}, JudgementLog())
    assert (results["em"].value, results["em"].format()) == (0.0, "0.0* (1 / 2)")
    assert average_answers("other", QUERIES.values(), BY_KEY, JudgementLog()) == {}


def test_graphrag_bench_and_g_e_need_all_their_parts() -> None:
    judgements = JudgementLog()

    def reply(prompt: Prompt) -> str:
        if "statements" in prompt.user:
            return '{"both": ["x"], "answer_only": ["y"], "reference_only": ["z"]}'
        return "?" if "diversity" in prompt.user and "Isk" in prompt.user else '{"score": 8}'

    judges = get_judges(["graphrag_bench", "g_e"], requests="one")
    judge_answers(build_judging_tasks(judges, QUERIES, BY_KEY, {}), ScriptedLanguageModel(reply), judgements)
    results = average_answers("bm25", QUERIES.values(), BY_KEY, judgements)
    assert results["graphrag_bench"] == Average(None, 0, 2), "the cosine is missing"
    assert results["g_e"].value == pytest.approx((0.8 + 1.0) / 2)
    assert (results["g_e"].counted, results["g_e"].total) == (1, 2), "of one answer a dimension is missing"
    pairs = {one.key: (one.text, QUERIES[one.query_id].answers) for one in ANSWERS}
    add_cosine_scores(pairs, "cosine", HashingEmbedder(64), judgements)
    assert judgements.values["bm25", "q1", "cosine"] == pytest.approx(1.0), "of the nearest accepted answer"
    assert average_answers("bm25", QUERIES.values(), BY_KEY, judgements)["graphrag_bench"].counted == 2


def test_nothing_retrieved_is_similar_to_no_gold_text() -> None:
    log = JudgementLog()
    pairs = {("bm25", "q1"): ("", ["The bell was cast."]), ("bm25", "q2"): ("The bell.", ["The bell."])}
    add_cosine_scores(pairs, "r_s", HashingEmbedder(64), log)
    assert log.values == {("bm25", "q1", "r_s"): 0.0, ("bm25", "q2", "r_s"): pytest.approx(1.0)}
    add_cosine_scores(pairs, "cosine", HashingEmbedder(64), log)
    assert ("bm25", "q1", "cosine") not in log.values, "an answer that is missing is not compared"


STATED = {
    "q1": Question("q1", "Who?", frozenset(), ("Ines Moreau",), evidence=("She cast it.", "In 1702.")),
    "q2": Question("q2", "Where?", frozenset(), ("Aldby",)),
}
TEXTS = {("bm25", "q1"): "She cast it.", ("bm25", "q2"): ""}


def test_retrieval_is_judged_where_the_question_states_evidence() -> None:
    judges = get_judges(["context_recall", "context_relevance", "evidence_recall", "faithfulness", "coverage"])
    judging_tasks = build_judging_tasks(judges, STATED, {}, TEXTS)
    assert [case.key[1:] for case in judging_tasks] == [
        ("q1", "context_recall"),
        ("q1", "context_relevance"),
        ("q1", "evidence_recall"),
        ("q2", "context_recall"),
        ("q2", "context_relevance"),
    ], "no answer was given, and nothing is stated of q2"
    assert [case.key[1:] for case in build_judging_tasks(judges[3:], STATED, {("bm25", "q1"): ANSWERS[0]}, TEXTS)] == [
        ("q1", "faithfulness"),
        ("q1", "coverage"),
    ]


def test_a_text_that_is_empty_is_worth_nothing_and_nobody_is_asked() -> None:
    judges, judgements = get_judges(["context_relevance", "evidence_recall"]), JudgementLog()
    model = ScriptedLanguageModel(['{"grade": 2}', '{"supported": [1]}'])
    judge_answers(build_judging_tasks(judges, STATED, {}, TEXTS), model, judgements)
    assert len(model.prompts) == 2
    averaged = average_answers("bm25", STATED.values(), {}, judgements)
    assert averaged == {"context_relevance": Average(0.5, 2, 2), "evidence_recall": Average(0.5, 1, 1)}


def judge_by_lists(replies: list[str], measure: str, log: JudgementLog) -> list[str]:
    """Judge the answer to q1 by a measure, and return the prompts."""
    model = ScriptedLanguageModel(replies)
    tasks = build_judging_tasks(get_judges([measure]), STATED, {("bm25", "q1"): ANSWERS[0]}, TEXTS)
    judge_answers(tasks, model, log)
    return [prompt.user for prompt in model.prompts]


def test_statement_f1_takes_three_requests_as_in_the_code_of_graphrag_bench() -> None:
    log = JudgementLog()
    answer = '{"statements": ["It is Ines.", "She is old.", "She cast it."]}'
    reference = '{"statements": ["It is Ines.", "She was born in Aldby."]}'
    sorted_ = '{"both": ["It is Ines."], "answer_only": ["She is old.", "x"], "reference_only": ["In Aldby."]}'
    of_answer, of_reference, last = judge_by_lists([answer, reference, sorted_], "graphrag_bench", log)
    assert "<given_answer>\nMoreau.\n</given_answer>" in of_answer
    assert "Ines Moreau" not in of_answer
    assert "<reference_answers>\n- Ines Moreau\n</reference_answers>" in of_reference
    assert "Moreau.\n</given_answer>" not in of_reference
    assert "1. It is Ines.\n2. She is old.\n3. She cast it.\n</statements_of_the_given_answer>" in last
    assert "1. It is Ines.\n2. She was born in Aldby.\n</statements_of_the_reference_answers>" in last
    precision, recall = 1 / (1 + 2), 1 / (1 + 1)
    assert log.values["bm25", "q1", "statement_f1"] == pytest.approx(2 * precision * recall / (precision + recall))


@pytest.mark.parametrize(("measure", "output"), [("faithfulness", "She cast it."), ("coverage", "Moreau.")])
def test_faithfulness_and_coverage_take_two_requests(measure: str, output: str) -> None:
    log = JudgementLog()
    prompts = judge_by_lists(['{"statements": ["a", "b", "c", "d"]}', '{"supported": [4, 1, 2]}'], measure, log)
    assert "1. a\n2. b\n3. c\n4. d\n" in prompts[1]
    assert output in prompts[1]
    assert (len(prompts), log.values["bm25", "q1", measure]) == (2, 3 / 4)


def test_a_list_is_asked_for_once_and_without_it_there_is_no_judgement(tmp_path: Path) -> None:
    with open_judgements(tmp_path / JUDGEMENTS) as stored:
        tasks = build_judging_tasks(get_judges(["coverage"]), STATED, {("bm25", "q1"): ANSWERS[0]}, TEXTS)
        model = ScriptedLanguageModel(['{"statements": ["a", "b"]}', LanguageModelError("no")])
        judge_answers(tasks, model, stored)
    log = read_answers(tmp_path)[1]
    (prompt,) = judge_by_lists(['{"supported": [2]}'], "coverage", log)
    assert "1. a\n2. b\n" in prompt
    assert log.values["bm25", "q1", "coverage"] == 0.5
    with pytest.raises(ConfigurationError, match="coverage was judged in 2 requests for each answer, not 1"):
        judge_answers([replace(tasks[0], judge=get_judges(["coverage"], requests="one")[0])], model, log)
    unread = JudgementLog()
    assert len(judge_by_lists(["None.", "{}", '{"statements": []}'], "coverage", unread)) == MAX_ATTEMPTS
    averages = average_answers("bm25", [STATED["q1"]], {("bm25", "q1"): ANSWERS[0]}, unread)
    assert averages["coverage"] == Average(None, 0, 1)


def test_an_empty_answer_is_not_unfaithful_and_covers_nothing() -> None:
    judges, judgements = get_judges(["faithfulness", "coverage"], requests="one"), JudgementLog()
    answers = {one.key: one for one in (ANSWERS[0], AnswerRecord("bm25", "q2", ""))}
    model = ScriptedLanguageModel(['{"supported": ["x"], "unsupported": []}', '{"covered": ["x"], "missing": []}'])
    judge_answers(build_judging_tasks(judges, STATED, answers, TEXTS), model, judgements)
    results = average_answers("bm25", STATED.values(), answers, judgements)
    assert (results["faithfulness"], results["coverage"]) == (Average(1.0, 1, 1), Average(0.5, 2, 2))


def test_names_are_measured_over_easy_and_over_hard_answers() -> None:
    both = Question("q1", "Who?", frozenset(), ("Anna", "Berta"), easy=("Anna",), hard=("Berta",))
    easy = Question("q2", "Where?", frozenset(), ("Isk",), easy=("Isk",))
    answers = {
        one.key: one
        for one in (
            AnswerRecord("bm25", "q1", "Bert; the Berta; Anna", names=("Bert", "the Berta", "Anna")),
            AnswerRecord("bm25", "q2", "", names=()),
        )
    }
    results = {name: one.value for name, one in average_answers("bm25", [both, easy], answers, JudgementLog()).items()}
    assert (results["mrr"], results["hits@10"], results["em"], results["hyperrag_em"]) == (0.25, 0.5, 0.0, 0.5)
    assert results["mrr, easy"] == pytest.approx(1 / 6)
    assert results["hits@10, easy"] == 0.5
    assert (results["mrr, hard"], results["em, hard"], results["hyperrag_em, hard"]) == (0.5, 0.0, 1.0)
    texts = average_answers("bm25", [both], {("bm25", "q1"): AnswerRecord("bm25", "q1", "Anna")}, JudgementLog())
    assert (texts["em, easy"].value, "mrr" in texts) == (1.0, False), "a text has no ranks"


def test_answers_and_judgements_are_read_as_they_were_written(tmp_path: Path) -> None:
    one = AnswerRecord("bm25", "q1", "Moré [1].", ("a#0",), 30, 1 / 3, "cut", ("Moré",))
    with RecordFile(tmp_path / "answers.jsonl", AnswerRecord) as file, open_judgements(tmp_path / JUDGEMENTS) as log:
        file.append(one)
        for value in (None, 1.0):
            log.add(Judgement("bm25", "q1", "gpt_acc", "?", "!", value))
        missing = find_missing_questions(file.by_key, "bm25", QUERIES.values())
        assert [query.id for query in missing] == ["q2", "q3"]
        with pytest.raises(ConfigurationError):
            RecordFile(tmp_path / "answers.jsonl", AnswerRecord)
    answers, judgements = read_answers(tmp_path)
    assert answers == {one.key: one}
    assert (judgements.values, judgements.attempts) == (
        {("bm25", "q1", "gpt_acc"): 1.0},
        {("bm25", "q1", "gpt_acc"): 2},
    )
    (tmp_path / "answers.jsonl").write_text('{"answer": 1}\n')
    with pytest.raises(ConfigurationError, match=r"answers.jsonl', line 1: .*is no AnswerRecord"):
        read_answers(tmp_path)


@pytest.mark.parametrize(("counted", "enough"), [(95, True), (94, False), (0, False)])
def test_an_average_of_too_few_is_marked(counted: int, enough: bool) -> None:
    assert Average(0.5, counted, 100).is_sufficient is enough
    assert ("*" in Average(0.5, counted, 100).format()) is not enough


def test_the_context_of_an_answer_has_facts_and_entities_beside_passages() -> None:
    fact = Hyperedge("d#0/000", HyperedgeKind.FACT, "Moreau cast the bell.", "d#0", 0, 9)
    context = AnswerContext(
        ((1, ScoredHyperedge(fact, (), 1.0)),),
        (Entity("ines moreau", "Ines Moreau", description="a founder"), Entity("isk", "Isk")),
        ((1, Passage("d#0", "d", "Bell", "It hangs. It rings.", 0, 19), "It rings."),),
    )
    assert context.text == "Moreau cast the bell.\n\nInes Moreau: a founder\n\nIsk\n\nBell\nIt rings."
