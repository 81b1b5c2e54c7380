"""Facts that were given as data: relation and arguments of hyperedges of kind ``tuple``, and the search for them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from polyad.model import Argument, Condition, Hyperedge, HyperedgeKind
from polyad.stores.sqlite.checksums import checksum_of, insert, sound
from polyad.text.literals import (
    TYPES,
    Extent,
    asked_extent,
    asked_year,
    extent_of,
    in_unit,
    meets,
    number_of,
    one_line,
    units_beside,
)

_BATCH = 400  # values bound to one statement; SQLite's oldest limit is 999

_NO_NAMES = "[]"

_ARGUMENTS = (
    "SELECT given.number, given.relation, given.arguments, role, COALESCE(verbatim, value), type, unit, names "
    "FROM given LEFT JOIN argument ON argument.given = given.number "
    f"WHERE given.number IN ({{}}) AND {sound('given')} AND (role IS NULL OR {sound('argument')}) ORDER BY 1, place"
)

_IN_ROLE = (
    "SELECT given, role, COALESCE(verbatim, value), type, unit, names FROM argument "
    f"WHERE role = ? AND given IN ({{}}) AND {sound('argument')} ORDER BY given, place"
)

FILL = (
    "INSERT INTO given SELECT *, {} FROM (SELECT number, '' AS relation, incidences AS arguments FROM hyperedge "
    "WHERE kind = 'tuple') AS given".format(checksum_of("given")),
    "INSERT INTO argument SELECT *, {} FROM (SELECT hyperedge AS given, "
    "ROW_NUMBER() OVER (PARTITION BY hyperedge ORDER BY role, name, entity) - 1 AS place, role, name AS value, "
    "NULL AS verbatim, 'entity' AS type, '' AS unit, '[]' AS names, NULL AS low, NULL AS \"end\" FROM incidence "
    "WHERE hyperedge IN (SELECT number FROM given)) AS argument".format(checksum_of("argument")),
)
"""What an index knows that was made before it kept arguments: its incidences. Relations and literals are unknown."""


def insert_given(connection: sqlite3.Connection, edges: Iterable[tuple[int, Hyperedge]]) -> None:
    """Insert what hyperedges were given as data, by their numbers; others than tuples are passed over."""
    tuples = [(number, edge) for number, edge in edges if edge.kind is HyperedgeKind.TUPLE]
    insert(connection, "given", ((number, edge.relation, len(edge.arguments)) for number, edge in tuples))
    rows = ((number, place, *_row(one)) for number, edge in tuples for place, one in enumerate(edge.arguments))
    insert(connection, "argument", rows)


def with_given(connection: sqlite3.Connection, edges: Mapping[int, Hyperedge]) -> dict[int, Hyperedge]:
    """The hyperedges, by their numbers, those that are tuples with relation and arguments.

    Raises:
        ValueError: some of these got lost.
    """
    wanted = [number for number, edge in edges.items() if edge.kind is HyperedgeKind.TUPLE]
    found = dict(_facts(connection, wanted))
    if len(found) < len(wanted):
        raise ValueError("a fact without what was given of it")
    return {
        number: replace(edge, relation=found[number][0], arguments=found[number][1]) if number in found else edge
        for number, edge in edges.items()
    }


def find_given(connection: sqlite3.Connection, relation: str, conditions: Sequence[Condition]) -> list[int]:
    """Numbers of the facts of a relation, of any where it is empty, whose arguments meet some conditions; ascending."""
    sets = [_candidates(connection, asked) for asked in conditions]
    if relation:
        rows = connection.execute("SELECT number FROM given WHERE relation = ?", [relation])
        sets.append({number for (number,) in rows})
    elif not sets:
        sets.append({number for (number,) in connection.execute("SELECT number FROM given")})
    candidates = sorted(set.intersection(*sets))
    if not conditions:
        return candidates
    arguments = _in_roles(connection, candidates, sorted({asked.role for asked in conditions}))
    return [number for number in candidates if meets(conditions, arguments[number])]


def find_called(connection: sqlite3.Connection, name: str) -> list[str]:
    """The values that arguments have who give this name beside it, sorted."""
    rows = connection.execute(
        f"SELECT value FROM argument WHERE names <> '[]' AND INSTR(names, ?) AND {sound('argument')}",
        [json.dumps(one_line(name))],
    )
    return sorted({str(value) for (value,) in rows})


def find_names(connection: sqlite3.Connection, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The values that arguments give names beside, with these, each pair once; of facts after one up to the last."""
    rows = connection.execute(
        f"SELECT DISTINCT value, names FROM argument {'' if after else 'INDEXED BY argument_by_names '}"
        f"WHERE names <> '[]' AND given > ? AND given <= ? AND {sound('argument')}",
        [after, last],
    )
    return ((str(value), json.loads(names)) for value, names in rows)


