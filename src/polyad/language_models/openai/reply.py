"""Replies of OpenAI-compatible endpoints, whole or streamed, without secrets and unencodable characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyad.openai_api.address import Secrets
from polyad.openai_api.endpoint import NO_SECRETS, extract_error_message
from polyad.openai_api.failure import UnusableReplyError
from polyad.replies.thoughts import (
    ThoughtFilter,
    extract_leading_thoughts,
    extract_thoughts,
    remove_leading_thoughts,
    remove_thoughts,
)
from polyad.text.words import replace_surrogates

_CUT = frozenset({"length", "model_length", "model_context_window_exceeded"})
_FILTERED = frozenset({"content_filter", "sensitive"})
_BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Values of ``finish_reason`` for incomplete replies of OpenAI, Mistral, DeepSeek, OpenRouter, vLLM and z.AI."""

_MOST_TOKENS = 10**9
"""Token counts above this are ignored as invalid."""


class ReceivedReply:
    """A language model's reply while it arrives: the part streamed so far, or the whole reply.

    Attributes:
        finish_reason: ``stop``, ``length``, ...; empty until the reply is complete.
        error: Error of the provider behind a gateway during the reply.
        usage: Token counts of the endpoint, if it sent any.
        events: Number of events of a stream.
        is_full: Whether the reply exceeded ``most_characters`` and was cut.

    Args:
        secrets: Strings to mask if the server repeats them.
        most_characters: Maximum number of characters of text and thoughts; None for no limit.
    """

    def __init__(self, secrets: Secrets = NO_SECRETS, most_characters: int | None = None) -> None:
        self.is_full = False
        self._room = most_characters
        self.finish_reason = ""
        self.error = ""
        self.usage: Mapping[str, Any] = {}
        self.events = 0
        self._text = _JoinedText(secrets)
        self._refusal = _JoinedText(secrets)
        self._reasoning = _JoinedText(secrets)
        self._secrets = secrets

    @property
    def text(self) -> str:
        """The text received so far, including thoughts."""
        return self._text.text

    @property
    def refusal(self) -> str:
        """The model's refusal to answer, which servers send in a separate field; usually empty."""
        return self._refusal.text

    @property
    def reasoning(self) -> str:
        """The model's reasoning, if the server sends it in a separate field; otherwise empty."""
        return self._reasoning.text

    def add(self, event: Mapping[str, Any]) -> str:
        """Add an event of the reply's stream, and return the new text that later events cannot change."""
        self.events += 1
        choice = _first(event.get("choices"))
        return self._add_choice(choice, choice.get("delta"), event.get("usage"))

    def complete(self) -> None:
        """Mark the reply as complete, for servers that send no finish reason."""
        self.finish_reason = self.finish_reason or "stop"

    def finish(self) -> str:
        """End the reply's stream, and return the last text, which :meth:`add` withheld."""
        return self._text.finish()

    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Fill the reply from the JSON body of a response without streaming."""
        choice = _first(body.get("choices"))
        self._add_choice(choice, choice.get("message"), body.get("usage"))
        self.finish()

    @property
    def truncated(self) -> bool:
        """Whether the reply ended at its maximum number of tokens or characters."""
        return self.finish_reason in _CUT

    def find_token_count(self, usage_field: str) -> int | None:
        """Return a token count that the endpoint reported, such as ``prompt_tokens``; None if missing or invalid."""
        count = self.usage.get(usage_field)
        is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST_TOKENS
        return count if is_count else None

    def get_text(self) -> str:
        """Return the reply's text without thoughts (text in ``<think>`` tags).

        If the reasoning is JSON and there is no text, it is the reply: vLLM sends structured output as reasoning.

        Raises:
            UnusableReplyError: The reply is empty or incomplete.
        """
        if self.finish_reason in _BROKEN:
            raise UnusableReplyError(f"the provider broke off the reply ({self.error or self.finish_reason})")
        if self.refusal or self.finish_reason in _FILTERED:
            raise UnusableReplyError(
                f"the model refused: {extract_error_message(self.refusal or 'content filter')}", is_temporary=False
            )
        text = remove_thoughts(self.text) if self.events else remove_leading_thoughts(self.text)
        if not text and not self.events and _is_json(self.reasoning):
            text = self.reasoning.strip()
        if text:
            return text
        if self.truncated:
            raise UnusableReplyError(
                "the model used all its tokens without a reply (it may have been thinking); allow more tokens "
                "(max_answer_tokens for answers, else the limits of the server) or turn its thinking off",
                is_temporary=False,
            )
        if self.reasoning or self.text:
            raise UnusableReplyError(
                "the reply has thoughts and no text; turn the model's thinking off, or check how the server separates "
                "thoughts from replies"
            )
        raise UnusableReplyError(f"the reply has no text (finish_reason {self.finish_reason or 'missing'})")

    def get_thoughts(self, reply_text: str) -> str:
        """Return the model's thoughts: its reasoning, unless equal to ``reply_text``, and text in ``<think>`` tags."""
        reasoning = "" if self.reasoning.strip() == reply_text else self.reasoning.strip()
        tagged = extract_thoughts(self.text) if self.events else extract_leading_thoughts(self.text)
        return "\n\n".join(filter(None, (reasoning, tagged)))

    def _add_choice(self, choice: Mapping[str, Any], message: object, usage: object) -> str:
        self.finish_reason = extract_error_message(choice.get("finish_reason") or self.finish_reason, self._secrets)
        if choice.get("error"):
            self.error = extract_error_message(choice["error"], self._secrets)
        if isinstance(usage, Mapping):
            self.usage = usage
        if not isinstance(message, Mapping):
            return ""
        self._refusal.add(self._cut(str(message.get("refusal") or "")))
        self._reasoning.add(self._cut(_get_text(message.get("reasoning_content") or message.get("reasoning"))))
        return self._text.add(self._cut(_get_text(message.get("content"))))

    def _cut(self, piece: str) -> str:
        """Return ``piece``, cut to the number of characters that the reply may still have."""
        if self._room is None:
            return piece
        if len(piece) > self._room:
            self.is_full = True
            self.finish_reason = "length"
        piece = piece[: self._room]
        self._room -= len(piece)
        return piece


