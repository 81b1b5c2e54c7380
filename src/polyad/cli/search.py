"""The commands that ask a question: ``polyad search`` and ``polyad ask``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Form, SearchFlags, load_settings, open_engine
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration
from polyad.cli.streams import say, say_json, say_piece, say_result, warn
from polyad.engine.engine import Engine
from polyad.engine.registry import retrievers
from polyad.engine.search import OTHER_TIMES, SELECTED_PASSAGES
from polyad.errors import LanguageModelError
from polyad.model import Answer, Evidence
from polyad.protocols.components import Progress
from polyad.retrieval.options import AUTO
from polyad.retrieval.options import MinRelevance as RelevanceLimit
from polyad.schemas.errors import error_json
from polyad.schemas.evidence import answer_json, evidence_json
from polyad.text.words import format_count


def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    flags: SearchFlags,
) -> None:
    """Find the evidence for a question.

    Prints some 90 words of each hit with the sentence that most likely answers the question, which is bold on a
    terminal. With --max-words N, the hits are filled with the sentences that fit best, up to N words in all; --full
    prints whole hits. Adjacent passages are merged into one hit. Only the retriever `hypermemory` needs a language
    model.

    Each command loads the models of its retriever: none for `bm25`, the embedding model for the others. That takes most
    of a second, a search milliseconds. For many questions load it once in Python: polyad.Engine.open(DIR).

    Example: polyad search "Who funded the trial?" --store kb --explain
    """
    settings = load_settings(flags)
    searches = retrievers[settings.command.retriever]
    with (
        progress_bar(flags.quiet or flags.json) as progress,
        open_engine(settings, reranks=True, searches=searches) as engine,
    ):
        progress(0, None, "questions answered, loading")
        evidence = _search(engine, question, flags, settings, progress, 0.0)
        is_empty = _is_empty(engine, evidence)
    _warn_if_empty(evidence, is_empty)
    say_result(
        flags.json,
        evidence_json(evidence, flags.explain),
        output.show_evidence,
        evidence,
        flags.explain,
        _choose_display(flags, settings),
    )


def _search(
    engine: Engine,
    question: str,
    flags: SearchFlags,
    settings: Configuration,
    progress: Progress,
    min_relevance: RelevanceLimit,
) -> Evidence:
    command = settings.command
    options = {name: getattr(command, name, value) for name, value in flags.options.items()}
    arguments = {name: value for name, value in options.items() if value is not None}
    return engine.search(
        question, **{"min_relevance": min_relevance, **arguments}, retriever=command.retriever, progress=progress
    )


def _is_empty(engine: Engine, evidence: Evidence) -> bool:
    """Return whether a search has no hits because the index contains no documents."""
    return not evidence.passages and not engine.catalogue.statistics().documents


def _warn_if_empty(evidence: Evidence, is_empty: bool) -> None:
    if is_empty:
        warn("warning", "this index has no documents; add some with polyad index")
    if is_empty or evidence.passages or evidence.retriever == "none":
        return
    if count := evidence.notes.get(OTHER_TIMES):
        warn(
            "note",
            f"{format_count(count, 'passage')} that {'does' if count == 1 else 'do'} not hold at this time "
            f"{'was' if count == 1 else 'were'} not searched; --as-of DATE searches what held then",
        )
    if evidence.notes.get(SELECTED_PASSAGES) == 0:
        warn(
            "warning",
            "no document satisfies --where and --known-at; polyad show document ID prints the fields of a document",
        )
    elif SELECTED_PASSAGES in evidence.notes:
        count = evidence.notes[SELECTED_PASSAGES]
        warn("note", f"only {format_count(count, 'passage')} that --where and --known-at select were searched")


def _answer(
    engine: Engine, evidence: Evidence, on_text: Callable[[str], None] | None = None
) -> tuple[Answer, LanguageModelError | None]:
    """Return the answer; if the language model fails, an answer without text, and the error."""
    try:
        return engine.answer(evidence, on_text), None
    except LanguageModelError as error:
        return Answer("", evidence, note="the language model wrote no answer; this is the evidence"), error


def _choose_display(flags: SearchFlags, settings: Configuration) -> output.Display:
    """Return how much of each hit to print: a number of words is filled with excerpts."""
    if flags.full:
        return output.Display.WHOLE
    return output.Display.EXCERPT if settings.command.max_words else output.Display.SUMMARY


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    flags: SearchFlags,
    form: Form = None,
) -> None:
    """Answer a question, with citations.

    A language model writes the answer from the evidence of `polyad search`, with the source of each statement. Any
    OpenAI-compatible endpoint will do: set the model with --model and the endpoint with OPENAI_BASE_URL. Without a
    model, or if the model fails, the evidence is printed.

    Example: OPENAI_BASE_URL=http://localhost:11434/v1 polyad ask "Who funded the trial?" --store kb --model qwen3
    """
    settings = load_settings(flags, form=form)
    streams = settings.language_model is not None and not flags.json and sys.stdout.isatty()
    with ExitStack() as stack:
        with progress_bar(flags.quiet or flags.json) as progress:
            progress(0, None, "questions answered, loading")
            engine = stack.enter_context(open_engine(settings, reranks=True))
            evidence = _search(engine, question, flags, settings, progress, AUTO)
            progress(0, None, "questions answered, writing")
            is_empty = _is_empty(engine, evidence)
            result = None if streams else _answer(engine, evidence)
        if result is None:  # streamed after the progress bar has ended
            try:
                result = _answer(engine, evidence, say_piece)
            finally:
                say()
    answer, failure = result
    if failure and flags.json:
        warn("error", str(failure))
        say_json(answer_json(answer, flags.explain, error_json(failure).error))
        raise typer.Exit(1)
    _warn_if_empty(evidence, is_empty)
    display = _choose_display(flags, settings)
    say_result(
        flags.json, answer_json(answer, flags.explain), output.show_answer, answer, flags.explain, display, streams
    )
    if failure:
        raise failure
