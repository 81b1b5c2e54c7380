"""The commands that look after an index: ``check``, ``backup`` and ``log``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Quiet, Store, load_settings, open_engine
from polyad.cli.progress import progress_bar
from polyad.cli.streams import say, say_result
from polyad.engine.maintenance import CheckReport
from polyad.errors import StoreError, StoreUnavailableError
from polyad.protocols.store import Damage
from polyad.schemas.reports import check_json


def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Delete derived data and orphaned rows that violate an invariant.")
    ] = False,
    store: Store = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check an index for damage, and repair derived data with `--repair`.

    The file, its rows, cached replies and derived files are read and compared with the invariants of an index.
    Each violation is printed, with the command that undoes it. --repair deletes what is derived, which
    is computed again, and orphaned rows. What documents contributed and what users stated is never deleted: a damaged
    document is named with the command that indexes it again.

    Exit codes: 0 no damage; 1 damage was found, and with --repair all was repaired; 2 some could not be repaired.

    Example: polyad check --store kb
    """
    settings = load_settings(store=store)
    try:
        with progress_bar(quiet or json) as progress, open_engine(settings, bare=True) as engine:
            report = engine.check(repair=repair, progress=progress)
    except StoreUnavailableError:
        raise
    except StoreError as error:  # the file cannot be opened as an index
        damage = (Damage("structure", "file", "", str(error)),)
        report = CheckReport(damage, damage, {}, 0.0)
    say_result(json, check_json(report), output.show_check, report, settings.command.store, repaired=repair)
    if report.damage:
        raise typer.Exit(2 if repair and report.remaining else 1)


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
    with open_engine(load_settings(store=store), bare=True) as engine:
        report = engine.back_up(file, overwrite=force)
    say_result(
        json,
        report,
        say,
        f"{report.bytes:,} bytes written to {' and '.join(report.files)} in {report.seconds:.1f} s",
    )


def log(
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Print only the last N changes.")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print the change log of an index, newest first.

    Each line is one run of a command: the time in UTC, the command, the numbers of documents, passages and hyperedges
    that it stored, removed or corrected, and the tokens and the cost of the language model. A run that was interrupted
    is listed with what it had stored by then; a run that changed nothing is not listed.

    Example: polyad log -n 10 --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        entries = engine.catalogue.history(limit)
    say_result(json, {"changes": entries}, output.show_history, entries)
