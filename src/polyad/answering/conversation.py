"""Completes the last question of a conversation so that it can be understood alone."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import NamedTuple

from polyad.errors import LanguageModelError
from polyad.model import Evidence, Passage, ScoredPassage
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.questions import extract_question, is_question
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import collapse_whitespace, extract_search_terms

_LOG = logging.getLogger(__name__)

MAX_TURNS = 10
"""Number of messages before the question that the language model reads."""

MAX_CHARACTERS = 2_000
"""Characters of each of these messages, and of the rewritten question."""

MAX_NAMES = 3
"""Maximum number of names of the last answer that a follow-up question gets without a language model."""


_MIN_SHARED, _MAX_NEW = 1 / 3, 0.4
"""Share of the question's terms that a rewriting keeps at least, and share of its terms that may be in no message."""


class CompleteQuestion(NamedTuple):
    """A question that can be understood without the conversation, and questions to search besides.

    Attributes:
        text: The question.
        others: Further questions, whose evidence supplements that of ``text``.
        is_rewritten: Whether a language model wrote ``text``. Then ``others`` matter only if nothing fits ``text``.
    """

    text: str
    others: tuple[str, ...] = ()
    is_rewritten: bool = False


def complete_question(
    question: str,
    history: Sequence[Mapping[str, str]],
    language_model: LanguageModel | None,
    list_names: Callable[[str], Sequence[str]],
    prompts: Prompts = DEFAULT_PROMPTS,
) -> CompleteQuestion:
    """Return a follow-up question, such as "And when?", that is complete without ``history``.

    The language model rewrites the question. Without a model the question gets names instead; see :func:`add_names`. So
    it does if the model fails or returns what is no rewriting, but the question as typed, an answer or a refusal; then
    the last question is searched too.
    """
    named = add_names(question, history, list_names)
    last_question = next((turn["content"] for turn in reversed(history) if turn["role"] == "user"), "").strip()
    if language_model is None or not last_question:
        return CompleteQuestion(named)
    try:
        rewritten = rewrite_question(question, history, language_model, prompts)
    except LanguageModelError as error:
        _LOG.warning("a follow-up question is searched with the names of the last answer: %s", error)
        rewritten = ""
    if is_rewriting(rewritten, question, history):
        return CompleteQuestion(rewritten, (named,), is_rewritten=True)
    if named == question and not list_names(question):
        named = f"{last_question[:MAX_CHARACTERS]} {question}"
    return CompleteQuestion(named, (last_question[:MAX_CHARACTERS],))


def rewrite_question(
    question: str,
    history: Sequence[Mapping[str, str]],
    language_model: LanguageModel,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> str:
    """Return what a language model replies when asked to rewrite a question to be clear without ``history``.

    Raises:
        LanguageModelError: The language model returned no reply.
    """
    turns = [
        f"{turn['role']}: {collapse_whitespace(turn['content'])[:MAX_CHARACTERS]}" for turn in history[-MAX_TURNS:]
    ]
    prompt = Prompt(user=prompts.get_text("question_rewrite", history="\n".join(turns), question=question))
    [reply] = language_model.complete([prompt])
    if isinstance(reply, LanguageModelError):
        raise reply
    return extract_question(reply.text)


def is_rewriting(text: str, question: str, history: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a text is a rewriting of a question: another one about the same, without news.

    A text without a question mark is none if the question has one. An answer brings terms of its own, and a refusal
    has few of the question.

    >>> is_rewriting("How long is the hose of the HP-31?", "How long is its hose?", [{"content": "HP-31?"}])
    True
    >>> is_rewriting("Sorry, which product do you mean?", "How long is its hose?", [{"content": "HP-31?"}])
    False
    """
    terms, question_terms = extract_search_terms(text), extract_search_terms(question)
    is_other = 0 < len(text) <= MAX_CHARACTERS and _list_words(text) != _list_words(question)
    if not is_other or (is_question(question) and not is_question(text)):
        return False
    messages = "\n".join(turn["content"][:MAX_CHARACTERS] for turn in history[-MAX_TURNS:])
    stated = {*question_terms, *extract_search_terms(messages), *_list_words(f"{question}\n{messages}")}
    present = {*terms, *_list_words(text)}
    return sum(term in present for term in question_terms) >= _MIN_SHARED * len(question_terms) and sum(
        term not in stated for term in terms
    ) <= _MAX_NEW * len(terms)


def _list_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def merge_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return evidence with the passages of two searches in turn, as many as the larger has; overlaps are left out.

    The question and timings are those of ``first``.
    """
    passages: list[ScoredPassage] = []
    for scored in chain.from_iterable(zip_longest(first.passages, second.passages)):
        if scored is not None and not any(_overlap(scored.passage, other.passage) for other in passages):
            passages.append(scored)
    passages = passages[: max(len(first.passages), len(second.passages))]
    ids = {scored.passage.id for scored in passages}
    trace = [step for step in (*first.trace, *second.trace) if step.passage_id in ids]
    traced = {step.hyperedge_id for step in trace}
    hyperedges = {
        scored.hyperedge.id: scored
        for scored in (*first.hyperedges, *second.hyperedges)
        if scored.hyperedge.passage_id in ids or scored.hyperedge.id in traced
    }
    entities = {scored.entity.key: scored for scored in (*second.entities, *first.entities)}
    best = None if passages else first.best_relevance
    return replace(
        first,
        passages=tuple(passages),
        hyperedges=tuple(hyperedges.values()),
        entities=tuple(entities.values()),
        trace=tuple(trace),
        best_relevance=best,
    )


def _overlap(passage: Passage, other: Passage) -> bool:
    return (
        passage.document_id == other.document_id and passage.start < other.end and other.start < passage.end
    ) or passage.id == other.id


def add_names(question: str, history: Sequence[Mapping[str, str]], list_names: Callable[[str], Sequence[str]]) -> str:
    """Return a follow-up question with the names of the last answer, for a search without a language model.

    The last names of the answer that the last question lacks are added, since an answer ends with what is new, or else
    those of the last question. A question with a name that both lack begins a new topic and stays as it is.

    Args:
        question: The last message of the user.
        history: The messages before it, oldest first, each with ``role`` and ``content``.
        list_names: Returns the names in a text that the index knows, in text order.

    >>> history = [{"role": "user", "content": "Who cast it?"}, {"role": "assistant", "content": "Ines Moreau."}]
    >>> add_names("Where was she born?", history, lambda text: ["Ines Moreau"] if "Moreau" in text else [])
    'Where was she born? (Ines Moreau)'
    """
    last = {turn["role"]: turn["content"][:MAX_CHARACTERS] for turn in history}
    if "user" not in last:
        return question
    earlier_names = list_names(last["user"])
    answer_names = list_names(last.get("assistant", ""))
    question_names = set(list_names(question))
    if question_names - {*answer_names, *earlier_names}:
        return question
    names = [name for name in answer_names if name not in earlier_names] or answer_names or earlier_names
    added_names = [name for name in names if name not in question_names][-MAX_NAMES:]
    return f"{question} ({', '.join(added_names)})" if added_names else question
