"""The command ``polyad bench questions``, which generates a benchmark from documents."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import options, output
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration, require_one_of
from polyad.cli.streams import say, say_result, warn
from polyad.engine import Engine
from polyad.errors import ConfigurationError, NoLanguageModelError
from polyad.indexing.split import SentenceSplitter
from polyad.protocols.components import Progress
from polyad_bench import generated_questions as generated
from polyad_bench import question_review
from polyad_bench.written_questions import BINARY, N_ARY, PLAN_FILE, QUESTION_COUNTS, SOURCES, write_questions

_EMBEDDER = "hashing:16"
"""Embedder of a temporary index; generating questions reads passages and names, but no vectors."""

_DEFAULT_HOPS, _DEFAULT_SOURCES = ",".join(map(str, QUESTION_COUNTS)), f"{BINARY},{N_ARY}"
"""Numbers of questions by hops, and ways in which their facts are sampled."""


def questions(
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder for corpus, questions and judgements.")],
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders.")] = None,
    store: options.Store = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of questions of each kind.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, show_default=False, help="Random seed. [0]")] = 0,
    mention_extractor: options.MentionExtractor = None,
    written: Annotated[
        bool, typer.Option("--written", help="Let the language model write questions with answers.")
    ] = False,
    hops: Annotated[
        str,
        typer.Option(metavar="A,B,C", help="With --written: numbers of questions with 1, 2 and 3 hops."),
    ] = _DEFAULT_HOPS,
    source: Annotated[
        str, typer.Option(metavar="A,B,...", help=f"With --written: how facts are sampled: {', '.join(SOURCES)}.")
    ] = _DEFAULT_SOURCES,
    review: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write questions of --out into a new sheet, or apply a reviewed one."),
    ] = None,
    model: options.Model = None,
    replies: options.Replies = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Generate questions on your own documents, to measure retrievers.

    Reads documents or an index, needs no model, and writes a folder for `polyad eval` in which each passage is a
    document. A known-item question is a sentence without some of its words; its gold document is the passage of the
    sentence. A two-hop question is a sentence without a name; its gold documents are that passage and the one about the
    name. Such questions show which retriever suits your documents, but users word questions differently: add real ones
    to queries.jsonl.

    With --written the language model writes questions and golden answers from one fact, or from two or three facts
    that share entities (HyperGraphRAG v2, appendix D); --source random,single-entity,multi-entity samples facts as in
    its first version. Check them before you rely on them. The same command continues a
    run that was stopped.

    With --review, a person checks the questions in the folder --out: the command writes a CSV file with a row for each
    question and its gold documents. Write `accept` or `reject` into the first column, then run the command again.
    Rejected questions move to rejected.jsonl.

    Example: polyad bench questions handbook/ --out handbook-questions && polyad eval handbook-questions/
    """
    if review:
        _review(out, review, json=json)
        return
    settings = options.load_settings(store=store, mention_extractor=mention_extractor, model=model, replies=replies)
    if bool(paths) == bool(settings.command.store):
        raise ConfigurationError("expected either files or folders, or an index with --store DIR")
    is_begun = written and (out / PLAN_FILE).exists() and not (out / "qrels" / "test.tsv").exists()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not is_begun)):
        raise ConfigurationError(f"{str(out)!r} is not empty; expected a new folder")
    sources, hop_counts = options.split_names(source), _parse_hops(hops)
    for name in sources:
        require_one_of("source", name, SOURCES)
    if written and settings.language_model is None:
        raise NoLanguageModelError("--written")
    with (
        progress_bar(quiet or json) as progress,
        _open_engine(settings, paths or [], progress, needs_language_model=written) as engine,
    ):
        if written:
            language_model = engine.components.require_language_model("--written")
            question_set = write_questions(engine, language_model, out, hop_counts, seed, progress, sources)
        else:
            splitter = SentenceSplitter(settings.stages.split)
            question_set = generated.generate_questions(engine, count, seed, splitter, progress)
    if not question_set.questions:
        warn("failed", "no question was written; the replies of the model are in written.jsonl")
        raise typer.Exit(1)
    generated.write_question_set(question_set, out)
    _report_questions(question_set, written=written, sources=sources, hop_counts=hop_counts, out=out, json=json)


def _report_questions(
    question_set: generated.QuestionSet,
    *,
    written: bool,
    sources: Sequence[str],
    hop_counts: Sequence[int],
    out: Path,
    json: bool,
) -> None:
    """Print the number of questions of each kind, and a note if there are fewer than requested."""
    kinds = Counter(question.kind for question in question_set.questions)
    targets = dict.fromkeys((generated.KNOWN_ITEM, generated.TWO_HOP), 0)
    if written:
        targets = {f"{source}-{number}-hop": count for source in sources for number, count in enumerate(hop_counts, 1)}
        fewer = [f"{kinds[kind]} of {count} {kind}" for kind, count in targets.items() if kinds[kind] < count]
        if fewer:
            warn("note", f"fewer questions than requested: {', '.join(fewer)}; facts or valid replies ran out")
    elif not kinds[generated.TWO_HOP]:
        warn("note", "no two-hop questions: no passage mentions the subject of another one")
    counts = {kind: kinds[kind] for kind in targets}
    say_result(
        json,
        {"passages": len(question_set.passages), "questions": counts, "folder": str(out)},
        say,
        f"{out}: {', '.join(f'{number} {kind}' for kind, number in counts.items())} questions\n"
        f"on {len(question_set.passages):,} passages. "
        f"Next: polyad eval {shlex.quote(str(out))} --retriever bm25,dense,default",
    )


def _review(folder: Path, sheet: Path, *, json: bool) -> None:
    """Write a sheet of questions to review, or apply the verdicts of a sheet that exists."""
    if not sheet.exists():
        count = question_review.write_sheet(folder, sheet)
        text = f"{sheet}: {count} questions. Write accept or reject into the first column, then run this command again."
        say_result(json, {"questions": count, "sheet": str(sheet)}, say, text)
        return
    counts = question_review.apply_verdicts(folder, sheet)
    shape = {"accepted": counts["accept"], "rejected": counts["reject"], "undecided": counts[""]}
    say_result(
        json, shape, say, f"{folder}: {', '.join(f'{number} {name}' for name, number in shape.items())} questions"
    )


def _parse_hops(hops: str) -> list[int]:
    counts = [int(number) if number.strip().isdecimal() else -1 for number in hops.split(",")]
    if len(counts) != len(QUESTION_COUNTS) or min(counts) < 0 or not any(counts):
        raise ConfigurationError(f"--hops is {hops!r}; expected three whole numbers such as 128,64,64")
    return counts


@contextmanager
def _open_engine(
    settings: Configuration, paths: list[Path], progress: Progress, *, needs_language_model: bool = False
) -> Iterator[Engine]:
    """Yield an engine on the index of the settings or, if ``paths`` is not empty, on a temporary index of ``paths``.

    Args:
        settings: Settings of the command.
        paths: Files and folders to index; empty for the index of the settings.
        progress: Called with the progress.
        needs_language_model: Whether the engine asks its language model.
    """
    if not paths:
        with options.open_engine(settings, bare=not needs_language_model) as engine:
            yield engine
        return
    settings = replace(settings, command=replace(settings.command, embedder=_EMBEDDER))
    with (
        options.directory_for(None) as directory,
        options.open_engine(settings, create=True, directory=directory) as engine,
    ):
        report = engine.index(paths, progress=progress)
        output.warn_of_failures(report)
        output.warn_of_nothing(report, paths)
        yield engine
