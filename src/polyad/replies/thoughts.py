"""Keeps the thoughts of a reasoning model out of what it says.

Servers that do not parse a reasoning model's output hand its thoughts on inside the reply, between the tags of its
maker: ``<think>`` and ``</think>`` for most, ``<reasoning>`` for some, ``[THINK]`` and ``[/THINK]`` for Mistral's,
``<|channel>`` and ``<channel|>`` for Gemma 4, and for gpt-oss whole messages of the channel ``analysis``, which end
where the channel ``final`` begins. A reply cut short may never close them, and some chat templates open them in the
prompt, so that only the end is seen.

What is shown to people must never hold a thought, wherever it stands: :class:`ThoughtFilter`, :func:`without_thoughts`.
What is read as data may tell of such tags itself, in a fact about reasoning models, and must not lose what stands
before them: :func:`after_thoughts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

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

_LONGEST_TAG = max(map(len, _TAGS))

_DATA = r"[{\[]|```|\(\s*[\"“]"
_TAG_OR_DATA = re.compile(rf"(?P<opening>{_OPENING.pattern})|(?P<closing>{_CLOSING.pattern})|{_DATA}", re.IGNORECASE)
_BEGIN = r"""[{\[]\s*["{\[\]}]|```|\(\s*["“][\w -]{1,30}["”]\s*<"""
_TAG_BEFORE_DATA = re.compile(
    rf"(?:{_CLOSING.pattern})(?:[^`\"<>{{}}()|\[\]]{{0,100}}[:\n])?\s*(?={_BEGIN})", re.IGNORECASE
)
"""A closing tag that data follows, perhaps after a few words: of JSON or of records, with more than its first sign."""

_MOST_DRAFTS = 20
"""Drafts that a reply may begin with; a model that repeats itself does not stop by itself."""

_MOST_VALUES = 50
"""JSON values in which a tag is looked for; beyond, it is taken for one that stands in none."""

_TAG_ON_A_LINE = re.compile(rf"^[ \t]*(?:{_CLOSING.pattern})[ \t]*\n\s*(?={_DATA})", re.IGNORECASE | re.MULTILINE)


_OPENING_BRACKET = re.compile(r"[{\[]")


class ThoughtFilter:
    """Takes a reply in pieces and gives back the part that is not thought, as soon as it is certain.

    The pieces may be cut anywhere, also inside a tag. What came before a closing tag that was never opened cannot be
    taken back once given out; :func:`without_thoughts`, which sees the whole, removes that too.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._started = False

    def feed(self, piece: str) -> str:
        """What can be shown now that ``piece`` has come."""
        self._held += piece
        shown: list[str] = []
        position = 0
        while tag := (_CLOSING if self._thinking else _OPENING).search(self._held, position):
            shown.append("" if self._thinking else self._held[position : tag.start()])
            position = tag.end()
            self._thinking = not self._thinking
        certain = len(self._held) - _unfinished_tag(self._held[max(position, len(self._held) - _LONGEST_TAG) :])
        if not self._thinking:
            shown.append(self._held[position:certain])
        self._held = self._held[certain:]
        return self._without_leading_space("".join(shown))

    def finish(self) -> str:
        """What is left when no more pieces come: a tag begun and never finished is text."""
        rest = "" if self._thinking else self._held
        self._held = ""
        return self._without_leading_space(rest)

    def _without_leading_space(self, text: str) -> str:
        if self._started:
            return text
        text = text.lstrip()
        self._started = bool(text)
        return text


def without_thoughts(text: str) -> str:
    """``text`` without any thoughts and without white space around it.

    >>> without_thoughts("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Lyon.'
    >>> without_thoughts("Paris? Lyon?</think>Lyon.")
    'Lyon.'
    """
    stray = _CLOSING.search(text)
    if stray is not None and not _OPENING.search(text, 0, stray.start()):
        text = text[stray.end() :]
    thoughts = ThoughtFilter()
    return (thoughts.feed(text) + thoughts.finish()).strip()


def thoughts_in(text: str) -> str:
    r"""The thoughts of which :func:`without_thoughts` rids ``text``, with a blank line between them.

    >>> thoughts_in("<think>Paris? Lyon?</think> Lyon. <think>Sure")
    'Paris? Lyon?\n\nSure'
    >>> thoughts_in("Paris? Lyon?</think>Lyon.")
    'Paris? Lyon?'
    """
    found, position = [], 0
    stray = _CLOSING.search(text)
    if stray is not None and not _OPENING.search(text, 0, stray.start()):
        found, position = [text[: stray.start()]], stray.end()
    while opening := _OPENING.search(text, position):
        closing = _CLOSING.search(text, opening.end())
        found.append(text[opening.end() : closing.start() if closing else len(text)])
        position = closing.end() if closing else len(text)
    return _joined(found)


def after_thoughts(reply: str) -> str:
    r"""``reply`` without the thoughts in front of its data, and without white space around it.

    Data begins with a brace, a bracket, a code fence or a record's ``("``; a reply without any is not data, and loses
    all its thoughts. From there on, tags are part of the data. The exception is a closing tag that was never opened,
    between data and other data, and inside no JSON: what came before was a draft.

    >>> after_thoughts('<think>[]?</think> {"text": "It ends in </think>."}')
    '{"text": "It ends in </think>."}'
    >>> after_thoughts('[]? No.\n</think>\n\n[1]')
    '[1]'
    >>> after_thoughts('{"facts": []}? No.</think>{"facts": ["Ada"]}')
    '{"facts": ["Ada"]}'
    """
    return _apart(reply)[0]


def thoughts_before(reply: str) -> str:
    """The thoughts of which :func:`after_thoughts` rids ``reply``, with a blank line between them.

    >>> thoughts_before('<think>[]?</think> {"text": "Between <think> and </think>."}')
    '[]?'
    """
    return _apart(reply)[1]


def _apart(reply: str) -> tuple[str, str]:
    """What is left of a reply that is data, and its thoughts."""
    kept, position, drafts = "", 0, 0
    thoughts: list[str] = []
    while tag := _TAG_OR_DATA.search(reply, position):
        if tag["opening"]:
            end = _CLOSING.search(reply, tag.end())
            kept += reply[position : tag.start()]
            thoughts.append(reply[tag.end() : end.start() if end else len(reply)])
            position = end.end() if end else len(reply)
            continue
        closing = tag if tag["closing"] else _end_of_draft(reply, tag.start()) if drafts < _MOST_DRAFTS else None
        drafts += 1
        if closing is None or _OPENING.search(reply, position, closing.start()):
            break
        thoughts.append(kept + reply[position : closing.start()])
        kept, position = "", closing.end()
    return (kept + reply[position:]).strip(), _joined(thoughts)


def _joined(thoughts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, map(str.strip, thoughts)))


def _end_of_draft(reply: str, start: int) -> re.Match[str] | None:
    """The first closing tag after ``start`` that other data follows and no JSON value holds."""
    found = (_TAG_ON_A_LINE.search(reply, start), _TAG_BEFORE_DATA.search(reply, start))
    first = min((tag for tag in found if tag), key=lambda tag: tag.start(), default=None)
    while first is not None and first.re is _TAG_BEFORE_DATA and (end := _end_of_json(reply, start, first.start())):
        start = end
        first = _TAG_BEFORE_DATA.search(reply, end)
    return first


def _end_of_json(text: str, start: int, place: int) -> int:
    """Where the JSON value that holds ``place`` ends; 0 where none does that begins at ``start`` or after it."""
    decoder = json.JSONDecoder(strict=False)
    for _ in range(_MOST_VALUES):
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


def _unfinished_tag(text: str) -> int:
    """How many characters at the end of ``text`` may be the beginning of a tag."""
    end = text[-_LONGEST_TAG:].lower()
    for place, character in enumerate(end):
        if character in "<[" and any(tag.startswith(end[place:]) for tag in _TAGS):
            return len(end) - place
    return 0
