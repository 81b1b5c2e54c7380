from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from polyad.config import SplitSettings
from polyad.errors import CutReplyError, LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.builder import JOINED_SUBJECTS, NO_FACTS, TOO_FEW_ENTITIES, UNGROUNDED, FactBuilder
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.split import SentenceSplitter
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedOutcome, extract_passage
from polyad.model import Hyperedge, HyperedgeKind, Incidence, IndexedHyperedge, Passage, Section, Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply
from polyad.text.words import count_tokens

TEXT = "She met CHARLES BABBAGE in 1833. The Analytical Engine was a machine of brass."
REFUSAL = "I cannot help with that."


def passage(text: str = TEXT, title: str = "Ada Lovelace (countess)", id: str = "d#0000") -> Passage:
    return Passage(id, id.partition("#")[0], title, text, 0, len(text))


def reply_of(*facts: tuple[str, list[str]], table: Sequence[str] = ()) -> str:
    listed = [{"text": text, "score": 8, "entities": names} for text, names in facts]
    return json.dumps({"facts": listed, "entities": list(table)})


MET = ("Ada Lovelace met Charles Babbage in 1833.", ["Charles Babbage", "Ada Lovelace", "1833"])
BRASS = ("The Analytical Engine was of brass.", ["Analytical Engine", "brass"])


def builder_of(
    model: LanguageModel,
    *,
    style: ExtractionStyle | None = None,
    max_tokens: int = 0,
    gleaning: int = 0,
    attempts: int = 2,
    drop_ungrounded: bool = False,
    join_subject: bool = True,
) -> FactBuilder:
    settings = FactSettings(
        gleaning=gleaning, attempts=attempts, drop_ungrounded=drop_ungrounded, join_subject=join_subject
    )
    return FactBuilder(
        SentenceSplitter(SplitSettings()),
        model,
        style or ExtractionStyle(),
        settings,
        Budget(model, max_tokens=max_tokens),
    )


def built(builder: FactBuilder, one: Passage | None = None) -> list[IndexedHyperedge]:
    (result,) = builder.build([one or passage()])
    assert result.failure is None
    return list(result.hyperedges)


def facts_of(reply: str, one: Passage | None = None, **settings: bool) -> tuple[list[IndexedHyperedge], dict[str, int]]:
    builder = builder_of(ScriptedLanguageModel([reply]), **settings)  # type: ignore[arg-type]
    (result,) = builder.build([one or passage()])
    assert result.failure is None
    return list(result.hyperedges), dict(+result.notes)


def members(draft: IndexedHyperedge) -> list[tuple[str, str, str, bool]]:
    return [(part.entity_key, part.name, part.role, part.grounded) for part in draft.incidences]


# Reading


def test_a_fact_becomes_a_hyperedge_with_the_span_it_comes_from() -> None:
    (met, brass), notes = facts_of(reply_of(MET, BRASS))
    end = TEXT.index(" The Analytical")
    assert met.hyperedge == Hyperedge("d#0000/000", HyperedgeKind.FACT, MET[0], "d#0000", 0, end, 8.0)
    assert (brass.hyperedge.id, TEXT[brass.hyperedge.start : brass.hyperedge.end]) == ("d#0000/001", TEXT[end + 1 :])
    assert (notes["facts"], notes["entities"]) == (2, 5)


def test_members_are_sorted_spelt_as_in_the_passage_and_joined_by_the_subject() -> None:
    (met, brass), _ = facts_of(reply_of(MET, BRASS))
    assert members(met) == [
        ("1833", "1833", "", True),
        ("ada lovelace", "Ada Lovelace", "subject", True),
        ("charles babbage", "CHARLES BABBAGE", "", True),
    ]
    assert members(brass) == [
        ("ada lovelace", "Ada Lovelace (countess)", "subject", True),
        ("analytical engine", "Analytical Engine", "subject", True),
        ("brass", "brass", "", True),
    ], "the title, and what a sentence of the passage defines"


@pytest.mark.parametrize("name", ['"Charles Babbage"', "“Charles Babbage”", "'Charles Babbage'"])
def test_quotes_around_a_name_that_stands_in_the_passage_without_are_left_out(name: str) -> None:
    (met,), _ = facts_of(reply_of((MET[0], [name, "1833"])))
    assert ("charles babbage", "CHARLES BABBAGE", "", True) in members(met)


