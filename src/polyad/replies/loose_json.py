"""JSON in the reply of a language model, which may put words or a code fence around it."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from polyad.text.cleaning import sanitize

_OPENING = re.compile(r"[{\[]")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")

NOT_JSON: Final = object()
"""In place of a value that could not be decoded."""

_PATIENCE = 2000
"""Values that are no JSON after which a text is given up: a model that repeats a bracket does not stop by itself."""

_TOO_DEEP = 100
"""What a value nested too deep to decode counts for: it takes so much longer."""


def json_values(text: str, opening: re.Pattern[str] = _OPENING, *, nested: bool = False) -> Iterator[Any]:
    """The JSON values in ``text``, in order, and :data:`NOT_JSON` for what only begins like one.

    Args:
        text: With anything between the values.
        opening: Where to look for values: it ends with the first character of one.
        nested: Yield the values inside a value after it too.
    """
    decoder = json.JSONDecoder(strict=False)
    position, patience = 0, _PATIENCE
    while patience > 0 and (start := opening.search(text, position)):
        position = start.end()
        try:
            value, end = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError) as error:
            patience -= _TOO_DEEP if isinstance(error, RecursionError) else 1
            yield NOT_JSON
        else:
            yield value
            position = position if nested else end


def first_json(reply: str) -> Any:
    r"""The first JSON object or array in ``reply``; None when there is none.

    >>> first_json('Sure: ```json\\n{"clues": []}\\n```')
    {'clues': []}
    """
    return next((value for value in json_values(reply) if value is not NOT_JSON), None)


def listed_under(reply: str, key: str) -> list[Any] | None:
    r"""The list in ``reply``: under ``key``, as it was asked for, or by itself; None when there is none.

    The object that has the key may stand inside others, in any case, and not quite be JSON.

    >>> listed_under('{"entities": ["Ada"]}', "entities"), listed_under('["Ada"]', "entities")
    (['Ada'], ['Ada'])
    """
    values: list[Any] = []
    for text in (reply, repaired(reply)):
        values += [value for value in json_values(text) if value is not NOT_JSON]
        found = next((listed for value in values if (listed := _under(value, key)) is not None), None)
        if found is not None:
            return found
    lists = [value for value in values if isinstance(value, list)]
    return next((value for value in lists if not all(map(_is_number, value))), next(iter(lists), None))


def _under(value: object, key: str) -> list[Any] | None:
    """The list under ``key`` in an object within ``value``, which may be nested as deep as the model pleased."""
    waiting = [value]
    for item in waiting:
        if isinstance(item, dict):
            keyed = normal_keys(item)
            if isinstance(keyed.get(key), list):
                return list(keyed[key])
            waiting += keyed.values()
        elif isinstance(item, list):
            waiting += item
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def normal_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with its keys as they are looked for: in lower case, in one word ("Key_Score" is "keyscore")."""
    return {_BETWEEN_WORDS.sub("", key).casefold(): value for key, value in record.items()}


def distinct_strings(items: list[Any]) -> list[str]:
    """The strings among ``items`` that are not blank, without blanks around them, each once; of an object its first.

    >>> distinct_strings([" Ada ", "", 1815, "Ada", {"name": "Babbage", "type": "person"}])
    ['Ada', 'Babbage']
    """
    texts = [_first_string(item) for item in items]
    return list(dict.fromkeys(text for text in texts if text))


def strings_under(reply: str, key: str) -> list[str] | None:
    """The distinct strings of the list under ``key``; None where there is no list, or nothing in it is a string.

    >>> strings_under('{"clues": []}', "clues"), strings_under('{"clues": [7]}', "clues")
    ([], None)
    """
    listed = listed_under(reply, key)
    strings = distinct_strings(listed or [])
    return strings if strings or listed == [] else None


def _first_string(item: object) -> str:
    values = list(item.values()) if isinstance(item, dict) else [item]
    return next((sanitize(value).strip() for value in values if isinstance(value, str)), "")


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
