"""Commands that read an index without loading its embedder: ``polyad stats``, ``show``, ``list`` and ``facts``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.command_tables import commands
from polyad.cli.options import AsOf, Filtered, Json, KnownAt, Model, Preset, Store, load_settings, open_engine
from polyad.cli.streams import say, say_json, say_result, warn
from polyad.engine.catalogue import Catalogue
from polyad.engine.registry import get_tables
from polyad.errors import ConfigurationError
from polyad.model import Condition
from polyad.retrieval.roles import RoleBinding
from polyad.schemas import catalogue as schemas
from polyad.text.files import get_source_file
from polyad.text.filters import Filter, to_filter
from polyad.text.json_types import format_value
from polyad.text.literals import convert_unit, parse_condition, parse_number
from polyad.text.validity import Time

_IMAGE_WIDTH = 1500
"""Pixels of the width of a page; A4 has 180 dots per inch then."""

_MAX_ALTERNATIVES = 10
"""Maximum number of alternatives that a note on an unknown name lists."""


def plugins(json: Json = False) -> None:
    """List plug-ins: components that other installed packages add to polyad.

    Each row is the name of a retriever, construction method, file format, embedder, mention extractor, reranker,
    store or table of commands, to be used like polyad's own. Plug-ins that cannot be loaded cause a warning.

    Example: polyad plugins
    """
    tables = (*get_tables(), commands)
    plugins = [
        schemas.PluginSchema.from_object(plugin, sound=table.is_usable(plugin))
        for table in tables
        for plugin in table.plugins.values()
    ]
    for plugin in (plugin for table in tables for plugin in table.shadowed):
        warn(
            "warning",
            f"the plug-in {plugin.name!r} of {plugin.package} {plugin.version} (polyad.{plugin.table}) is not used: "
            "another component has this name; rename its entry point or remove that package",
        )
    if json:
        say_json({"plugins": plugins})
    elif plugins:
        output.show_list(format_value(plugins))
    else:
        say("no plug-ins installed")


def config(preset: Preset = None, json: Json = False) -> None:
    """Print every setting and the source of its value.

    Sources are flags, the environment, the settings file (polyad.toml, or the file of --config), the user's own
    polyad.toml and the preset, in this order. docs/settings.md describes each setting. API keys are not printed.

    Example: polyad config
    """
    settings = [
        schemas.SettingSchema(section=section, key=key, value=value, origin=origin)
        for section, key, value, origin in load_settings(preset=preset).values()
    ]
    say_result(json, {"settings": settings}, output.show_settings, settings)


def stats(store: Store = None, json: Json = False) -> None:
    """Print sizes, models and costs of an index.

    Density is the number of hyperedges per entity. Mean arity is the number of entities per hyperedge. Costs are those
    of the language model during indexing.

    Example: polyad stats --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        shape = schemas.statistics_json(engine.catalogue.statistics())
    say_result(json, shape, output.show_fields, format_value(shape))


