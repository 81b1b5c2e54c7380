"""The commands that look at an index without loading its embedder: ``polyad stats``, ``show``, ``list``, ``facts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from polyad.cli import output
from polyad.cli.options import Json, Model, Preset, Store, open_engine, settings_from
from polyad.engine.catalogue import Catalogue
from polyad.engine.registry import TABLES
from polyad.errors import ConfigurationError
from polyad.model import Condition
from polyad.schemas import catalogue as shapes
from polyad.text.literals import convert_unit, parse_condition, parse_number

_NAMED = 10
"""Relations that are named where there is none of the name asked for."""


def plugins(json: Json = False) -> None:
    """List what other packages add to polyad.

    Each row is a name that can be given like one of polyad's own: a retriever, a method, a format of files, an
    embedder, a mention extractor, a reranker, a store. Those that cannot be loaded are warned of.

    Example: polyad plugins
    """
    plugins = [
        shapes.plugin_json(plugin, table.is_usable(plugin)) for table in TABLES for plugin in table.plugins.values()
    ]
    if json:
        output.say_json({"plugins": plugins})
    elif plugins:
        output.show_list(plugins)
    else:
        output.say("no plug-ins installed")


def config(preset: Preset = None, json: Json = False) -> None:
    """Print every setting, and where its value came from.

    Settings come from flags, the environment, the settings file (polyad.toml, or what --config names), the user's own
    polyad.toml and the preset, in this order; docs/settings.md says what each is for. Keys of endpoints are not shown.

    Example: polyad config
    """
    found: list[shapes.SettingShape] = [
        {"section": section, "key": key, "value": value, "origin": origin}
        for section, key, value, origin in settings_from(preset=preset).values()
    ]
    if json:
        output.say_json({"settings": found})
    else:
        output.show_settings(found)


def stats(store: Store = None, json: Json = False) -> None:
    """Print the sizes of an index.

    Also what was spent on language models for it, and what it was built with. Density is hyperedges per entity; mean
    arity is how many entities a hyperedge joins.

    Example: polyad stats --store kb
    """
    with open_engine(settings_from(store=store), bare=True) as engine:
        shape = shapes.statistics_json(engine.catalogue.statistics())
    if json:
        output.say_json(shape)
    else:
        output.show_fields(shape)


def show(
    kind: Annotated[shapes.Kind, typer.Argument(help="What kind of thing.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="As `search --json` prints them; for an entity, its name.")],
    store: Store = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Of an entity, also sum up its descriptions; long ones need a --model.")
    ] = False,
    model: Model = None,
    json: Json = False,
) -> None:
    """Print one thing of an index, whole.

    That is a document, a passage, an entity or a hyperedge.

    Example: polyad show entity "Ada Lovelace" --store kb
    """
    with open_engine(settings_from(store=store, model=model), bare=True) as engine:
        shape = shapes.look_up(engine.catalogue, kind, id)
        if summary and kind is shapes.Kind.ENTITY:
            shape["summary"] = engine.catalogue.summary(str(shape["key"]))
    if json:
        output.say_json(shape)
    else:
        output.show_fields(shape)


def list_(
    kind: Annotated[shapes.Listed, typer.Argument(help="Documents, entities or hyperedges.")],
    like: Annotated[str, typer.Option("--like", metavar="TEXT", help="Only those that contain this.")] = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """Print what an index holds, one a line.

    Documents are listed by id, entities by name, hyperedges by id and text; `polyad show` prints any of them, `polyad
    remove` takes documents.

    Example: polyad list entities --like lovelace --store kb
    """
    with open_engine(settings_from(store=store), bare=True) as engine:
        found = shapes.listed(engine.catalogue, kind, like)
    if json:
        output.say_json({kind.value: found})
    else:
        output.show_list(found)


def facts(
    entities: Annotated[list[str] | None, typer.Argument(metavar="ENTITY", help="Names.")] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE=VALUE",
            help="What is in a role, or how its number or date compares (=, !=, <, <=, >, >=); may be repeated.",
        ),
    ] = None,
    relation: Annotated[str, typer.Option("--relation", metavar="NAME", help="Only facts of this relation.")] = "",
    want: Annotated[
        list[str] | None, typer.Option("--want", metavar="ROLE", help="Only this role of each; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="The most facts.")] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print the hyperedges that join some entities, or the facts whose roles are taken as asked.

    All of the entities named are members of each. With --role and --relation, roles and relations are matched as they
    are spelt, as are the values of facts that were given as data, and all roles of each fact are shown: who else took
    part in it, and as what. Numbers are compared with their unit where one is named: "dose>=1 g" finds 1500 mg, but
    nothing in pounds, and says so.

    Example: polyad facts --relation give --role giver=Alice --role "year>=1990" --want recipient --store kb
    """
    asked, wanted = role or [], want or []
    by_role = bool(asked or relation)
    if by_role == bool(entities) or (wanted and not by_role):
        raise ConfigurationError(
            "expected the names of entities, or --role ROLE=VALUE or --relation NAME with what is to be shown of these "
            "(--want ROLE)"
        )
    with open_engine(settings_from(store=store), bare=True) as engine:
        found = (
            [
                shapes.binding_json(binding)
                for binding in engine.catalogue.roles(asked, wanted, relation=relation, limit=limit)
            ]
            if by_role
            else [
                shapes.hyperedge_json(engine.catalogue, edge)
                for edge in engine.catalogue.joining(entities or ())[:limit]
            ]
        )
        names = [one.value for one in map(parse_condition, asked) if one.operator == "="] if not found else []
        taken = {name: engine.catalogue.list_roles(name) for name in names}
        known = engine.catalogue.relations() if relation and not found else {relation: 0}
        roles = engine.catalogue.role_names() if not found else []
        notes = [note for one in map(parse_condition, asked) if (note := _on_units(one, engine.catalogue))]
    if json:
        output.say_json({"facts": found})
    else:
        output.show_facts(found)
    for note in dict.fromkeys(notes):
        output.warn("note", note)
    named = {*(one.role for one in map(parse_condition, asked)), *wanted} if not found else set()
    for name in sorted(named.difference(roles)):
        output.warn("note", f"no fact of this index has the role {name!r}; there is: {_some(roles) or 'none'}")
    for name, own in taken.items():
        output.warn("note", f"{name!r} takes {'the role ' + ', '.join(own) if own else 'no role'} in this index")
    if relation not in known:
        some = _some(sorted(known, key=lambda name: (-known[name], name)))
        output.warn("note", f"no fact of this index has the relation {relation!r}; there is: {some or 'none'}")


def _on_units(asked: Condition, catalogue: Catalogue) -> str:
    """What a number that is asked for is not compared with, or is though its unit is another; empty for nothing."""
    number = parse_number(asked.value)
    units = catalogue.units(asked.role) if number else {}
    if number and number.unit:
        units = {unit: count for unit, count in units.items() if convert_unit(number, unit) is None}
        told = f"what cannot be told in {number.unit!r} is left out"
    else:
        units = units if len(units) > 1 else {}
        usual = max(units, key=lambda unit: (bool(unit), units[unit], unit), default="")
        example = f"{asked.role}{asked.operator}{asked.value} {usual}"
        told = f"numbers are compared whatever their unit; name one, as in {example!r}"
    counts = ", ".join(f"{count:,} {f'in {unit!r}' if unit else 'without a unit'}" for unit, count in units.items())
    return f"{asked.role}: {told} ({counts})" if units else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED])
