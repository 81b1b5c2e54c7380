"""What stands in for a language model where none is set."""

from __future__ import annotations

from typing import NoReturn

from polyad.errors import NoLanguageModelError


class NoLanguageModel:
    """Refuses whatever it is asked, so that work may begin which asks only if there is something new.

    Args:
        what: Needs a language model, for the error.
    """

    name = ""

    def __init__(self, what: str) -> None:
        self._what = what

    def complete(self, *_: object, **__: object) -> NoReturn:
        """Raise NoLanguageModelError."""
        raise NoLanguageModelError(self._what)

    stream = complete

    def cost(self, *_: object, **__: object) -> float:
        """Nothing."""
        return 0.0