def test_quotes_that_the_passage_has_around_a_name_are_kept() -> None:
    (met,), _ = facts_of(reply_of(("She wrote it.", ['"Notes"', "1833"])), passage('She wrote "Notes" in 1833.'))
    assert '"Notes"' in [name for _, name, _, _ in members(met)]


def test_the_counts_of_entities_and_subjects_make_up_the_incidences() -> None:
    drafts, notes = facts_of(reply_of(MET, BRASS))
    assert notes["entities"] + notes[JOINED_SUBJECTS] == sum(len(draft.incidences) for draft in drafts)
    assert notes[JOINED_SUBJECTS] == 1, "the second fact does not name her"


def test_a_fact_is_joined_by_the_headings_above_the_sentence_that_it_is_from() -> None:
    engine = TEXT.index("The Analytical")
    sections = (Section("Ada", 0, engine), Section("Machines", engine, len(TEXT)), Section("Notes", 0, len(TEXT)))
    (met, brass), _ = facts_of(reply_of(MET, BRASS), replace(passage(), sections=sections))
    assert [key for key, _, role, _ in members(met) if role] == ["ada", "notes"]
    assert [key for key, _, role, _ in members(brass) if role] == ["analytical engine", "machines", "notes"]


def test_without_joining_the_subject_is_a_member_like_others_and_only_where_it_is_named() -> None:
    (met, brass), _ = facts_of(reply_of(MET, BRASS), join_subject=False)
    assert ("ada lovelace", "Ada Lovelace", "", True) in members(met)
    assert [key for key, *_ in members(brass)] == ["analytical engine", "brass"]


def test_without_a_title_the_subject_is_what_the_first_sentence_defines_or_begins_with() -> None:
    text = "Corven Tower has 214 steps. It is old."
    reply = reply_of(("It is old.", []), ("It has steps.", ["steps", "Corven Tower", "214"]))
    (old, _), _ = facts_of(reply, passage(text, title=""))
    assert members(old) == [("corven tower", "Corven Tower", "subject", True)]


def test_a_passage_without_any_subject_has_facts_without_members() -> None:
    (only,), notes = facts_of(reply_of(("It rained.", [])), passage("it rained", title=""))
    assert only.incidences == ()
    assert notes[TOO_FEW_ENTITIES] == 1


def test_descriptions_of_entities_are_stored_with_incidences() -> None:
    table = ["Charles Babbage | person | Inventor. | 85"]
    (met,), _ = facts_of(reply_of(MET, table=table))
    assert met.incidences[2] == Incidence(
        "charles babbage", "d#0000/000", "CHARLES BABBAGE", "", "person", "Inventor.", 85.0, True
    )


UNHEARD = ("Ada Lovelace knew Mary Somerville.", ["Ada Lovelace", "Mary Somerville"])


def test_a_name_that_is_not_in_the_passage_is_flagged_and_counted() -> None:
    (knew,), notes = facts_of(reply_of(UNHEARD))
    assert members(knew)[1] == ("mary somerville", "Mary Somerville", "", False)
    assert (notes[UNGROUNDED], notes["entities"], notes.get(TOO_FEW_ENTITIES, 0)) == (1, 2, 0)


def test_a_name_that_is_not_in_the_passage_can_be_dropped_and_the_fact_stays() -> None:
    (knew,), notes = facts_of(reply_of(UNHEARD), drop_ungrounded=True)
    assert members(knew) == [("ada lovelace", "Ada Lovelace", "subject", True)]
    assert (notes[UNGROUNDED], notes["entities"], notes[TOO_FEW_ENTITIES]) == (1, 1, 1)


def test_the_title_grounds_a_name() -> None:
    (one,), notes = facts_of(reply_of(("A countess.", ["Countess"])))
    assert members(one)[1] == ("countess", "Countess", "", True)
    assert UNGROUNDED not in notes


def test_facts_with_fewer_than_two_entities_are_kept_and_counted_whatever_the_subject_adds() -> None:
    drafts, notes = facts_of(reply_of(("It was brass.", ["brass"]), ("It was.", []), BRASS))
    assert len(drafts) == 3
    assert notes[TOO_FEW_ENTITIES] == 2


