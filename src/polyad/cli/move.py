"""The commands that move an index: ``export``, ``import`` and ``migrate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Quiet, Store, load_settings, open_engine
from polyad.cli.progress import progress_bar
from polyad.cli.streams import say, say_result
from polyad.engine import Engine
from polyad.engine.migration import migrate_index
from polyad.engine.transfer import EXPORT_FORMATS
from polyad.errors import ConfigurationError
from polyad.schemas.reports import export_json
from polyad.text.words import format_count


def export(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="The file, or the folder for parquet. Required.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", metavar="NAME", help=f"One of {', '.join(EXPORT_FORMATS)}.")
    ] = "jsonl",
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Leave out the vectors: a smaller file, and an import embeds again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace PATH if it exists.")] = False,
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write an index to a file, to move it, to back it up or to read it with other programs.

    The format jsonl is without loss: `polyad import` makes an index of it with the same evidence, also retractions,
    aliases and disabled documents. The other formats are for other programs, hold what a search sees, and cannot be
    imported: hif is the Hypergraph Interchange Format, graphml a graph with hyperedges as nodes, parquet a
    folder of tables. The index may be searched and written meanwhile; the file holds one version of it.

    Example: polyad export --out kb.jsonl --store kb
    """
    if out is None:
        raise ConfigurationError("no file was given; expected --out PATH")
    with open_engine(load_settings(store=store), bare=True) as engine, progress_bar(quiet or json) as progress:
        report = engine.export(out, format, vectors=not no_vectors, overwrite=force, progress=progress)
    say_result(json, export_json(report), output.show_export, report)


def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File of `polyad export --format jsonl`.")],
    store: Store = None,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Embedding model of a new index. [that of the exported index]")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add the documents and corrections of an exported index; no language model is called.

    Creates the index if necessary. Texts are embedded again only if the file has no vectors, or those of another
    embedder. Documents that the index has in the same version are skipped, so the same command continues an interrupted
    import. A line that cannot be read is reported, the others are imported, and the exit code is 1.

    Example: polyad import kb.jsonl --store copy
    """
    settings = load_settings(store=store)
    with (
        Engine.open_like(path, settings.command.require_store(), embedder=embedder, settings=settings.stages) as engine,
        progress_bar(quiet or json) as progress,
    ):
        report = engine.import_file(path, progress)
    say_result(json, replace(report, seconds=round(report.seconds, 3)), output.show_import, report)
    if report.failures:
        raise typer.Exit(1)


def migrate(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Folder or address of the index.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Folder or address of the copy.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy an index into another store, such as a PostgreSQL database.

    Each store is a folder or a PostgreSQL database. Everything is copied: documents with their vectors and hyperedges,
    corrections, history and cached replies of the language model. Searches of the copy return the same evidence. API
    keys are not valid in the copy; add new ones there. Jobs stay with the source: let them end before. The same command
    continues an interrupted migration. Nothing else should write either index meanwhile.

    Example: polyad migrate kb postgresql://polyad@db.example.org/search
    """
    with progress_bar(quiet or json) as progress:
        report = migrate_index(source, target, progress)
    documents, values = format_count(report.documents, "document"), format_count(report.values, "value")
    counts = f"{documents} ({report.copied:,} in this run) and {values}"
    say_result(json, report, say, f"{counts} copied in {report.seconds:.1f} s")
