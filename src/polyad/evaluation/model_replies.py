"""Requests to a language model in bulk: send prompts, retry unreadable replies, parse JSON objects strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.protocols.components import LanguageModel, Progress, Prompt, Reply
from polyad.replies.schema import Schema
from polyad.replies.thoughts import remove_leading_thoughts

MAX_ATTEMPTS = 3
"""Requests for one judgement until its reply can be parsed."""

_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)

_TYPES = {"string": str, "integer": int, "boolean": bool}

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class AttemptLog(Generic[K, V]):
    """The parsed replies of a language model by prompt, and how often each prompt was sent.

    Attributes:
        values: Parsed values.
        attempts: Number of requests.
    """

    values: dict[K, V] = field(default_factory=dict)
    attempts: dict[K, int] = field(default_factory=dict)

    def count_attempt(self, key: K, value: V | None) -> None:
        """Count an attempt and store its value, unless the reply could not be parsed (None)."""
        self.attempts[key] = self.attempts.get(key, 0) + 1
        if value is not None:
            self.values[key] = value

    def is_pending(self, key: K) -> bool:
        """Return whether a prompt has no usable reply yet and may be sent again."""
        return key not in self.values and self.attempts.get(key, 0) < MAX_ATTEMPTS


def request_replies(
    model: LanguageModel,
    prompts: Sequence[Prompt],
    on_reply: Callable[[int, Reply | LanguageModelError], None],
    progress: Progress,
    label: str,
) -> None:
    """Send prompts to a language model.

    Args:
        model: The language model.
        prompts: Prompts.
        on_reply: Called with the position of the prompt and its reply or failure, in any order.
        progress: Called after each reply.
        label: What is counted, for ``progress``.

    Raises:
        NoMoreRepliesError: the model refuses all further requests.
    """
    count = 0

    def handle(position: int, outcome: Reply | LanguageModelError) -> None:
        nonlocal count
        count += 1
        progress(count, len(prompts), label)
        if not isinstance(outcome, NoMoreRepliesError):
            on_reply(position, outcome)

    for outcome in model.complete(prompts, handle):
        if isinstance(outcome, NoMoreRepliesError):
            raise outcome


def parse_reply(reply: str, schema: Schema) -> Mapping[str, Any] | None:
    """Return the JSON object of a reply, without thoughts and code fence; None unless the object has the schema.

    Parsing is strict, because a repaired judgement would be a guess.
    """
    text = remove_leading_thoughts(reply)
    fenced = _FENCE.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None
    return value if _has_schema(value, schema) else None


def _has_schema(value: object, schema: Any) -> bool:
    """Return whether a JSON value has a schema of exactly these properties, or of a list, number or text."""
    if schema["type"] == "object":
        properties = schema["properties"]
        if not isinstance(value, dict) or value.keys() != properties.keys():
            return False
        return all(_has_schema(value[key], each) for key, each in properties.items())
    if schema["type"] == "array":
        return isinstance(value, list) and all(_has_schema(item, schema["items"]) for item in value)
    return type(value) is _TYPES[schema["type"]]
