"""A language model that fails at the first request."""

from __future__ import annotations

from typing import NoReturn

from polyad.errors import NoLanguageModelError


class NoLanguageModel:
    """A substitute for a missing language model; its first request raises NoLanguageModelError.

    A run whose replies are all cached needs no model.

    Args:
        operation: Description of the operation that needs a language model, for the error message.
    """

    name = ""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def complete(self, *_: object, **__: object) -> NoReturn:
        """Raise NoLanguageModelError with the name of the operation that needs a language model."""
        raise NoLanguageModelError(self._operation)

    stream = complete

    def cost(self, *_: object, **__: object) -> float:
        """Return 0 US dollars, because a missing language model costs nothing."""
        return 0.0
