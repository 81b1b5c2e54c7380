"""Asking a language model about a question, where search goes on without a reply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from polyad.errors import LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.protocols.components import LanguageModel, Prompt, Reply

T = TypeVar("T")

PAUSE = 60.0
"""Seconds without asking after a failure that every request would meet: each would wait for its retries in vain."""

_logger = logging.getLogger(__name__)


class BestEffortPrompter:
    """Asks a language model for optional information, and warns when a search continues without a reply.

    Args:
        language_model: Is asked.
        otherwise: What happens without a reply, for the warning.
    """

    def __init__(self, language_model: LanguageModel, otherwise: str) -> None:
        self._language_model = language_model
        self._otherwise = otherwise
        self._silent_until = 0.0

    def ask(self, prompt: Prompt, parse: Callable[[str], T | None], expected: str) -> T | None:
        """Send a prompt to the language model and return the parsed reply, or None if no attempt gave a usable one.

        Args:
            prompt: The request.
            parse: Parses a reply; returns None for an unusable reply, which is then not cached.
            expected: Describes a usable reply, for the warning.
        """
        if time.monotonic() < self._silent_until:
            return None
        parsed_replies: list[T] = []

        def check_reply(_: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                parsed = parse(outcome.text)
                if parsed is None:
                    raise UnreadableReplyError(outcome.text, expected)
                parsed_replies.append(parsed)

        (outcome,) = self._language_model.complete([prompt], check_reply)
        if isinstance(outcome, LanguageModelError):
            _logger.warning("%s: %s", self._otherwise, outcome)
        if isinstance(outcome, NoMoreRepliesError):
            self._silent_until = time.monotonic() + PAUSE
        return parsed_replies[0] if parsed_replies else None
