"""The commands that write an index: ``polyad index`` and ``polyad remove``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyad.cli import options, output
from polyad.cli.context import SETTINGS, SETTINGS_FILE, TRUSTS_ENDPOINT
from polyad.cli.progress import progress_bar
from polyad.cli.settings import Configuration
from polyad.cli.streams import say, say_result
from polyad.cli.watching import require_watchfiles, warn_of_error, watch_changes
from polyad.engine import Engine, loaders
from polyad.engine.loaders import Loader, parse_place
from polyad.errors import ConfigurationError, NoLanguageModelError
from polyad.readers.folder.files import require_reachable
from polyad.schemas.reports import index_json
from polyad.text.words import format_count

if TYPE_CHECKING:
    from polyad.indexing.run import IndexReport


def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders; with --force also ids of documents.")
    ] = None,
    store: options.Store = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what the language model would cost, without indexing."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove documents whose files are missing below PATH, unless the whole folder is empty."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Rebuild unchanged documents too, without reusing replies; without PATH all documents."
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Then follow added, changed, moved and removed files until Ctrl-C; implies --prune."
        ),
    ] = False,
    no_ignore: Annotated[
        bool,
        typer.Option(
            "--no-ignore", help="Also read what .gitignore files name, node_modules and virtual environments."
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if files were skipped.")] = False,
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Read, embed and extract on a Ray cluster: `local`, `auto`, or the address of the cluster.",
        ),
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=0,
            show_default=False,
            help="Index with N processes, and with `polyad worker` on other machines. Needs PostgreSQL. [this process]",
        ),
    ] = None,
    *,
    flags: options.IndexFlags,
) -> None:
    """Add documents to an index.

    Creates the index if necessary. Reads .txt .md .html .pdf .docx .xlsx .pptx .epub .odt .rst .adoc .eml .csv .jsonl
    and source code; with the extra `ocr` also .png .jpg .tiff .webp and scanned pages of PDF files. Changed documents
    are replaced and unchanged ones skipped, so running the same command again is cheap. A document that cannot be read
    is reported, the others are indexed, and the exit code is 1. Files of unsupported types and minified code are
    skipped and listed. Files that .gitignore files name are left out and counted.

    With --method facts a language model extracts facts, with one call per passage. Its replies are stored, so that a
    stopped run continues where it stopped. With --method tuples each line of a .jsonl file or row of a .csv file is a
    fact: {"relation", "arguments": [{"role", "entity"}, ...]}, or a row whose columns are roles. Facts that may change
    need an "_id": without it a corrected line is a new fact, and the old one stays until it is removed.

    With --watch the command goes on: it follows the files of PATH, and a folder whose disk disappears loses nothing.

    Example: polyad index handbook/ trials.pdf --store kb
    """
    settings = options.load_settings(flags, store=store, gitignore=False if no_ignore else None)
    paths = paths or []
    if not paths and not force:
        raise ConfigurationError("no PATH was given; expected files or folders to index")
    for path in () if force else paths:  # before an index is created in vain
        require_reachable(path)
    if (
        settings.command.method == "facts"
        and settings.language_model is None
        and not Engine.exists(settings.command.store)
    ):
        raise NoLanguageModelError("the method 'facts'")
    if workers is not None and (force or watch or ray or flags.max_cost or flags.max_tokens):
        raise ConfigurationError(
            "--workers excludes --force, --watch, --ray, --max-cost and --max-tokens; leave out one of them"
        )
    if watch:
        require_watchfiles()
    if dry_run:
        _show_estimate(settings, paths, flags.json, force=force)
        return
    with _get_component_loader(ray) as loader, options.open_engine(settings, create=True, loader=loader) as engine:
        run: Callable[..., IndexReport] = partial(engine.index, paths, method=settings.method, force=force)
        run = partial(run, max_cost=flags.max_cost, max_tokens=flags.max_tokens)
        if workers is not None:
            from polyad.engine.workers import WorkerRun  # imports psycopg

            run = partial(WorkerRun(engine, partial(_start_worker, settings), workers).index, paths, settings.method)
        changes = watch_changes(paths, engine.directory) if watch else None  # before the files are read
        with progress_bar(flags.quiet or flags.json) as progress:
            report = run(prune=prune or watch, progress=progress)
        _show_report(report, paths, flags.json)
        if changes:
            _index_on_changes(partial(run, prune=True), changes, paths, flags.json)
            return
    if not report.is_complete or (strict and report.skipped):
        raise typer.Exit(1)


def _start_worker(settings: Configuration) -> subprocess.Popen[bytes]:
    """Start a worker process (``polyad worker``) for the steps of indexing, with the settings of this command.

    The settings are passed in the environment, which other users cannot read: they contain passwords.
    """
    from polyad.engine.workers import STEPS  # imports psycopg

    file, command = SETTINGS_FILE.get(), settings.command
    words = [*(["--config", str(file)] if file else []), *(["--trust-endpoint"] if TRUSTS_ENDPOINT.get() else [])]
    words += [part for setting in SETTINGS.get() for part in ("--set", setting)]
    model = settings.language_model.model if settings.language_model else ""
    values = {"STORE": command.store, "PRESET": command.preset, "MODEL": model, "REPLIES": command.replies}
    environment = {**os.environ, **{f"POLYAD_{name}": str(value) for name, value in values.items() if value}}
    kinds = [word for step in STEPS for word in ("--kind", step)]
    arguments = [sys.executable, "-m", "polyad", *words, "worker", "--until-idle", *kinds]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL)


def _get_component_loader(ray_address: str) -> AbstractContextManager[Loader]:
    """Return an object that loads models: on the Ray cluster at ``ray_address``; if that is empty, in this process."""
    if not ray_address:
        return nullcontext(loaders)
    from polyad.engine.ray_cluster import RayCluster  # takes 2 s

    return RayCluster(ray_address)


def _index_on_changes(run: Callable[[], IndexReport], changes: Iterator[int], paths: list[Path], json: bool) -> None:
    """Call ``run``, which indexes ``paths``, at each of the ``changes`` of files, until Ctrl-C (``--watch``)."""
    if not json:
        say("watching for changes; Ctrl-C ends")
    for _ in changes:
        try:
            report = run()
        except ConfigurationError as error:
            warn_of_error(error)
        else:
            if report.counts.added or report.counts.updated or report.missing or report.failures:
                _show_report(report, paths, json)


def _show_report(report: IndexReport, paths: list[Path], json: bool) -> None:
    output.warn_of_failures(report)
    output.warn_of_duplicates(report)
    output.warn_of_nothing(report, paths)
    say_result(json, index_json(report), output.show_index_report, report)
    sys.stdout.flush()


def _show_estimate(settings: Configuration, paths: list[Path], json: bool, *, force: bool) -> None:
    """Print the estimated language-model cost of indexing ``paths``, without indexing the files.

    If there is no index yet, the estimate uses a temporary directory.
    """
    store = settings.command.store
    with (
        nullcontext(parse_place(store)) if store and Engine.exists(store) else options.directory_for(None) as place,
        options.open_engine(settings, create=True, directory=place) as engine,
    ):
        usage = engine.estimate(paths, method=settings.method, force=force)
    say_result(json, {"estimate": usage}, output.show_estimate, usage)


def embed(
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="The new embedding model. Required.")
    ] = "",
    store: options.Store = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Replace all vectors of an index by those of another embedding model.

    No fact is extracted again. The index can be searched and written meanwhile; the vectors are replaced in one step at
    the end. After an interruption the index is as it was, and the same command continues.

    Example: polyad embed --embedder all-mpnet-base-v2 --store kb
    """
    if not embedder:
        raise ConfigurationError("no embedder was given; expected --embedder NAME")
    with (
        progress_bar(quiet or json) as progress,
        options.open_engine(options.load_settings(store=store), bare=True) as engine,
    ):
        report = engine.replace_embedder(embedder, progress)
    say_result(
        json,
        report,
        say,
        f"{report.vectors:,} vectors of {format_count(report.documents, 'document')} replaced by those of "
        f"{report.embedder} in {report.seconds:.1f} s",
    )


def remove(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT", help="Ids as printed by `polyad list documents`, files, folders, or patterns: 'old/*'."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which documents would be removed, without removing them.")
    ] = False,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Remove documents from an index.

    Their passages, hyperedges and entities are removed too. A folder stands for all documents that were read from it,
    whether it still exists or not. If a name selects no document, no document is removed.

    Example: polyad remove handbook/old.md 'drafts/2019*' --store kb
    """
    with options.open_engine(options.load_settings(store=store), bare=True) as engine:
        ids = engine.catalogue.match_documents(names)
        if not dry_run:
            engine.remove(ids)
        remaining = engine.catalogue.statistics().documents
    summary = f"{len(ids):,} removed, {format_count(remaining, 'document')} left"
    if dry_run:
        summary = (
            f"{format_count(len(ids), 'document')} would be removed; nothing was changed: {output.join_first(ids)}"
        )
    say_result(json, {"removed": ids, "documents": remaining, "is_trial": dry_run}, say, summary)
