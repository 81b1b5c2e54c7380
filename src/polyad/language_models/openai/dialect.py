"""Request parameters that an OpenAI-compatible endpoint accepts, learnt from its error messages."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from polyad.protocols.components import Prompt
from polyad.text.words import replace_surrogates

Structured = Literal["json_schema", "json_object", "none"]

_logger = logging.getLogger(__name__)

_SCHEMA_REQUEST = (
    "Reply with one JSON value and nothing else: no explanation, no code fence. It has to fit this JSON schema:\n"
)

_TELLTALES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("stream_usage", ("stream_options", "include_usage")),
    ("length_field", ("max_completion_tokens",)),
    ("temperature", ("temperature",)),
    ("system_role", ("system role", "'system'", "developer instruction", "roles must alternate", "assistant roles")),
    ("structured", ("response_format", "schema", "json_object", "structured output", "guided", "grammar")),
)
"""Words in error messages by the parameter that they concern. Servers word messages differently but use these names."""

_NEXT: Final[dict[str, dict[Any, Any]]] = {
    "stream_usage": {True: False},
    "length_field": {"max_tokens": "max_completion_tokens"},
    "temperature": {True: False},
    "system_role": {True: False},
    "structured": {"json_schema": "json_object", "json_object": "none"},
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional request parameters that one endpoint accepts, such as ``response_format``.

    Attributes:
        structured: How structured output is requested; unless ``json_schema``, the prompt contains the schema too.
        length_field: Name of the token limit; OpenAI's reasoning models require ``max_completion_tokens``.
        temperature: Whether to send the temperature; reasoning models reject it.
        system_role: Whether to send a system message; Gemma's templates accept only user messages.
        stream_usage: Whether to request token counts at the end of a stream.
    """

    structured: Structured = "json_schema"
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    system_role: bool = True
    stream_usage: bool = True

    def build_request(self, model: str, prompt: Prompt, *, stream: bool) -> dict[str, Any]:
        """Return the JSON body of a chat completion request, with only the parameters that the endpoint accepts."""
        body: dict[str, Any] = {"model": model, "messages": self._messages(prompt), "stream": stream}
        if self.temperature:
            body["temperature"] = prompt.temperature
        if prompt.max_tokens:
            body[self.length_field] = prompt.max_tokens
        if stream and self.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if prompt.json_schema is not None and self.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif prompt.json_schema is not None and self.structured == "json_schema":
            schema = {"name": "reply", "schema": prompt.json_schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        system, user = replace_surrogates(self._system(prompt)), replace_surrogates(prompt.user)
        if not self.system_role:
            system, user = "", f"{system}\n\n{user}".strip()
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return messages if system else messages[1:]

    def _system(self, prompt: Prompt) -> str:
        if prompt.json_schema is None or self.structured == "json_schema":
            return prompt.system
        words = _SCHEMA_REQUEST + json.dumps(prompt.json_schema, default=dict, ensure_ascii=False)
        return f"{prompt.system}\n\n{words}" if prompt.system else words


class DialectLearner:
    """Learns which optional request parameters an endpoint accepts, from its error messages.

    Attributes:
        current: The optional request parameters, such as ``response_format``, that the endpoint has not rejected.
    """

    def __init__(self) -> None:
        self.current = Dialect()
        self._lock = threading.Lock()

    def learn(self, error_message: str, dialect: Dialect, body: dict[str, Any]) -> bool:
        """Stop sending the request parameter that an error message rejects; return whether there is such a parameter.

        Args:
            error_message: Error message of the server.
            dialect: Dialect of the rejected request; another thread may have learnt the same meanwhile.
            body: Body of the rejected request.

        Returns:
            Whether to send the request again in the current dialect.
        """
        error_message = error_message.lower()
        for field, words in _TELLTALES:
            value = getattr(dialect, field)
            if value not in _NEXT[field] or not _was_sent(field, dialect, body):
                continue
            if any(word in error_message for word in words):
                with self._lock:
                    if getattr(self.current, field) == value:
                        self.current = replace(self.current, **{field: _NEXT[field][value]})
                        _logger.info("the endpoint rejects %s=%s; doing without", field, value)
                return True
        return False


def _was_sent(field: str, dialect: Dialect, body: dict[str, Any]) -> bool:
    if field == "system_role":
        return any(message["role"] == "system" for message in body["messages"])
    names = {"stream_usage": "stream_options", "length_field": dialect.length_field, "structured": "response_format"}
    return names.get(field, field) in body
