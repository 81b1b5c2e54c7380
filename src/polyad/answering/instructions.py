"""What the model is told before it sees the question: the rules of evidence, the form of the answer, the style."""

from __future__ import annotations

from collections.abc import Iterator

from polyad.answering.context import Context
from polyad.config import AnswerSettings
from polyad.text.packaged import packaged


def instructions(settings: AnswerSettings, context: Context) -> str:
    """Put the instructions together; without any evidence, those for answering from what the model knows.

    Each sort of evidence is explained only if there is some. An answer in names has no style of its own, so
    ``concise`` and ``sections`` ask for it in the same words.

    Args:
        settings: Form and style of the answer.
        context: The evidence that will be shown.
    """
    return "\n\n".join(_part(name) for name in _parts(settings, context))


def _parts(settings: AnswerSettings, context: Context) -> Iterator[str]:
    """The names of the files that make up the instructions, in order."""
    yield "evidence" if context.text else "unaided"
    if settings.form == "text":
        yield "text" if context.text else "unaided_text"
    else:
        yield settings.form
    if settings.prompt == "think-answer" or settings.form == "text":
        yield settings.prompt
    for shown, part in (
        (context.facts, "shown_facts"),
        (context.entities, "shown_entities"),
        (context.passages, "shown_passages"),
        (context.text, "quoted"),
    ):
        if shown:
            yield part


def _part(name: str) -> str:
    return packaged("polyad.answering.prompts", f"{name}.md")
