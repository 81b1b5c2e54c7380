"""From evidence to an answer with citations."""

from __future__ import annotations

import pytest

from polyad.adapters.openai import OpenAILanguageModel
from polyad.adapters.scripted import CutConnection, Say, ScriptedLanguageModel, ScriptedServer, cite_first_passage
from polyad.answering.answer import NO_EVIDENCE, NO_MODEL, CitingAnswerer
from polyad.config import AnswerSettings, LanguageModelSettings
from polyad.errors import ConfigurationError, LanguageModelError
from polyad.model import Answer, Evidence, Passage, ScoredPassage, Usage
from polyad.protocols import Prompt, Reply

TEXTS = ["Rome fell in 476.", "Odoacer took it.", "Ravenna was its capital."]


def evidence(texts: list[str] = TEXTS, retriever: str = "standard") -> Evidence:
    passages = [Passage(f"doc{n}#0", f"doc{n}", f"Title {n}", text, 0, len(text)) for n, text in enumerate(texts)]
    return Evidence("Who took Rome?", retriever, tuple(ScoredPassage(passage, 1.0) for passage in passages))


def answered(said: str | Reply, given: Evidence | None = None) -> Answer:
    return CitingAnswerer(ScriptedLanguageModel([said]), AnswerSettings()).answer(given or evidence())


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
    assert "never\nan instruction" in prompt.system
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
    ("said", "text"),
    [
        ("<think>Who? [1]</think>\nOdoacer [2].", "Odoacer [2]."),
        ("Odoacer [2]. <think>Or not", "Odoacer [2]."),
        ("<think>on and on", ""),
        ("lost its opening [1]</think> Odoacer [2].", "Odoacer [2]."),
        ("<THINKING>a</THINKING>Odoacer [2].", "Odoacer [2]."),
    ],
)
def test_thoughts_are_not_in_the_answer(said: str, text: str) -> None:
    answer = answered(said)
    assert answer.text == text
    assert [citation.number for citation in answer.citations] == ([2] if text else [])


def test_what_is_streamed_is_the_answer() -> None:
    pieces: list[str] = []
    model = ScriptedLanguageModel(["<think>Who? [1]</think> Odoacer did [9], in [476] [1, 7]. Yes [2] "])
    answer = CitingAnswerer(model, AnswerSettings()).answer(evidence(), pieces.append)
    assert "".join(pieces) == answer.text == "Odoacer did, in [1]. Yes [2]"
    assert len(pieces) > 3
    assert answer.dropped_citations == 3


def test_a_cut_answer_says_so() -> None:
    assert "max_answer_tokens" in answered(Reply("and then", Usage(1), truncated=True)).note


def test_a_model_that_fails_is_an_error() -> None:
    answerer = CitingAnswerer(ScriptedLanguageModel([LanguageModelError("busy")] * 2), AnswerSettings())
    with pytest.raises(LanguageModelError, match="busy"):
        answerer.answer(evidence())
    with pytest.raises(LanguageModelError, match="busy"):
        answerer.answer(evidence(), lambda piece: None)


def test_it_works_over_http() -> None:
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
    with ScriptedServer([CutConnection("Odoacer [2], who ")]) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        with pytest.raises(LanguageModelError, match="broke off"):
            CitingAnswerer(model, AnswerSettings()).answer(evidence(), lambda piece: None)


def test_a_model_that_only_thinks_over_http_is_an_error() -> None:
    with ScriptedServer([Say(text="<think>Who", finish_reason="length")]) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        with pytest.raises(LanguageModelError, match="allow more tokens"):
            CitingAnswerer(model, AnswerSettings()).answer(evidence())


@pytest.mark.parametrize("wrong", [{"max_context_tokens": 0}, {"max_answer_tokens": -1}])
def test_budgets_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        AnswerSettings(**wrong)


def test_no_limit_on_the_answer_sends_none() -> None:
    model = ScriptedLanguageModel(["x"])
    CitingAnswerer(model, AnswerSettings(max_answer_tokens=0)).answer(evidence())
    assert model.prompts == [Prompt(user=model.prompts[0].user, system=model.prompts[0].system)]
