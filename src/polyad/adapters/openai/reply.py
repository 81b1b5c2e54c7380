"""What an endpoint sent back, read with the patience that servers of many makers ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyad.adapters.openai.endpoint import UnusableReplyError
from polyad.text.thoughts import ThoughtFilter, after_thoughts, without_thoughts


class Received:
    """One reply, whole or as far as it has come.

    Attributes:
        text: Everything said, thoughts included.
        finish_reason: ``stop``, ``length``, ...; empty until the reply is complete.
        refusal: Why the model will not answer, in its own field.
        usage: The endpoint's count of tokens, if it gave one.
        events: How many events of a stream it was made of.
    """

    def __init__(self) -> None:
        self.text = ""
        self.finish_reason = ""
        self.refusal = ""
        self.usage: Mapping[str, Any] = {}
        self.events = 0

    def add(self, event: Mapping[str, Any]) -> str:
        """Take in one event of a stream; returns the text it brought."""
        self.events += 1
        choice = _first(event.get("choices"))
        piece = self._take(choice, choice.get("delta"), event.get("usage"))
        self.text += piece
        return piece

    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Take in a reply that came in one piece."""
        choice = _first(body.get("choices"))
        self.text = self._take(choice, choice.get("message"), body.get("usage"))

    @property
    def truncated(self) -> bool:
        """Whether the reply was cut at its limit of tokens."""
        return self.finish_reason == "length"

    def reported(self, field: str) -> int | None:
        """A count from the endpoint's usage; None where it gives none that makes sense."""
        count = self.usage.get(field)
        return count if isinstance(count, int) and count >= 0 else None

    def usable_text(self) -> str:
        """What was said, without thoughts; of a reply in one piece, which may be data, without those in front of it.

        Raises:
            UnusableReplyError: nothing was said.
        """
        text = without_thoughts(self.text) if self.events else after_thoughts(self.text)
        if text:
            return text
        if self.truncated:
            raise UnusableReplyError(
                "the model used up its tokens before it said anything (it may have been thinking); allow more tokens",
                may_pass=False,
            )
        if self.refusal or self.finish_reason == "content_filter":
            raise UnusableReplyError(f"the model refused: {self.refusal or 'content filter'}", may_pass=False)
        raise UnusableReplyError("the reply has no text")

    def _take(self, choice: Mapping[str, Any], message: object, usage: object) -> str:
        self.finish_reason = str(choice.get("finish_reason") or self.finish_reason)
        if isinstance(usage, Mapping):
            self.usage = usage
        if not isinstance(message, Mapping):
            return ""
        self.refusal += str(message.get("refusal") or "")
        return _text_of(message.get("content"))


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