def test_names_that_name_nothing_are_dropped_and_counted() -> None:
    (one,), notes = facts_of(reply_of(("She met him.", ["she", "7", "CHARLES BABBAGE"])))
    assert [key for key, *_ in members(one)] == ["ada lovelace", "charles babbage"]
    assert notes["dropped: names that name nothing by themselves, such as small numbers"] == 2


def test_spellings_of_one_entity_are_one_member() -> None:
    (one,), _ = facts_of(reply_of(("They met.", ["Charles Babbage", "charles babbage", "The Charles Babbage"])))
    assert [key for key, *_ in members(one)] == ["ada lovelace", "charles babbage"]


def test_ids_of_many_facts_sort_by_position() -> None:
    drafts, _ = facts_of(reply_of(*((f"Fact {number}.", []) for number in range(120))))
    ids = [draft.hyperedge.id for draft in drafts]
    assert ids == sorted(ids)
    assert [draft.hyperedge.text for draft in drafts] == [f"Fact {number}." for number in range(120)]


def test_a_passage_with_nothing_to_extract_has_no_hyperedges() -> None:
    drafts, notes = facts_of(reply_of())
    assert drafts == []
    assert notes == {NO_FACTS: 1}


def test_passages_in_which_no_reply_finds_a_fact_are_counted() -> None:
    def reply_to(prompt: Prompt) -> str:
        about, is_gleaning = extract_passage(prompt.user), "Earlier replies" in prompt.user
        if "Refused" in about:
            return REFUSAL
        return reply_of(MET) if ("Late" if is_gleaning else "Early") in about else reply_of()

    builder = builder_of(ScriptedLanguageModel(reply_to), gleaning=1)
    texts = ["Never.", "Early.", "Late.", "Refused.", "Nor ever."]
    results = builder.build([passage(text, id=f"{text[:3]}#0000") for text in texts])
    assert [built.notes[NO_FACTS] for built in results] == [1, 0, 0, 0, 1]


def test_repairs_of_replies_are_noted() -> None:
    _, notes = facts_of(reply_of(MET)[:-1] + ",")
    assert notes["JSON broken or cut off"] == 1
    assert notes["name missing from the table"] == 3


def test_the_paper_style_builds_the_same_way() -> None:
    records = '("hyper-relation"<|>Ada Lovelace met Charles Babbage.<|>9)##("entity"<|>Charles Babbage<|>p<|>x<|>80)'
    builder = builder_of(ScriptedLanguageModel([f"{records}<|COMPLETE|>"]), style=ExtractionStyle(style="paper"))
    (met,) = built(builder)
    assert [key for key, *_ in members(met)] == ["ada lovelace", "charles babbage"]
    assert met.hyperedge.score == 9.0


# Asking


def test_each_passage_is_asked_about_once_and_the_order_stays() -> None:
    def reply_to(prompt: Prompt) -> str:
        return reply_of((f"Of {extract_passage(prompt.user)[-2:]}", []))

    model = ScriptedLanguageModel(reply_to)
    passages = [passage(f"Text {number}", id=f"d#{number:04}") for number in range(10, 20)]
    outcomes = builder_of(model).build(passages)
    texts = [draft.hyperedge.text for outcome in outcomes for draft in outcome.hyperedges]
    assert texts == [f"Of {number}" for number in range(10, 20)]
    assert len(model.prompts) == 10
    assert builder_of(model).build([]) == []


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_passage_whose_reply_cannot_be_read_is_asked_about_so_many_times(attempts: int) -> None:
    model = ScriptedLanguageModel(lambda prompt: REFUSAL if "Bad" in prompt.user else reply_of(MET))
    builder = builder_of(model, attempts=attempts)
    good, bad = builder.build([passage(), passage("Bad.", id="e#0000")])
    assert good.failure is None
    assert isinstance(bad.failure, UnreadableReplyError)
    assert len(model.prompts) == 1 + attempts


def test_a_reply_of_twenty_thousand_facts_is_a_failure_that_names_the_limit() -> None:
    endless = reply_of(*[(f"Ada Lovelace met Charles Babbage in {year}.", ["Ada Lovelace"]) for year in range(20_000)])
    (result,) = builder_of(ScriptedLanguageModel([endless]), attempts=1).build([passage()])
    assert result.hyperedges == []
    assert "at most 10,000 facts, entities and names in facts (max_records)" in str(result.failure)


