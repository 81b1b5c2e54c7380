"""What an endpoint sent back, read with the patience that servers of many makers ask for.

This is the door: what goes through it can be encoded and counted and holds no secret, whatever the server sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyad.openai_api.address import Secrets
from polyad.openai_api.endpoint import NOTHING_SECRET, extract_error_message
from polyad.openai_api.failure import UnusableReplyError
from polyad.replies.thoughts import (
    ThoughtFilter,
    extract_leading_thoughts,
    extract_thoughts,
    remove_leading_thoughts,
    remove_thoughts,
)
from polyad.text.cleaning import replace_surrogates

_CUT = frozenset({"length", "model_length", "model_context_window_exceeded"})
_FILTERED = frozenset({"content_filter", "sensitive"})
_BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""What ``finish_reason`` says of a reply that did not come to its end: OpenAI's own words, Mistral's, DeepSeek's, those
of OpenRouter, vLLM and z.AI."""

_MOST_TOKENS = 10**9
"""A count above this is no count; nothing so long can be sent or said."""


class Received:
    """One reply, whole or as far as it has come.

    Attributes:
        finish_reason: ``stop``, ``length``, ...; empty until the reply is complete.
        error: What became of the provider behind a gateway, in the middle of the reply.
        usage: The endpoint's count of tokens, if it gave one.
        events: How many events of a stream it was made of.
        is_full: Whether the model went on where it was asked to stop; the reply counts as cut.

    Args:
        secrets: Hidden where the server repeats them.
        most_characters: Of what is said and thought together; what goes beyond is left out, and the reply is full.
            None for no limit.
    """

    def __init__(self, secrets: Secrets = NOTHING_SECRET, most_characters: int | None = None) -> None:
        self.is_full = False
        self._room = most_characters
        self.finish_reason = ""
        self.error = ""
        self.usage: Mapping[str, Any] = {}
        self.events = 0
        self._text = _Joined(secrets)
        self._refusal = _Joined(secrets)
        self._reasoning = _Joined(secrets)
        self._secrets = secrets

    @property
    def text(self) -> str:
        """Everything said, thoughts included."""
        return self._text.whole

    @property
    def refusal(self) -> str:
        """Why the model will not answer, in its own field."""
        return self._refusal.whole

    @property
    def reasoning(self) -> str:
        """What the model thought, where the server keeps it apart."""
        return self._reasoning.whole

    def add(self, event: Mapping[str, Any]) -> str:
        """Take in one event of a stream; returns the text that is certain now."""
        self.events += 1
        choice = _first(event.get("choices"))
        return self._take(choice, choice.get("delta"), event.get("usage"))

    def finish(self) -> str:
        """Say that no more events come; returns the rest of the text."""
        return self._text.finish()

    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Take in a reply that came in one piece."""
        choice = _first(body.get("choices"))
        self._take(choice, choice.get("message"), body.get("usage"))
        self.finish()

    @property
    def truncated(self) -> bool:
        """Whether the reply was cut at its limit of tokens."""
        return self.finish_reason in _CUT

    def reported(self, field: str) -> int | None:
        """A count from the endpoint's usage; None where it gives none that makes sense."""
        count = self.usage.get(field)
        is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST_TOKENS
        return count if is_count else None

    def usable_text(self) -> str:
        """What was said, without thoughts; of a reply in one piece, which may be data, without those in front of it.

        JSON that a server took for a thought, and says nothing beside, is the reply: vLLM does so with what a grammar
        or schema made the model say.

        Raises:
            UnusableReplyError: nothing was said, or not to the end.
        """
        if self.finish_reason in _BROKEN:
            raise UnusableReplyError(f"the provider broke off the reply ({self.error or self.finish_reason})")
        if self.refusal or self.finish_reason in _FILTERED:
            raise UnusableReplyError(
                f"the model refused: {extract_error_message(self.refusal or 'content filter')}", may_pass=False
            )
        text = remove_thoughts(self.text) if self.events else remove_leading_thoughts(self.text)
        if not text and not self.events and _is_json(self.reasoning):
            text = self.reasoning.strip()
        if text:
            return text
        if self.truncated:
            raise UnusableReplyError(
                "the model used up its tokens before it said anything (it may have been thinking); allow more tokens "
                "(max_answer_tokens for answers, else the server's own limits) or turn its thinking off",
                may_pass=False,
            )
        if self.reasoning or self.text:
            raise UnusableReplyError(
                "the reply has thoughts and no text; turn the model's thinking off, or look into how the server tells "
                "thoughts from replies"
            )
        raise UnusableReplyError(f"the reply has no text (finish_reason {self.finish_reason or 'missing'})")

    def thoughts(self, said: str) -> str:
        """What the model thought: what the server keeps apart, unless that was ``said``, then what the text had."""
        apart = "" if self.reasoning.strip() == said else self.reasoning.strip()
        tagged = extract_thoughts(self.text) if self.events else extract_leading_thoughts(self.text)
        return "\n\n".join(filter(None, (apart, tagged)))

    def _take(self, choice: Mapping[str, Any], message: object, usage: object) -> str:
        self.finish_reason = extract_error_message(choice.get("finish_reason") or self.finish_reason, self._secrets)
        if choice.get("error"):
            self.error = extract_error_message(choice["error"], self._secrets)
        if isinstance(usage, Mapping):
            self.usage = usage
        if not isinstance(message, Mapping):
            return ""
        self._refusal.add(self._fitting(str(message.get("refusal") or "")))
        self._reasoning.add(self._fitting(_text_of(message.get("reasoning_content") or message.get("reasoning"))))
        return self._text.add(self._fitting(_text_of(message.get("content"))))

    def _fitting(self, piece: str) -> str:
        """As much of a piece as there is room for."""
        if self._room is None:
            return piece
        if len(piece) > self._room:
            self.is_full = True
            self.finish_reason = "length"
        piece = piece[: self._room]
        self._room -= len(piece)
        return piece


class _Joined:
    """A text that comes in pieces, cut anywhere, made writable and without secrets."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._pieces: list[str] = []
        self._held = ""

    @property
    def whole(self) -> str:
        """All that came."""
        return "".join(self._pieces) + replace_surrogates(self._held)

    def add(self, piece: str) -> str:
        """Take in a piece; returns what is certain now: the rest of a character or a secret may come with the next."""
        piece = self._secrets.hidden(self._held + piece)
        is_half = "\ud800" <= piece[-1:] <= "\udbff"
        certain = len(piece) - max(is_half, self._secrets.unfinished(piece))
        self._held = piece[certain:]
        return self._keep(piece[:certain])

    def finish(self) -> str:
        """What was held."""
        held, self._held = self._held, ""
        return self._keep(held)

    def _keep(self, piece: str) -> str:
        piece = replace_surrogates(piece)
        self._pieces.append(piece)
        return piece


class Showing:
    """Passes text on without the thoughts in it, and counts what was passed on."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.characters = 0
        self._on_text = on_text
        self._thoughts = ThoughtFilter()

    def feed(self, piece: str) -> None:
        """Pass on what is certain not to be a thought."""
        self._show(self._thoughts.feed(piece))

    def finish(self) -> None:
        """Pass on what is left."""
        self._show(self._thoughts.finish())

    def _show(self, text: str) -> None:
        if text:
            self.characters += len(text)
            self._on_text(text)


def _first(choices: object) -> Mapping[str, Any]:
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _text_of(content: object) -> str:
    """The text of a message: a string, or the text parts of a list of typed parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "".join(
        str(part.get("text") or "") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"
    )


def _is_json(text: str) -> bool:
    """Whether all of ``text`` is one object or array."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
