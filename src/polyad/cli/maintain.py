"""The commands that look after an index: ``backup`` and ``log``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Store, open_engine, settings_from
from polyad.cli.streams import say, say_json
from polyad.text.json_types import format_value


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Copy an index to a file, also while it is searched and written.

    The copy is the index at one point in time. Cached replies of the language model are copied to FILE.replies. To
    restore the backup, copy FILE to index.sqlite, and FILE.replies to replies.sqlite, in an empty folder.

    Example: polyad backup backups/kb.sqlite --store kb
    """
    with open_engine(settings_from(store=store), bare=True) as engine:
        report = engine.back_up(file, overwrite=force)
    if json:
        say_json(asdict(report))
    else:
        say(f"{report.bytes:,} bytes written to {' and '.join(report.files)} in {report.seconds:.1f} s")


def log(
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Print only the last N changes.")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print what changed in an index, newest first.

    Each line is one run of a command: the time in UTC, the command, the numbers of documents, passages and hyperedges
    that it stored, removed or corrected, and the tokens and the cost of the language model. A run that was interrupted
    is listed with what it had stored by then; a run that changed nothing is not listed.

    Example: polyad log -n 10 --store kb
    """
    with open_engine(settings_from(store=store), bare=True) as engine:
        entries = engine.catalogue.history(limit)
    if json:
        say_json({"changes": [format_value(entry) for entry in entries]})
    else:
        output.show_history(entries)
