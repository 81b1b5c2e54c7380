"""Separates the reasoning of a language model ("thoughts") from its answer.

Servers that do not parse the output of a reasoning model return its thoughts inside the reply, between tags that depend
on the model: ``<think>`` and ``</think>`` for most, ``<reasoning>`` for some, ``[THINK]`` and ``[/THINK]`` for
Mistral's, ``<|channel>`` and ``<channel|>`` for Gemma 4. For gpt-oss, whole messages of the channel ``analysis`` are
thoughts, which end where the channel ``final`` begins. A reply that was cut short may never close the tags, and some
chat templates open them in the prompt, so that only the closing tag is visible.

Text for people must never contain a thought: :class:`ThoughtFilter`, :func:`remove_thoughts`. Data may mention such
tags itself, in a fact about reasoning models, and must not lose the text before them: :func:`remove_leading_thoughts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENING_TAGS = (
    "<think>",
    "<thinking>",
    "<reasoning>",
    "[think]",
    "<|channel>",
    "<|channel|>analysis<|message|>",
    "<|channel|>commentary<|message|>",
)
_CLOSING_TAGS = (
    "</think>",
    "</thinking>",
    "</reasoning>",
    "[/think]",
    "<channel|>",
    "<|channel|>final<|message|>",
    "<|channel|>final <|constrain|>json<|message|>",
)
_TAGS = _OPENING_TAGS + _CLOSING_TAGS
_OPENING = re.compile("|".join(map(re.escape, _OPENING_TAGS)), re.IGNORECASE)
_CLOSING = re.compile("|".join(map(re.escape, _CLOSING_TAGS)), re.IGNORECASE)


_TAG = rf"(?P<opening>{_OPENING.pattern})|(?P<closing>{_CLOSING.pattern})"
_ANY_TAG = re.compile(_TAG, re.IGNORECASE)
_DATA = r"[{\[]|```|\(\s*[\"\u201c]"
_TAG_OR_DATA = re.compile(rf"{_TAG}|{_DATA}", re.IGNORECASE)
_TAG_BEFORE_DATA = re.compile(
    rf"(?:{_CLOSING.pattern})(?:[^`\"<>{{}}()|\[\]]{{0,100}}[:\n])?\s*(?={_DATA})", re.IGNORECASE
)
"""A closing tag before data, perhaps with a few words between."""

_MAX_DRAFTS = 20
"""Most drafts at the beginning of a reply; a model that repeats itself does not stop by itself."""


class ThoughtFilter:
    """Removes thoughts (text in ``<think>`` tags) from a reply that arrives piece by piece.

    The pieces may end anywhere, even inside a tag. Text before a closing tag that was never opened cannot be taken back
    once it was returned; :func:`remove_thoughts`, which sees the whole reply, removes that text too.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._started = False

    def feed(self, piece: str) -> str:
        """Add the next piece of a streamed reply, and return the new text outside thoughts, without parts of tags."""
        self._held += piece
        output: list[str] = []
        position = 0
        while tag := (_CLOSING if self._thinking else _OPENING).search(self._held, position):
            output.append("" if self._thinking else self._held[position : tag.start()])
            position = tag.end()
            self._thinking = not self._thinking
        certain = len(self._held) - count_unfinished(self._held[position:], _TAGS)
        if not self._thinking:
            output.append(self._held[position:certain])
        self._held = self._held[certain:]
        return self._strip_start("".join(output))

    def finish(self) -> str:
        """Return the last characters outside thoughts after the last piece of the reply."""
        rest = "" if self._thinking else self._held
        self._held = ""
        return self._strip_start(rest)

    def _strip_start(self, text: str) -> str:
        if self._started:
            return text
        text = text.lstrip()
        self._started = bool(text)
        return text


def remove_thoughts(text: str) -> str:
    """Return ``text`` without thoughts (text in ``<think>`` tags) and without outer white space.

    >>> remove_thoughts("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Lyon.'
    >>> remove_thoughts("Paris? Lyon?</think>Lyon.")
    'Lyon.'
    """
    return _split_reply(text, _ANY_TAG)[0]


def extract_thoughts(text: str) -> str:
    r"""Return the thoughts (text in ``<think>`` tags) in ``text``, separated by blank lines.

    >>> extract_thoughts("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Paris? Lyon?\n\nSure'
    """
    return _split_reply(text, _ANY_TAG)[1]


def remove_leading_thoughts(reply: str) -> str:
    r"""Return a reply without the thoughts (reasoning) before the data that it ends with (JSON or records).

    Data begins with a brace, a bracket, a code fence or a record's ``("``. From there on, tags are part of the data,
    except for a closing tag that was never opened, between data and other data: the text before it was a draft. A
    reply without data loses all its thoughts.

    >>> remove_leading_thoughts('<think>[]?</think> {"text": "It ends in </think>."}')
    '{"text": "It ends in </think>."}'
    >>> remove_leading_thoughts('[]? No.\n</think>\n\n[1]')
    '[1]'
    >>> remove_leading_thoughts('{"facts": []}? No.</think>{"facts": ["Ada"]}')
    '{"facts": ["Ada"]}'
    """
    return _split_reply(reply, _TAG_OR_DATA)[0]


def extract_leading_thoughts(reply: str) -> str:
    """Return the thoughts (reasoning) that a reply contains before its data (JSON or records).

    >>> extract_leading_thoughts('<think>[]?</think> {"text": "Between <think> and </think>."}')
    '[]?'
    """
    return _split_reply(reply, _TAG_OR_DATA)[1]


def _split_reply(reply: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    """Return a pair: a reply without thoughts, and its thoughts (text in ``<think>`` tags).

    Args:
        reply: The reply.
        pattern: Matches a tag; or the beginning of data, which ends the thoughts.
    """
    text, position, drafts = "", 0, 0
    thoughts: list[str] = []
    while tag := pattern.search(reply, position):
        if tag["opening"]:
            end = _CLOSING.search(reply, tag.end())
            text += reply[position : tag.start()]
            thoughts.append(reply[tag.end() : end.start() if end else len(reply)])
            position = end.end() if end else len(reply)
            continue
        closing = tag if tag["closing"] else _find_end_of_draft(reply, tag.start()) if drafts < _MAX_DRAFTS else None
        drafts += 1
        if closing is None or _OPENING.search(reply, position, closing.start()):
            break
        thoughts.append(text + reply[position : closing.start()])
        text, position = "", closing.end()
    return (text + reply[position:]).strip(), "\n\n".join(filter(None, map(str.strip, thoughts)))


def _find_end_of_draft(reply: str, start: int) -> re.Match[str] | None:
    """Return the first ``</think>`` tag after ``start`` that separates a discarded draft from the final JSON."""
    quotes = 0
    for tag in _TAG_BEFORE_DATA.finditer(reply, start):
        quotes += reply.count('"', start, tag.start()) - reply.count('\\"', start, tag.start())
        start = tag.start()
        if quotes % 2 == 0:
            return tag
    return None


def count_unfinished(reply: str, tags: Sequence[str]) -> int:
    """Return how many characters at the end of a streamed reply may begin one of the ``tags``, such as ``<thi``.

    >>> count_unfinished("Lyon. <thi", ["<think>"]), count_unfinished("2 < 3", ["<think>"])
    (4, 0)
    """
    end = reply[-max(map(len, tags)) :].lower()
    for place, character in enumerate(end):
        if character in "<[" and any(tag.startswith(end[place:]) for tag in tags):
            return len(end) - place
    return 0
