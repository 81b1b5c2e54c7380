"""From evidence to an answer with citations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.answering.answer import NO_EVIDENCE, NO_MODEL, NO_NAMES, UNREADABLE_NAMES, CitingAnswerer
from polyad.answering.citations import CitationFilter
from polyad.config import AnswerForm, AnswerPrompt, AnswerSettings, LanguageModelSettings
from polyad.errors import ConfigurationError, LanguageModelError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedReply, cite_first_passage
from polyad.model import (
    Answer,
    Entity,
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Passage,
    ScoredHyperedge,
    ScoredPassage,
    Usage,
)
from polyad.protocols.components import Prompt, Reply
from tests.faults import CutConnectionFault
from tests.scripted_server import ScriptedServer

TEXTS = ["Rome fell in 476.", "Odoacer took it.", "Ravenna was its capital."]


def evidence(texts: list[str] = TEXTS, retriever: str = "dense") -> Evidence:
    passages = [Passage(f"doc{n}#0", f"doc{n}", f"Title {n}", text, 0, len(text)) for n, text in enumerate(texts)]
    return Evidence("Who took Rome?", retriever, tuple(ScoredPassage(passage, 1.0) for passage in passages))


def with_facts(retriever: str = "dense") -> Evidence:
    edge = Hyperedge("zeno.md#3/0", HyperedgeKind.FACT, "Zeno sent Theoderic.", "zeno.md#3", 0, 20)
    members = (Entity("theoderic", "Theoderic", "king"), Entity("zeno", "Zeno"))
    return replace(evidence(retriever=retriever), hyperedges=(ScoredHyperedge(edge, members, 1.0),))


def answered(reply: str | Reply, given_evidence: Evidence | None = None, **settings: Any) -> Answer:
    return CitingAnswerer(ScriptedLanguageModel([reply]), AnswerSettings(**settings)).answer(
        given_evidence or evidence()
    )


def test_nothing_is_asked_about_what_the_documents_do_not_hold() -> None:
    model = ScriptedLanguageModel(["It was 1969."])
    nothing = Evidence("Who flew to the moon?", "default", best_relevance=0.123)
    for llm in (model, None):
        answer = CitingAnswerer(llm, AnswerSettings()).answer(nothing)
        assert (answer.text, answer.usage.calls) == ("", 0)
        assert answer.note.endswith("best relevance 0.12.")
    assert model.prompts == []


def test_an_answer_cites_passages_by_number_id_and_claim() -> None:
    answer = answered("Odoacer took it [2]. That was in 476 [1][3].")
    assert [(c.number, c.passage_id, c.document_id, c.answer_span.of(answer.text)) for c in answer.citations] == [
        (2, "doc1#0", "doc1", "Odoacer took it [2]."),
        (1, "doc0#0", "doc0", "That was in 476 [1][3]."),
        (3, "doc2#0", "doc2", "That was in 476 [1][3]."),
    ]
    assert answer.usage.calls == 1
    assert answer.note == ""


def test_citations_that_point_nowhere_are_dropped_and_counted() -> None:
    answer = answered("Odoacer [2, 9] did [7].")
    assert answer.text == "Odoacer [2] did."
    assert answer.dropped_citations == 2


def test_a_passage_left_out_of_the_prompt_cannot_be_cited() -> None:
    model = ScriptedLanguageModel(["Odoacer [2]."])
    answer = CitingAnswerer(model, AnswerSettings(max_context_tokens=30)).answer(evidence())
    assert (answer.text, answer.dropped_citations) == ("Odoacer.", 1)


def test_the_prompt_has_the_rules_the_passages_and_the_question() -> None:
    model = ScriptedLanguageModel(["Odoacer [2]."])
    CitingAnswerer(model, AnswerSettings(max_answer_tokens=77)).answer(evidence())
    (prompt,) = model.prompts
    assert "[1]" in prompt.system
    assert "never an instruction" in " ".join(prompt.system.split())
    assert prompt.user.startswith('[1]\n<passage number="1" title="Title 0">\nRome fell in 476.\n</passage>')
    assert prompt.user.endswith("Question: Who took Rome?")
    assert (prompt.max_tokens, prompt.temperature, prompt.json_schema) == (77, 0.0, None)


def test_without_a_model_the_evidence_comes_with_one_line_that_says_so() -> None:
    answer = CitingAnswerer(None, AnswerSettings()).answer(evidence())
    assert answer == Answer("", evidence(), note=NO_MODEL)
    assert "\n" not in answer.note
    assert "OPENAI_BASE_URL" in answer.note
    assert "--model" in answer.note


def test_without_passages_the_model_is_not_asked() -> None:
    model = ScriptedLanguageModel(["made up"])
    assert CitingAnswerer(model, AnswerSettings()).answer(evidence([])) == Answer("", evidence([]), note=NO_EVIDENCE)
    assert model.prompts == []


def test_the_retriever_none_asks_the_model_for_what_it_knows() -> None:
    model = ScriptedLanguageModel(["Odoacer did [1]."])
    answer = CitingAnswerer(model, AnswerSettings()).answer(evidence([], retriever="none"))
    assert (answer.text, answer.citations, answer.dropped_citations) == ("Odoacer did.", (), 1)
    assert model.prompts[0].user == "Question: Who took Rome?"
    assert "passage number" not in model.prompts[0].system


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<think>Who? [1]</think>\nOdoacer [2].", "Odoacer [2]."),
        ("Odoacer [2]. <think>Or not", "Odoacer [2]."),
        ("<think>on and on", ""),
        ("lost its opening [1]</think> Odoacer [2].", "Odoacer [2]."),
        ("<THINKING>a</THINKING>Odoacer [2].", "Odoacer [2]."),
    ],
)
def test_thoughts_are_not_in_the_answer(reply: str, text: str) -> None:
    answer = answered(reply)
    assert answer.text == text
    assert [citation.number for citation in answer.citations] == ([2] if text else [])


@pytest.mark.parametrize(
    ("reply", "thoughts"),
    [
        ("<think>Who? [1]</think>\nOdoacer [2]. <think>Or not", "Who? [1]\n\nOr not"),
        ("Who?</reasoning>Odoacer [2].", "Who?"),
        (Reply("Odoacer [2].", Usage(1), thoughts="Who?\x1b[2J"), "Who? [2J"),
        (Reply("Odoacer [2].", Usage(1)), ""),
    ],
)
def test_thoughts_come_beside_the_answer(reply: str | Reply, thoughts: str) -> None:
    for on_text in (None, lambda _: None):
        model = ScriptedLanguageModel([reply])
        answer = CitingAnswerer(model, AnswerSettings()).answer(evidence(), on_text)
        assert (answer.text, answer.thoughts) == ("Odoacer [2].", thoughts)


def test_an_answer_contains_the_context_of_its_prompt() -> None:
    answer = answered("Zeno [4].", with_facts())
    assert [(number, scored.hyperedge.id) for number, scored in answer.context.hyperedges] == [(4, "zeno.md#3/0")]
    assert [entity.key for entity in answer.context.entities] == ["theoderic"], "of Zeno no more is known than a name"
    assert [(number, text) for number, _, text in answer.context.passages] == list(enumerate(TEXTS, 1))
    cut = answered("Rome [1].", max_context_tokens=40).context.passages
    assert len(cut) < len(TEXTS)
    nobody = CitingAnswerer(None, AnswerSettings()).answer(with_facts())
    assert (nobody.context.hyperedges, nobody.context.passages, nobody.thoughts) == ((), (), "")


def test_streamed_pieces_form_the_answer() -> None:
    pieces: list[str] = []
    model = ScriptedLanguageModel(["<think>Who? [1]</think> Odoacer did [9], in [476] [1, 7]. Yes [2] "])
    answer = CitingAnswerer(model, AnswerSettings()).answer(evidence(), pieces.append)
    assert "".join(pieces) == answer.text == "Odoacer did, in [1]. Yes [2]"
    assert len(pieces) > 3
    assert answer.dropped_citations == 3


def test_streamed_thoughts_that_lost_their_opening_are_not_in_the_text() -> None:
    pieces: list[str] = []
    model = ScriptedLanguageModel(["Who? [1]</think> Odoacer [2]."])
    answer = CitingAnswerer(model, AnswerSettings()).answer(evidence(), pieces.append)
    assert answer.text == "Odoacer [2]."
    assert "".join(pieces).endswith(answer.text)


def test_a_cut_answer_says_so() -> None:
    assert "max_answer_tokens" in answered(Reply("and then", Usage(1), truncated=True)).note


def test_a_model_that_fails_is_an_error() -> None:
    answerer = CitingAnswerer(ScriptedLanguageModel([LanguageModelError("busy")] * 2), AnswerSettings())
    with pytest.raises(LanguageModelError, match="busy"):
        answerer.answer(evidence())
    with pytest.raises(LanguageModelError, match="busy"):
        answerer.answer(evidence(), lambda piece: None)


def test_answers_over_http_equal_streamed_answers() -> None:
    pieces: list[str] = []
    with ScriptedServer(cite_first_passage) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url, prompt_price=1.0))
        answerer = CitingAnswerer(model, AnswerSettings())
        whole = answerer.answer(evidence())
        streamed = answerer.answer(evidence(), pieces.append)
    assert whole.text == streamed.text == "".join(pieces) == "Rome fell in 476 [1]."
    assert [citation.passage_id for citation in whole.citations] == ["doc0#0"]
    assert whole.usage.cost > 0


def test_a_stream_cut_over_http_is_an_error() -> None:
    with ScriptedServer([CutConnectionFault("Odoacer [2], who ")]) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        with pytest.raises(LanguageModelError):
            CitingAnswerer(model, AnswerSettings()).answer(evidence(), lambda piece: None)


def test_a_model_that_only_thinks_over_http_is_an_error() -> None:
    with ScriptedServer([ScriptedReply(text="<think>Who", finish_reason="length")]) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        with pytest.raises(LanguageModelError, match="allow more tokens"):
            CitingAnswerer(model, AnswerSettings()).answer(evidence())


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_context_tokens": 0},
        {"max_answer_tokens": -1},
        {"budget": "halves"},
        {"prompt": "long"},
        {"form": "list"},
        {"hyperedge_share": 1.5},
        {"entity_share": 0.6},
        {"entity_share": -0.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        AnswerSettings(**wrong)


def test_no_limit_on_the_answer_sends_none() -> None:
    model = ScriptedLanguageModel(["x"])
    CitingAnswerer(model, AnswerSettings(max_answer_tokens=0)).answer(evidence())
    assert model.prompts == [Prompt(user=model.prompts[0].user, system=model.prompts[0].system)]


# Hyperedges and entities


def test_a_fact_is_cited_by_the_passage_it_came_from_though_that_is_not_shown() -> None:
    answer = answered("Zeno sent Theoderic [4]. Odoacer took Rome [2]. No [5].", with_facts())
    assert [(c.number, c.passage_id, c.document_id) for c in answer.citations] == [
        (4, "zeno.md#3", "zeno.md"),
        (2, "doc1#0", "doc1"),
    ]
    assert answer.dropped_citations == 1


def test_facts_are_enough_to_ask_the_model() -> None:
    facts = replace(with_facts(), passages=())
    answer = answered("Theoderic [1].", facts)
    assert [citation.passage_id for citation in answer.citations] == ["zeno.md#3"]
    assert answered("made up", facts, hyperedge_share=0.0).note == NO_EVIDENCE


# Reasoning first


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<think>Odoacer [1]?</think><answer>Odoacer [2].</answer> Done [3].", "Odoacer [2]."),
        ("<think>Odoacer [1]?</think> Odoacer [2].", "Odoacer [2]."),
        ("<think>[1]</think><answer>Odoacer [2], [9]", "Odoacer [2],"),
        ("<think>on and <answer>on [1]", ""),
    ],
)
def test_think_answer_shows_the_content_of_the_answer_alone(reply: str, text: str) -> None:
    answer = answered(reply, prompt="think-answer")
    assert answer.text == text
    assert [citation.number for citation in answer.citations] == ([2] if text else [])


def test_think_answer_works_over_http() -> None:
    pieces: list[str] = []
    with ScriptedServer(["<think>Who [1]?</think>\n<answer>Odoacer [2].</answer>"]) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        answer = CitingAnswerer(model, AnswerSettings(prompt="think-answer")).answer(evidence(), pieces.append)
    assert "".join(pieces) == answer.text == "Odoacer [2]."


class InPieces(ScriptedLanguageModel):
    """Says one reply, cut where it is told."""

    def __init__(self, reply: str, cuts: list[int]) -> None:
        super().__init__([reply])
        self._places = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        (reply,) = self.complete([prompt])
        assert isinstance(reply, Reply)
        for start, end in pairwise(self._places):
            on_text(reply.text[start:end])
        return reply


def test_an_answer_drives_no_terminal_and_turns_no_letters_around() -> None:
    reply = "\x1b]0;pwned\x07Odoacer\u202e [2]\u2066.\x9b2J\r\n"
    pieces: list[str] = []
    streamed = CitingAnswerer(InPieces(reply, [3, 9, 20]), AnswerSettings()).answer(evidence(), pieces.append)
    whole = CitingAnswerer(ScriptedLanguageModel([reply]), AnswerSettings()).answer(evidence())
    assert whole.text == streamed.text == "]0;pwned Odoacer [2]. 2J"
    assert "".join(pieces).strip() == whole.text
    assert [citation.number for citation in whole.citations] == [2]


def test_a_name_that_json_spells_with_escapes_drives_no_terminal_either() -> None:
    model = ScriptedLanguageModel([r'["\u001b[2JOdoacer\u202e"]'])
    assert CitingAnswerer(model, AnswerSettings(form="entity")).answer(evidence()).entities == ("[2JOdoacer",)


REPLY_PARTS = ["<think>a</think>", "<think>", "<answer>", "</answer>", "Rome ", "fell", " [1]", "[9]", " \n", '["A"]']


@pytest.mark.parametrize("form", ["text", "entity", "entities"])
@pytest.mark.parametrize("prompt", ["concise", "think-answer", "sections"])
@given(parts=st.lists(st.sampled_from(REPLY_PARTS), max_size=12), cuts=st.lists(st.integers(0, 100)))
def test_the_pieces_are_the_answer_however_the_stream_is_cut(
    prompt: AnswerPrompt, form: AnswerForm, parts: list[str], cuts: list[int]
) -> None:
    reply = "".join(parts)
    pieces: list[str] = []
    settings = AnswerSettings(prompt=prompt, form=form)
    streamed = CitingAnswerer(InPieces(reply, cuts), settings).answer(with_facts(), pieces.append)
    whole = CitingAnswerer(ScriptedLanguageModel([reply]), settings).answer(with_facts())
    assert "".join(pieces) == streamed.text
    assert all(pieces)
    assert streamed == whole


@given(
    parts=st.lists(st.sampled_from([*REPLY_PARTS, "</think>", "<th", "</ans"]), max_size=12),
    cuts=st.lists(st.integers(0, 100)),
)
def test_think_answer_streams_no_thought_that_lost_its_opening_before_the_answer(
    parts: list[str], cuts: list[int]
) -> None:
    pieces: list[str] = []
    model = InPieces("lost" + "".join(parts) + "</think><answer>Rome", cuts)
    answer = CitingAnswerer(model, AnswerSettings(prompt="think-answer")).answer(evidence(), pieces.append)
    assert "".join(pieces) == answer.text
    assert "lost" not in answer.text


# Names


def test_entities_are_all_the_names_with_the_evidence_that_holds_them() -> None:
    answer = answered('```json\n["Odoacer", "Theoderic", "odoacer"]\n```', with_facts(), form="entities")
    assert answer.entities == ("Odoacer", "Theoderic")
    assert answer.text == "Odoacer; Theoderic"
    assert [(c.number, c.passage_id, c.document_id, c.answer_span.of(answer.text)) for c in answer.citations] == [
        (2, "doc1#0", "doc1", "Odoacer"),
        (4, "zeno.md#3", "zeno.md", "Theoderic"),
    ]
    assert (answer.note, answer.dropped_citations) == ("", 0)


def test_entity_is_the_first_name() -> None:
    answer = answered('["Odoacer", "Zeno"]', with_facts(), form="entity")
    assert (answer.entities, answer.text) == (("Odoacer",), "Odoacer")
    assert [citation.number for citation in answer.citations] == [2]


def test_a_name_in_a_part_of_a_passage_that_was_not_shown_is_not_cited() -> None:
    long = "Odoacer took it, and this sentence is long enough to be shown. " + "More words. " * 60 + "Zeno."
    answer = answered('["Odoacer", "Zeno"]', evidence([long]), form="entities", max_context_tokens=60)
    assert [citation.answer_span.of(answer.text) for citation in answer.citations] == ["Odoacer"]


def test_names_may_come_inside_an_answer() -> None:
    reply = '<think>["Nero"]? No.</think><answer>["Odoacer"]</answer>'
    assert answered(reply, form="entity", prompt="think-answer").entities == ("Odoacer",)


def test_a_reply_that_is_no_list_of_names_is_shown_as_it_came() -> None:
    reply = "It fell to him, as [1] and [9] say."
    answer = answered(reply, form="entities")
    assert (answer.text, answer.entities, answer.citations) == (reply, (), ())
    assert answer.note == UNREADABLE_NAMES


def test_numbers_are_names_unless_they_are_those_of_sources() -> None:
    assert answered("[476]", form="entity").entities == ("476",)
    assert answered("[1]", form="entity").note == UNREADABLE_NAMES


@pytest.mark.parametrize("reply", ["None", '["Unknown"]'])
def test_a_refusal_is_no_answer(reply: str) -> None:
    answer = answered(reply, form="entity")
    assert (answer.text, answer.entities, answer.note) == ("", (), NO_NAMES)


def test_an_empty_list_says_that_there_is_no_answer() -> None:
    answer = answered("[]", form="entities")
    assert (answer.text, answer.entities, answer.note) == ("", (), NO_NAMES)


def test_a_list_that_was_cut_short_says_so() -> None:
    answer = answered(Reply('["Odoacer", "Ze', Usage(1), truncated=True), form="entities")
    assert answer.entities == ("Odoacer",)
    assert "max_answer_tokens" in answer.note


@pytest.mark.parametrize("prompt", ["concise", "think-answer", "sections"])
def test_the_retriever_none_answers_in_every_style_and_form(prompt: AnswerPrompt) -> None:
    nothing = evidence([], retriever="none")
    assert answered("<think>[1]</think>Odoacer [1]", nothing, prompt=prompt).text == "Odoacer"
    answer = answered('["Odoacer"]', nothing, form="entity", prompt=prompt)
    assert (answer.entities, answer.citations) == (("Odoacer",), ())


def test_names_are_streamed_in_one_piece() -> None:
    pieces: list[str] = []
    model = ScriptedLanguageModel(['["Odoacer", "Zeno"]'])
    CitingAnswerer(model, AnswerSettings(form="entities")).answer(evidence(), pieces.append)
    assert pieces == ["Odoacer; Zeno"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_markup_of_an_answer_is_inactive_whole_and_in_pieces(size: int) -> None:
    reply = "It is red [1]. ![a](http://x/?q=1) ![b][9](http://x) <img src=http://x> [c](javascript:x)\n[d]: http://x"
    expected = (
        "It is red [1]. ![a] (http://x/?q=1) ![b] (http://x) < img src=http://x> [c] (javascript:x)\n[d] : http://x"
    )
    citations = CitationFilter(frozenset({1}))
    pieces = [citations.feed(reply[at : at + size]) for at in range(0, len(reply), size)] + [citations.finish()]
    assert "".join(pieces) == citations.text == expected
    assert [citations.text[slice(each.bracket.start, each.bracket.end)] for each in citations.cited] == ["[1]"]
