"""JSON of an error that ended a command."""

from __future__ import annotations

import re

from polyad.errors import PolyadError
from polyad.schemas.objects import JsonObject


class ErrorSchema(JsonObject):
    """An error as JSON: its kind, the message, and a hint that helps with most errors of this kind.

    The kind is a name of :mod:`polyad.errors` such as ``store_not_found``, or ``usage``, ``system``, ``interrupted`` or
    ``terminated``.
    """

    kind: str
    message: str
    hint: str


class FailedSchema(JsonObject):
    """Output of each command with ``--json`` that fails, and of the server: an object with the key ``error``."""

    error: ErrorSchema


def error_json(error: PolyadError) -> FailedSchema:
    """Return a polyad exception as a JSON object with kind, message and hint.

    The kind is the class name in lower case, such as ``store_not_found``.
    """
    name = type(error).__name__.removesuffix("Error")
    return failed_json(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), str(error), error.hint)


def failed_json(kind: str, message: str, hint: str = "") -> FailedSchema:
    """Return a JSON object for an error without an exception class, such as a wrong option."""
    return FailedSchema(error=ErrorSchema(kind=kind, message=message, hint=hint))
