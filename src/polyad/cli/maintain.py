"""The commands that look after an index: ``log``."""

from __future__ import annotations

from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Store, open_engine, settings_from
from polyad.cli.streams import say_json
from polyad.text.json_types import format_value


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