class _JoinedText:
    """A text that joins streamed pieces, with secrets masked and invalid Unicode replaced."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._pieces: list[str] = []
        self._held = ""

    @property
    def text(self) -> str:
        """The text of all pieces so far."""
        return "".join(self._pieces) + replace_surrogates(self._held)

    def add(self, piece: str) -> str:
        """Add a streamed piece, and return the new text that later pieces cannot change.

        A later piece may complete a character or a secret.
        """
        piece = self._secrets.mask_whole(self._held + piece)
        is_half = "\ud800" <= piece[-1:] <= "\udbff"
        certain = len(piece) - max(is_half, self._secrets.count_unfinished(piece))
        self._held = piece[certain:]
        return self._append(self._secrets.mask(piece[:certain]))

    def finish(self) -> str:
        """Return the last text, which :meth:`add` withheld, at the end of the stream."""
        held, self._held = self._held, ""
        return self._append(self._secrets.mask(held))

    def _append(self, piece: str) -> str:
        piece = replace_surrogates(piece)
        self._pieces.append(piece)
        return piece


class ThoughtlessStream:
    """Passes a streamed reply to the callback ``on_text`` without thoughts (text in ``<think>`` tags)."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.characters = 0
        self._on_text = on_text
        self._thoughts = ThoughtFilter()

    def feed(self, piece: str) -> None:
        """Add a piece of the reply, and call ``on_text`` with the new text outside thoughts."""
        self._show(self._thoughts.feed(piece))

    def finish(self) -> None:
        """Call ``on_text`` with the last characters, which :meth:`feed` withheld as a possible ``<think>`` tag."""
        self._show(self._thoughts.finish())

    def _show(self, text: str) -> None:
        if text:
            self.characters += len(text)
            self._on_text(text)


def _first(choices: object) -> Mapping[str, Any]:
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _get_text(content: object) -> str:
    """Return the text of a chat message, whose ``content`` is a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "".join(
        str(part.get("text") or "") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"
    )


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