def test_a_second_reply_that_can_be_read_counts() -> None:
    model = ScriptedLanguageModel([REFUSAL, reply_of(MET)])
    assert len(built(builder_of(model))) == 1


def test_a_passage_that_failed_otherwise_is_not_asked_about_again() -> None:
    model = ScriptedLanguageModel([LanguageModelError("busy"), reply_of(MET)])
    (result,) = builder_of(model, attempts=5).build([passage()])
    assert str(result.failure) == "busy"
    assert len(model.prompts) == 1


def test_an_unreadable_reply_is_named_in_the_next_request() -> None:
    model = ScriptedLanguageModel([REFUSAL, "<|COMPLETE|", reply_of(MET)])
    (result,) = builder_of(model, attempts=3).build([passage()])
    assert (len(result.hyperedges), result.failure) == (1, None)
    first, second, third = (prompt.user for prompt in model.prompts)
    assert second.startswith(f"{first}\n\n")
    assert REFUSAL in second
    assert '{"facts": [{"text": ...}' in second
    assert "so far: 1." in second
    assert "so far: 2." in third
    assert REFUSAL not in third


def cut(text: str, *, cached: bool = False) -> Reply:
    return Reply(text, Usage() if cached else Usage(1, 10, 10), cached=cached, truncated=True)


def test_a_reply_that_was_cut_is_used_and_leaves_the_passage_incomplete() -> None:
    model = ScriptedLanguageModel([cut(reply_of(MET))])
    (result,) = builder_of(model, gleaning=1).build([passage()])
    assert len(result.hyperedges) == result.notes["replies cut at the model's limit"] == 1
    assert isinstance(result.failure, CutReplyError)
    assert "after 1 fact" in str(result.failure)
    assert len(model.prompts) == 1, "neither gleaned nor asked again in this run"


def test_the_rest_of_a_reply_that_an_earlier_run_kept_is_asked_for() -> None:
    model = ScriptedLanguageModel([cut(reply_of(MET), cached=True), reply_of(BRASS, table=["brass | alloy | x | 7"])])
    (result,) = builder_of(model).build([passage()])
    assert [draft.hyperedge.text for draft in result.hyperedges] == [MET[0], BRASS[0]]
    assert result.failure is None
    question = model.prompts[1].user
    assert reply_of(MET) in question
    assert "cut off" in question


def test_a_rest_that_is_cut_too_is_left_to_the_next_run_which_has_all_that_was_said() -> None:
    model = ScriptedLanguageModel([cut(reply_of(MET), cached=True), cut(reply_of(BRASS))])
    (result,) = builder_of(model).build([passage()])
    assert len(result.hyperedges) == 2
    assert isinstance(result.failure, CutReplyError)
    last = ("It rained.", ["rain", "London"])
    replies: list[ScriptedOutcome] = [
        cut(reply_of(MET), cached=True),
        cut(reply_of(BRASS), cached=True),
        reply_of(last),
    ]
    (result,) = builder_of(ScriptedLanguageModel(replies)).build([passage()])
    assert (len(result.hyperedges), result.failure) == (3, None)


def test_a_model_that_repeats_itself_until_it_is_cut_has_said_all() -> None:
    model = ScriptedLanguageModel([cut(reply_of(MET), cached=True), cut(reply_of(MET, MET))])
    (result,) = builder_of(model).build([passage()])
    assert (len(result.hyperedges), result.failure) == (1, None)
    assert result.notes["replies that repeat what was said until they are cut"] == 1


def test_a_rest_that_cannot_be_read_leaves_what_was_said_and_the_passage_incomplete() -> None:
    model = ScriptedLanguageModel([cut(reply_of(MET), cached=True), REFUSAL, REFUSAL])
    (result,) = builder_of(model).build([passage()])
    assert len(result.hyperedges) == 1
    assert isinstance(result.failure, CutReplyError)
    assert len(model.prompts) == 3


def test_a_cut_reply_without_a_record_is_unreadable_and_says_that_it_was_cut() -> None:
    (result,) = builder_of(ScriptedLanguageModel([cut("<think>Hm"), cut("<think>Hm")])).build([passage()])
    assert isinstance(result.failure, UnreadableReplyError)
    assert "limit of tokens" in str(result.failure)


