"""Parses the arguments of facts from JSON values or table cells, and the declared types of roles."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ReadError
from polyad.model import Argument, ArgumentType
from polyad.readers.text.plain_text import to_single_line
from polyad.text.files import read_file
from polyad.text.literals import TYPES, infer_type, parse_number
from polyad.text.words import normalize_value

SCHEMA_FILE = "schema.toml"
"""Name of the file beside a file of facts that declares the types of roles."""

_DECLARATION = re.compile(r"(entity|number|date|boolean|string)(?:\[([^\[\]]*)\])?")
_MAX_DIGITS = 4000
"""Digits of the longest integer that is converted; Python rejects integers of more than 4300."""

_IDENTITIES = ("entity", "id", "value")
"""Keys under which an object has its value; the first one present counts."""


class VerbatimFloat(float):
    """A float that is printed as spelled in the JSON file, such as 1.50 instead of 1.5."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling


def parse_json_integer(spelling: str) -> float:
    """Return a JSON integer as an int, or as a :class:`VerbatimFloat` if an int would be printed in another spelling.

    An int would write -0 as 0, and Python rejects integers of more than 4300 digits.
    """
    return VerbatimFloat(spelling) if spelling == "-0" or len(spelling) > _MAX_DIGITS else int(spelling)


@dataclass(frozen=True, slots=True)
class RoleDeclaration:
    """The type, unit and separator that a user declares for the values of a role (an argument's name in a fact).

    Attributes:
        type: Type of the values; None to infer the type of each value.
        unit: Unit of numbers that state none.
        separator: Separates several values in one cell or string; empty if each cell is one value.
    """

    type: ArgumentType | None = None
    unit: str = ""
    separator: str = ""

    @classmethod
    def parse(cls, declaration: str, separator: str = "") -> RoleDeclaration | None:
        """Return the declaration in a text such as ``number[mg]`` or ``date``; None for a text of another form."""
        match = _DECLARATION.fullmatch(declaration.strip())
        if not match:
            return None
        type: ArgumentType = next(name for name in TYPES if name == match[1])
        return cls(type, (match[2] or "").strip(), separator)


UNDECLARED = RoleDeclaration()


def read_role_schema(folder: Path) -> Mapping[str, RoleDeclaration]:
    """Return the declared type of each role (argument name of facts) in the folder's ``schema.toml``; empty if missing.

    The table ``[roles]`` has a line for each role: ``dose = "number[mg]"``, or ``author = {type = "entity", separator =
    ";"}``.

    Raises:
        ReadError: The file is malformed, or a declaration is invalid.
    """
    file = folder / SCHEMA_FILE
    if not file.is_file():
        return {}
    try:
        roles = tomllib.loads(read_file(file).decode()).get("roles", {})
    except (OSError, ValueError, RecursionError) as error:
        raise ReadError(f"{SCHEMA_FILE} in the same folder cannot be read: {error}") from error
    if not isinstance(roles, dict):
        raise ReadError(f"[roles] of {SCHEMA_FILE} is {json.dumps(roles)}; expected a table")
    return {to_single_line(role): _parse_declaration(role, words) for role, words in roles.items()}


def parse_column_name(column: str) -> tuple[str, RoleDeclaration | None]:
    """Return the role and the declared type in a column name such as ``dose:number[mg]``; without a type, None."""
    role, colon, declared_type = column.rpartition(":")
    declaration = RoleDeclaration.parse(declared_type) if colon and role.strip() else None
    return (role.strip(), declaration) if declaration else (column, None)


def build_arguments(role: str, value: object, declaration: RoleDeclaration = UNDECLARED) -> Iterator[Argument]:
    """Yield the arguments of a fact for a JSON ``value``: one argument, or one for each item of a list.

    An object is ``{"entity": "Q42", "label": ..., "aliases": [...]}`` or ``{"value": 5, "unit": "mg", "type": ...}``;
    any other object is an argument whose value is its JSON. Null, an empty list and blank text are arguments too.
    """
    if isinstance(value, list) and value:
        for item in value:
            yield from build_arguments(role, item, declaration)
    elif isinstance(value, str) and declaration.separator and declaration.separator in value:
        for item in value.split(declaration.separator):
            if item.strip():
                yield _build_argument(role, item.strip(), declaration)
    elif isinstance(value, dict) and (key := next((key for key in _IDENTITIES if key in value), "")):
        yield from _build_arguments_with_unit(role, value, value[key], declaration)
    else:
        yield _build_argument(role, value, declaration)


def parse_cell_arguments(role: str, text: str, declaration: RoleDeclaration = UNDECLARED) -> Iterator[Argument]:
    """Yield the arguments of a fact for ``text``, a table cell with one value or a JSON list of values."""
    if text.strip().startswith("["):
        try:
            value = json.loads(text, parse_float=VerbatimFloat, parse_int=parse_json_integer)
        except (ValueError, RecursionError):
            value = text
        if isinstance(value, list) and value:
            yield from build_arguments(role, value, declaration)
            return
    yield from build_arguments(role, text, declaration)


def _parse_declaration(role: str, declared_type: object) -> RoleDeclaration:
    """Return the type that ``schema.toml`` declares for a role; raise ReadError for an invalid type."""
    separator: object = ""
    if isinstance(declared_type, dict):
        separator, declared_type = declared_type.get("separator", ""), declared_type.get("type", "entity")
    declaration = (
        RoleDeclaration.parse(declared_type, separator)
        if isinstance(declared_type, str) and isinstance(separator, str)
        else None
    )
    if declaration is None:
        expected = "expected entity, number, date, boolean or string, a number with its unit as number[mg]"
        raise ReadError(f"{role} in {SCHEMA_FILE} is {json.dumps(declared_type)}; {expected}")
    return declaration


def _build_arguments_with_unit(
    role: str, record: dict[str, object], value: object, declaration: RoleDeclaration
) -> Iterator[Argument]:
    """Yield the arguments of a fact for ``record``, a JSON object with a ``value`` and its unit, type or aliases.

    If the value is a list, there is one argument for each item, and the other keys apply to all.
    """
    label, aliases, unit = record.get("label"), record.get("aliases"), record.get("unit")
    others = aliases if isinstance(aliases, list) else [aliases]
    names = tuple(normalize_value(name) for name in (label, *others) if isinstance(name, str) and name.strip())
    type = next((name for name in TYPES if name == record.get("type")), declaration.type)
    value_declaration = RoleDeclaration(
        type, unit if isinstance(unit, str) else declaration.unit, declaration.separator
    )
    if names and not isinstance(value, list | dict):
        yield _build_argument(role, value, value_declaration, names)
    else:
        yield from build_arguments(role, value, value_declaration)


def _build_argument(
    role: str, json_value: object, declaration: RoleDeclaration, names: tuple[str, ...] = ()
) -> Argument:
    value, inferred_type = _format_json_value(json_value)
    type = inferred_type if inferred_type == "null" else declaration.type or ("entity" if names else inferred_type)
    number = parse_number(value, declaration.unit) if type == "number" else None
    return Argument(role, value, type, number.unit if number else "", names)


def _format_json_value(value: object) -> tuple[str, ArgumentType]:
    """Return a JSON value as text, and the type, such as number or date, that is inferred from the value."""
    if isinstance(value, str):
        return value, infer_type(value)
    if isinstance(value, VerbatimFloat):
        return value.spelling, "number"
    spelling = json.dumps(value, ensure_ascii=False)
    if value is None:
        return spelling, "null"
    if isinstance(value, bool):
        return spelling, "boolean"
    return spelling, "number" if isinstance(value, int) else "string"
