"""The commands that correct an index: ``retract``, ``restore``, ``disable``, ``enable`` and ``alias``."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Store, load_settings, open_engine
from polyad.cli.streams import say, say_result
from polyad.curation.curator import CorrectionReport
from polyad.errors import ConfigurationError
from polyad.schemas.reports import correction_json
from polyad.text.words import format_count

_MAX_UNCONFIRMED = 100
"""Facts that a retraction withdraws without ``--yes``."""

HyperedgeId = Annotated[
    str, typer.Option("--hyperedge", metavar="ID", help="Id of a fact, as printed by `polyad facts` and `list`.")
]
EntityName = Annotated[
    str, typer.Option("--entity", metavar="NAME", help="Entity; with --hyperedge in this fact only, else in all facts.")
]
RoleName = Annotated[str, typer.Option("--role", metavar="ROLE", help="The entity in this role only.")]
FactFilter = Annotated[
    str | None, typer.Option("--where", metavar="EXPR", help="All facts of the documents that a filter selects.")
]
Trial = Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")]


def retract(
    hyperedge: HyperedgeId = "",
    entity: EntityName = "",
    role: RoleName = "",
    where: FactFilter = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it does not hold. Required.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help=f"Confirm a retraction of more than {_MAX_UNCONFIRMED} facts.")
    ] = False,
    dry_run: Trial = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Withdraw a fact, an entity from one or all facts, or all facts of some documents.

    Every search, answer, list and statistic leaves out what is retracted, at once and without a language model. It
    stays retracted when its document is indexed again, also by another model. Passages that still state it are listed,
    and marked wherever they are found. `polyad restore` undoes it; `polyad list retractions` prints all retractions.

    Example: polyad retract --hyperedge handbook.md#0004/001 --reason "superseded in 2025" --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        retract_facts = partial(
            engine.corrections.retract, hyperedge=hyperedge, entity=entity, role=role, where=where, reason=reason
        )
        report = retract_facts(is_trial=True)
        if len(report.withdrawn) > _MAX_UNCONFIRMED and not (yes or dry_run):
            raise ConfigurationError(
                f"this withdraws {len(report.withdrawn):,} facts; confirm it with --yes, or print them with --dry-run"
            )
        if not dry_run:
            report = retract_facts()
    _show(report, json, dry_run)


def restore(
    hyperedge: HyperedgeId = "",
    entity: EntityName = "",
    role: RoleName = "",
    where: FactFilter = None,
    dry_run: Trial = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Undo a retraction: name the same fact, entity or filter as for `polyad retract`.

    Example: polyad restore --hyperedge handbook.md#0004/001 --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        report = engine.corrections.restore(
            hyperedge=hyperedge, entity=entity, role=role, where=where, is_trial=dry_run
        )
    _show(report, json, dry_run)


DocumentIds = Annotated[
    list[str],
    typer.Argument(
        metavar="DOCUMENT", help="Ids as printed by `polyad list documents`, files, folders, or patterns: 'old/*'."
    ),
]


def disable(
    document_ids: DocumentIds,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """Hide documents without removing them.

    No search, answer, list of facts or statistic reads them until `polyad enable`, which costs nothing. Indexing them
    again does not enable them. `polyad list disabled` prints all disabled documents.

    Example: polyad disable handbook/draft.md --reason "under review" --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        document_ids = engine.catalogue.match_documents(document_ids)
        report = engine.corrections.disable(document_ids, reason)
    _show_documents(document_ids, report, "disabled", json)


def enable(document_ids: DocumentIds, store: Store = None, json: Json = False) -> None:
    """Show documents again that `polyad disable` hid.

    Example: polyad enable handbook/draft.md --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        matches = engine.catalogue.match_documents(document_ids)
        disabled = engine.catalogue.statements().disabled
        document_ids = [id for id in matches if id in disabled] or matches
        report = engine.corrections.enable(document_ids)
    _show_documents(document_ids, report, "enabled", json)


def alias(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Another name of the entity.")] = "",
    entity: Annotated[str, typer.Argument(metavar="[ENTITY]", help="The entity, by the name that the index has.")] = "",
    remove: Annotated[str, typer.Option("--remove", metavar="NAME", help="Remove an alias.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Add the aliases of a CSV file: name,entity.")
    ] = None,
    suggest: Annotated[bool, typer.Option("--suggest", help="Print names that may stand for the same entity.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Let another name stand for an entity: "USA" for "United States".

    All facts of the name become facts of the entity, in searches, walks and lists, at once and also for documents that
    are indexed later. `--remove` undoes it exactly; `polyad list aliases` prints all aliases. Suggestions compare
    initials, spelling and vectors of names, and are never applied by themselves.

    Example: polyad alias "USA" "United States" --store kb
    """
    if sum(map(bool, (name, remove, file, suggest))) != 1 or bool(name) != bool(entity):
        raise ConfigurationError("expected NAME ENTITY, --remove NAME, --file FILE or --suggest")
    with open_engine(load_settings(store=store), bare=not suggest) as engine:
        if suggest:
            suggestions = [
                {"name": one.name, "entity": one.target, "reason": one.reason, "score": one.score}
                for one in engine.corrections.suggest_aliases()
            ]
            say_result(json, {"suggestions": suggestions}, output.show_suggestions, suggestions)
            return
        if remove:
            report = engine.corrections.remove_alias(remove)
        else:
            report = engine.corrections.add_aliases(_read_aliases(file) if file else [(name, entity)])
    say_result(
        json, correction_json(report), say, f"facts of {format_count(len(report.documents), 'document')} changed"
    )


def _read_aliases(file: Path) -> list[tuple[str, str]]:
    """Read pairs (alias, entity name) from the lines of a CSV file.

    Raises:
        ConfigurationError: A line has no two values, or the file cannot be read.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = [row for row in csv.reader(lines) if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"cannot read the aliases in {str(file)!r}: {error}") from error
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not all(map(str.strip, row)):
            raise ConfigurationError(f"{file}, line {number}: {','.join(row)[:80]!r}; expected name,entity")
    return [(row[0].strip(), row[1].strip()) for row in rows]


def _show(report: CorrectionReport, json: bool, is_trial: bool) -> None:
    say_result(json, correction_json(report, is_trial=is_trial), output.show_correction, report, is_trial=is_trial)


def _show_documents(document_ids: list[str], report: CorrectionReport, state: str, json: bool) -> None:
    say_result(json, correction_json(report), say, f"{format_count(len(document_ids), 'document')} {state}")
