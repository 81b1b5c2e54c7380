"""A language model that fails at the first request."""

from __future__ import annotations

from typing import NoReturn

from polyad.errors import NoLanguageModelError


class NoLanguageModel:
    """A placeholder that raises an error at the first request, for runs that may need no request at all.

    Args:
        what: What needs a language model, for the message of the error.
    """

    name = ""

    def __init__(self, what: str) -> None:
        self._what = what

    def complete(self, *_: object, **__: object) -> NoReturn:
        """Raise NoLanguageModelError."""
        raise NoLanguageModelError(self._what)

    stream = complete

    def cost(self, *_: object, **__: object) -> float:
        """Return 0."""
        return 0.0
