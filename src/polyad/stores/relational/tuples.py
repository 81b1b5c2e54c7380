"""Search by relations and arguments, which tuples and some extracted facts have."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

from polyad.model import Argument, Condition
from polyad.stores.relational.connection import Connection
from polyad.stores.relational.rows import format_check, format_number, parse_argument
from polyad.text.literals import (
    TYPES,
    Extent,
    convert_unit,
    is_match,
    list_convertible_units,
    parse_condition_extent,
    parse_condition_year,
)
from polyad.text.words import normalize_value

_ARGUMENTS = (
    "SELECT tuple, role, COALESCE(verbatim, value), type, unit, names FROM argument "
    f"WHERE tuple IN ({{}}) AND {format_check('argument')} ORDER BY tuple, place"
)

_BOUNDS = {"=": ("low", "="), ">=": ("low", ">="), ">": ("low", ">="), "<=": ('"end"', "<="), "<": ('"end"', "<=")}
"""Column and SQL operator that select the candidates of each operator; rounded bounds need ``>=`` for ``>``."""


def find_tuples(connection: Connection, relation: str, conditions: Sequence[Condition]) -> list[int]:
    """Return the sorted primary keys of facts that have ``relation`` and whose arguments satisfy all conditions.

    An empty relation stands for any relation.
    """
    sets = [_find_candidates(connection, condition) for condition in conditions]
    if relation:
        rows = connection.execute("SELECT number FROM tuple WHERE relation = ?", [relation])
        sets.append({number for (number,) in rows})
    elif not sets:
        sets.append({number for (number,) in connection.execute("SELECT number FROM tuple")})
    candidates = sorted(set.intersection(*sets))
    if not conditions:
        return candidates
    roles = {condition.role for condition in conditions}
    arguments: defaultdict[int, list[Argument]] = defaultdict(list)
    for number, *argument in connection.select_in(_ARGUMENTS, candidates):
        if argument[0] in roles:
            arguments[number].append(parse_argument(argument))
    return [number for number in candidates if is_match(conditions, arguments[number])]


def select_entity_names(
    connection: Connection, after: int, last: int, argument_table: str = "argument"
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield (entity id, names) from the user's facts whose primary key is above ``after`` and at most ``last``.

    Args:
        connection: The connection.
        after: Primary key before the first tuple.
        last: Primary key of the last tuple.
        argument_table: The table of arguments in SQL, with a hint which index to use.
    """
    rows = connection.execute(
        f"SELECT DISTINCT value, names FROM {argument_table} "
        f"WHERE names <> '[]' AND tuple > ? AND tuple <= ? AND {format_check('argument')}",
        [after, last],
    )
    return ((str(value), json.loads(names)) for value, names in rows)


def _find_candidates(connection: Connection, condition: Condition) -> set[int]:
    """Return primary keys of facts that may satisfy a condition; a superset, because floats are compared."""

    def select(where: str, *parameters: object) -> set[int]:
        rows = connection.execute(f"SELECT tuple FROM argument WHERE role = ? {where}", [condition.role, *parameters])
        return {number for (number,) in rows}

    if condition.operator == "!=":
        return select("")
    candidates: set[int] = set()
    if condition.operator == "=":
        text = normalize_value(condition.value)
        # PostgreSQL has an index on the first 500 characters.
        candidates |= select("AND value = ? AND SUBSTR(value, 1, 500) = ?", text, text[:500])
        candidates |= select("AND names <> '[]' AND INSTR(names, ?) > 0", json.dumps(text))
    column, operator = _BOUNDS[condition.operator]
    for type in TYPES:
        extent, year = parse_condition_extent(condition, type), parse_condition_year(condition)
        if type == "number" and year is not None:
            extent = Extent(Decimal(year), Decimal(year))
        for converted, unit in _convert_units(extent) if extent else ():
            bound = format_number(converted.low if column == "low" else converted.end)
            where = f"AND type = ? AND low IS NOT NULL AND {column} {operator} ?"
            units = () if unit is None else (unit,)
            candidates |= select(f"{where} AND unit IN (?, '')" if units else where, type, bound, *units)
    return candidates


def _convert_units(extent: Extent) -> Iterator[tuple[Extent, str | None]]:
    """Yield (range, unit): the range of a condition's value, in each unit to which the range can be converted.

    The unit is None for a condition without a unit: a stored number may then have any unit.
    """
    if not extent.unit:
        yield extent, None
        return
    for unit in list_convertible_units(extent.unit):
        if (converted := convert_unit(extent, unit)) is not None:
            yield converted, unit