def show(
    kind: Annotated[schemas.Kind, typer.Argument(help="Kind of object.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="Id as printed by `search --json`; for an entity, its name.")],
    store: Store = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="For an entity, also summarize its descriptions; long ones need --model.")
    ] = False,
    show_removed: Annotated[
        bool,
        typer.Option(
            "--show-removed", help="For a document, read its file again and list what its text leaves out, by kind."
        ),
    ] = False,
    image: Annotated[
        Path | None,
        typer.Option(
            "--image",
            metavar="FILE",
            help="For a passage of a PDF file or scan, write its page with the passage marked to this PNG file; for a "
            "passage of another document, its picture; for a document, the one that --picture selects.",
        ),
    ] = None,
    crop: Annotated[
        bool, typer.Option("--crop", help="With --image, only the figure or table whose caption is in the passage.")
    ] = False,
    picture: Annotated[
        int | None,
        typer.Option("--picture", metavar="N", min=1, help="With --image, number in the pictures of a document."),
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", metavar="N", min=1, help="With --image, another page of the file.")
    ] = None,
    model: Model = None,
    json: Json = False,
) -> None:
    """Print one document, passage, entity or hyperedge of an index in full.

    The metadata of a document count what its text leaves out: lines of page headers and of tables of contents, texts of
    site navigation, comments, embedded files, pictures without text, pages that cannot be read. `pictures` lists its
    pictures, figures and tables with a caption, a description or text.

    Example: polyad show entity "Ada Lovelace" --store kb
    """
    if show_removed and kind is not schemas.Kind.DOCUMENT:
        raise ConfigurationError(f"--show-removed is for a document; the kind is {kind.value}")
    is_picture = kind is schemas.Kind.DOCUMENT and image is not None and picture is not None
    if (((image or page or crop) and kind is not schemas.Kind.PASSAGE) or picture) and not is_picture:
        expected = "--image, --page and --crop are for a passage, and --image with --picture N for a document"
        raise ConfigurationError(f"{expected}; the kind is {kind.value}")
    settings = load_settings(store=store, model=model)
    with open_engine(settings, bare=True) as engine:
        if image:
            images = engine.page_images
            if picture:
                rendered = images.render_picture(id, picture, width=_IMAGE_WIDTH)
            else:
                rendered = images.render(id, page=page, width=_IMAGE_WIDTH, crop=crop)
            image.write_bytes(rendered.png)
            noun = "page" if rendered.is_page and not (crop or picture) else "picture"
        shape = format_value(schemas.look_up(engine.catalogue, kind, id, datetime.now(UTC)))
        if image:
            shape["image"] = str(image)
        if summary and kind is schemas.Kind.ENTITY:
            shape["summary"] = engine.catalogue.summary(shape["key"])
    if show_removed:
        from polyad.readers.folder.files import FileReader  # takes 0.2 s

        removals = FileReader(settings.stages.read).list_removals(Path(get_source_file(shape["source"])))
        shape["removed"] = {kind: list(texts) for kind, texts in removals.items()}
    if json:
        say_json(shape)
    else:
        labels = {"score": "score of its surest mention, 0 to 100"} if kind is schemas.Kind.ENTITY else {}
        output.show_fields({labels.get(key, key): value for key, value in shape.items() if key != "image"})
        if image:
            say(f"{noun} written to {image}")


