"""Facts that were given as data, in words: for a reader, an embedder and a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from polyad.model import Argument
from polyad.text.literals import one_line

_CAPITAL_WITHIN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def fact_text(relation: str, arguments: Sequence[Argument]) -> str:
    """A fact in one line: its relation, and every role with its value.

    >>> fact_text("awardReceived", [Argument("winner", "Q7", names=("Ines Moreau",)), Argument("in_year", "1702")])
    'award received: winner Ines Moreau, in year 1702'
    """
    return f"{_in_words(relation)}: {roles_in_words(arguments)}"


def roles_in_words(arguments: Iterable[Argument]) -> str:
    """Every role with its value."""
    return ", ".join(f"{_in_words(argument.role)} {value_in_words(argument)}" for argument in arguments)


def value_in_words(argument: Argument) -> str:
    """A value as it is read, on one line: the label of an entity known by an id, a number with its unit.

    >>> value_in_words(Argument("dose", "50", "number", "mg")), value_in_words(Argument("dose", "50mg", "number", "mg"))
    ('50 mg', '50mg')
    """
    if argument.type == "null":
        return "unknown"
    value = one_line((*argument.names, argument.value)[0])
    return value if not argument.unit or value.endswith(argument.unit) else f"{value} {argument.unit}"


def _in_words(name: str) -> str:
    """A name of data as words: ``dateOfBirth`` and ``date_of_birth`` as "date of birth"."""
    words = []
    for word in name.replace("_", " ").split():
        first, *rest = _CAPITAL_WITHIN.split(word)
        words += [first, *(part.lower() if part.istitle() else part for part in rest)]
    return " ".join(words)
