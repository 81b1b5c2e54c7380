"""Rewrites the last question of a conversation so that it can be understood alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyad.errors import LanguageModelError
from polyad.protocols.components import LanguageModel, Prompt
from polyad.replies.thoughts import remove_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import collapse_whitespace

MAX_TURNS = 10
"""Number of messages before the question that the language model reads."""

MAX_CHARACTERS = 2_000
"""Characters of each of these messages, and of the rewritten question."""


def rewrite_question(
    question: str,
    history: Sequence[Mapping[str, str]],
    language_model: LanguageModel | None,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> str:
    """Return a follow-up question, such as "And when?", rewritten by a language model to be clear without ``history``.

    See :meth:`polyad.Engine.rewrite_question`.
    """
    if language_model is None or not history:
        return question
    turns = [
        f"{turn['role']}: {collapse_whitespace(turn['content'])[:MAX_CHARACTERS]}" for turn in history[-MAX_TURNS:]
    ]
    prompt = Prompt(user=prompts.get_text("question_rewrite", history="\n".join(turns), question=question))
    [reply] = language_model.complete([prompt])
    if isinstance(reply, LanguageModelError):
        raise reply
    rewritten = collapse_whitespace(remove_thoughts(reply.text)).strip("\"' ")
    return rewritten if 0 < len(rewritten) <= MAX_CHARACTERS else question
