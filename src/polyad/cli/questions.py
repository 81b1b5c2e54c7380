"""The command that makes questions of one's own documents: ``polyad bench questions``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Mentions, Model, Quiet, Replies, Store, directory_for, open_engine, settings_from
from polyad.cli.settings import Configuration
from polyad.config import SplitSettings
from polyad.engine import Engine
from polyad.errors import ConfigurationError, NoLanguageModelError
from polyad.evaluation.questions import generated as own_questions
from polyad.evaluation.questions.written import BINARY, N_ARY, PLAN_FILE, QUESTION_COUNTS, write_questions
from polyad.indexing.split import SentenceSplitter
from polyad.protocols.components import Progress
from polyad.text.counting import format_count

_EMBEDDER = "hashing:16"
"""Of an index that is made for its passages and names alone: no vector is ever looked at."""


def questions(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where corpus, questions and judgements go; a new folder.")],
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders.")] = None,
    store: Store = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many of each of the two kinds.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, show_default=False, help="Others for each number. [0]")] = 0,
    mentions: Mentions = None,
    written: Annotated[
        bool, typer.Option("--written", help="Have the language model write questions on sampled facts, with answers.")
    ] = False,
    hops: Annotated[
        str,
        typer.Option(metavar="A,B,C", help="With --written: how many of 1, 2 and 3 hops, of each source of facts."),
    ] = ",".join(map(str, QUESTION_COUNTS)),
    model: Model = None,
    replies: Replies = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make questions of your own documents, to measure retrievers on them.

    Needs no model. Reads documents, or an index that is there, and writes a folder for `polyad eval`, in which each
    passage is a document. Known items are sentences with some words left out; their evidence is the passage that says
    so. Two-hop questions leave out a name: their evidence is that passage and the one about whoever is named. They
    rank retrievers on these documents; real questions are worded otherwise, so add those you have to queries.jsonl.

    With --written the language model writes each question and its golden answer from one fact, or from two or three of
    which each shares an entity with the one before (HyperGraphRAG v2, appendix D). Check them before you rely on them.
    A command that was stopped asks only for what is missing.

    Example: polyad bench questions handbook/ --out handbook-questions && polyad eval handbook-questions/
    """
    settings = settings_from(store=store, mentions=mentions, model=model, replies=replies)
    if bool(paths) == bool(settings.command.store):
        raise ConfigurationError("expected files or folders, or an index with --store DIR, one of the two")
    is_begun = written and (out / PLAN_FILE).exists() and not (out / "qrels" / "test.tsv").exists()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not is_begun)):
        raise ConfigurationError(f"{str(out)!r} holds something already; expected a new folder")
    if written:
        _write(settings, paths or [], out, _counts(hops), seed, json=json, quiet=quiet)
        return
    with (
        output.progress_bar(quiet or json) as progress,
        _engine(settings, paths or [], progress) as engine,
    ):
        splitter = SentenceSplitter(settings.stages.of(SplitSettings))
        made = own_questions.generate_questions(engine, count, seed, splitter, progress)
    own_questions.write_question_set(made, out)
    kinds = Counter(question.kind for question in made.questions)
    counts = {kind: kinds[kind] for kind in (own_questions.KNOWN_ITEM, own_questions.TWO_HOP)}
    if not counts[own_questions.TWO_HOP]:
        output.warn("note", "no two-hop questions: no name leads from one of these passages to the one about it")
    if json:
        output.say_json({"passages": len(made.passages), "questions": counts, "folder": str(out)})
        return
    output.say(f"{out}: {', '.join(f'{number} {kind}' for kind, number in counts.items())} questions")
    output.say(f"on {len(made.passages):,} passages. Next: polyad eval {out} --retriever bm25,dense,default")


def _counts(hops: str) -> list[int]:
    counts = [int(one) if one.strip().isdecimal() else -1 for one in hops.split(",")]
    if len(counts) != len(QUESTION_COUNTS) or min(counts) < 0 or not any(counts):
        raise ConfigurationError(f"--hops is {hops!r}; expected three whole numbers such as 128,64,64")
    return counts


def _write(
    settings: Configuration, paths: list[Path], out: Path, hops: Sequence[int], seed: int, *, json: bool, quiet: bool
) -> None:
    """Have questions written, as far as that has not been done, and say how many there are."""
    if settings.language_model is None:
        raise NoLanguageModelError("--written")
    with output.progress_bar(quiet or json) as progress, _engine(settings, paths, progress, asks=True) as engine:
        model = engine.components.require_language_model("--written")
        made = write_questions(engine, model, out, hops, seed, progress)
    kinds = Counter(question.kind for question in made.questions)
    wanted = {f"{source}-{number}-hop": count for source in (BINARY, N_ARY) for number, count in enumerate(hops, 1)}
    fewer = [f"{kinds[kind]} of {count} {kind}" for kind, count in wanted.items() if kinds[kind] < count]
    if not made.questions:
        output.warn("failed", "no question was written; what the model replied is kept in written.jsonl")
        raise typer.Exit(1)
    own_questions.write_question_set(made, out)
    if fewer:
        output.warn("note", f"fewer than wanted: {', '.join(fewer)}: the facts, or replies that could be read, ran out")
    if json:
        counts = {kind: kinds[kind] for kind in wanted}
        output.say_json({"passages": len(made.passages), "questions": counts, "folder": str(out)})
        return
    output.say(f"{out}: {format_count(len(made.questions), 'question')} on {len(made.passages):,} passages")
    output.say(f"Next: polyad eval {out} --retriever bm25,dense,default")


@contextmanager
def _engine(settings: Configuration, paths: list[Path], progress: Progress, *, asks: bool = False) -> Iterator[Engine]:
    """On the index there is, or on one of the documents that is gone afterwards; it may have to ask a model."""
    if not paths:
        with open_engine(settings, bare=not asks) as engine:
            yield engine
        return
    settings = replace(settings, command=replace(settings.command, embedder=_EMBEDDER))
    with directory_for(None) as directory, open_engine(settings, create=True, directory=directory) as engine:
        report = engine.index(paths, progress=progress)
        output.warn_of_failures(report)
        output.warn_of_nothing(report, paths)
        yield engine