def list_(
    kind: Annotated[schemas.ListKind, typer.Argument(help="What to list.")],
    like: Annotated[str, typer.Option("--like", metavar="TEXT", help="List only rows that contain this text.")] = "",
    where: Filtered = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """List the documents, passages, entities, hyperedges or corrections of an index, one per line.

    Documents are listed by id, entities by name, passages and hyperedges by id and text. `polyad show` prints one of
    them in full; `polyad remove` removes documents. Corrections are retractions (each with the command that undoes
    it), aliases and disabled documents.

    Example: polyad list entities --like lovelace --store kb
    """
    settings = load_settings(store=store)
    with open_engine(settings, bare=True) as engine:
        documents = to_filter(where, known_at)
        items = schemas.list_items(engine.catalogue, kind, like, documents, as_of or datetime.now(UTC))
    if kind is schemas.ListKind.RETRACTIONS:
        say_result(json, {kind.value: items}, output.show_retractions, items, str(settings.command.store))
    else:
        say_result(json, {kind.value: items}, output.show_list, items)


def facts(
    entities: Annotated[list[str] | None, typer.Argument(metavar="ENTITY", help="Names of entities.")] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE=VALUE",
            help="Condition on the value of a role (=, !=, <, <=, >, >=). Repeatable.",
        ),
    ] = None,
    relation: Annotated[str, typer.Option("--relation", metavar="NAME", help="Only facts of this relation.")] = "",
    want: Annotated[
        list[str] | None, typer.Option("--want", metavar="ROLE", help="Print only this role of each fact. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Maximum number of facts.")] = None,
    where: Filtered = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print the facts that contain the given entities, or whose roles meet conditions.

    With --role and --relation, names are compared exactly, and all roles of each fact are printed unless --want selects
    some. A number with a unit is compared with convertible units only: "dose>=1 g" matches 1500 mg. Numbers in other
    units are left out, and a note says so.

    Example: polyad facts --relation give --role giver=Alice --role "year>=1990" --want recipient --store kb
    """
    role, want = role or [], want or []
    conditions = [parse_condition(text) for text in role]
    by_role = bool(role or relation)
    if by_role == bool(entities) or (want and not by_role):
        raise ConfigurationError(
            "expected either names of entities, or --role ROLE=VALUE or --relation NAME (--want ROLE needs one of them)"
        )
    time = as_of or datetime.now(UTC)
    with open_engine(load_settings(store=store), bare=True) as engine:
        documents = to_filter(where, known_at)
        find = partial(_find_facts, engine.catalogue, entities or (), role, want, relation)
        facts = schemas.facts_json(engine.catalogue, find(limit, documents, time))
        notes = [note for condition in conditions if (note := _explain_units(condition, engine.catalogue))]
        if not facts:
            notes += _explain_no_facts(engine.catalogue, conditions, want, relation)
            if find(1, documents, None):
                notes.append("facts match that do not hold at this time; --as-of DATE prints what held then")
            elif documents is not None and find(1, None, None):
                notes.append("facts match in documents that --where and --known-at exclude")
    say_result(json, {"facts": facts}, output.show_facts, facts)
    for note in dict.fromkeys(notes):
        warn("note", note)


def _find_facts(
    catalogue: Catalogue,
    entities: Sequence[str],
    conditions: Sequence[str],
    roles: Sequence[str],
    relation: str,
    limit: int | None,
    where: Filter | None,
    as_of: Time,
) -> list[RoleBinding]:
    """Return the facts that contain all ``entities``; without entities, the facts that satisfy the conditions."""
    if entities:
        edges = catalogue.hyperedges_joining(entities, where, as_of)[:limit]
        return [schemas.bind_names(catalogue, edge) for edge in edges]
    return catalogue.roles(conditions, roles, relation=relation, limit=limit, where=where, as_of=as_of)


def conflicts(where: Filtered = None, as_of: AsOf = None, store: Store = None, json: Json = False) -> None:
    """List facts and versions that contradict each other, with their documents and dates.

    Compares facts given as data, and facts extracted with relations (setting facts.relations), whose roles are the
    types of their entities. The subject of a fact is its first argument. A role counts if most subjects of its relation
    have one value in it. Facts that hold at different times do not conflict, nor do values that are equal in other
    units. Versions of a document conflict if several are stated to be in force, or if one has different numbers in two
    documents.

    Example: polyad conflicts --store kb
    """
    with open_engine(load_settings(store=store), bare=True) as engine:
        time = as_of or datetime.now(UTC)
        items = [schemas.conflict_json(conflict) for conflict in engine.catalogue.conflicts(where, time)]
        versions = engine.catalogue.version_conflicts(where, time)
    say_result(json, {"conflicts": items, "versions": versions}, output.show_conflicts, items, versions)


def _explain_units(condition: Condition, catalogue: Catalogue) -> str:
    """Return a note on the numbers that a condition, such as "dose>1 g", leaves out or compares without their units.

    The note is empty if there are no such numbers.
    """
    number = parse_number(condition.value)
    units = catalogue.units(condition.role) if number else {}
    if number and number.unit:
        units = {unit: count for unit, count in units.items() if convert_unit(number, unit) is None}
        consequence = f"numbers that cannot be converted to {number.unit!r} are left out"
    else:
        units = units if len(units) > 1 else {}
        most_frequent = max(units, key=lambda unit: (bool(unit), units[unit], unit), default="")
        example = f"{condition.role}{condition.operator}{condition.value} {most_frequent}"
        consequence = f"numbers are compared without regard to units; add a unit, as in {example!r}"
    counts = ", ".join(f"{count:,} {f'in {unit!r}' if unit else 'without a unit'}" for unit, count in units.items())
    return f"{condition.role}: {consequence} ({counts})" if units else ""


def _explain_no_facts(
    catalogue: Catalogue, conditions: Sequence[Condition], roles: Sequence[str], relation: str
) -> Iterator[str]:
    """Yield notes that explain why no fact matches: unknown roles and relations, and the roles that the values have."""
    existing = catalogue.role_names()
    for name in sorted({*(condition.role for condition in conditions), *roles}.difference(existing)):
        yield f"no fact of this index has the role {name!r}; existing roles: {_list_first(existing)}"
    for name in (condition.value for condition in conditions if condition.operator == "="):
        taken_roles = ", ".join(catalogue.list_roles(name))
        yield f"{name!r} has {f'the role {taken_roles}' if taken_roles else 'no role'} in this index"
    relations = catalogue.relations() if relation else {}
    if relation and relation not in relations:
        by_count = sorted(relations, key=lambda name: (-relations[name], name))
        yield f"no fact of this index has the relation {relation!r}; existing relations: {_list_first(by_count)}"


def _list_first(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_ALTERNATIVES]) or "none"
