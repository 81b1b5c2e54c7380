"""A language model that fails at the first request."""

from __future__ import annotations

from typing import NoReturn

from polyad.errors import NoLanguageModelError


class NoLanguageModel:
    """A placeholder for a missing language model, which raises an error at the first request.

    A run whose replies are all cached needs no model.

    Args:
        what: What needs a language model, for the message of the error.
    """

    name = ""

    def __init__(self, what: str) -> None:
        self._what = what

    def complete(self, *_: object, **__: object) -> NoReturn:
        """Raise NoLanguageModelError, which names the operation that needs a language model."""
        raise NoLanguageModelError(self._what)

    stream = complete

    def cost(self, *_: object, **__: object) -> float:
        """Return 0, because a missing language model costs nothing."""
        return 0.0
