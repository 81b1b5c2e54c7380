"""JSON of an error that ended a command."""

from __future__ import annotations

import re

from typing_extensions import TypedDict

from polyad.errors import PolyadError


class ErrorShape(TypedDict):
    """An error: its kind, the message for people and what helps with most errors of that kind.

    The kind is a name of :mod:`polyad.errors` such as ``store_not_found``, or ``usage``, ``system``, ``interrupted`` or
    ``terminated``.
    """

    kind: str
    message: str
    hint: str


class FailedShape(TypedDict):
    """Output of every command with ``--json`` that ends with an error."""

    error: ErrorShape


def error_json(error: PolyadError) -> FailedShape:
    """Return an error as JSON; its kind is the name of its class, such as ``store_not_found``."""
    name = type(error).__name__.removesuffix("Error")
    return failed_json(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), str(error), error.hint)


def failed_json(kind: str, message: str, hint: str = "") -> FailedShape:
    """Return an error that is none of polyad's as JSON."""
    return {"error": {"kind": kind, "message": message, "hint": hint}}
