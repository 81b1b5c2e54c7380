"""Parses the values of facts in JSON or table cells, and their declared types."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ReadError
from polyad.model import Argument, ArgumentType
from polyad.readers.plain_text import single_line
from polyad.text.literals import TYPES, infer_type, normalize_value, parse_number

SCHEMA_FILE = "schema.toml"
"""Beside a file of facts, says what the values of roles are."""

_DECLARATION = re.compile(r"(entity|number|date|boolean|string)(?:\[([^\[\]]*)\])?")
_MOST_DIGITS = 4000
"""Of a whole number; Python reads none of more than 4300."""

_IDENTITIES = ("entity", "id", "value")
"""Keys of an object that hold the value itself, the first that is there."""


class SpeltFloat(float):
    """A JSON number that remembers its spelling, so that 1.50 is not shown as 1.5."""

    spelling: str

    def __new__(cls, spelling: str) -> SpeltFloat:
        """The number; ``spelling`` as it stands in the file."""
        made = super().__new__(cls, spelling)
        made.spelling = spelling
        return made


def parse_int_spelling(spelling: str) -> float:
    """Return a JSON integer; its spelling as a string if Python cannot parse it or would write it differently."""
    return SpeltFloat(spelling) if spelling == "-0" or len(spelling) > _MOST_DIGITS else int(spelling)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared type and unit of a role's values.

    Attributes:
        type: None to infer it, value by value.
        unit: Of numbers that stand there without one.
        separator: Between several values in one cell or string; empty where there is one.
    """

    type: ArgumentType | None = None
    unit: str = ""
    separator: str = ""

    @classmethod
    def of(cls, words: str, separator: str = "") -> Declared | None:
        """As in ``number[mg]`` or ``date``; None for words that declare nothing."""
        found = _DECLARATION.fullmatch(words.strip())
        if not found:
            return None
        type: ArgumentType = next(one for one in TYPES if one == found[1])
        return cls(type, (found[2] or "").strip(), separator)


UNDECLARED = Declared()


def read_role_schema(folder: Path) -> Mapping[str, Declared]:
    """Return the role declarations in the folder's ``schema.toml``; an empty mapping if the file is missing.

    Its table ``[roles]`` has a line for each: ``dose = "number[mg]"``, or ``author = {type = "entity", separator =
    ";"}``.

    Raises:
        ReadError: It is not like that.
    """
    file = folder / SCHEMA_FILE
    if not file.is_file():
        return {}
    try:
        roles = tomllib.loads(file.read_text(encoding="utf-8")).get("roles", {})
    except (OSError, ValueError) as error:
        raise ReadError(f"{SCHEMA_FILE} beside it cannot be read: {error}") from error
    if not isinstance(roles, dict):
        raise ReadError(f"[roles] of {SCHEMA_FILE} is {json.dumps(roles)}; expected a table")
    return {single_line(role): _declared(role, words) for role, words in roles.items()}


def parse_column_name(column: str) -> tuple[str, Declared | None]:
    """Parse a column name such as ``dose:number[mg]``: return the role and its declaration, or None without one."""
    role, colon, words = column.rpartition(":")
    declared = Declared.of(words) if colon and role.strip() else None
    return (role.strip(), declared) if declared else (column, None)


def build_arguments(role: str, given: object, declared: Declared = UNDECLARED) -> Iterator[Argument]:
    """Return the arguments in a JSON value or the text of a cell: one for each item of a list.

    An object is ``{"entity": "Q42", "label": ..., "aliases": [...]}`` or ``{"value": 5, "unit": "mg", "type": ...}``;
    any other is kept as its JSON. Nothing is left out: null, an empty list and blank text are arguments, too.
    """
    if isinstance(given, list) and given:
        for one in given:
            yield from build_arguments(role, one, declared)
    elif isinstance(given, str) and declared.separator and declared.separator in given:
        for one in given.split(declared.separator):
            if one.strip():
                yield _argument(role, one.strip(), declared)
    elif isinstance(given, dict) and (key := next((key for key in _IDENTITIES if key in given), "")):
        yield from _described(role, given, given[key], declared)
    else:
        yield _argument(role, given, declared)


def parse_cell_arguments(role: str, text: str, declared: Declared = UNDECLARED) -> Iterator[Argument]:
    """Return the arguments in a table cell, which may contain a JSON list."""
    if text.strip().startswith("["):
        try:
            given = json.loads(text, parse_float=SpeltFloat, parse_int=parse_int_spelling)
        except (ValueError, RecursionError):
            given = text
        if isinstance(given, list) and given:
            yield from build_arguments(role, given, declared)
            return
    yield from build_arguments(role, text, declared)


def _declared(role: str, words: object) -> Declared:
    separator: object = ""
    if isinstance(words, dict):
        separator, words = words.get("separator", ""), words.get("type", "entity")
    found = Declared.of(words, separator) if isinstance(words, str) and isinstance(separator, str) else None
    if found is None:
        expected = "expected entity, number, date, boolean or string, a number with its unit as number[mg]"
        raise ReadError(f"{role} in {SCHEMA_FILE} is {json.dumps(words)}; {expected}")
    return found


def _described(role: str, object: dict[str, object], value: object, declared: Declared) -> Iterator[Argument]:
    """The arguments of an object that says more of its value; one of a list has what it says, each."""
    label, aliases, unit = object.get("label"), object.get("aliases"), object.get("unit")
    others = aliases if isinstance(aliases, list) else [aliases]
    names = tuple(normalize_value(name) for name in (label, *others) if isinstance(name, str) and name.strip())
    type = next((one for one in TYPES if one == object.get("type")), declared.type)
    own = Declared(type, unit if isinstance(unit, str) else declared.unit, declared.separator)
    if names and not isinstance(value, list | dict):
        yield _argument(role, value, own, names)
    else:
        yield from build_arguments(role, value, own)


def _argument(role: str, given: object, declared: Declared, names: tuple[str, ...] = ()) -> Argument:
    value, natural = _spelt(given)
    type = natural if natural == "null" else declared.type or ("entity" if names else natural)
    number = parse_number(value, declared.unit) if type == "number" else None
    return Argument(role, value, type, number.unit if number else "", names)


def _spelt(given: object) -> tuple[str, ArgumentType]:
    """A value as it is written, and what it is where nobody says."""
    if isinstance(given, str):
        return given, infer_type(given)
    if isinstance(given, SpeltFloat):
        return given.spelling, "number"
    spelling = json.dumps(given, ensure_ascii=False)
    if given is None:
        return spelling, "null"
    if isinstance(given, bool):
        return spelling, "boolean"
    return spelling, "number" if isinstance(given, int) else "string"