def test_a_missing_score_is_the_usual_one_of_the_passage_whatever_reply_it_is_in() -> None:
    first = cut('{"facts": [{"text": "She rested.", "score": 2}, {"text": "He rested."}', cached=True)
    members = '"entities": ["brass | x | y", "1833 | x | y | 30"]'
    second = f'{{"facts": [{{"text": "They left.", "score": 6}}, {{"text": "He rested.", {members}}}]}}'
    (result,) = builder_of(ScriptedLanguageModel([first, second])).build([passage(title="")])
    assert [draft.hyperedge.score for draft in result.hyperedges] == [2.0, 4.0, 6.0]
    scores = {part.entity_key: part.score for part in result.hyperedges[1].incidences}
    assert (scores["1833"], scores["brass"]) == (30.0, 30.0)


def test_a_passage_without_any_score_has_scores_in_the_middle() -> None:
    (met,), _ = facts_of(
        '{"facts": [{"text": "She met him.", "entities": ["CHARLES BABBAGE", "1833"]}], "entities": []}'
    )
    assert met.hyperedge.score == 5.0
    assert {part.score for part in met.incidences} == {50.0}


def test_progress_says_how_many_passages_and_tokens() -> None:
    messages: list[str] = []
    replies = [Reply(reply_of(MET), Usage(1, 1000, 234, 0.5)), Reply(reply_of(), Usage(1, 1, 1, 0.005))]
    builder_of(ScriptedLanguageModel(replies)).build([passage(), passage("Other.", id="e#0000")], messages.append)
    assert messages == [
        "extracted 1 of 2 passages, 1,234 tokens, $0.50",
        "extracted 2 of 2 passages, 1,236 tokens, $0.51",
    ]


def test_the_name_says_what_changes_the_result() -> None:
    model = ScriptedLanguageModel([])
    names = {
        builder_of(model).name,
        builder_of(model, gleaning=1).name,
        builder_of(model, drop_ungrounded=True).name,
        builder_of(model, join_subject=False).name,
        builder_of(model, style=ExtractionStyle(style="paper")).name,
        builder_of(model, style=ExtractionStyle("German", style="paper")).name,
        builder_of(model, style=ExtractionStyle("German")).name,
    }
    assert len(names) == 7
    assert builder_of(model, attempts=7).name == builder_of(ScriptedLanguageModel([], name="other")).name


# Gleaning


def test_gleaning_sends_all_replies_so_far_and_joins_what_they_say() -> None:
    model = ScriptedLanguageModel([reply_of(MET), reply_of(MET, BRASS), reply_of()])
    (result,) = builder_of(model, gleaning=2).build([passage()])
    assert [draft.hyperedge.text for draft in result.hyperedges] == [MET[0], BRASS[0]]
    assert [draft.hyperedge.id for draft in result.hyperedges] == ["d#0000/000", "d#0000/001"]
    _, second, third = (prompt.user for prompt in model.prompts)
    assert reply_of(MET) in second
    assert f"{reply_of(MET)}\n{reply_of(MET, BRASS)}" in third
    assert result.notes["fact given twice"] == 1


def test_facts_are_retained_if_a_gleaning_reply_is_unreadable() -> None:
    model = ScriptedLanguageModel([reply_of(MET), REFUSAL, reply_of(BRASS)])
    (result,) = builder_of(model, gleaning=2).build([passage()])
    assert [draft.hyperedge.text for draft in result.hyperedges] == [MET[0], BRASS[0]]
    assert result.failure is None
    assert result.notes["gleaning rounds without a usable reply"] == 1


def test_facts_are_retained_if_a_gleaning_request_fails() -> None:
    model = ScriptedLanguageModel([reply_of(MET), LanguageModelError("busy")])
    (result,) = builder_of(model, gleaning=2).build([passage()])
    assert [draft.hyperedge.text for draft in result.hyperedges] == [MET[0]]
    assert str(result.failure) == "busy"
    assert len(model.prompts) == 2


def test_a_passage_without_a_readable_reply_is_not_gleaned() -> None:
    model = ScriptedLanguageModel([REFUSAL])
    (result,) = builder_of(model, gleaning=3, attempts=1).build([passage()])
    assert isinstance(result.failure, UnreadableReplyError)
    assert len(model.prompts) == 1


