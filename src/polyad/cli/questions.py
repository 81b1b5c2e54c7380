"""The command that makes questions of one's own documents: ``polyad questions``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Mentions, Quiet, Store, directory_for, open_engine, settings_from
from polyad.cli.settings import Configuration
from polyad.config import SplitSettings
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.evaluation import own_questions
from polyad.indexing.split import SentenceSplitter
from polyad.protocols import Progress

_EMBEDDER = "hashing:16"
"""Of an index that is made for its passages and names alone: no vector is ever looked at."""


def questions(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where corpus, questions and judgements go; a new folder.")],
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders.")] = None,
    store: Store = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many of each of the two kinds.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, show_default=False, help="Others for each number. [0]")] = 0,
    mentions: Mentions = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make questions of your own documents, to measure retrievers on them.

    Needs no model. Reads documents, or an index that is there, and writes a folder for `polyad eval`, in which each
    passage is a document. Known items are sentences with some words left out; their evidence is the passage that says
    so. Two-hop questions leave out a name: their evidence is that passage and the one about whoever is named. They
    rank retrievers on these documents; real questions are worded otherwise, so add those you have to queries.jsonl.

    Example: polyad questions handbook/ --out handbook-questions && polyad eval handbook-questions/
    """
    settings = settings_from(store=store, mentions=mentions)
    if bool(paths) == bool(settings.command.store):
        raise ConfigurationError("expected files or folders, or an index with --store DIR, one of the two")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{str(out)!r} holds something already; expected a new folder")
    with (
        output.progress_bar(quiet or json) as progress,
        _engine(settings, paths or [], progress) as engine,
    ):
        splitter = SentenceSplitter(settings.stages.of(SplitSettings))
        made = own_questions.own_questions(engine, count, seed, splitter, progress)
    own_questions.write(made, out)
    kinds = Counter(question.kind for question in made.questions)
    counts = {kind: kinds[kind] for kind in (own_questions.KNOWN_ITEM, own_questions.TWO_HOP)}
    if not counts[own_questions.TWO_HOP]:
        output.warn("note", "no two-hop questions: no name leads from one of these passages to the one about it")
    if json:
        output.say_json({"passages": len(made.passages), "questions": counts, "folder": str(out)})
        return
    output.say(f"{out}: {', '.join(f'{number} {kind}' for kind, number in counts.items())} questions")
    output.say(f"on {len(made.passages):,} passages. Next: polyad eval {out} --retriever bm25,standard,default")


@contextmanager
def _engine(settings: Configuration, paths: list[Path], progress: Progress) -> Iterator[Engine]:
    """On the index there is, or on one of the documents that is gone afterwards."""
    if not paths:
        with open_engine(settings, bare=True) as engine:
            yield engine
        return
    settings = replace(settings, command=replace(settings.command, embedder=_EMBEDDER))
    with directory_for(None) as directory, open_engine(settings, create=True, directory=directory) as engine:
        report = engine.index(paths, progress=progress)
        output.warn_of_failures(report)
        output.warn_of_nothing(report, paths)
        yield engine
