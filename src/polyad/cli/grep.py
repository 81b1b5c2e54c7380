"""The command ``polyad grep``: exact search by a regular expression or a phrase."""

from __future__ import annotations

from typing import Annotated

import typer

from polyad.cli.options import AsOf, Filtered, Json, KnownAt, Store, load_settings, open_engine
from polyad.cli.streams import say, say_result, warn
from polyad.model import TextMatches
from polyad.schemas.text_matches import text_matches_json
from polyad.text.words import format_count


def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Regular expression; with --phrase, literal text.")],
    phrase: Annotated[
        bool, typer.Option("--phrase", "-F", help="Search for literal text; a space is any white space or line end.")
    ] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Take upper and lower case as the same.")
    ] = False,
    context: Annotated[int, typer.Option("--context", "-C", metavar="N", help="Lines to print around each line.")] = 0,
    count: Annotated[
        bool, typer.Option("--count", "-c", help="Print the number of lines of each document only.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of lines.")] = 100,
    cursor: Annotated[int, typer.Option("--cursor", metavar="N", help="Lines to skip.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", metavar="X", min=0.01, help="Time limit.")] = 10.0,
    where: Filtered = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print the lines of the documents that match a pattern exactly.

    The syntax is that of RE2: without look-around and back references, so that no pattern takes long. A match lies
    within a line of the document, and may cross passages. Lines are counted in the text that was indexed, which lacks
    front matter and markup: in the file the number may be another. No model is loaded.

    Example: polyad grep "born in 18[0-9]+" --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        result = engine.find_text(
            pattern,
            limit,
            phrase=phrase,
            ignore_case=ignore_case,
            context=context,
            cursor=cursor,
            seconds=seconds,
            where=where,
            as_of=as_of,
            known_at=known_at,
        )
    say_result(json, text_matches_json(result, all_counts=count), _show_counts if count else _show_lines, result)
    if not result.is_complete:
        warn("warning", f"the search ended after {seconds:g} seconds; --where selects fewer documents")
    if not result.total:
        warn("note", "no line matches")
    if not count and len(result.matches) < result.total:
        lines = f"{len(result.matches):,} of {format_count(result.total, 'line')}"
        rest = f"; --cursor {result.next_cursor} prints the next" if result.next_cursor else ""
        warn("note", f"{lines} in {format_count(len(result.counts), 'document')}{rest}")


def _show_lines(result: TextMatches) -> None:
    """Print each line as grep does: ``ID:LINE:TEXT``, and lines around it as ``ID-LINE-TEXT``."""
    for place, match in enumerate(result.matches):
        if place and (match.before or match.after):
            say("--")
        around = [(number - len(match.before), line) for number, line in enumerate(match.before, match.line)]
        for number, line in around:
            say(f"{match.document_id}-{number}-{line}")
        for number, line in enumerate(match.text.split("\n"), match.line):
            say(f"{match.document_id}:{number}:{line}")
        for number, line in enumerate(match.after, match.line + match.text.count("\n") + 1):
            say(f"{match.document_id}-{number}-{line}")


def _show_counts(result: TextMatches) -> None:
    for id, number in result.counts.items():
        say(f"{id}:{number}")
