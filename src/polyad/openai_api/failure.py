"""The error for a reply that cannot be used."""

from __future__ import annotations


class UnusableReplyError(Exception):
    """Raised if an endpoint's response is invalid or incomplete.

    Attributes:
        may_pass: Whether the same request may succeed later.
    """

    def __init__(self, message: str, *, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass
