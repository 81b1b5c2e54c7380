"""Formats facts that were supplied as data, for readers, embedders and language models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from polyad.model import Argument
from polyad.text.words import normalize_value

_CAPITAL_WITHIN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def format_fact(relation: str, arguments: Sequence[Argument]) -> str:
    """Format a fact as one line: the relation, a colon, then each role (argument name) with its value.

    >>> format_fact("awardReceived", [Argument("winner", "Q7", names=("Ines Moreau",)), Argument("in_year", "1702")])
    'award received: winner Ines Moreau, in year 1702'
    """
    return f"{_split_name(relation)}: {format_arguments(arguments)}"


def format_arguments(arguments: Iterable[Argument]) -> str:
    """Return the arguments of a fact as one line, such as "winner Ines Moreau, in year 1702"."""
    return ", ".join(f"{_split_name(argument.role)} {format_argument_value(argument)}" for argument in arguments)


def format_argument_value(argument: Argument) -> str:
    """Format an argument's value as one line: the label of an entity, or a number with its unit.

    >>> [format_argument_value(Argument("dose", value, "number", "mg")) for value in ("50", "50mg")]
    ['50 mg', '50mg']
    """
    if argument.type == "null":
        return "unknown"
    value = normalize_value((*argument.names, argument.value)[0])
    return value if not argument.unit or value.endswith(argument.unit) else f"{value} {argument.unit}"


def _split_name(name: str) -> str:
    """Return an identifier as separate words: ``dateOfBirth`` and ``date_of_birth`` become "date of birth"."""
    words = []
    for word in name.replace("_", " ").split():
        first, *rest = _CAPITAL_WITHIN.split(word)
        words += [first, *(part.lower() if part.istitle() else part for part in rest)]
    return " ".join(words)
