"""Separates the reasoning of a language model ("thoughts") from its answer.

Servers that do not parse the output of a reasoning model return its thoughts inside the reply, between tags that depend
on the model: ``<think>`` and ``</think>`` for most, ``<reasoning>`` for some, ``[THINK]`` and ``[/THINK]`` for
Mistral's, ``<|channel>`` and ``<channel|>`` for Gemma 4. For gpt-oss, whole messages of the channel ``analysis`` are
thoughts, which end where the channel ``final`` begins. A reply that was cut short may never close the tags, and some
chat templates open them in the prompt, so that only the closing tag is visible.

Text for people must never contain a thought: :class:`ThoughtFilter`, :func:`remove_thoughts`. Data may mention such
tags
itself, in a fact about reasoning models, and must not lose the text before them: :func:`remove_leading_thoughts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

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


_DATA = r"[{\[]|```|\(\s*[\"“]"
_TAG_OR_DATA = re.compile(rf"(?P<opening>{_OPENING.pattern})|(?P<closing>{_CLOSING.pattern})|{_DATA}", re.IGNORECASE)
_BEGIN = r"""[{\[]\s*["{\[\]}]|```|\(\s*["“][\w -]{1,30}["”]\s*<"""
_TAG_BEFORE_DATA = re.compile(
    rf"(?:{_CLOSING.pattern})(?:[^`\"<>{{}}()|\[\]]{{0,100}}[:\n])?\s*(?={_BEGIN})", re.IGNORECASE
)
"""A closing tag before data, perhaps with a few words between: JSON or records, with more than their first
character."""

_MAX_DRAFTS = 20
"""Most drafts at the beginning of a reply; a model that repeats itself does not stop by itself."""

_MAX_VALUES = 50
"""Most JSON values that are searched for a tag; after these, a tag counts as outside of JSON."""

_TAG_ON_A_LINE = re.compile(rf"^[ \t]*(?:{_CLOSING.pattern})[ \t]*\n\s*(?={_DATA})", re.IGNORECASE | re.MULTILINE)


_OPENING_BRACKET = re.compile(r"[{\[]")


class ThoughtFilter:
    """Removes thoughts from a streamed reply, and returns the remaining text as soon as it is certain.

    The pieces may end anywhere, even inside a tag. Text before a closing tag that was never opened cannot be taken back
    once it was returned; :func:`remove_thoughts`, which sees the whole reply, removes that text too.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._started = False

    def feed(self, piece: str) -> str:
        """Take the next piece of a streamed reply and return the part of it outside the model's thoughts."""
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
        """Return the remaining text at the end of the stream; an incomplete tag is text."""
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
    """Return ``text`` without thoughts and without surrounding white space.

    >>> remove_thoughts("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Lyon.'
    >>> remove_thoughts("Paris? Lyon?</think>Lyon.")
    'Lyon.'
    """
    stray = _CLOSING.search(text)
    if stray is not None and not _OPENING.search(text, 0, stray.start()):
        text = text[stray.end() :]
    thoughts = ThoughtFilter()
    return (thoughts.feed(text) + thoughts.finish()).strip()


def extract_thoughts(text: str) -> str:
    r"""Return the thoughts that :func:`remove_thoughts` removes from ``text``, separated by blank lines.

    >>> extract_thoughts("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Paris? Lyon?\n\nSure'
    >>> extract_thoughts("Paris? Lyon?</think>Lyon.")
    'Paris? Lyon?'
    """
    thoughts, position = [], 0
    stray = _CLOSING.search(text)
    if stray is not None and not _OPENING.search(text, 0, stray.start()):
        thoughts, position = [text[: stray.start()]], stray.end()
    while opening := _OPENING.search(text, position):
        closing = _CLOSING.search(text, opening.end())
        thoughts.append(text[opening.end() : closing.start() if closing else len(text)])
        position = closing.end() if closing else len(text)
    return _join_thoughts(thoughts)


def remove_leading_thoughts(reply: str) -> str:
    r"""Return ``reply`` without the thoughts before its data, and without surrounding white space.

    Data begins with a brace, a bracket, a code fence or a record's ``("``; a reply without any is not data, and loses
    all its thoughts. From there on, tags are part of the data. The exception is a closing tag that was never opened,
    between data and other data, and inside no JSON: what came before was a draft.

    >>> remove_leading_thoughts('<think>[]?</think> {"text": "It ends in </think>."}')
    '{"text": "It ends in </think>."}'
    >>> remove_leading_thoughts('[]? No.\n</think>\n\n[1]')
    '[1]'
    >>> remove_leading_thoughts('{"facts": []}? No.</think>{"facts": ["Ada"]}')
    '{"facts": ["Ada"]}'
    """
    return _split_reply(reply)[0]


def extract_leading_thoughts(reply: str) -> str:
    """Return the thoughts that :func:`remove_leading_thoughts` removes from ``reply``, separated by blank lines.

    >>> extract_leading_thoughts('<think>[]?</think> {"text": "Between <think> and </think>."}')
    '[]?'
    """
    return _split_reply(reply)[1]


def _split_reply(reply: str) -> tuple[str, str]:
    """Return the data of a reply, and its thoughts."""
    data, position, drafts = "", 0, 0
    thoughts: list[str] = []
    while tag := _TAG_OR_DATA.search(reply, position):
        if tag["opening"]:
            end = _CLOSING.search(reply, tag.end())
            data += reply[position : tag.start()]
            thoughts.append(reply[tag.end() : end.start() if end else len(reply)])
            position = end.end() if end else len(reply)
            continue
        closing = tag if tag["closing"] else _find_end_of_draft(reply, tag.start()) if drafts < _MAX_DRAFTS else None
        drafts += 1
        if closing is None or _OPENING.search(reply, position, closing.start()):
            break
        thoughts.append(data + reply[position : closing.start()])
        data, position = "", closing.end()
    return (data + reply[position:]).strip(), _join_thoughts(thoughts)


def _join_thoughts(thoughts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, map(str.strip, thoughts)))


def _find_end_of_draft(reply: str, start: int) -> re.Match[str] | None:
    """Return the first closing tag after ``start`` that is followed by data and outside of any JSON value."""
    candidates = (_TAG_ON_A_LINE.search(reply, start), _TAG_BEFORE_DATA.search(reply, start))
    first = min((tag for tag in candidates if tag), key=lambda tag: tag.start(), default=None)
    while (
        first is not None and first.re is _TAG_BEFORE_DATA and (end := _find_end_of_json(reply, start, first.start()))
    ):
        start = end
        first = _TAG_BEFORE_DATA.search(reply, end)
    return first


def _find_end_of_json(text: str, start: int, place: int) -> int:
    """Return the end of the JSON value after ``start`` that contains ``place``; 0 if there is none."""
    decoder = json.JSONDecoder(strict=False)
    for _ in range(_MAX_VALUES):
        opening = _OPENING_BRACKET.search(text, start, place)
        if opening is None:
            break
        try:
            _, start = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            start = opening.end()
        if start > place:
            return start
    return 0


def count_unfinished(text: str, tags: Sequence[str]) -> int:
    """Return the number of characters at the end of ``text`` that may be the beginning of one of the tags.

    >>> count_unfinished("Lyon. <thi", ["<think>"]), count_unfinished("2 < 3", ["<think>"])
    (4, 0)
    """
    end = text[-max(map(len, tags)) :].lower()
    for place, character in enumerate(end):
        if character in "<[" and any(tag.startswith(end[place:]) for tag in tags):
            return len(end) - place
    return 0