def _in_roles(
    connection: sqlite3.Connection, numbers: Sequence[int], roles: Sequence[str]
) -> Mapping[int, Sequence[Argument]]:
    """The arguments of facts in some roles."""
    found: defaultdict[int, list[Argument]] = defaultdict(list)
    for role in roles:
        for some in _batches(numbers):
            rows = connection.execute(_IN_ROLE.format(",".join("?" * len(some))), [role, *some])
            for number, *argument in rows:
                found[number].append(_argument(argument))
    return found


def _facts(
    connection: sqlite3.Connection, numbers: Sequence[int]
) -> Iterator[tuple[int, tuple[str, tuple[Argument, ...]]]]:
    for some in _batches(numbers):
        rows = connection.execute(_ARGUMENTS.format(",".join("?" * len(some))), some)
        found: defaultdict[int, list[Argument]] = defaultdict(list)
        relations: dict[int, tuple[str, int]] = {}
        for number, relation, count, *argument in rows:
            relations[number] = str(relation), int(count)
            if argument[0] is not None:
                found[number].append(_argument(argument))
        for number, (relation, count) in relations.items():
            if count != len(found[number]):
                raise ValueError(f"{len(found[number])} arguments where {count} were written")
            yield number, (relation, tuple(found[number]))


def _batches(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), _BATCH):
        yield numbers[start : start + _BATCH]


def _candidates(connection: sqlite3.Connection, asked: Condition) -> set[int]:
    """Numbers of the facts that may meet a condition: their extents are compared as they are rounded."""
    if asked.operator == "!=":
        rows = connection.execute("SELECT given FROM argument WHERE role = ?", [asked.role])
        return {number for (number,) in rows}
    found: set[int] = set()
    if asked.operator == "=":
        text = one_line(asked.value)
        by_text = connection.execute("SELECT given FROM argument WHERE role = ? AND value = ?", [asked.role, text])
        found |= {number for (number,) in by_text}
        by_name = connection.execute(
            "SELECT given FROM argument WHERE role = ? AND names <> '[]' AND INSTR(names, ?)",
            [asked.role, json.dumps(text)],
        )
        found |= {number for (number,) in by_name}
    column, comparison = {
        "=": ("low", "="),
        ">=": ("low", ">="),
        ">": ("low", ">="),
        "<=": ('"end"', "<="),
        "<": ('"end"', "<="),
    }[asked.operator]
    for type in TYPES:
        extent, year = asked_extent(asked, type), asked_year(asked)
        if type == "number" and year is not None:
            extent = Extent(Decimal(year), Decimal(year))
        for one, unit in _in_units(extent) if extent else ():
            bound = one.low if asked.operator in ("=", ">=", ">", "<") else one.end
            rows = connection.execute(
                "SELECT given FROM argument WHERE role = ? AND type = ? AND low IS NOT NULL "
                f"AND {column} {comparison} ? AND (? IS NULL OR unit IN (?, ''))",
                [asked.role, type, _rounded(bound), unit, unit],
            )
            found |= {number for (number,) in rows}
    return found


def _in_units(extent: Extent) -> Iterator[tuple[Extent, str | None]]:
    """What is asked in each unit that a fact may have it in; None for any."""
    if not extent.unit:
        yield extent, None
        return
    for unit in units_beside(extent.unit):
        if (found := in_unit(extent, unit)) is not None:
            yield found, unit


def count_units(connection: sqlite3.Connection, role: str) -> dict[str, int]:
    """How many numbers in a role have each unit; "" where they have none."""
    found: Counter[str] = Counter()
    query = "SELECT COALESCE(verbatim, value), unit FROM argument WHERE role = ? AND type = 'number'"
    rows = connection.execute(f"{query} AND {sound('argument')}", [role])
    for value, unit in rows:
        if (number := number_of(str(value), str(unit))) is not None:
            found[number.unit] += 1
    return dict(sorted(found.items()))


def _row(argument: Argument) -> tuple[object, ...]:
    value, extent = one_line(argument.value), extent_of(argument)
    return (
        *(argument.role, value, None if value == argument.value else argument.value, argument.type, argument.unit),
        json.dumps(list(map(one_line, argument.names))),
        *((_rounded(extent.low), _rounded(extent.end)) if extent else (None, None)),
    )


def _rounded(value: Decimal) -> float:
    """As it is stored; without the zero below zero, which SQLite does not keep."""
    return float(value) + 0.0


def _argument(row: Sequence[Any]) -> Argument:
    role, value, type, unit, names = row
    if type not in TYPES:
        raise ValueError(f"an argument of type {type!r}")
    return Argument(role, value, type, unit, tuple(json.loads(names)) if names != _NO_NAMES else ())
