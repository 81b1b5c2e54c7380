"""JSON in the reply of a language model, which may put words or a code fence around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from polyad.text.json_repair import repaired
from polyad.text.outside import sanitize

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
