"""Prompts that a search sends to a language model, and continues without if there is no reply."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from polyad.errors import LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.model import Mention
from polyad.protocols.components import LanguageModel, MentionExtractor, Prompt, Reply
from polyad.replies.loose_json import find_strings
from polyad.replies.schema import STRING, build_array_schema, build_object_schema
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

T = TypeVar("T")

PAUSE = 60.0
"""Seconds without prompts after a failure that every request would meet, such as an endpoint that is not reachable."""

MAX_NAMES = 16
"""Maximum number of names of one question."""

_SCHEMA = build_object_schema(entities=build_array_schema(STRING))

_logger = logging.getLogger(__name__)


class BestEffortPrompter:
    """Sends optional requests to a language model; if a request fails, the search continues without the reply.

    Args:
        language_model: The language model.
        warning: How the search continues without a reply, logged as a warning.
    """

    def __init__(self, language_model: LanguageModel, warning: str) -> None:
        self._language_model = language_model
        self._warning = warning
        self._silent_until = 0.0

    def ask(self, prompt: Prompt, parse: Callable[[str], T | None], expected_format: str) -> T | None:
        """Send a prompt to the language model and return the parsed reply; None if no usable reply arrived.

        Args:
            prompt: The request.
            parse: Parses a reply; returns None for an unusable reply, which is then not cached.
            expected_format: The format of a usable reply, named in the warning.
        """
        if time.monotonic() < self._silent_until:
            return None
        parsed_replies: list[T] = []

        def check_reply(_: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                parsed = parse(outcome.text)
                if parsed is None:
                    raise UnreadableReplyError(outcome.text, expected_format)
                parsed_replies.append(parsed)

        (outcome,) = self._language_model.complete([prompt], check_reply)
        if isinstance(outcome, LanguageModelError):
            _logger.warning("%s: %s", self._warning, outcome)
        if isinstance(outcome, NoMoreRepliesError):
            self._silent_until = time.monotonic() + PAUSE
        return parsed_replies[0] if parsed_replies else None


class QuestionNameExtractor:
    """Extracts the names in a question with a language model (HyperGraphRAG, appendix A.2).

    HyperRAG, section 3.1.1, does the same.

    A name that does not occur in the question, such as a corrected spelling, becomes a mention without a position.
    Without a usable reply the ``fallback`` extracts the names.

    Args:
        language_model: The language model; it receives one prompt for each question.
        fallback: Extracts the names if there is no usable reply.
        prompts: Instructions for the model.
    """

    def __init__(
        self, language_model: LanguageModel, fallback: MentionExtractor, prompts: Prompts = DEFAULT_PROMPTS
    ) -> None:
        self._prompter = BestEffortPrompter(language_model, "names in the question are found by rules")
        self._fallback = fallback
        self._instructions = prompts.get_text("question_names", most=MAX_NAMES)

    @property
    def name(self) -> str:
        """The name of this extractor in messages."""
        return "question names"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the names in each of ``texts``, which are questions, with their character offsets."""
        return [self._mentions(text) for text in texts]

    def _mentions(self, text: str) -> list[Mention]:
        prompt = Prompt(user=text, system=self._instructions, json_schema=_SCHEMA)
        names = self._prompter.ask(prompt, _parse_names, '{"entities": [...]}')
        if names is None:
            return self._fallback.extract([text])[0]
        return sorted((_locate_name(name, text) for name in names), key=lambda mention: (mention.start, -mention.end))


def _parse_names(reply: str) -> list[str] | None:
    """Parse the list of names from a language model's JSON reply; None if the reply contains no such list."""
    names = find_strings(reply, "entities")
    return None if names is None else names[:MAX_NAMES]


def _locate_name(name: str, text: str) -> Mention:
    pattern = re.escape(name)
    match = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) or re.search(pattern, text, re.IGNORECASE)
    return Mention(match.group(), *match.span()) if match else Mention(name, -1, -1)