def test_a_run_that_is_stopped_while_gleaning_leaves_the_passage_for_the_next() -> None:
    model = ScriptedLanguageModel([reply_of(MET), NoMoreRepliesError("enough"), reply_of(BRASS)])
    (result,) = builder_of(model, gleaning=1).build([passage()])
    assert isinstance(result.failure, NoMoreRepliesError)


# Paying


def test_a_budget_lets_the_first_passages_pass_and_tells_the_others() -> None:
    model = ScriptedLanguageModel(lambda prompt: reply_of(MET))
    passages = [passage(f"Text {number}.", id=f"d#{number:04}") for number in range(30)]
    builder = builder_of(model, max_tokens=6000)
    outcomes = builder.build(passages)
    done = [outcome.failure is None for outcome in outcomes]
    assert done == sorted(done, reverse=True)
    assert 10 < sum(done) < 30
    assert {type(outcome.failure) for outcome in outcomes[sum(done) :]} == {NoMoreRepliesError}
    assert len(model.prompts) == sum(done)
    assert sent(model) < 6000


def test_failures_do_not_use_up_the_budget_of_the_next_batch() -> None:
    model = ScriptedLanguageModel(lambda prompt: LanguageModelError("busy"))
    builder = builder_of(model, max_tokens=20_000)
    for batch in range(20):
        outcomes = builder.build([passage(f"Text {number} of {batch}.", id=f"d#{number:04}") for number in range(10)])
        assert [str(outcome.failure) for outcome in outcomes] == ["busy"] * 10


# Estimating

PASSAGES = [passage(f"{TEXT} And a number, {number}.", id=f"d#{number:04}") for number in range(12)]


def none_known(prompts: Sequence[Prompt]) -> list[str | None]:
    return [None] * len(prompts)


def sent(model: ScriptedLanguageModel) -> int:
    return sum(count_tokens(prompt.system) + count_tokens(prompt.user) for prompt in model.prompts)


@pytest.mark.parametrize(
    "style", [ExtractionStyle(), ExtractionStyle("German", style="paper")], ids=["compact", "paper"]
)
def test_an_estimate_counts_the_prompts_that_are_then_sent(style: ExtractionStyle) -> None:
    model = ScriptedLanguageModel(lambda prompt: f"{reply_of(MET)}<|COMPLETE|>")
    builder = builder_of(model, style=style)
    estimate = builder.estimate(PASSAGES, none_known)
    assert model.prompts == []
    builder.build(PASSAGES)
    assert estimate.prompt_tokens == sent(model)
    assert estimate.calls == len(model.prompts)
    assert estimate.completion_tokens > 0


def test_an_estimate_with_gleaning_counts_every_round() -> None:
    passages = [passage(f"{TEXT * 8} {number}", id=f"d#{number:04}") for number in range(12)]
    first, later = reply_of((TEXT * 26, ["brass"])), reply_of((TEXT * 12, ["brass"]))
    model = ScriptedLanguageModel(lambda prompt: later if "Earlier replies" in prompt.user else first)
    builder = builder_of(model, gleaning=2)
    estimate = builder.estimate(passages, none_known)
    builder.build(passages)
    assert estimate.calls == len(model.prompts) == 36
    assert estimate.prompt_tokens == pytest.approx(sent(model), rel=0.05)
    assert estimate.completion_tokens == pytest.approx(12 * count_tokens(first) + 24 * count_tokens(later), rel=0.1)


def test_cached_replies_are_not_estimated() -> None:
    builder = builder_of(ScriptedLanguageModel([]))
    assert builder.estimate(PASSAGES, lambda prompts: ["", None, None] * (len(prompts) // 3)).calls == 8
    assert builder.estimate(PASSAGES, lambda prompts: [""] * len(prompts)) == Usage()
    assert builder.estimate([], none_known) == Usage()


def test_a_gleaning_round_that_is_not_known_is_estimated_after_a_first_reply_that_is() -> None:
    builder = builder_of(ScriptedLanguageModel([]), gleaning=2)
    reply = reply_of(MET)

    def find_repeated_facts(prompts: Sequence[Prompt]) -> list[str | None]:
        return [None if reply in prompt.user else reply for prompt in prompts]

    estimate = builder.estimate([passage()], find_repeated_facts)
    assert estimate.calls == 2
    assert estimate.prompt_tokens > count_tokens(reply)
