"""Completes the last question of a conversation so that it can be understood alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from polyad.errors import LanguageModelError
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.thoughts import remove_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import collapse_whitespace

_LOG = logging.getLogger(__name__)

MAX_TURNS = 10
"""Number of messages before the question that the language model reads."""

MAX_CHARACTERS = 2_000
"""Characters of each of these messages, and of the rewritten question."""

MAX_NAMES = 3
"""Maximum number of names of the last answer that a follow-up question gets without a language model."""


def complete_question(
    question: str,
    history: Sequence[Mapping[str, str]],
    language_model: LanguageModel | None,
    list_names: Callable[[str], Sequence[str]],
    prompts: Prompts = DEFAULT_PROMPTS,
) -> str:
    """Return a follow-up question, such as "And when?", that is complete without ``history``.

    The language model rewrites the question. Without a model, or if the model fails, the question gets names instead;
    see :func:`add_names`.
    """
    if language_model is not None and history:
        try:
            return rewrite_question(question, history, language_model, prompts)
        except LanguageModelError as error:
            _LOG.warning("a follow-up question is searched with the names of the last answer: %s", error)
    return add_names(question, history, list_names)


def rewrite_question(
    question: str,
    history: Sequence[Mapping[str, str]],
    language_model: LanguageModel,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> str:
    """Return a follow-up question, such as "And when?", rewritten by a language model to be clear without ``history``.

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
    rewritten = collapse_whitespace(remove_thoughts(reply.text)).strip("\"' ")
    return rewritten if 0 < len(rewritten) <= MAX_CHARACTERS else question


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
