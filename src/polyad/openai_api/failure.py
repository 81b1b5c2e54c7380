"""The error for a reply that cannot be used."""

from __future__ import annotations


class UnusableReplyError(Exception):
    """Raised if an endpoint's response is invalid or incomplete.

    Attributes:
        is_temporary: Whether the same request may succeed later.
    """

    def __init__(self, message: str, *, is_temporary: bool = True) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary
