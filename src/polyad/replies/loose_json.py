"""Finds and repairs JSON in the reply of a language model, which may contain prose, a code fence or syntax errors.

The parsers never invent data. The library json-repair is not used, because it turns half names into entities.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from polyad.text.words import sanitize

_OPENING = re.compile(r"[{\[]")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")

NOT_JSON: Final = object()
"""Stands for a value that could not be decoded."""

_PATIENCE = 500
"""Invalid values after which parsing stops, because a model that repeats a bracket does not stop by itself."""

_TOO_DEEP = 100
"""Cost, in invalid values, of a value that is nested too deeply to decode: it takes so much longer."""


def find_json_values(text: str, opening: re.Pattern[str] = _OPENING, *, nested: bool = False) -> Iterator[Any]:
    """Yield the JSON values in a text, and :data:`NOT_JSON` for each bracket that begins no valid JSON.

    Args:
        text: JSON values with any other text around them.
        opening: Pattern of the beginning of a value; its match ends with the value's first character.
        nested: Also yield the values nested inside a value, after that value.
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


def find_first_json(reply: str) -> Any:
    r"""Return the first JSON object or array in ``reply``; None if there is none.

    >>> find_first_json('Sure: ```json\\n{"clues": []}\\n```')
    {'clues': []}
    """
    return next((value for value in find_json_values(reply) if value is not NOT_JSON), None)


def find_list(reply: str, key: str) -> list[Any] | None:
    """Return the list under ``key`` in a JSON reply, or the first list without a key; None without a list.

    The key may be nested, in upper or lower case, and the JSON may have errors that :func:`repair_json` repairs.

    >>> find_list('{"entities": ["Ada"]}', "entities"), find_list('["Ada"]', "entities")
    (['Ada'], ['Ada'])
    """
    values: list[Any] = []
    for text in (reply, repair_json(reply)):
        values += [value for value in find_json_values(text) if value is not NOT_JSON]
        first_list = next((listed for value in values if (listed := _find_list_in_value(value, key)) is not None), None)
        if first_list is not None:
            return first_list
    lists = [value for value in values if isinstance(value, list)]
    return next((value for value in lists if not all(map(_is_number, value))), next(iter(lists), None))


def _find_list_in_value(value: object, key: str) -> list[Any] | None:
    """Return the list under ``key`` at any depth of a JSON value; None if there is none.

    Uses no recursion, because a model decides how deep the value is nested.
    """
    waiting = [value]
    for item in waiting:
        if isinstance(item, dict):
            keyed = normalize_keys(item)
            if isinstance(keyed.get(key), list):
                return list(keyed[key])
            waiting += keyed.values()
        elif isinstance(item, list):
            waiting += item
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def normalize_keys(json_object: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with its keys in lower case, without spaces, "-" and "_": "Key_Score" is "keyscore"."""
    return {_BETWEEN_WORDS.sub("", key).casefold(): value for key, value in json_object.items()}


def collect_distinct_strings(items: list[Any]) -> list[str]:
    """Return the distinct non-blank strings in a list; a JSON object in the list counts as its first string.

    >>> collect_distinct_strings([" Ada ", "", 1815, "Ada", {"name": "Babbage", "type": "person"}])
    ['Ada', 'Babbage']
    """
    texts = [_first_string(item) for item in items]
    return list(dict.fromkeys(text for text in texts if text))


def find_strings(reply: str, key: str) -> list[str] | None:
    """Return the distinct strings of the list under ``key`` in a JSON reply; None if there is no such list.

    >>> find_strings('{"clues": []}', "clues"), find_strings('{"clues": [7]}', "clues")
    ([], None)
    """
    listed = find_list(reply, key)
    strings = collect_distinct_strings(listed or [])
    return strings if strings or listed == [] else None


def _first_string(item: object) -> str:
    values = list(item.values()) if isinstance(item, dict) else [item]
    return next((sanitize(value).strip() for value in values if isinstance(value, str)), "")


VALUE_START = re.compile(r'[{\[](?=\s*["{\[}\]])')
"""The beginning of an object or array."""

_PYTHON = re.compile(r"[^{\[]*([{\[][\s{\[]*'.*[}\]])", re.DOTALL)
"""Text from the first bracket to the last, if the first quotation mark is a single one."""

_OUTSIDE = re.compile(r'"|,(?=\s*[}\]])|//.*|/\*[\s\S]{0,500}?\*/|\uff1a|\uff0c')
_STANDS_FOR = {'"': '"', "\uff1a": ":", "\uff0c": ","}
_INSIDE = re.compile(r'["\\{\[]')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_END_OF_STRING = re.compile(
    r'"\s*(?:\Z|[}\]]|//|/\*|[:,\uff1a\uff0c]\s*(?:\Z|["{\[}\]]|//|/\*|-?\d|(?:true|false|null|NaN|-?Infinity)\b))'
)
"""A quotation mark that is followed by text that may stand after a string, or by the end of the reply."""


_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def close_cut_json(text: str) -> str:
    """Repair truncated JSON in a text: drop the incomplete last value and add closing brackets.

    >>> close_cut_json('Here: [{"a": "b"}, {"a": "c", "d": "e'), close_cut_json('{"a": ["b", "c')
    ('[{"a": "b"}, {"a": "c"}]', '{"a": ["b"]}')
    """
    begin = VALUE_START.search(text)
    start = end = begin.start() if begin else len(text)
    waiting: list[str] = []
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
        if not waiting:
            break
    return text[start:end] + "".join(reversed(waiting))


def repair_json(text: str, start: re.Pattern[str] = VALUE_START) -> str:
    """Return the JSON in a text without typical errors of language models, such as missing quotes and comments.

    Quotation marks inside a string, backslashes that begin no escape, and opening brackets inside a string are escaped.
    Trailing commas are removed, and a Python literal is converted to JSON.

    Args:
        text: JSON with any other text around it.
        start: Pattern of the beginning of the JSON.

    >>> repair_json('{"a": ["b",] /* all */}'), repair_json("So: {'a': None}")
    ('{"a": ["b"] }', '{"a": null}')
    """
    begin = start.search(text)
    return _convert_python(text) or "".join(_repair_parts(text, begin.start() if begin else len(text)))


def _convert_python(text: str) -> str:
    """Return the Python literal in a text, such as ``{'a': None}``, as JSON; an empty string if there is none."""
    written = _PYTHON.match(text)
    if written is None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not have
            return json.dumps(ast.literal_eval(written[1]), ensure_ascii=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""


def _repair_parts(text: str, position: int) -> Iterator[str]:
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
