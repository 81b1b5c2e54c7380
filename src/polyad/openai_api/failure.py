"""A reply that came and is of no use."""

from __future__ import annotations


class UnusableReplyError(Exception):
    """The endpoint answered, with something that cannot be used.

    Attributes:
        may_pass: Whether another try could go better.
    """

    def __init__(self, message: str, *, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass
