"""Separates the reasoning of a language model ("thoughts") from its answer.

Servers that do not parse the output of a reasoning model return its thoughts inside the reply, between tags that depend
on the model. One rule covers most: brackets around a word for thinking, in any case and with a namespace, such as
``<think>``, ``<Thought>``, ``<seed:think>``, ``[THINK]``, ``<|START_THINKING|>`` or ``◁think▷``, closed by a slash
or ``END_``. Gemma 4 has ``<|channel>`` and ``<channel|>``. For gpt-oss, whole messages of the channel ``analysis`` are
thoughts, which end where the channel ``final`` begins. A reply that was cut short may never close the tags, and some
chat templates open them in the prompt, so that only the closing tag is visible.

Text for people must never contain a thought: :class:`ThoughtFilter`, :func:`remove_thoughts`. Data may mention such
tags itself, in a fact about reasoning models, and must not lose the text before them: :func:`remove_leading_thoughts`.
A tag within a sentence, between spaces or quotation marks ("the tag `<think>` opens it"), is a mention and no thought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = r"(?:[a-z]{1,12}:)?(?:(?:start|begin|chain)_(?:of_)?)?(?:think(?:ing)?|thoughts?|reasoning)"
_START, _END = r"(?:<\|?|\[|\u25c1)", r"(?:\|?>|\]|\u25b7)"
"""Brackets of a tag."""

_CHANNEL_OPENING_TAGS = ("<|channel>", "<|channel|>analysis<|message|>", "<|channel|>commentary<|message|>")
_CHANNEL_CLOSING_TAGS = (
    "<channel|>",
    "<|channel|>final<|message|>",
    "<|channel|>final <|constrain|>json<|message|>",
)
_CHANNEL_TAGS = _CHANNEL_OPENING_TAGS + _CHANNEL_CLOSING_TAGS
_OPENING = re.compile(
    "|".join([rf"{_START}{_NAME}{_END}(?!(?<=\])\()", *map(re.escape, _CHANNEL_OPENING_TAGS)]), re.IGNORECASE
)
"""A square bracket before a parenthesis ends the text of a Markdown link."""

_CLOSING = re.compile(
    "|".join([rf"{_START}(?:/|end_(?:of_)?){_NAME}{_END}", *map(re.escape, _CHANNEL_CLOSING_TAGS)]), re.IGNORECASE
)
_MARK = r"<\|(?:start|begin|end)_(?:of_)?(?:response|solution)\|>"
"""A tag around the answer of a model whose thoughts have tags too; the tag is removed, not the answer."""

_OPENING_OR_MARK = re.compile(f"{_OPENING.pattern}|(?P<mark>{_MARK})", re.IGNORECASE)
_UNFINISHED = re.compile(rf"{_START}/?[a-z:_]{{0,40}}\|?\Z", re.IGNORECASE)
"""The end of a streamed text that may begin a tag."""

_TAG = rf"(?P<opening>{_OPENING.pattern})|(?P<closing>{_CLOSING.pattern})|(?P<mark>{_MARK})"
_ANY_TAG = re.compile(_TAG, re.IGNORECASE)
_DATA = r"[{\[]|```|\(\s*[\"\u201c]"
_TAG_OR_DATA = re.compile(rf"{_TAG}|{_DATA}", re.IGNORECASE)
_TAG_BEFORE_DATA = re.compile(
    rf"(?:{_CLOSING.pattern})(?:[^`\"<>{{}}()|\[\]]{{0,100}}[:\n])?\s*(?={_DATA})", re.IGNORECASE
)
"""A closing tag before data, perhaps with a few words between."""

_BEFORE_MENTION = frozenset(" \t\"'`(\u201c\u2018\xab")
_AFTER_MENTION = frozenset(" \t\"'`).,;:!?\u201d\u2019\xbb")

_MAX_DRAFTS = 20
"""Most drafts at the beginning of a reply; a model that repeats itself does not stop by itself."""


class ThoughtFilter:
    """Removes thoughts (text in ``<think>`` tags) from a reply that arrives piece by piece.

    The pieces may end anywhere, even inside a tag. Text before a closing tag that was never opened cannot be taken back
    once it was returned; :func:`remove_thoughts`, which sees the whole reply, removes that text too.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = ""  # the character before the held text
        self._thinking = False
        self._started = False

    def feed(self, piece: str) -> str:
        """Add the next piece of a streamed reply, and return the new text outside thoughts, without parts of tags."""
        self._held += piece
        return self._take(is_end=False)

    def finish(self) -> str:
        """Return the last characters outside thoughts after the last piece of the reply."""
        return self._take(is_end=True)

    def _take(self, *, is_end: bool) -> str:
        """Return the text outside thoughts; a part of a tag is held, a tag until the next character."""
        output: list[str] = []
        held, position, start = self._held, 0, 0
        end = len(held) if is_end else len(held) - _count_unfinished(held)
        while tag := (_CLOSING if self._thinking else _OPENING_OR_MARK).search(held, start):
            start = tag.end()
            if not self._thinking and tag["mark"]:
                output.append(held[position : tag.start()])
                position = start
                continue
            if not self._thinking:
                if start == len(held) and not is_end:
                    end = tag.start()
                    break
                text = held[position : tag.start()]
                before = held[tag.start() - 1] if tag.start() else self._before
                is_first = not self._started and not "".join((*output, text)).strip()
                if not is_first and _is_mention(before, held[start : start + 1]):
                    continue
                output.append(text)
            self._thinking, position = not self._thinking, start
        end = max(end, position)
        if not self._thinking:
            output.append(held[position:end])
        self._before = held[end - 1] if end else self._before
        self._held = held[end:]
        return self._strip_start("".join(output))

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
    text, position, start, drafts = "", 0, 0, 0
    thoughts: list[str] = []
    while tag := pattern.search(reply, max(start, position)):
        start = tag.end()
        before, after = reply[max(0, tag.start() - 1) : tag.start()], reply[start : start + 1]
        if tag["mark"]:
            text, position = text + reply[position : tag.start()], start
            continue
        is_tag = tag["opening"] or (tag["closing"] and not before.isspace())  # after a space it may end a thought
        if is_tag and _is_mention(before, after) and (text + reply[position : tag.start()]).strip():
            continue
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


def _is_mention(before: str, after: str) -> bool:
    """Return whether the characters around a tag are those of a sentence that mentions the tag."""
    return before in _BEFORE_MENTION and after in _AFTER_MENTION


def _find_end_of_draft(reply: str, start: int) -> re.Match[str] | None:
    """Return the first ``</think>`` tag after ``start`` that separates a discarded draft from the final JSON."""
    quotes = 0
    for tag in _TAG_BEFORE_DATA.finditer(reply, start):
        quotes += reply.count('"', start, tag.start()) - reply.count('\\"', start, tag.start())
        start = tag.start()
        if quotes % 2 == 0:
            return tag
    return None


def _count_unfinished(reply: str) -> int:
    """Return how many characters at the end of a streamed reply may begin a tag of a thought."""
    tag = _UNFINISHED.search(reply)
    return max(len(reply) - tag.start() if tag else 0, count_unfinished(reply, _CHANNEL_TAGS))


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
