"""JSON as models without a schema write it: with slips that a decoder does not forgive, put right."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator

VALUE = re.compile(r'[{\[](?=\s*["{\[}\]])')
"""Where an object or array may begin."""

_PYTHON = re.compile(r"[^{\[]*([{\[][\s{\[]*'.*[}\]])", re.DOTALL)
"""From the first bracket to the last, where a single quote is the first."""

_OUTSIDE = re.compile(r'"|,(?=\s*[}\]])|//.*|/\*[\s\S]{0,500}?\*/|\uff1a|\uff0c')
_STANDS_FOR = {'"': '"', "\uff1a": ":", "\uff0c": ","}
_INSIDE = re.compile(r'["\\{\[]')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_END_OF_STRING = re.compile(
    r'"\s*(?:\Z|[}\]]|//|/\*|[:,\uff1a\uff0c]\s*(?:\Z|["{\[}\]]|//|/\*|-?\d|(?:true|false|null|NaN|-?Infinity)\b))'
)
"""A quote with what may stand after a string, or with the end of the reply."""


_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def closed(text: str) -> str:
    """The JSON in ``text`` that was cut short, without what was begun last, and with its brackets closed.

    >>> closed('Here: [{"a": "b"}, {"a": "c", "d": "e'), closed('{"a": ["b", "c'), closed('["x"] and so on')
    ('[{"a": "b"}, {"a": "c"}]', '{"a": ["b"]}', '["x"]')
    """
    begin = VALUE.search(text)
    start = end = begin.start() if begin else len(text)
    waiting: list[str] = []
    closing = ""
    for mark in _MARK.finditer(text, start):
        sign = mark.group()
        if sign == '"':  # of a string that does not end
            break
        if sign in _CLOSING:
            waiting.append(_CLOSING[sign])
        elif waiting and sign == waiting[-1]:
            waiting.pop()
        elif sign != ",":
            continue
        end = mark.start() if sign == "," else mark.end()
        closing = "".join(reversed(waiting))
        if not waiting:
            break
    return text[start:end] + closing


def repaired(text: str, start: re.Pattern[str] = VALUE) -> str:
    """``text`` with the strings of its JSON made whole, without comments and commas before a closing bracket.

    Quotes that do not end a string, and backslashes that begin no escape, are escaped. So are opening brackets inside a
    string, lest one be taken for the beginning of a value. Python's way to write a value becomes JSON's.

    Args:
        text: With anything around the JSON.
        start: Where the JSON begins.

    >>> repaired('{"a": ["b",] /* all */}'), repaired("So: {'a': None}")
    ('{"a": ["b"] }', '{"a": null}')
    """
    begin = start.search(text)
    return _from_python(text) or "".join(_repairs(text, begin.start() if begin else len(text)))


def _from_python(text: str) -> str:
    """The Python value in a text, as JSON; "" where there is none."""
    written = _PYTHON.match(text)
    if written is None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not have
            return json.dumps(ast.literal_eval(written[1]), ensure_ascii=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""


def _repairs(text: str, position: int) -> Iterator[str]:
    inside = False
    while special := (_INSIDE if inside else _OUTSIDE).search(text, position):
        yield text[position : special.start()]
        position = special.end()
        if not inside:
            inside = special.group() == '"'
            yield _STANDS_FOR.get(special.group(), "")
        elif special.group() == '"':
            inside = _END_OF_STRING.match(text, special.start()) is None
            yield r"\"" if inside else '"'
        elif escape := _ESCAPE.match(text, special.start()):
            position = escape.end()
            yield escape.group()
        else:
            yield f"\\u{ord(special.group()):04x}"
    yield text[position:]
